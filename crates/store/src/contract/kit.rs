//! What the cases are written with: a store on trial, places in it, and how a case says what it saw.
//! No case belongs here.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use counterfoil_core::action::{self, Completed};
use counterfoil_core::claim::Draft;
use counterfoil_core::{
    Asked, Claim, Decision, Effect, Expiry, Identity, Key, LeaseId, Operation, Policy, Receipt, Record, Rule, Scope,
    decide,
};

use crate::contract::Subject;
use crate::error::StoreError;
use crate::seam::{Expected, New, RecordStore, Seen, Swap, Swapped};

pub(super) const LEASE: Duration = Duration::from_secs(30);
pub(super) const ATTEMPT: Duration = Duration::from_mins(1);
pub(super) const RETENTION: Duration = Duration::from_hours(1);
/// How long an upstream remembers a child key.
pub(super) const WINDOW: Duration = Duration::from_hours(24);
pub(super) const REFUSED: Duration = Duration::from_hours(2);
pub(super) const MILLISECOND: Duration = Duration::from_millis(1);

/// What a case found out.
pub(super) enum Verdict {
    Holds,
    /// The backend lacks what the case needs.
    NotApplicable(&'static str),
}

/// What a case saw that may not be.
pub(super) struct Broken(String);

pub(super) type Held = Result<Verdict, Broken>;

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<String> for Broken {
    fn from(what: String) -> Self {
        Self(what)
    }
}

impl From<StoreError> for Broken {
    fn from(error: StoreError) -> Self {
        Self(format!("the store failed: {error}"))
    }
}

impl From<counterfoil_core::Error> for Broken {
    fn from(error: counterfoil_core::Error) -> Self {
        Self(format!("the suite's own value was refused: {error}"))
    }
}

impl From<tokio::task::JoinError> for Broken {
    fn from(error: tokio::task::JoinError) -> Self {
        Self(format!("a racing task ended: {error}"))
    }
}

/// Ends a case where something does not hold, with what was seen.
macro_rules! must {
    ($holds:expr, $($what:tt)+) => {
        if !$holds {
            return Err($crate::contract::kit::Broken::from(format!($($what)+)));
        }
    };
}
pub(super) use must;

/// One store on trial.
pub(super) struct Trial {
    pub(super) subject: Box<dyn Subject>,
}

impl Trial {
    pub(super) fn new(subject: Box<dyn Subject>) -> Self {
        Self { subject }
    }

    pub(super) fn store(&self) -> Arc<dyn RecordStore> {
        self.subject.store()
    }

    pub(super) async fn advance(&self, by: Duration) -> Result<(), Broken> {
        Ok(self.subject.advance(by).await?)
    }

    /// The place of `key` under the suite's usual scope and operation.
    pub(super) fn place(&self, key: &str) -> Result<Place, Broken> {
        self.place_of(identity(key)?)
    }

    pub(super) fn place_of(&self, identity: Identity) -> Result<Place, Broken> {
        Ok(Place { store: self.store(), identity })
    }

    /// Sweeps until nothing more is due.
    pub(super) async fn sweep_all(&self) -> Result<(), Broken> {
        let store = self.store();
        for _ in 0..1_000 {
            if !store.sweep(1_000).await?.more {
                return Ok(());
            }
        }
        Err("a sweep says for ever that more is due".to_owned().into())
    }
}

pub(super) fn identity(key: &str) -> Result<Identity, Broken> {
    Ok(Identity::new(Scope::principal("acme")?, Operation::new("create-order")?, Key::new(key)?))
}

pub(super) fn policy(effect: Effect, expiry: Expiry) -> Policy {
    Policy { lease: LEASE, attempt_limit: ATTEMPT, retention: RETENTION, expiry, effect, window: WINDOW }
}

pub(super) fn claim_of(identity: &Identity, body: &'static str) -> Result<Claim, Broken> {
    Claim::new(identity.clone(), Asked::bytes(body), &Rule::bytes())
        .map_err(|error| format!("the suite's own claim was refused: {error}").into())
}

pub(super) fn lease(number: u8) -> LeaseId {
    LeaseId::from_bytes([number; 16])
}

/// One identity in a store.
#[derive(Clone)]
pub(super) struct Place {
    pub(super) store: Arc<dyn RecordStore>,
    pub(super) identity: Identity,
}

impl Place {
    pub(super) async fn read(&self) -> Result<Seen, Broken> {
        Ok(self.store.read(&self.identity).await?)
    }

