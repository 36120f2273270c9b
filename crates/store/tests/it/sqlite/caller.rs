//! The promise in a transaction that the caller owns.
//! The writer's own transaction stands in `coupled`.

use counterfoil_core::action::Refused;
use counterfoil_core::{Policy, Receipt, Why};
use counterfoil_store::seam::RecordStore as _;
use counterfoil_store::sqlite::rusqlite::{Connection, Transaction, TransactionBehavior};
use counterfoil_store::sqlite::{Executed, Origin};
use counterfoil_store::{Begun, Ended, ErrorKind, SqliteStore};

use super::{Place, claim, claim_of, order, origin, record, refused};

fn begin(conn: &mut Connection) -> Transaction<'_> {
    conn.transaction_with_behavior(TransactionBehavior::Immediate).unwrap()
}

fn insert(id: &'static str) -> impl FnOnce(&Transaction<'_>) -> Result<Receipt, String> {
    move |tx| {
        tx.execute("INSERT INTO orders VALUES (?1)", [id]).map_err(|error| error.to_string())?;
        Ok(Receipt::new(201, id))
    }
}

#[tokio::test]
async fn effect_and_receipt_are_committed_by_the_caller() {
    let place = Place::new();
    let store = place.with_orders();
    let mut conn = place.outside();
    let policy = Policy::default();
    // Rolled back, neither happened.
    let tx = begin(&mut conn);
    assert_eq!(origin(store.execute_in(&tx, &mut claim("a"), &policy, insert("1"))), Origin::Fresh);
    tx.rollback().unwrap();
    assert_eq!((record(&store, "a").await, place.orders()), (None, 0));
    // Committed, both did.
    let tx = begin(&mut conn);
    assert_eq!(origin(store.execute_in(&tx, &mut claim("a"), &policy, insert("1"))), Origin::Fresh);
    // A duplicate inside the same transaction, a mismatch, and the transaction is usable after both.
    assert_eq!(origin(store.execute_in(&tx, &mut claim("a"), &policy, insert("2"))), Origin::Replayed);
    let other = store.execute_in(&tx, &mut claim_of("a", "other"), &policy, insert("2")).unwrap();
    assert_eq!(other, Executed::Mismatch);
    tx.execute("INSERT INTO orders VALUES ('besides')", []).unwrap();
    tx.commit().unwrap();
    assert_eq!(place.orders(), 2);
    assert_eq!(origin(store.execute(claim("a"), &policy, order("2")).await), Origin::Replayed);
    let tx = begin(&mut conn);
    assert_eq!(origin(store.execute_in(&tx, &mut claim("a"), &policy, insert("2"))), Origin::Replayed);
}

#[tokio::test]
async fn a_failed_effect_is_undone_alone() {
    let place = Place::new();
    let store = place.with_orders();
    let mut conn = place.outside();
    let tx = begin(&mut conn);
    tx.execute("INSERT INTO orders VALUES ('mine')", []).unwrap();
    let failed = store
        .execute_in(&tx, &mut claim("a"), &Policy::default(), |tx| {
            tx.execute("INSERT INTO orders VALUES ('half')", []).unwrap();
            Err("out of stock")
        })
        .unwrap();
    assert_eq!(failed, Executed::EffectFailed("out of stock"));
    tx.commit().unwrap();
    assert_eq!((place.orders(), record(&store, "a").await), (1, None));
}

#[tokio::test]
async fn an_effect_that_leaves_the_transaction_is_told() {
    let place = Place::new();
    let store = place.with_orders();
    let mut conn = place.outside();
    let tx = begin(&mut conn);
    let left = store.execute_in(&tx, &mut claim("a"), &Policy::default(), |tx| {
        tx.execute_batch("COMMIT; BEGIN IMMEDIATE").unwrap();
        Ok::<_, String>(Receipt::new(200, ""))
    });
    let error = left.unwrap_err();
    assert!(error.to_string().contains("left its transaction"), "{error}");
}

