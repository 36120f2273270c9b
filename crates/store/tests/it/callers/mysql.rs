//! A caller's transaction of mysql_async, and what MariaDB promises besides.
//! What holds for every driver stands in `cases`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use counterfoil_core::{Claim, Receipt};
use counterfoil_store::mysql::mysql_async::prelude::Queryable as _;
use counterfoil_store::mysql::mysql_async::{Conn, IsolationLevel, Opts, Transaction, TxOpts};
use counterfoil_store::mysql::trial::{Database, Server, TestTime};
use counterfoil_store::mysql::{MysqlStore, Options};
use counterfoil_store::{Begun, Ended, ErrorKind, Permit, StoreError};

use super::{Level, Shop, claim, on, policy};

struct OnMysql {
    database: Database,
    time: TestTime,
    store: Arc<MysqlStore>,
}

impl OnMysql {
    async fn on(server: &Arc<Server>) -> Self {
        let database = server.with_store().await.unwrap();
        database.sql("CREATE TABLE orders (item TEXT NOT NULL) ENGINE = InnoDB").unwrap();
        let time = TestTime::of(&database).await.unwrap();
        let mut options = Options::default();
        options.clock = Arc::new(time.clock.clone());
        let store = MysqlStore::open(&database.url(), options).await.unwrap();
        Self { database, time, store }
    }
}

impl Shop for OnMysql {
    type Store = MysqlStore;
    type Conn = Conn;
    type Tx<'c> = Transaction<'c>;

    // A duplicate is found by a read that locks, which sees what is committed.
    const STRICT: bool = false;
    const QUARANTINES: &'static str = "UPDATE counterfoil_quarantine SET before_ms = 1760000000000";

    async fn new() -> Self {
        Self::on(&Server::shared().unwrap()).await
    }

    fn store(&self) -> &Arc<MysqlStore> {
        &self.store
    }

    fn orders(&self) -> String {
        self.database.sql("SELECT count(*) FROM orders").unwrap()
    }

    fn run(&self, statements: &str) {
        self.database.sql(statements).unwrap();
    }

    async fn advance(&self, by: Duration) {
        self.time.advance(by).await.unwrap();
    }

    async fn connect(&self) -> Conn {
        Conn::new(Opts::from_url(&self.database.url()).unwrap()).await.unwrap()
    }

    async fn start<'c>(conn: &'c mut Conn, level: Level) -> Transaction<'c> {
        let mut options = TxOpts::default();
        options.with_isolation_level(match level {
            Level::Usual => None,
            Level::ReadCommitted => Some(IsolationLevel::ReadCommitted),
            Level::RepeatableRead => Some(IsolationLevel::RepeatableRead),
        });
        conn.start_transaction(options).await.unwrap()
    }

    async fn sends(tx: &mut Self::Tx<'_>, statement: &'static str) {
        tx.query_drop(statement).await.unwrap();
    }

    async fn commit(tx: Self::Tx<'_>) {
        tx.commit().await.unwrap();
    }

    async fn roll_back(tx: Self::Tx<'_>) {
        tx.rollback().await.unwrap();
    }

    async fn begin(&self, tx: &mut Self::Tx<'_>, claim: &mut Claim) -> Result<Begun, StoreError> {
        self.store.begin_in(tx, claim, &policy()).await
    }

    async fn complete(&self, tx: &mut Self::Tx<'_>, permit: &mut Permit, with: &Receipt) -> Result<Ended, StoreError> {
        self.store.complete_in(tx, permit, with).await
    }

    async fn release(&self, tx: &mut Self::Tx<'_>, permit: &mut Permit) -> Result<Ended, StoreError> {
        self.store.release_in(tx, permit).await
    }
}

on!(OnMysql);

/// A claim waits for nobody, and the session's own limit for locks is the caller's again afterwards, whatever came of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_sessions_own_limit_for_locks_stays() {
    let shop = OnMysql::new().await;
    let (mut one, mut other) = (shop.connect().await, shop.connect().await);
    other.query_drop("SET SESSION innodb_lock_wait_timeout = 37").await.unwrap();
    let mut tx = OnMysql::start(&mut one, Level::Usual).await;
    let Begun::Execute(mut permit) = shop.begin(&mut tx, &mut claim("a")).await.unwrap() else { panic!("it may run") };
    let mut beside = OnMysql::start(&mut other, Level::Usual).await;
    let begun = Instant::now();
    for key in ["a", "b"] {
        shop.begin(&mut beside, &mut claim(key)).await.unwrap();
        let limit: Option<i64> = beside.query_first("SELECT @@innodb_lock_wait_timeout").await.unwrap();
        assert_eq!(limit, Some(37), "after a claim of {key}");
    }
    assert!(begun.elapsed() < Duration::from_secs(1), "it waited {:?}", begun.elapsed());
    shop.complete(&mut tx, &mut permit, &Receipt::new(201, "made")).await.unwrap();
    tx.commit().await.unwrap();
    beside.rollback().await.unwrap();
}

/// Where such a server is told *locked*, nothing of the transaction is left, and what followed would commit by itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_undoes_everything_on_a_lock_is_busy_and_not_in_progress() {
    let server = Arc::new(Server::start(&["--innodb-rollback-on-timeout=ON"]).unwrap());
    let shop = OnMysql::on(&server).await;
    let (mut one, mut other) = (shop.connect().await, shop.connect().await);
    let mut tx = OnMysql::start(&mut one, Level::Usual).await;
    let Begun::Execute(_permit) = shop.begin(&mut tx, &mut claim("a")).await.unwrap() else { panic!("it may run") };
    let mut beside = OnMysql::start(&mut other, Level::Usual).await;
    let error = shop.begin(&mut beside, &mut claim("a")).await.expect_err("its transaction is gone");
    assert_eq!(error.kind, ErrorKind::Busy, "{error}");
    tx.rollback().await.unwrap();
    beside.rollback().await.unwrap();
}

/// Whoever the server undoes for another's sake is told that it is busy.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deadlock_is_busy() {
    let shop = OnMysql::new().await;
    shop.run("INSERT INTO orders VALUES ('one')");
    let (mut one, mut other) = (shop.connect().await, shop.connect().await);
    let mut first = OnMysql::start(&mut one, Level::Usual).await;
    let Begun::Execute(mut permit) = shop.begin(&mut first, &mut claim("a")).await.unwrap() else {
        panic!("it may run")
    };
    first.commit().await.unwrap();
    let mut first = OnMysql::start(&mut one, Level::Usual).await;
    first.query_drop("SELECT * FROM orders FOR UPDATE").await.unwrap();
    let mut second = OnMysql::start(&mut other, Level::Usual).await;
    second.query_drop("SELECT * FROM counterfoil_record FOR UPDATE").await.unwrap();
    // Much to undo, so that the server chooses the first.
    second
        .query_drop(
            "INSERT INTO counterfoil_history (digest, at, kind, lease, who, why)
        SELECT digest, 1, 'k', lease, 'w', 'w' FROM counterfoil_record",
        )
        .await
        .unwrap();
    let receipt = Receipt::new(201, "made");
    let completing = shop.complete(&mut first, &mut permit, &receipt);
    let waiting = second.query_drop("SELECT * FROM orders FOR UPDATE");
    let (completed, waited) = tokio::join!(completing, waiting);
    let error = completed.expect_err("the server undid one of them");
    assert_eq!(error.kind, ErrorKind::Busy, "{error}");
    waited.unwrap();
    first.rollback().await.unwrap();
    second.rollback().await.unwrap();
}
