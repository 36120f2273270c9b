//! A caller's transaction of sqlx on PostgreSQL, also through a pooler.
//! What holds for every driver stands in `cases`.

use std::sync::Arc;
use std::time::Duration;

use counterfoil_core::intent::{Difference, Recorded};
use counterfoil_core::{Claim, Receipt};
use counterfoil_store::postgres::PostgresStore;
use counterfoil_store::postgres::sqlx::postgres::PgConnectOptions;
use counterfoil_store::postgres::sqlx::{AssertSqlSafe, Connection as _, PgConnection, Postgres, Transaction, raw_sql};
use counterfoil_store::postgres::trial::Bouncer;
use counterfoil_store::{Begun, Ended, Permit, StoreError};

use super::postgres::{Place, QUARANTINES};
use super::{Level, Shop, claim, on, policy};
use crate::intents::{due, outbound, profile};

struct OnSqlx(Place);

impl Shop for OnSqlx {
    type Store = PostgresStore;
    type Conn = PgConnection;
    type Tx<'c> = Transaction<'c, Postgres>;

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

    async fn connect(&self) -> PgConnection {
        PgConnection::connect(&self.0.database.url()).await.unwrap()
    }

    async fn start<'c>(conn: &'c mut PgConnection, level: Level) -> Transaction<'c, Postgres> {
        let begin = match level {
            Level::Usual => "BEGIN",
            Level::ReadCommitted => "BEGIN ISOLATION LEVEL READ COMMITTED",
            Level::RepeatableRead => "BEGIN ISOLATION LEVEL REPEATABLE READ",
        };
        conn.begin_with(begin).await.unwrap()
    }

    async fn sends(tx: &mut Self::Tx<'_>, statement: &'static str) {
        raw_sql(statement).execute(&mut **tx).await.unwrap();
    }

    async fn commit(tx: Self::Tx<'_>) {
        tx.commit().await.unwrap();
    }

    async fn roll_back(tx: Self::Tx<'_>) {
        tx.rollback().await.unwrap();
    }

    async fn begin(&self, tx: &mut Self::Tx<'_>, claim: &mut Claim) -> Result<Begun, StoreError> {
        self.0.store.begin_in(tx, claim, &policy()).await
    }

    async fn complete(&self, tx: &mut Self::Tx<'_>, permit: &mut Permit, with: &Receipt) -> Result<Ended, StoreError> {
        self.0.store.complete_in(tx, permit, with).await
    }

    async fn release(&self, tx: &mut Self::Tx<'_>, permit: &mut Permit) -> Result<Ended, StoreError> {
        self.0.store.release_in(tx, permit).await
    }
}

on!(OnSqlx);

/// Statements of ours have no name there, so that one server connection can serve many clients.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn through_a_pooler_in_transaction_mode() {
    let shop = OnSqlx::new().await;
    let bouncer = Bouncer::start(shop.0.database.server(), 1).unwrap();
    // The pooler takes no start-up parameter that it does not know.
    let options: PgConnectOptions = shop.0.database.url_through(bouncer.port()).parse().unwrap();
    let options = options.extra_float_digits(None);
    let mut conns =
        [PgConnection::connect_with(&options).await.unwrap(), PgConnection::connect_with(&options).await.unwrap()];
    for round in 0..10 {
        let conn = &mut conns[round % 2];
        let mut tx = conn.begin().await.unwrap();
        let key = format!("k-{round}");
        let Begun::Execute(mut permit) = shop.begin(&mut tx, &mut claim(&key)).await.unwrap() else {
            panic!("it may run")
        };
        raw_sql(AssertSqlSafe(format!("INSERT INTO orders VALUES ('{key}')"))).execute(&mut *tx).await.unwrap();
        shop.complete(&mut tx, &mut permit, &Receipt::new(201, "made")).await.unwrap();
        tx.commit().await.unwrap();
    }
    assert_eq!(shop.orders(), "10");
}

/// An intent is left behind with the effect, or neither is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_intent_is_committed_by_the_caller_or_not_at_all() {
    let shop = OnSqlx::new().await;
    let (mut conn, store) = (shop.connect().await, shop.store());
    let mail = outbound("order-1/mail", "{}", None);
    let other = outbound("order-1/mail", "{\"other\": 1}", None);
    for commits in [false, true] {
        let mut tx = OnSqlx::start(&mut conn, Level::Usual).await;
        OnSqlx::sends(&mut tx, "INSERT INTO orders VALUES ('1')").await;
        assert_eq!(store.record_in(&mut tx, &mail, &profile()).await.unwrap(), Recorded::Written);
        assert_eq!(store.record_in(&mut tx, &mail, &profile()).await.unwrap(), Recorded::Stands);
        let taken = store.record_in(&mut tx, &other, &profile()).await.unwrap();
        assert_eq!(taken, Recorded::Taken(vec![Difference::Body]));
        if commits {
            OnSqlx::commit(tx).await
        } else {
            OnSqlx::roll_back(tx).await
        }
        let left = due(store.as_ref(), 10).await.len();
        assert_eq!((shop.orders() == "1", left == 1), (commits, commits));
    }
}
