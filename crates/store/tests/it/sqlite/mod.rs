//! The SQLite store through its public face, and what every one of these tests needs.
//! What needs the inside of the writer stands in the crate itself (`src/sqlite/tests`).

mod caller;
mod clock;
#[cfg(feature = "contract")]
mod contract;
mod coupled;
mod effects;
mod file;
mod group;
mod open;
mod outbox;
mod processes;
mod records;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use counterfoil_core::claim::Draft;
use counterfoil_core::{
    Asked, Claim, Identity, Key, LeaseId, Operation, Policy, Receipt, Record, Rule, Scope, Timestamp,
};
use counterfoil_store::clock::TestClock;
use counterfoil_store::seam::{Expected, New, RecordStore as _, Swap, Swapped};
use counterfoil_store::sqlite::rusqlite::Connection;
use counterfoil_store::sqlite::{Executed, Handle, Options, Origin};
use counterfoil_store::{ErrorKind, SqliteStore, StoreError};
use tempfile::TempDir;

/// When the tests' clocks begin.
const BEGIN: Timestamp = Timestamp::from_millis(1_750_000_000_000);

/// A directory with a store's file and the application's own tables in it.
struct Place {
    directory: TempDir,
    clock: TestClock,
}

impl Place {
    fn new() -> Self {
        Self { directory: TempDir::new().unwrap(), clock: TestClock::new(BEGIN) }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("store.db")
    }

    fn options(&self) -> Options {
        let mut options = Options::default();
        options.clock = Arc::new(self.clock.clone());
        options.busy_timeout = Duration::from_millis(50);
        options
    }

    fn open(&self) -> Arc<SqliteStore> {
        self.open_with(self.options()).unwrap()
    }

    fn open_with(&self, options: Options) -> Result<Arc<SqliteStore>, StoreError> {
        SqliteStore::open(self.path(), options)
    }

    /// A store beside tables for effects: `orders`, and `lines` that may name only orders that stand at COMMIT.
    fn with_orders(&self) -> Arc<SqliteStore> {
        let store = self.open();
        self.make_orders();
        store
    }

    fn make_orders(&self) {
        self.outside()
            .execute_batch(
                "CREATE TABLE orders (id TEXT PRIMARY KEY);
                 CREATE TABLE lines (id INTEGER PRIMARY KEY,
                   of TEXT NOT NULL REFERENCES orders (id) DEFERRABLE INITIALLY DEFERRED);",
            )
            .unwrap();
    }

    /// A connection of somebody else.
    fn outside(&self) -> Connection {
        let conn = Connection::open(self.path()).unwrap();
        conn.execute_batch("PRAGMA synchronous = FULL").unwrap();
        conn
    }

    fn orders(&self) -> i64 {
        self.outside().query_row("SELECT count(*) FROM orders", [], |row| row.get(0)).unwrap()
    }
}

fn identity(key: &str) -> Identity {
    Identity::new(Scope::principal("acme").unwrap(), Operation::new("create-order").unwrap(), Key::new(key).unwrap())
}

fn claim_of(key: &str, body: &'static str) -> Claim {
    Claim::new(identity(key), Asked::bytes(body), &Rule::bytes()).unwrap()
}

fn claim(key: &str) -> Claim {
    claim_of(key, "order")
}

fn draft(key: &str, lease: u8, store: &SqliteStore) -> Draft {
    Draft::new(&claim(key), &Policy::default(), LeaseId::from_bytes([lease; 16]), store.holder())
}

fn claiming(key: &str, lease: u8, store: &SqliteStore) -> Swap {
    let new = New::claim(draft(key, lease, store));
    Swap { identity: identity(key), expected: Expected::Absent, new, not_after: None, note: None }
}

fn put(key: &str, before: &Record, next: Record) -> Swap {
    let expected = Expected::record(before);
    Swap { identity: identity(key), expected, new: New::put(next), not_after: None, note: None }
}

async fn claimed(store: &SqliteStore, key: &str, lease: u8) -> Record {
    match store.swap(claiming(key, lease, store)).await.unwrap() {
        Swapped::Won { record: Some(record), .. } => Arc::unwrap_or_clone(record),
        other => panic!("{key} was not claimed: {other:?}"),
    }
}

async fn record(store: &SqliteStore, key: &str) -> Option<Record> {
    store.read(&identity(key)).await.unwrap().record.map(Arc::unwrap_or_clone)
}

/// An effect that makes one order.
fn order(id: &str) -> impl FnOnce(&Handle<'_>) -> Result<Receipt, String> + Send + 'static {
    let id = id.to_owned();
    move |handle| {
        handle.execute("INSERT INTO orders (id) VALUES (?1)", [&id]).map_err(|error| error.to_string())?;
        Ok(Receipt::new(201, id))
    }
}

#[track_caller]
fn origin<E: std::fmt::Debug>(executed: Result<Executed<E>, StoreError>) -> Origin {
    match executed.unwrap() {
        Executed::Done { origin, .. } => origin,
        other => panic!("not done: {other:?}"),
    }
}

#[track_caller]
fn refused<T: std::fmt::Debug>(answer: Result<T, StoreError>, kind: ErrorKind, says: &str) -> StoreError {
    let error = answer.unwrap_err();
    assert_eq!(error.kind, kind, "{error}");
    assert!(error.to_string().contains(says), "wanted `{says}`: {error}");
    error
}

/// The names in the store's directory that are instance files.
fn instances(directory: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_string_lossy().contains("-instance-"))
        .collect();
    found.sort();
    found
}
