//! Ours, as the tables call it: the same effect as the baselines', through the library's public doors.

use std::future::Future;
use std::path::Path;
use std::sync::Arc;

use axum::Router;
use counterfoil_core::fingerprint::BodyError;
use counterfoil_core::{Asked, Claim, Effect, Identity, Key, Operation, Policy, Receipt, Rule, Scope};
use counterfoil_middleware::{GuardLayer, Settings, SingleTenant, Terms, Unlisted};
use counterfoil_store::sqlite::rusqlite::{Error, params};
use counterfoil_store::sqlite::{Executed, Handle, Options, Origin};
use counterfoil_store::{ErrorKind, Gate, MemoryStore, RecordStore, SqliteStore, StoreError};

use crate::Fault;
use crate::keys::{Keys, Order};
use crate::load::{Did, Usage};
use crate::seed::{self, OPERATION, TENANT};

/// Why an effect was rolled back.
#[derive(Debug)]
pub(crate) enum Failed {
    /// It was meant to.
    Wanted,
    /// SQLite refused it.
    Sqlite,
}

impl From<Error> for Failed {
    fn from(_: Error) -> Self {
        Self::Sqlite
    }
}

/// Makes claims of one operation, as a service does: the scope is the caller's, the policy the operation's.
#[derive(Clone)]
pub(crate) struct Claims {
    scope: Scope,
    operation: Operation,
    rule: Rule,
    pub(crate) policy: Policy,
}

impl Claims {
    pub(crate) fn new() -> Result<Self, Fault> {
        Ok(Self {
            scope: Scope::principal(TENANT)?,
            operation: Operation::new(OPERATION)?,
            rule: Rule::auto(),
            policy: Policy::default(),
        })
    }

    /// The identity that `key` names.
    pub(crate) fn identity(&self, key: &str) -> Result<Identity, Fault> {
        Ok(Identity::new(self.scope.clone(), self.operation.clone(), Key::new(key)?))
    }

    /// A claim of it.
    pub(crate) fn claim(&self, key: &str) -> Result<Claim, Fault> {
        let claim: Result<Claim, BodyError> =
            Claim::new(self.identity(key)?, Asked::bytes(&b"{\"quantity\":2}"[..]), &self.rule);
        Ok(claim?)
    }
}

/// A SQLite store as its defaults are, in a file of its own, beside the table of effects.
pub(crate) struct Sqlite {
    store: Arc<SqliteStore>,
    claims: Claims,
}

impl Sqlite {
    pub(crate) fn open(path: &Path) -> Result<Self, Fault> {
        let store = SqliteStore::open(path, Options::default())?;
        seed::connect(path)?.execute_batch(seed::EFFECTS)?;
        Ok(Self { store, claims: Claims::new()? })
    }

    /// The store itself.
    pub(crate) const fn store(&self) -> &Arc<SqliteStore> {
        &self.store
    }

    /// How many transactions were committed.
    pub(crate) fn commits(&self) -> u64 {
        self.store.batches()
    }

    /// This process's, with the store's commits.
    pub(crate) fn usage(&self) -> Result<Usage, Fault> {
        Ok(Usage { commits: Some(self.commits()), ..Usage::own()? })
    }

    /// Runs the effect under `key`; `fails`: it answers an error after its statement.
    pub(crate) fn create(&self, key: &str, fails: bool) -> impl Future<Output = Did> + Send + use<> {
        self.call(key, fails, Origin::Fresh)
    }

    /// The same on this thread.
    pub(crate) fn create_blocking(&self, key: &str) -> Did {
        self.call_blocking(key, Origin::Fresh)
    }

    /// Asks for what was done under `key`.
    pub(crate) fn replay(&self, key: &str) -> impl Future<Output = Did> + Send + use<> {
        self.call(key, false, Origin::Replayed)
    }

    fn call(&self, key: &str, fails: bool, wanted: Origin) -> impl Future<Output = Did> + Send + use<> {
        let (store, policy, claim) = (self.store.clone(), self.claims.policy.clone(), self.claims.claim(key));
        async move {
            match claim {
                Ok(claim) => did(store.execute(claim, &policy, move |handle| effect(handle, fails)).await, wanted),
                Err(fault) => Did::Failed(fault.to_string()),
            }
        }
    }

    /// The same on this thread.
    pub(crate) fn replay_blocking(&self, key: &str) -> Did {
        self.call_blocking(key, Origin::Replayed)
    }

    fn call_blocking(&self, key: &str, wanted: Origin) -> Did {
        match self.claims.claim(key) {
            Ok(claim) => {
                did(self.store.execute_blocking(claim, &self.claims.policy, |handle| effect(handle, false)), wanted)
            }
            Err(fault) => Did::Failed(fault.to_string()),
        }
    }

    /// Runs `count` actions that will be replayed, and answers their keys.
    pub(crate) fn remember(&self, count: usize) -> Result<Vec<String>, Fault> {
        let mut source = Keys::new(Order::Time);
        let keys: Vec<String> = (0..count).map(|_| source.next().to_string()).collect();
        for key in &keys {
            match self.create_blocking(key) {
                Did::Done => {}
                did => return Err(format!("a first run came to {did:?}").into()),
            }
        }
        Ok(keys)
    }
}

/// The effect of the baselines.
pub(crate) fn effect(handle: &Handle<'_>, fails: bool) -> Result<Receipt, Failed> {
    let id = handle.prepare_cached(seed::EFFECT)?.insert(params![TENANT, OPERATION, 2])?;
    if fails {
        return Err(Failed::Wanted);
    }
    Ok(Receipt::new(201, format!("{{\"effect_id\":{id},\"quantity\":2}}")))
}

fn did(answer: Result<Executed<Failed>, StoreError>, wanted: Origin) -> Did {
    match answer {
        Ok(Executed::Done { origin, .. }) if origin == wanted => Did::Done,
        Ok(Executed::EffectFailed(Failed::Wanted)) => Did::Refused,
        Ok(other) => Did::Failed(format!("answered {other:?}")),
        Err(error) => refused(&error),
    }
}

/// What a store's error counts as.
pub(crate) fn refused(error: &StoreError) -> Did {
    if error.kind == ErrorKind::Busy { Did::Busy } else { Did::Failed(error.to_string()) }
}

/// A store that lives as long as the process.
pub(crate) fn memory() -> Arc<dyn RecordStore> {
    Arc::new(MemoryStore::new())
}

/// The router behind our layer, over any store.
pub(crate) fn guarded(store: Arc<dyn RecordStore>, effect: Effect, router: Router) -> Result<Router, Fault> {
    let policy = Policy { effect, ..Policy::default() };
    let unlisted = Unlisted::GuardKeyed(Box::new(Terms { policy, ..Terms::default() }));
    let guard = GuardLayer::new(Gate::new(store)?, Settings { unlisted, ..Settings::new(SingleTenant) })?;
    Ok(router.layer(guard))
}
