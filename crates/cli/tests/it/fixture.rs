//! A store in a folder, with records in every state that an operator meets.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use counterfoil_core::{Asked, Claim, Identity, Key, Operation, Policy, Receipt, Rule, Scope, Why};
use counterfoil_store::sqlite::Options;
use counterfoil_store::{Begun, Gate, Permit, SqliteStore};
use tempfile::TempDir;

/// How short a span is that is over when the next call is made.
const OVER: Duration = Duration::from_millis(1);
const LONG: Duration = Duration::from_hours(1);

/// A folder with `counterfoil.db` in it.
pub(crate) struct Fixture {
    pub(crate) folder: TempDir,
    /// Held open: its records' owner lives.
    store: Arc<SqliteStore>,
}

/// The identity of `key` under `create-order`.
pub(crate) fn identity(key: &str) -> Identity {
    Identity::new(Scope::principal("alice").unwrap(), Operation::new("create-order").unwrap(), Key::new(key).unwrap())
}

impl Fixture {
    pub(crate) fn empty() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(folder.path().join("counterfoil.db"), Options::default()).unwrap();
        Self { folder, store }
    }

    /// A store with `done`, `doubt` (its run can no longer arrive), `fresh-doubt` (it can), `running`, and `old`, whose
    /// receipt has expired.
    pub(crate) async fn full() -> Self {
        let fixture = Self::empty();
        let gate = Gate::new(fixture.store.clone()).unwrap();
        let usual = Policy { lease: LONG, attempt_limit: LONG, ..Policy::default() };
        let over = Policy { lease: OVER, attempt_limit: OVER, ..Policy::default() };
        let created = Receipt::new(201, "{\"id\":1}").with_header("location", "/orders/1");

        let mut done = claim(&gate, "done", &usual).await;
        gate.complete(&mut done, &created).await.unwrap();
        let mut doubt = claim(&gate, "doubt", &over).await;
        gate.doubt(&mut doubt, Why::Doubted).await.unwrap();
        let mut fresh = claim(&gate, "fresh-doubt", &usual).await;
        gate.doubt(&mut fresh, Why::Doubted).await.unwrap();
        drop(claim(&gate, "running", &usual).await);
        let mut old = claim(&gate, "old", &Policy { retention: OVER, ..usual }).await;
        gate.complete(&mut old, &created).await.unwrap();
        // Time passes with every commit, and one more is enough for what is over after a millisecond.
        let mut later = claim(&gate, "later", &over).await;
        gate.release(&mut later).await.unwrap();
        fixture
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> crate::command::Run {
        crate::command::run(self.folder.path(), arguments)
    }

    /// The version of `key` as `receipts show --json` tells it: `N:LEASE`.
    pub(crate) fn version(&self, key: &str) -> String {
        let shown = self.run(&["receipts", "show", key, "--json"]);
        shown.json()[0]["version"].as_str().unwrap().to_owned()
    }
}

async fn claim(gate: &Gate, key: &str, policy: &Policy) -> Permit {
    let mut claim = Claim::new(identity(key), Asked::bytes("{}"), &Rule::bytes()).unwrap();
    match gate.begin(&mut claim, policy).await.unwrap() {
        Begun::Execute(permit) => *permit,
        other => panic!("{key}: {other:?}"),
    }
}
