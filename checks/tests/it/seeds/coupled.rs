//! A shop whose orders live in the store's own file: claim, order and receipt commit together.

use std::{path::Path, sync::Arc, time::Duration};

use counterfoil_core::Receipt;
use counterfoil_store::{
    RecordStore, SqliteStore,
    clock::TestClock,
    sqlite::{Executed, Handle, Origin},
};
use rusqlite::Connection;
use tempfile::TempDir;

use super::{Fixture, Order, Shop, Told, clock, elsewhere::body, open, policy};

pub(super) const TABLE: &str = "CREATE TABLE effects (id INTEGER PRIMARY KEY, tenant TEXT NOT NULL, operation TEXT NOT NULL, \
    quantity INTEGER NOT NULL CHECK (quantity > 0))";

pub(super) struct Coupled {
    fixture: Fixture,
    home: Arc<TempDir>,
    clock: TestClock,
    store: Arc<SqliteStore>,
}

/// Why an effect rolled back.
#[derive(Debug)]
pub(super) enum Failure {
    Invalid,
    Injected,
    Sql(rusqlite::Error),
}

impl Coupled {
    pub(super) fn new(fixture: Fixture) -> Self {
        let home = Arc::new(tempfile::tempdir().expect("there is room for temporary files"));
        let clock = clock();
        let store = open(home.path(), &clock);
        let shop = Self { fixture, home, clock, store };
        database(shop.home.path()).execute_batch(TABLE).expect("the table is made");
        shop
    }
}

/// The store's file, for the application's own tables.
pub(super) fn database(home: &Path) -> Connection {
    Connection::open(home.join("seeds.db")).expect("the file opens")
}

/// How many effects are in the file.
pub(super) fn count(home: &Path) -> u64 {
    let count = database(home).query_row("SELECT count(*) FROM effects", [], |row| row.get::<_, i64>(0));
    u64::try_from(count.expect("it reads")).expect("counts are positive")
}

/// The effect: a row, and the receipt that goes with it.
pub(super) fn effect(fixture: Fixture, order: &Order, handle: &Handle<'_>) -> Result<Receipt, Failure> {
    let parameters = order.parameters();
    if !fixture.accepts(&parameters) {
        return Err(Failure::Invalid);
    }
    let quantity = parameters["quantity"].as_i64();
    let row = (&order.tenant, &order.operation, quantity);
    let insert = "INSERT INTO effects (tenant, operation, quantity) VALUES (?1, ?2, ?3)";
    handle.execute(insert, row).map_err(Failure::Sql)?;
    if order.fails {
        return Err(Failure::Injected);
    }
    let id = u64::try_from(handle.last_insert_rowid()).expect("ids are positive");
    Ok(Receipt::new(201, fixture.result(id, &parameters)))
}

impl Shop for Coupled {
    async fn order(&self, order: Order) -> Told {
        let (claim, fixture) = (order.claim(), self.fixture);
        let executed = self.store.execute(claim, &policy(), move |handle| effect(fixture, &order, handle)).await;
        match executed.expect("the store answers") {
            Executed::Done { receipt, origin: Origin::Fresh, .. } => Told::Created(body(receipt)),
            Executed::Done { receipt, origin: Origin::Replayed, .. } => Told::Replayed(body(receipt)),
            Executed::Mismatch => Told::Mismatch,
            Executed::EffectFailed(Failure::Invalid) => Told::Invalid,
            Executed::EffectFailed(Failure::Injected) => Told::Failed,
            Executed::EffectFailed(Failure::Sql(error)) => panic!("{error}"),
            other @ (Executed::InProgress { .. } | Executed::Unknown { .. } | Executed::Expired { .. }) => {
                panic!("{other:?}")
            }
        }
    }

    fn connected(&self) -> Self {
        self.fresh()
    }

    fn fresh(&self) -> Self {
        let store = open(self.home.path(), &self.clock);
        Self { fixture: self.fixture, home: self.home.clone(), clock: self.clock.clone(), store }
    }

    async fn counts(&self) -> (u64, u64) {
        let about = self.store.about().await.expect("the store answers");
        (count(self.home.path()), about.records)
    }

    fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }
}
