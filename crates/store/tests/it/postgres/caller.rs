//! The promise in a transaction that the caller owns, on a connection of the caller's own.
//! The store's own transactions stand in `batch`.

use std::sync::Arc;
use std::time::Duration;

use counterfoil_core::{Asked, Claim, Policy, Receipt, Rule};
use counterfoil_store::postgres::PostgresStore;
use counterfoil_store::postgres::tokio_postgres::{Client, IsolationLevel, NoTls, Transaction, connect};
use counterfoil_store::seam::RecordStore as _;
use counterfoil_store::{Begun, Ended, ErrorKind, Gate};

use super::{Place, claim, identity, record};

/// An application with a table of its own beside the store.
struct Shop {
    place: Place,
    store: Arc<PostgresStore>,
    client: Client,
}

async fn client(place: &Place) -> Client {
    let (client, connection) = connect(&place.database.url(), NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

impl Shop {
    async fn new() -> Self {
        let place = Place::new().await;
        place.database.psql(&["CREATE TABLE orders (id text PRIMARY KEY)"]).unwrap();
        Self { store: place.open().await, client: client(&place).await, place }
    }

    fn orders(&self) -> String {
        self.place.database.psql(&["SELECT count(*) FROM orders"]).unwrap()
    }

    async fn begin(&self, tx: &Transaction<'_>, key: &str) -> Begun {
        self.store.begin_in(tx, &mut claim(key), &Policy::default()).await.unwrap()
    }

    /// The whole of it, without the COMMIT.
    async fn order(&self, tx: &Transaction<'_>, key: &str) {
        let Begun::Execute(mut permit) = self.begin(tx, key).await else { panic!("it may run") };
        tx.execute("INSERT INTO orders VALUES ($1)", &[&key]).await.unwrap();
        let ended = self.store.complete_in(tx, &mut permit, &Receipt::new(201, "made")).await.unwrap();
        assert!(matches!(ended, Ended::Written { expires_at: Some(_) }), "{ended:?}");
    }
}

fn is_replay(begun: &Begun) -> bool {
    matches!(begun, Begun::Replay { receipt, .. } if receipt.status == 201)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn effect_and_receipt_are_committed_by_the_caller() {
    let mut shop = Shop::new().await;
    let mut client = client(&shop.place).await;
    // Rolled back, neither happened.
    let tx = client.transaction().await.unwrap();
    shop.order(&tx, "a").await;
    tx.rollback().await.unwrap();
    assert_eq!((record(shop.store.as_ref(), "a").await, shop.orders()), (None, "0".to_owned()));
    // Committed, both did; duplicates and mismatches are found, and leave the transaction usable.
    let tx = client.transaction().await.unwrap();
    shop.order(&tx, "a").await;
    assert!(is_replay(&shop.begin(&tx, "a").await));
    tx.commit().await.unwrap();
    let tx = shop.client.transaction().await.unwrap();
    assert!(is_replay(&shop.store.begin_in(&tx, &mut claim("a"), &Policy::default()).await.unwrap()));
    let mut other = Claim::new(identity("a"), Asked::bytes("another order"), &Rule::bytes()).unwrap();
    let told = shop.store.begin_in(&tx, &mut other, &Policy::default()).await.unwrap();
    assert!(matches!(told, Begun::Mismatch), "{told:?}");
    tx.execute("INSERT INTO orders VALUES ('besides')", &[]).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(shop.orders(), "2");
    // Everybody else sees the same.
    let gate = Gate::new(shop.store.clone()).unwrap();
    assert!(is_replay(&gate.begin(&mut claim("a"), &Policy::default()).await.unwrap()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_it_is_open_everybody_else_is_told_in_progress() {
    let shop = Shop::new().await;
    let gate = Gate::new(shop.store.clone()).unwrap();
    let (mut one, mut other) = (client(&shop.place).await, client(&shop.place).await);
    let tx = one.transaction().await.unwrap();
    shop.order(&tx, "a").await;
    let beside = other.transaction().await.unwrap();
    let told = shop.begin(&beside, "a").await;
    assert!(matches!(told, Begun::InProgress { .. }), "{told:?}");
    let told = gate.begin(&mut claim("a"), &Policy::default()).await.unwrap();
    assert!(matches!(told, Begun::InProgress { .. }), "{told:?}");
    tx.commit().await.unwrap();
    // At READ COMMITTED the very transaction that was told so may ask again.
    assert!(is_replay(&shop.begin(&beside, "a").await));
    beside.rollback().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_that_was_committed_without_an_end_is_taken_over_and_superseded() {
    let shop = Shop::new().await;
    let (mut one, mut other) = (client(&shop.place).await, client(&shop.place).await);
    let tx = one.transaction().await.unwrap();
    let Begun::Execute(mut first) = shop.begin(&tx, "a").await else { panic!("it may run") };
    tx.commit().await.unwrap();
    shop.place.time.advance(Duration::from_secs(40)).await.unwrap();
    let tx = other.transaction().await.unwrap();
    shop.order(&tx, "a").await;
    tx.commit().await.unwrap();
    let tx = one.transaction().await.unwrap();
    tx.execute("INSERT INTO orders VALUES ('twice')", &[]).await.unwrap();
    let late = shop.store.complete_in(&tx, &mut first, &Receipt::new(201, "twice")).await.unwrap();
    assert!(matches!(late, Ended::Refused(_)), "{late:?}");
    tx.rollback().await.unwrap();
    assert_eq!(shop.orders(), "1");
    assert_eq!(shop.store.history(&identity("a")).await.unwrap().len(), 1, "the alarm outlives the rolled back");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_released_claim_leaves_the_key_free() {
    let mut shop = Shop::new().await;
    let mut client = client(&shop.place).await;
    let tx = client.transaction().await.unwrap();
    let Begun::Execute(mut permit) = shop.begin(&tx, "a").await else { panic!("it may run") };
    let ended = shop.store.release_in(&tx, &mut permit).await.unwrap();
    assert!(matches!(ended, Ended::Written { .. }), "{ended:?}");
    tx.commit().await.unwrap();
    assert!(record(shop.store.as_ref(), "a").await.is_none());
    let tx = shop.client.transaction().await.unwrap();
    let again = shop.store.begin_in(&tx, &mut claim("a"), &Policy::default()).await.unwrap();
    assert!(matches!(again, Begun::Execute(_)), "{again:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stricter_isolation_level_is_busy_where_somebody_was_faster() {
    let shop = Shop::new().await;
    let (mut one, mut other) = (client(&shop.place).await, client(&shop.place).await);
    let strict = other.build_transaction().isolation_level(IsolationLevel::RepeatableRead).start().await.unwrap();
    // Its snapshot is from before the other's commit.
    strict.query("SELECT FROM orders", &[]).await.unwrap();
    let tx = one.transaction().await.unwrap();
    shop.order(&tx, "a").await;
    tx.commit().await.unwrap();
    let error = shop.store.begin_in(&strict, &mut claim("a"), &Policy::default()).await.expect_err("it cannot see it");
    assert_eq!(error.kind, ErrorKind::Busy, "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_is_on_the_stores_own_database_and_durable() {
    let (shop, elsewhere) = (Shop::new().await, Place::new().await);
    elsewhere.database.psql(&["UPDATE counterfoil.store SET id = 'another'"]).unwrap();
    let mut other = client(&elsewhere).await;
    let tx = other.transaction().await.unwrap();
    let error = shop.store.begin_in(&tx, &mut claim("a"), &Policy::default()).await.expect_err("another database");
    assert_eq!(error.kind, ErrorKind::Misuse, "{error}");
    tx.rollback().await.unwrap();
    assert_eq!(elsewhere.database.psql(&["SELECT count(*) FROM counterfoil.record"]).unwrap(), "0");

    let mut own = client(&shop.place).await;
    own.batch_execute("SET synchronous_commit = off; SET lock_timeout = '7s'").await.unwrap();
    let tx = own.transaction().await.unwrap();
    shop.order(&tx, "a").await;
    for (setting, want) in [("SHOW synchronous_commit", "on"), ("SHOW lock_timeout", "7s")] {
        let told: String = tx.query_one(setting, &[]).await.unwrap().get(0);
        assert_eq!(told, want, "{setting}");
    }
    tx.commit().await.unwrap();
}
