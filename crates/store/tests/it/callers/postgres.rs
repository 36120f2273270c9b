//! A caller's transaction of tokio-postgres, and what PostgreSQL promises besides.
//! What holds for every driver stands in `cases`.

use std::sync::Arc;
use std::time::Duration;

use counterfoil_core::{Claim, Receipt};
use counterfoil_store::postgres::tokio_postgres::{Client, IsolationLevel, NoTls, Transaction, connect};
use counterfoil_store::postgres::trial::{Database, Server, TestTime};
use counterfoil_store::postgres::{Options, PostgresStore};
use counterfoil_store::{Begun, Ended, Permit, StoreError};

use super::{Level, Shop, claim, on, policy};

/// One for each driver of PostgreSQL.
pub(super) struct Place {
    pub(super) database: Database,
    pub(super) time: TestTime,
    pub(super) store: Arc<PostgresStore>,
}

impl Place {
    pub(super) async fn new() -> Self {
        let database = Server::shared().unwrap().with_store().await.unwrap();
        database.psql(&["CREATE TABLE orders (item text NOT NULL)"]).unwrap();
        database.psql(&["UPDATE counterfoil.store SET id = gen_random_uuid()::text"]).unwrap();
        let time = TestTime::of(&database).await.unwrap();
        let mut options = Options::default();
        options.clock = Arc::new(time.clock.clone());
        let store = PostgresStore::open(&database.url(), options).await.unwrap();
        Self { database, time, store }
    }

    pub(super) fn orders(&self) -> String {
        self.database.psql(&["SELECT count(*) FROM orders"]).unwrap()
    }
}

pub(super) const QUARANTINES: &str = "UPDATE counterfoil.store SET quarantine_before = 1760000000000";

struct OnTokio(Place);

impl Shop for OnTokio {
    type Store = PostgresStore;
    type Conn = Client;
    type Tx<'c> = Transaction<'c>;

    const STRICT: bool = true;
    const QUARANTINES: &'static str = QUARANTINES;

    async fn new() -> Self {
        Self(Place::new().await)
    }

    fn store(&self) -> &Arc<PostgresStore> {
        &self.0.store
    }

    fn orders(&self) -> String {
        self.0.orders()
    }

    fn run(&self, statements: &str) {
        self.0.database.psql(&[statements]).unwrap();
    }

    async fn advance(&self, by: Duration) {
        self.0.time.advance(by).await.unwrap();
    }

    async fn connect(&self) -> Client {
        let (client, connection) = connect(&self.0.database.url(), NoTls).await.unwrap();
        tokio::spawn(connection);
        client
    }

    async fn start<'c>(conn: &'c mut Client, level: Level) -> Transaction<'c> {
        let builder = conn.build_transaction();
        let builder = match level {
            Level::Usual => builder,
            Level::ReadCommitted => builder.isolation_level(IsolationLevel::ReadCommitted),
            Level::RepeatableRead => builder.isolation_level(IsolationLevel::RepeatableRead),
        };
        builder.start().await.unwrap()
    }

    async fn sends(tx: &mut Self::Tx<'_>, statement: &'static str) {
        tx.batch_execute(statement).await.unwrap();
    }

    async fn commit(tx: Self::Tx<'_>) {
        tx.commit().await.unwrap();
    }

    async fn roll_back(tx: Self::Tx<'_>) {
        tx.rollback().await.unwrap();
    }

    async fn begin(&self, tx: &mut Self::Tx<'_>, claim: &mut Claim) -> Result<Begun, StoreError> {
        self.0.store.begin_in(&*tx, claim, &policy()).await
    }

    async fn complete(&self, tx: &mut Self::Tx<'_>, permit: &mut Permit, with: &Receipt) -> Result<Ended, StoreError> {
        self.0.store.complete_in(&*tx, permit, with).await
    }

    async fn release(&self, tx: &mut Self::Tx<'_>, permit: &mut Permit) -> Result<Ended, StoreError> {
        self.0.store.release_in(&*tx, permit).await
    }
}

on!(OnTokio);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_becomes_durable_and_keeps_its_own_limits() {
    let shop = OnTokio::new().await;
    let mut own = shop.connect().await;
    own.batch_execute("SET synchronous_commit = off; SET lock_timeout = '7s'").await.unwrap();
    let mut tx = OnTokio::start(&mut own, Level::Usual).await;
    let Begun::Execute(mut permit) = shop.begin(&mut tx, &mut claim("a")).await.unwrap() else { panic!("it may run") };
    shop.complete(&mut tx, &mut permit, &Receipt::new(201, "made")).await.unwrap();
    for (setting, want) in [("SHOW synchronous_commit", "on"), ("SHOW lock_timeout", "7s")] {
        let told: String = tx.query_one(setting, &[]).await.unwrap().get(0);
        assert_eq!(told, want, "{setting}");
    }
    tx.commit().await.unwrap();
}
