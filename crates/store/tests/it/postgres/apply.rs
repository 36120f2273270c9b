//! An effect that is one statement: once, with its receipt, and undone alone where it fails among others.
//! Effects that are code stand in `coupled`.

use std::sync::Arc;
use std::time::Duration;

use counterfoil_core::{Asked, Body, Claim, Expiry, Policy, Rule, Why};
use counterfoil_store::postgres::tokio_postgres::{NoTls, connect};
use counterfoil_store::postgres::trial::Wire;
use counterfoil_store::postgres::{PostgresStore, Statement, StatementFailed};
use counterfoil_store::seam::RecordStore as _;
use counterfoil_store::sqlite::{Executed, Origin};
use counterfoil_store::{Applied, Begun, ErrorKind, StoreError};
use tokio::task::JoinSet;

use super::{Place, claim, identity, record};

/// An order of the item that the argument names.
const ORDER: &str = "WITH made AS (INSERT INTO orders (item) VALUES ($1->>'item') RETURNING item)
  SELECT 201, '[[\"X-Made\", \"yes\"]]'::jsonb, json_build_object('item', item)::text FROM made";

type Ended = Result<Executed<StatementFailed>, StoreError>;

/// A store behind a wire, and tables that effects go into.
struct Shop {
    place: Place,
    wire: Wire,
    store: Arc<PostgresStore>,
}

impl Shop {
    async fn new() -> Self {
        let place = Place::new().await;
        let tables = [
            "CREATE TABLE stock (item text PRIMARY KEY)",
            "INSERT INTO stock VALUES ('tea'), ('pot')",
            "CREATE TABLE orders (item text NOT NULL UNIQUE)",
            "CREATE TABLE sold (item text REFERENCES stock DEFERRABLE INITIALLY DEFERRED)",
        ];
        place.database.psql(&tables).unwrap();
        let wire = Wire::to(place.database.server().port()).await.unwrap();
        let mut options = place.options();
        options.lock_timeout = Duration::from_millis(100);
        let store = PostgresStore::open(&place.database.url_through(wire.port()), options).await.unwrap();
        Self { place, wire, store }
    }

    fn applying(&self, key: &str, statement: Statement) -> impl Future<Output = Ended> + Send + 'static {
        let (store, claim) = (self.store.clone(), claim(key));
        async move { store.apply(claim, &Policy::default(), statement).await }
    }

    fn ordering(&self, key: &str) -> impl Future<Output = Ended> + Send + 'static {
        self.applying(key, order(key))
    }

    fn orders(&self) -> String {
        self.place.database.psql(&["SELECT count(*) FROM orders"]).unwrap()
    }
}

fn order(item: &str) -> Statement {
    Statement::new(ORDER, format!("{{\"item\": \"{item}\"}}"))
}

fn is_done(ended: &Ended, of: Origin, body: &str) -> bool {
    let Ok(Executed::Done { receipt, origin, .. }) = ended else { return false };
    let headers: Vec<_> = receipt.headers.iter().map(|(name, value)| (name.as_str(), value.as_ref())).collect();
    let made: [(&str, &[u8]); 1] = [("x-made", b"yes")];
    receipt.status == 201 && *origin == of && headers == made && receipt.body == Body::Kept(body.to_owned().into())
}

