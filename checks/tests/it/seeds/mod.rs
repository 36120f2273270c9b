//! The two fixtures that the project comes from, whole and with their figures, on every store and through every door.
//!
//! A fixture is a story told to a [`Shop`]; a shop is one way of keeping the promise. The stories are `scope.rs` and
//! `intent.rs`; the shops are `elsewhere.rs` (the gate, effects outside the store), `coupled.rs` (effects in the store's
//! own transaction), `http.rs` (the layer around a service), `proxied.rs` (the proxy in front of it) and `instances.rs`
//! (three proxies before one database server). `probed.rs` has the fixtures' own services, seen by the probe. What does not belong here: crashes.

mod coupled;
mod elsewhere;
mod http;
mod instances;
mod intent;
mod probed;
mod proxied;
mod scope;
mod wire;

use std::{future::Future, path::Path, sync::Arc, time::Duration};

use counterfoil_core::{Asked, Claim, Identity, Key, Operation, Policy, Rule, Scope, Timestamp};
use counterfoil_store::{MemoryStore, RecordStore, SqliteStore, clock::TestClock, sqlite::Options};
use serde_json::{Value, json};
use tempfile::TempDir;

/// The fixture's explicit retention.
const RETENTION: Duration = Duration::from_secs(60);

/// Which fixture's service it is: what it accepts and what it answers.
#[derive(Clone, Copy)]
enum Fixture {
    Scope,
    Intent,
}

impl Fixture {
    /// Whether the parameters are valid.
    fn accepts(self, parameters: &Value) -> bool {
        let members = parameters.as_object().map_or(0, serde_json::Map::len);
        let quantity = parameters["quantity"].as_u64().is_some_and(|quantity| quantity >= 1);
        let product = parameters["product"].as_str().is_some_and(|product| !product.is_empty());
        match self {
            Self::Scope => members == 1 && quantity,
            Self::Intent => members == 2 && quantity && product,
        }
    }

    /// The result of the effect with that id.
    fn result(self, id: u64, parameters: &Value) -> String {
        match self {
            Self::Scope => json!({"effect_id": id, "quantity": parameters["quantity"]}).to_string(),
            Self::Intent => json!({"order_id": id}).to_string(),
        }
    }
}

/// One attempt, its tenant and operation already verified.
#[derive(Clone)]
struct Order {
    tenant: String,
    operation: String,
    key: String,
    /// JSON, as the client wrote it.
    body: String,
    /// An exception is raised after the effect and before the receipt.
    fails: bool,
}

impl Order {
    fn parameters(&self) -> Value {
        serde_json::from_str(&self.body).expect("the fixtures send JSON")
    }

    fn claim(&self) -> Claim {
        let scope = Scope::principal(self.tenant.clone()).expect("it is a scope");
        let operation = Operation::new(self.operation.clone()).expect("it is a name");
        let identity = Identity::new(scope, operation, Key::new(self.key.clone()).expect("it is a key"));
        Claim::new(identity, Asked::bytes(self.body.clone()), &Rule::json()).expect("the body is JSON")
    }
}

/// What the client was told.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Told {
    Created(String),
    Replayed(String),
    Mismatch,
    Invalid,
    Failed,
}

/// A service that keeps the promise in one way.
trait Shop: Send + Sync + Sized + 'static {
    /// Whether time can be made to pass.
    const AGES: bool = true;

    /// Lets a client make one attempt; a duplicate of one that runs waits.
    fn order(&self, order: Order) -> impl Future<Output = Told> + Send;

    /// The same service over another connection of a client.
    fn connected(&self) -> Self;

    /// The same service started anew: nothing is left of it but what is kept.
    fn fresh(&self) -> Self;

    /// How many effects there are, and how many receipts.
    fn counts(&self) -> impl Future<Output = (u64, u64)> + Send;

    /// Time passes.
    fn advance(&self, by: Duration);
}

fn policy() -> Policy {
    Policy { retention: RETENTION, ..Policy::default() }
}

/// A clock to begin with.
fn clock() -> TestClock {
    TestClock::new(Timestamp::from_millis(1_800_000_000_000))
}

/// Where records are kept, and kept still when a connection ends.
#[derive(Clone)]
enum Kept {
    Memory(Arc<MemoryStore>),
    Sqlite { home: Arc<TempDir>, clock: TestClock },
}

impl Kept {
    fn memory(clock: &TestClock) -> Self {
        Self::Memory(Arc::new(MemoryStore::with_clock(Arc::new(clock.clone()))))
    }

    fn sqlite(clock: &TestClock) -> Self {
        let home = tempfile::tempdir().expect("there is room for temporary files");
        Self::Sqlite { home: Arc::new(home), clock: clock.clone() }
    }

    /// The store, connected anew where it has connections.
    fn connect(&self) -> Arc<dyn RecordStore> {
        match self {
            Self::Memory(store) => store.clone(),
            Self::Sqlite { home, clock } => open(home.path(), clock),
        }
    }
}

fn open(home: &Path, clock: &TestClock) -> Arc<SqliteStore> {
    let mut options = Options::default();
    options.clock = Arc::new(clock.clone());
    SqliteStore::open(home.join("seeds.db"), options).expect("the store opens")
}