    pub(super) async fn record(&self) -> Result<Option<Arc<Record>>, Broken> {
        Ok(self.read().await?.record)
    }

    /// The record that must stand.
    pub(super) async fn standing(&self) -> Result<Arc<Record>, Broken> {
        self.record().await?.ok_or_else(|| format!("nothing stands at {}", self.identity.digest()).into())
    }

    /// What the usual claim is answered.
    pub(super) async fn decision(&self) -> Result<Decision, Broken> {
        let seen = self.read().await?;
        Ok(decide(seen.record.as_deref(), &claim_of(&self.identity, "order")?, seen.now).0)
    }

    pub(super) fn draft(&self, number: u8, effect: Effect) -> Result<Draft, Broken> {
        let claim = claim_of(&self.identity, "order")?;
        Ok(Draft::new(&claim, &policy(effect, Expiry::NewAction), lease(number), self.store.holder()))
    }

    pub(super) fn swap(&self, expected: Expected, new: New) -> Swap {
        Swap { identity: self.identity.clone(), expected, new, not_after: None, note: None }
    }

    pub(super) async fn send(&self, expected: Expected, new: New) -> Result<Swapped, Broken> {
        Ok(self.store.swap(self.swap(expected, new)).await?)
    }

    /// A write that nothing stands in the way of.
    pub(super) async fn write(&self, expected: Expected, new: New) -> Result<Option<Arc<Record>>, Broken> {
        match self.send(expected, new).await? {
            Swapped::Won { record, .. } => Ok(record),
            other => Err(format!("a write that expects what stands did not win: {other:?}").into()),
        }
    }

    /// A first claim, which must win.
    pub(super) async fn claim(&self, number: u8) -> Result<Arc<Record>, Broken> {
        self.claim_as(number, Effect::Other).await
    }

    pub(super) async fn claim_as(&self, number: u8, effect: Effect) -> Result<Arc<Record>, Broken> {
        let draft = self.draft(number, effect)?;
        let record = self.write(Expected::Absent, New::claim(draft)).await?;
        record.ok_or_else(|| "a claim won without a record".to_owned().into())
    }

    /// The usual completion of `record`, as a new record at the store's time.
    pub(super) async fn done(&self, record: &Record, expiry: Expiry) -> Result<Arc<Record>, Broken> {
        let now = self.read().await?.now.at;
        done(record, Receipt::new(201, "made"), expiry, now)
    }

    /// Completes `record`, which stands.
    pub(super) async fn complete(&self, record: &Record, expiry: Expiry) -> Result<Arc<Record>, Broken> {
        let done = self.done(record, expiry).await?;
        self.write(Expected::record(record), New::put(done.clone())).await?;
        Ok(done)
    }

    pub(super) async fn delete(&self, record: &Record) -> Result<(), Broken> {
        self.write(Expected::record(record), New::Delete).await.map(|_| ())
    }

    /// Exactly this must stand.
    pub(super) async fn must_stand(&self, want: Option<&Record>, after: &str) -> Result<(), Broken> {
        let stands = self.record().await?;
        must!(stands.as_deref() == want, "after {after} there must stand {want:?}, and there stands {stands:?}");
        Ok(())
    }

    /// A write that must lose, and change nothing.
    pub(super) async fn must_lose(&self, expected: Expected, new: New, what: &str) -> Result<(), Broken> {
        let before = self.record().await?;
        match self.send(expected, new).await? {
            Swapped::Lost { stands, .. } => {
                must!(stands == before, "{what} lost to {before:?} and was told of {stands:?}");
            }
            other => return Err(format!("{what} did not lose: {other:?}").into()),
        }
        self.must_stand(before.as_deref(), what).await
    }
}

pub(super) fn done(
    record: &Record,
    receipt: Receipt,
    expiry: Expiry,
    now: counterfoil_core::Timestamp,
) -> Result<Arc<Record>, Broken> {
    match action::complete(Some(record), record.lease.id, receipt, RETENTION, expiry, now) {
        Ok(Completed::Write(record)) => Ok(Arc::new(record)),
        other => Err(format!("the suite's own completion was refused: {other:?}").into()),
    }
}