fn code(ended: &Ended) -> &str {
    match ended {
        Ok(Executed::EffectFailed(failed)) => &failed.code,
        Ok(_) => "done",
        Err(error) if error.applied == Applied::No && error.kind == ErrorKind::Busy => "busy",
        Err(_) => "error",
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_runs_once_and_every_other_answer_runs_nothing() {
    let shop = Shop::new().await;
    let body = r#"{"item" : "a"}"#;
    let first = shop.ordering("a").await;
    assert!(is_done(&first, Origin::Fresh, body), "{first:?}");
    let stands = record(shop.store.as_ref(), "a").await;
    let again = shop.ordering("a").await;
    assert!(is_done(&again, Origin::Replayed, body), "{again:?}");
    assert_eq!(record(shop.store.as_ref(), "a").await, stands);
    let other = Claim::new(identity("a"), Asked::bytes("another order"), &Rule::bytes()).unwrap();
    let told = shop.store.apply(other, &Policy::default(), order("b")).await;
    assert!(matches!(told, Ok(Executed::Mismatch)), "{told:?}");
    // Somebody's open transaction is at it.
    let (mut client, connection) = connect(&shop.place.database.url(), NoTls).await.unwrap();
    tokio::spawn(connection);
    let tx = client.transaction().await.unwrap();
    let begun = shop.store.begin_in(&tx, &mut claim("held"), &Policy::default()).await.unwrap();
    assert!(matches!(begun, Begun::Execute(_)));
    let told = shop.ordering("held").await;
    assert!(matches!(told, Ok(Executed::InProgress { .. })), "{told:?}");
    assert_eq!(shop.orders(), "1");
    tx.rollback().await.unwrap();
    assert_eq!(code(&shop.ordering("held").await), "done");
}

/// Each of these among twenty that are well, in few statements.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_fails_fails_alone() {
    let shop = Shop::new().await;
    let (mut client, connection) = connect(&shop.place.database.url(), NoTls).await.unwrap();
    tokio::spawn(connection);
    let tx = client.transaction().await.unwrap();
    tx.query("SELECT FROM stock WHERE item = 'tea' FOR UPDATE", &[]).await.unwrap();
    let table = [
        ("syntax", "NO STATEMENT", "{}", "42601"),
        ("unique", ORDER, "{\"item\": \"k1\"}", "23505"),
        ("missing", "INSERT INTO nowhere VALUES (1)", "{}", "42P01"),
        ("argument", ORDER, "no json", "22P02"),
        ("no row", "INSERT INTO sold VALUES ('pot')", "{}", "42601"),
        ("none", "SELECT 201, null, 'x' WHERE false", "{}", "P0002"),
        ("two", "SELECT 201, null, 'x' FROM generate_series(1, 2)", "{}", "P0003"),
        ("status", "SELECT 99, null, 'x'", "{}", "22023"),
        ("headers", "SELECT 201, '[[\"a b\", \"c\"]]'::jsonb, 'x'", "{}", "22023"),
        ("deferred", "WITH s AS (INSERT INTO sold VALUES ('gone')) SELECT 201, null, 'x'", "{}", "23503"),
        ("serial", "SELECT 201, null, pg_catalog.error('40001')", "{}", "busy"),
        ("locked", "SELECT 201, null, item FROM stock WHERE item = 'tea' FOR UPDATE", "{}", "busy"),
        ("ends", "COMMIT", "{}", "0A000"),
    ];
    let raises = "CREATE FUNCTION pg_catalog.error(code text) RETURNS text LANGUAGE plpgsql AS
      $$ BEGIN RAISE EXCEPTION USING ERRCODE = code; END $$";
    shop.place.database.psql(&["SET allow_system_table_mods = on", raises]).unwrap();
    shop.wire.delay(Duration::from_millis(20));
    shop.wire.count("counterfoil.apply(");
    assert_eq!(code(&shop.ordering("k1").await), "done");
    let mut calling = JoinSet::new();
    for (key, text, argument, wanted) in table {
        let ended = shop.applying(key, Statement::new(text, argument));
        calling.spawn(async move { (key.to_owned(), wanted, ended.await) });
    }
    for number in 2..=20 {
        let (key, ended) = (format!("k{number}"), shop.ordering(&format!("k{number}")));
        calling.spawn(async move { (key, "done", ended.await) });
    }
    for (key, wanted, ended) in calling.join_all().await {
        assert_eq!(code(&ended), wanted, "{key}: {ended:?}");
    }
    assert!(shop.wire.counted() < 12, "{} statements for 33 calls", shop.wire.counted());
    assert_eq!(shop.orders(), "20");
    assert_eq!(shop.place.database.psql(&["SELECT count(*) FROM sold"]).unwrap(), "0");
    for (key, ..) in table {
        assert_eq!(record(shop.store.as_ref(), key).await, None, "{key} is free");
    }
    tx.rollback().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_answer_is_asked_about_again() {
    let shop = Shop::new().await;
    shop.wire.lose_reply_of("counterfoil.apply(");
    let told = shop.ordering("a").await;
    shop.wire.lost().await;
    assert!(is_done(&told, Origin::Fresh, r#"{"item" : "a"}"#), "{told:?}");
    assert_eq!(shop.orders(), "1");
}

/// The caller is dropped once its statement is under way; it goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_that_gives_up_stops_nothing() {
    let shop = Shop::new().await;
    shop.wire.hold_request_of("counterfoil.apply(");
    let calling = tokio::spawn(shop.ordering("a"));
    shop.wire.held().await;
    calling.abort();
    assert!(calling.await.is_err());
    shop.wire.release();
    while record(shop.store.as_ref(), "a").await.is_none() {
        tokio::task::yield_now().await;
    }
    assert!(is_done(&shop.ordering("a").await, Origin::Replayed, r#"{"item" : "a"}"#));
    assert_eq!(shop.orders(), "1");
}

/// What stands may be run anew, and a quarantine stands.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_stands_is_judged_as_ever() {
    let shop = Shop::new().await;
    let policy = Policy { retention: Duration::from_mins(1), expiry: Expiry::NewAction, ..Policy::default() };
    let first = shop.store.apply(claim("a"), &policy, order("a")).await;
    assert!(is_done(&first, Origin::Fresh, r#"{"item" : "a"}"#), "{first:?}");
    shop.place.time.advance(Duration::from_secs(59)).await.unwrap();
    let replayed = shop.store.apply(claim("a"), &policy, order("b")).await;
    assert!(is_done(&replayed, Origin::Replayed, r#"{"item" : "a"}"#), "{replayed:?}");
    shop.place.time.advance(Duration::from_secs(1)).await.unwrap();
    let anew = shop.store.apply(claim("a"), &policy, order("b")).await;
    assert!(is_done(&anew, Origin::Fresh, r#"{"item" : "b"}"#), "{anew:?}");
    // The same statement in a transaction of its own is judged as in one of many.
    shop.place.time.advance(Duration::from_mins(1)).await.unwrap();
    let failed = shop.store.apply(claim("a"), &policy, order("b")).await;
    assert_eq!(code(&failed), "23505", "{failed:?}");
    assert_eq!(shop.orders(), "2");
    shop.store.set_quarantine(Some(shop.store.now().at)).await.unwrap();
    let other = PostgresStore::open(&shop.place.database.url(), shop.place.options()).await.unwrap();
    for (store, key) in [(&shop.store, "quarantined"), (&other, "quarantined too")] {
        let told = store.apply(claim(key), &policy, order(key)).await;
        assert!(matches!(told, Ok(Executed::Unknown { why: Why::Quarantined, .. })), "{told:?}");
    }
    assert_eq!(shop.orders(), "2");
}
