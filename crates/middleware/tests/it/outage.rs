//! A store that fails before the claim, at the claim, and at the end of a run.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use counterfoil_core::{Record, State};
use counterfoil_middleware::{Body, Drained, Duplicates, Terms};
use counterfoil_store::seam::{New, Swap};
use counterfoil_store::{ErrorKind, StoreError};
use http::Response;

use crate::kit::{Held, House, counting, handler, identity, post, settings};

fn error(kind: ErrorKind) -> StoreError {
    StoreError::not_applied(kind, "as the test says")
}

fn is_completion(swap: &Swap) -> bool {
    matches!(&swap.new, New::Put(record) if matches!(record.state, State::Done { .. }))
}

#[tokio::test]
async fn a_store_that_fails_before_the_claim_runs_nothing() {
    let table = [
        (ErrorKind::Busy, "503 store-unavailable", Some("1")),
        (ErrorKind::Unavailable, "503 store-unavailable", Some("5")),
        (ErrorKind::Unknown, "503 store-unavailable", Some("5")),
        (ErrorKind::Corrupt, "503 record-unreadable", None),
        (ErrorKind::StoreNewer, "503 store-newer", None),
    ];
    for (kind, expected, retry_after) in table {
        let effects = Arc::new(AtomicUsize::new(0));
        let house = House::new(counting(&effects));
        house.store.on_read(move || Some(error(kind)));
        let answer = house.send(post("k")).await;
        assert_eq!((answer.line().as_str(), answer.header("retry-after")), (expected, retry_after), "{kind}");
        house.store.mend();
        house.store.on_swap(move |_| Some(error(kind)));
        assert_eq!(house.send(post("k")).await.line(), expected, "{kind} at the claim");
        assert_eq!(effects.load(Ordering::SeqCst), 0, "the handler ran");
        house.store.mend();
        assert_eq!(house.send(post("k")).await.line(), "201 replayed=false");
        assert_eq!(house.send(post("k")).await.line(), "201 replayed=true");
    }
}

#[tokio::test(start_paused = true)]
async fn a_result_that_cannot_be_stored_is_answered_and_stored_later_under_the_same_lease() {
    let effects = Arc::new(AtomicUsize::new(0));
    let house = House::new(counting(&effects));
    house.store.on_swap(|swap| is_completion(swap).then(|| error(ErrorKind::Unavailable)));
    let answer = house.send(post("k")).await;
    assert_eq!(answer.line(), "201 replayed=false");
    assert_eq!(answer.header("idempotency-status"), Some("unrecorded"));
    assert_eq!(answer.header("idempotency-expires"), None);
    assert_eq!(house.send(post("k")).await.line(), "409 in-progress");
    let lease = house.store.stands(&identity("k")).await.unwrap().lease.id;
    house.store.mend();
    let done = |record: Option<&Record>| {
        record.is_some_and(|record| matches!(record.state, State::Done { .. }) && record.lease.id == lease)
    };
    house.store.until(&identity("k"), done).await;
    let replay = house.send(post("k")).await;
    assert_eq!((replay.line().as_str(), replay.header("idempotency-status")), ("201 replayed=true", None));
    assert_eq!(effects.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn a_waiter_gets_the_result_once_it_is_stored() {
    let held = Held::new();
    let duplicates = Duplicates::Wait(Duration::from_hours(1));
    let house = House::with(settings(Terms { duplicates, ..Terms::default() }), held.handler());
    house.store.on_swap(|swap| is_completion(swap).then(|| error(ErrorKind::Busy)));
    let first = house.sending(post("k"));
    held.begun.notified().await;
    let second = house.sending(post("k"));
    held.go.notify_one();
    tokio::select! {
        answer = first => assert_eq!(answer.unwrap().line(), "201 replayed=false"),
        answer = second => panic!("the waiter was answered first: {answer:?}"),
    }
    house.store.mend();
    let done = |record: Option<&Record>| record.is_some_and(|record| matches!(record.state, State::Done { .. }));
    house.store.until(&identity("k"), done).await;
    assert_eq!(house.send(post("k")).await.line(), "201 replayed=true");
}

#[tokio::test(start_paused = true)]
async fn a_release_that_cannot_be_stored_is_stored_later() {
    let refusing = handler(|_| async { Ok(Response::builder().status(400).body(Body::empty()).unwrap()) });
    let house = House::new(refusing);
    house.store.on_swap(|swap| matches!(swap.new, New::Delete).then(|| error(ErrorKind::Busy)));
    let answer = house.send(post("k")).await;
    assert_eq!(
        (answer.line().as_str(), answer.header("idempotency-status")),
        ("400 replayed=false", Some("unrecorded"))
    );
    house.store.mend();
    house.store.until(&identity("k"), |record| record.is_none()).await;
}

#[tokio::test]
async fn a_result_that_is_never_stored_ends_with_the_drain_and_is_not_run_again() {
    let effects = Arc::new(AtomicUsize::new(0));
    let house = House::new(counting(&effects));
    house.store.on_swap(|swap| is_completion(swap).then(|| error(ErrorKind::Unavailable)));
    assert_eq!(house.send(post("k")).await.header("idempotency-status"), Some("unrecorded"));
    let drained = house.drain.drain(Duration::ZERO).await;
    assert_eq!(drained, Drained { doubted: 1, abandoned: 0 });
    house.store.mend();
    house.store.clock.advance(Duration::from_mins(1));
    let restarted = house.beside(settings(Terms::default()));
    assert_eq!(restarted.send(post("k")).await.line(), "409 outcome-unknown");
    assert_eq!(effects.load(Ordering::SeqCst), 1);
}