#[tokio::test]
async fn a_transaction_that_cannot_keep_the_promise_is_misuse() {
    let place = Place::new();
    let store = place.with_orders();
    let policy = Policy::default();
    let called = |_: &Transaction<'_>| -> Result<Receipt, String> { panic!("the effect was called") };
    let mut conn = place.outside();
    let tx = conn.transaction_with_behavior(TransactionBehavior::Deferred).unwrap();
    refused(store.execute_in(&tx, &mut claim("a"), &policy, called), ErrorKind::Misuse, "IMMEDIATE");
    tx.query_row("SELECT count(*) FROM orders", [], |_| Ok(())).unwrap();
    refused(store.execute_in(&tx, &mut claim("a"), &policy, called), ErrorKind::Misuse, "IMMEDIATE");
    drop(tx);
    conn.execute_batch("PRAGMA synchronous = NORMAL").unwrap();
    let tx = begin(&mut conn);
    refused(store.execute_in(&tx, &mut claim("a"), &policy, called), ErrorKind::Misuse, "synchronous = FULL");
    refused(store.begin_in(&tx, &mut claim("a"), &policy), ErrorKind::Misuse, "synchronous = FULL");
    drop(tx);
    let elsewhere = Place::new();
    drop(elsewhere.open());
    let mut conn = elsewhere.outside();
    let tx = begin(&mut conn);
    refused(store.execute_in(&tx, &mut claim("a"), &policy, called), ErrorKind::Misuse, "same path");
    let mut memory = Connection::open_in_memory().unwrap();
    let tx = begin(&mut memory);
    refused(store.execute_in(&tx, &mut claim("a"), &policy, called), ErrorKind::Misuse, "same path");
}

fn permit(store: &SqliteStore, tx: &Transaction<'_>, key: &str) -> Box<counterfoil_store::Permit> {
    match store.begin_in(tx, &mut claim(key), &Policy::default()).unwrap() {
        Begun::Execute(permit) => permit,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn two_steps_keep_the_same_promise() {
    let place = Place::new();
    let store = place.with_orders();
    let mut conn = place.outside();
    let tx = begin(&mut conn);
    let mut first = permit(&store, &tx, "a");
    tx.execute("INSERT INTO orders VALUES ('1')", []).unwrap();
    let ended = store.complete_in(&tx, &mut first, &Receipt::new(201, "1")).unwrap();
    let expires_at = Some(store.now().at.plus(Policy::default().retention));
    assert_eq!(ended, Ended::Written { expires_at });
    // A repeat of our own is done already.
    assert_eq!(store.complete_in(&tx, &mut first, &Receipt::new(201, "x")).unwrap(), ended);
    let mut second = permit(&store, &tx, "b");
    assert_eq!(store.release_in(&tx, &mut second).unwrap(), Ended::Written { expires_at: None });
    assert_eq!(
        store.complete_in(&tx, &mut second, &Receipt::new(201, "late")).unwrap(),
        Ended::Refused(Refused::Absent)
    );
    tx.commit().unwrap();
    assert_eq!(origin(store.execute(claim("a"), &Policy::default(), order("2")).await), Origin::Replayed);
    assert_eq!(record(&store, "b").await, None);
    assert_eq!(store.history(&super::identity("b")).await.unwrap().len(), 1, "a late completion is an alarm");
}

#[tokio::test]
async fn a_claim_without_an_end_lapses_and_is_taken_over() {
    let place = Place::new();
    let store = place.with_orders();
    let mut conn = place.outside();
    let tx = begin(&mut conn);
    let mut left = permit(&store, &tx, "a");
    tx.commit().unwrap();
    let running = store.execute(claim("a"), &Policy::default(), order("1")).await.unwrap();
    assert!(matches!(running, Executed::InProgress { .. }), "{running:?}");
    place.clock.advance(Policy::default().lease);
    assert_eq!(origin(store.execute(claim("a"), &Policy::default(), order("1")).await), Origin::Fresh);
    // The one that was taken over from writes nothing any more.
    let tx = begin(&mut conn);
    let late = store.complete_in(&tx, &mut left, &Receipt::new(201, "late")).unwrap();
    assert_eq!(late, Ended::Refused(Refused::OtherLease));
}

#[tokio::test]
async fn a_quarantine_holds_in_the_caller_s_transaction_too() {
    let place = Place::new();
    let store = place.with_orders();
    store.set_quarantine(Some(super::BEGIN)).await.unwrap();
    let mut conn = place.outside();
    let tx = begin(&mut conn);
    let stopped = store.execute_in(&tx, &mut claim("a"), &Policy::default(), insert("1")).unwrap();
    assert!(matches!(stopped, Executed::Unknown { why: Why::Quarantined, .. }), "{stopped:?}");
    let begun = store.begin_in(&tx, &mut claim("b"), &Policy::default()).unwrap();
    assert!(matches!(begun, Begun::Unknown { why: Why::Quarantined, .. }), "{begun:?}");
    tx.commit().unwrap();
    assert_eq!(place.orders(), 0);
}
