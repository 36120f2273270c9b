//! One action as a process does it: claimed, run, and ended. Its effect is a line in a synced file, or a row in the
//! store's own file.
//!
//! What does not belong here: when the process dies, and what must hold then.

use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions},
    io::Write,
    path::Path,
    sync::Arc,
    time::Duration,
};

use counterfoil_core::{Asked, Claim, Effect, Identity, Key, Operation, Policy, Receipt, Rule, Scope, Why};
use counterfoil_store::{
    Begun, Ended, Gate, SqliteStore,
    sqlite::{Executed, Handle, Missing, Options},
};
use rusqlite::{Connection, TransactionBehavior};

const FILE: &str = "counterfoil.db";
const EFFECTS: &str = "effects";
const INSERT: &str = "INSERT INTO effect (key) VALUES (?1)";

/// How an action ends where nothing crashes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Flow {
    /// Its effect is elsewhere, and its result is written.
    Complete,
    /// It has no effect, and gives the key back.
    Release,
    /// Its effect is elsewhere, and nobody knows whether it came about.
    Doubt,
    /// Its effect commits together with its receipt.
    Coupled,
    /// The same, in a transaction of the caller's own.
    Owned,
}

impl Flow {
    pub(crate) const ALL: [Self; 5] = [Self::Complete, Self::Release, Self::Doubt, Self::Coupled, Self::Owned];

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Release => "release",
            Self::Doubt => "doubt",
            Self::Coupled => "coupled",
            Self::Owned => "owned",
        }
    }

    pub(crate) fn named(name: &str) -> Self {
        Self::ALL.into_iter().find(|flow| flow.as_str() == name).expect("a flow is named")
    }

    pub(crate) fn identity(self, key: &str) -> Identity {
        let operation = match self {
            Self::Complete | Self::Release | Self::Doubt => "elsewhere",
            Self::Coupled | Self::Owned => "coupled",
        };
        let (operation, key) = (Operation::new(operation), Key::new(key));
        Identity::new(Scope::single_tenant(), operation.expect("it is a name"), key.expect("it is a key"))
    }

    pub(crate) fn claim(self, key: &str) -> Claim {
        let asked = Asked::bytes(key.to_owned());
        Claim::new(self.identity(key), asked, &Rule::bytes()).expect("bytes are compared as they are")
    }

    /// Nothing of a run can arrive after its process is gone, so "did not happen" needs no waiting.
    pub(crate) fn policy(self) -> Policy {
        let effect = match self {
            Self::Complete | Self::Release | Self::Doubt => Effect::Other,
            Self::Coupled | Self::Owned => Effect::Coupled,
        };
        Policy { effect, attempt_limit: Duration::ZERO, ..Policy::default() }
    }
}

/// Makes the files of a store, with a table for effects.
pub(crate) fn born(directory: &Path) {
    made(directory);
    let made = "CREATE TABLE effect (id INTEGER PRIMARY KEY, key TEXT NOT NULL)";
    raw(directory).execute_batch(made).expect("the table is made");
    File::create(directory.join(EFFECTS)).and_then(|file| file.sync_all()).expect("the file is made");
}

/// Makes the store's file, where it does not stand whole already.
pub(crate) fn made(directory: &Path) {
    drop(opened(directory, Missing::Create));
}

/// Opens the store as a process that starts.
pub(crate) fn open(directory: &Path) -> Arc<SqliteStore> {
    opened(directory, Missing::Refuse)
}

fn opened(directory: &Path, missing: Missing) -> Arc<SqliteStore> {
    let mut options = Options::default();
    options.missing = missing;
    SqliteStore::open(directory.join(FILE), options).expect("the store opens")
}

/// The same file without our store.
pub(crate) fn raw(directory: &Path) -> Connection {
    Connection::open(directory.join(FILE)).expect("the file opens")
}

/// The effect elsewhere: a line, synced.
pub(crate) fn effect(directory: &Path, key: &str) {
    let mut file = OpenOptions::new().append(true).open(directory.join(EFFECTS)).expect("the file is there");
    file.write_all(format!("{key}\n").as_bytes()).and_then(|()| file.sync_all()).expect("it can be written");
}

/// How often each key has an effect elsewhere.
pub(crate) fn effects(directory: &Path) -> BTreeMap<String, usize> {
    let text = fs::read_to_string(directory.join(EFFECTS)).expect("the file is there");
    let mut count = BTreeMap::new();
    // A loss of power cuts a line short, or leaves zeros in the place of one, where it was not synced.
    for key in text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')) {
        *count.entry(key.trim_start_matches('\0').to_owned()).or_default() += 1;
    }
    count
}

