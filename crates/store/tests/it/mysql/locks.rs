//! Somebody's open transaction: claims do not wait for it, other writes not longer than their limit, reads not at all.
//! What the network does stands in `faults`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use counterfoil_core::claim::Draft;
use counterfoil_core::{LeaseId, Policy, Timestamp};
use counterfoil_store::mysql::mysql_async::prelude::Queryable as _;
use counterfoil_store::mysql::mysql_async::{Conn, Opts};
use counterfoil_store::seam::{Expected, New, RecordStore as _, Swap, Swapped};
use counterfoil_store::{Applied, ErrorKind};

use super::{Place, claim, claiming, identity, record};

/// A connection that rests in a transaction after `statement`.
async fn resting(place: &Place, statement: &str) -> Conn {
    let mut conn = Conn::new(Opts::from_url(&place.database.url()).unwrap()).await.unwrap();
    conn.query_drop("START TRANSACTION").await.unwrap();
    conn.query_drop(statement).await.unwrap();
    conn
}

fn deleting(stands: &counterfoil_core::Record, key: &str) -> Swap {
    let (identity, expected) = (identity(key), Expected::record(stands));
    Swap { identity, expected, new: New::Delete, not_after: None, note: None }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_waits_long_for_an_open_transaction() {
    let place = Place::new().await;
    let store = place.open().await;
    store.swap(claiming("a", 1)).await.unwrap();
    let stands = record(store.as_ref(), "a").await.unwrap();
    let digest = identity("new").digest().to_hex();
    let lock = format!(
        "INSERT INTO counterfoil_record (digest, scope, operation, action_key, version, lease, state, claimed_at, record)
         SELECT X'{digest}', scope, operation, action_key, version, lease, state, claimed_at, record
         FROM counterfoil_record FOR UPDATE"
    );
    let mut other = resting(&place, &lock).await;

    let begun = Instant::now();
    let held = store.swap(claiming("new", 2)).await.unwrap();
    assert!(matches!(held, Swapped::Held { .. }), "a claim of what is being inserted: {held:?}");
    let draft = Draft::new(&claim("a"), &Policy::default(), LeaseId::from_bytes([3; 16]), None);
    let taking = Swap { expected: Expected::record(&stands), new: New::claim(draft), ..claiming("a", 3) };
    let held = store.swap(taking).await.unwrap();
    assert!(matches!(held, Swapped::Held { .. }), "a take-over of what is locked: {held:?}");
    let held = store.try_swap(deleting(&stands, "a")).await.unwrap();
    assert!(matches!(held, Swapped::Held { .. }), "a write that does not wait: {held:?}");
    assert_eq!(record(store.as_ref(), "a").await, Some(stands.clone()), "a read beside a lock");
    assert!(record(store.as_ref(), "new").await.is_none(), "what is not committed was read");
    assert!(begun.elapsed() < Duration::from_secs(1), "somebody waited: {:?}", begun.elapsed());

    let error = store.swap(deleting(&stands, "a")).await.expect_err("it is locked");
    assert_eq!((error.applied, error.kind), (Applied::No, ErrorKind::Busy), "{error}");
    assert!(begun.elapsed() < Duration::from_secs(4), "it waited {:?}", begun.elapsed());
    let waiting = tokio::spawn({
        let (store, swap) = (store.clone(), deleting(&stands, "a"));
        async move { store.swap(swap).await }
    });
    other.query_drop("ROLLBACK").await.unwrap();
    let won = waiting.await.unwrap().unwrap();
    assert!(matches!(won, Swapped::Won { .. }), "a write whose row became free: {won:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_claim_slips_past_a_quarantine_that_is_being_set() {
    let place = Place::new().await;
    let (store, second) = (place.open().await, place.open().await);
    // A claim under way has judged the quarantine that stood before.
    let judged = "SELECT before_ms FROM counterfoil_quarantine WHERE one = 1 LOCK IN SHARE MODE";
    let mut other = resting(&place, judged).await;
    let error = store.set_quarantine(Some(Timestamp::from_millis(0))).await.expect_err("a claim is under way");
    assert_eq!((error.applied, error.kind), (Applied::No, ErrorKind::Busy), "{error}");
    other.query_drop("COMMIT").await.unwrap();
    let far = Timestamp::from_millis(1_760_000_000_000);
    store.set_quarantine(Some(far)).await.unwrap();
    // The other instance learns it in the write.
    let won = second.swap(claiming("a", 1)).await.unwrap();
    let Swapped::Won { record: Some(record), .. } = won else { panic!("not written: {won:?}") };
    assert!(matches!(record.state, counterfoil_core::State::Unknown { .. }), "it runs: {record:?}");
    assert_eq!(super::record(second.as_ref(), "a").await, Some(Arc::unwrap_or_clone(record)));
}
