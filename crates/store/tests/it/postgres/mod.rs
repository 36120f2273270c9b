//! The PostgreSQL store on private servers: the public contract, and what only this store promises.
//! Tests of private parts are beside them in `src`.

mod apply;
mod batch;
mod commits;
mod concluded;
mod contract;
mod coupled;
mod faults;
mod fence;
mod outbox;
mod plans;
mod schema;
mod servers;

use std::sync::Arc;

use counterfoil_core::claim::Draft;
use counterfoil_core::{Asked, Claim, Identity, Key, LeaseId, Operation, Policy, Record, Rule, Scope};
use counterfoil_store::postgres::trial::{Database, Server, TestTime};
use counterfoil_store::postgres::{Options, PostgresStore};
use counterfoil_store::seam::{Expected, New, RecordStore, Swap};

/// An empty store in a database of its own, on a time that only the test moves.
struct Place {
    database: Database,
    time: TestTime,
}

impl Place {
    async fn new() -> Self {
        Self::on(&Server::shared().unwrap()).await
    }

    async fn on(server: &Arc<Server>) -> Self {
        let database = server.with_store().await.unwrap();
        Self { time: TestTime::of(&database).await.unwrap(), database }
    }

    fn options(&self) -> Options {
        let mut options = Options::default();
        options.clock = Arc::new(self.time.clock.clone());
        options
    }

    async fn open(&self) -> Arc<PostgresStore> {
        PostgresStore::open(&self.database.url(), self.options()).await.unwrap()
    }
}

fn identity(key: &str) -> Identity {
    Identity::new(Scope::principal("acme").unwrap(), Operation::new("create-order").unwrap(), Key::new(key).unwrap())
}

fn claim(key: &str) -> Claim {
    Claim::new(identity(key), Asked::bytes("order"), &Rule::bytes()).unwrap()
}

fn claiming(key: &str, lease: u8) -> Swap {
    let draft = Draft::new(&claim(key), &Policy::default(), LeaseId::from_bytes([lease; 16]), None);
    Swap { identity: identity(key), expected: Expected::Absent, new: New::claim(draft), not_after: None, note: None }
}

async fn record(store: &dyn RecordStore, key: &str) -> Option<Record> {
    store.read(&identity(key)).await.unwrap().record.map(std::sync::Arc::unwrap_or_clone)
}