/// The result of each effect in the store's file, by key.
pub(crate) fn coupled_effects(directory: &Path) -> BTreeMap<String, Vec<String>> {
    let database = raw(directory);
    let mut statement = database.prepare("SELECT key, id FROM effect").expect("the table is there");
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get::<_, i64>(1)?))).expect("it reads");
    let mut results: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for row in rows {
        let (key, id) = row.expect("it reads");
        results.entry(key).or_default().push(format!("row {id}"));
    }
    results
}

/// What a caller was told.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Told {
    /// It ran now, or had run before: this is the result.
    Answered(Receipt),
    /// It ran now, and there is no result to be had.
    Ended(Ended),
    InProgress,
    Unknown(Why),
}

/// Does one action through the gate, its effect elsewhere.
pub(crate) async fn elsewhere(gate: &Gate, directory: &Path, flow: Flow, key: &str, began: impl Fn()) -> Told {
    let mut permit = match gate.begin(&mut flow.claim(key), &flow.policy()).await.expect("the store answers") {
        Begun::Execute(permit) => permit,
        begun => return told(begun),
    };
    began();
    let receipt = Receipt::new(201, key.to_owned());
    let ended = match flow {
        Flow::Complete | Flow::Coupled | Flow::Owned => {
            effect(directory, key);
            gate.complete(&mut permit, &receipt).await
        }
        Flow::Release => gate.release(&mut permit).await,
        Flow::Doubt => {
            effect(directory, key);
            gate.doubt(&mut permit, Why::Doubted).await
        }
    };
    match ended.expect("the store answers") {
        Ended::Written { expires_at: Some(_) } => Told::Answered(receipt),
        ended @ (Ended::Written { expires_at: None } | Ended::Refused(_)) => Told::Ended(ended),
    }
}

/// Does one action in the store's own transaction.
pub(crate) async fn coupled(store: &SqliteStore, key: &str) -> Told {
    let (name, flow) = (key.to_owned(), Flow::Coupled);
    let effect = move |handle: &Handle<'_>| -> rusqlite::Result<Receipt> {
        handle.execute(INSERT, [&name])?;
        Ok(Receipt::new(201, format!("row {}", handle.last_insert_rowid())))
    };
    executed(store.execute(flow.claim(key), &flow.policy(), effect).await.expect("the store answers"))
}

/// The same in a transaction of the caller's own, with a call before each step after which a crash may come.
pub(crate) fn owned(store: &SqliteStore, directory: &Path, key: &str, step: impl Fn()) -> Told {
    let mut database = raw(directory);
    database.busy_timeout(Duration::from_secs(20)).expect("it obeys");
    let tx = database.transaction_with_behavior(TransactionBehavior::Immediate).expect("it begins");
    step();
    let (mut claim, policy) = (Flow::Owned.claim(key), Flow::Owned.policy());
    let told = store.execute_in(&tx, &mut claim, &policy, |tx| -> rusqlite::Result<Receipt> {
        tx.execute(INSERT, [key])?;
        step();
        Ok(Receipt::new(201, format!("row {}", tx.last_insert_rowid())))
    });
    let told = executed(told.expect("the store answers"));
    step();
    tx.commit().expect("it commits");
    step();
    told
}

fn executed(executed: Executed<rusqlite::Error>) -> Told {
    match executed {
        Executed::Done { receipt, .. } => Told::Answered(receipt),
        Executed::InProgress { .. } => Told::InProgress,
        Executed::Unknown { why, .. } => Told::Unknown(why),
        other @ (Executed::EffectFailed(_) | Executed::Mismatch | Executed::Expired { .. }) => {
            panic!("nothing of that can be: {other:?}")
        }
    }
}

/// Begins an action that must not run: a retry.
pub(crate) async fn retry(gate: &Gate, flow: Flow, key: &str) -> Told {
    told(gate.begin(&mut flow.claim(key), &flow.policy()).await.expect("the store answers"))
}

fn told(begun: Begun) -> Told {
    match begun {
        Begun::Execute(permit) => panic!("it ran again: {permit:?}"),
        Begun::Replay { receipt, .. } => Told::Answered(receipt),
        Begun::InProgress { .. } => Told::InProgress,
        Begun::Unknown { why, .. } => Told::Unknown(why),
        begun @ (Begun::Mismatch | Begun::Expired { .. }) => panic!("nobody asked anything else: {begun:?}"),
    }
}
