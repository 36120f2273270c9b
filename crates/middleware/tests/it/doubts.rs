//! A store that fails when it is told of a doubt: it is told again in the background, with the same lease, and the next
//! caller need not wait for the lease to lapse. Results and releases that could not be stored are tested in `outage`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use counterfoil_core::{Effect, LeaseId, Policy, Record, State, Why};
use counterfoil_middleware::{Body, Drained, Terms};
use counterfoil_store::seam::{New, Swap};
use counterfoil_store::{ErrorKind, StoreError};
use http::Response;
use tokio::sync::Notify;

use crate::kit::{Handler, Held, House, handler, identity, post, settings};

fn is_doubt(swap: &Swap) -> bool {
    matches!(&swap.new, New::Put(record) if matches!(record.state, State::Unknown { .. }))
}

/// Whatever `which` says fails until the store is mended.
fn fail(house: &House, which: fn(&Swap) -> bool) {
    let error = || StoreError::not_applied(ErrorKind::Unavailable, "as the test says");
    house.store.on_swap(move |swap| which(swap).then(error));
}

fn panicking() -> Handler {
    handler(|_| async { panic!("half-way") })
}

async fn lease(house: &House) -> LeaseId {
    house.store.stands(&identity("k")).await.unwrap().lease.id
}

async fn until(house: &House, lease: LeaseId, why: Why) {
    let doubted = |record: Option<&Record>| {
        record.is_some_and(|record| {
            matches!(record.state, State::Unknown { why: found, .. } if found == why) && record.lease.id == lease
        })
    };
    house.store.until(&identity("k"), doubted).await;
}

#[tokio::test(start_paused = true)]
async fn a_doubt_that_cannot_be_stored_is_stored_later_under_the_same_lease() {
    let house = House::new(panicking());
    fail(&house, is_doubt);
    let answer = house.send(post("k")).await;
    assert_eq!(answer.line(), "502 outcome-unknown");
    assert_eq!(answer.header("idempotency-status"), None, "there is no result that could be unrecorded");
    assert_eq!(house.send(post("k")).await.line(), "409 in-progress");
    assert_eq!(house.drain.working(), 1, "it keeps its place");
    let lease = lease(&house).await;
    house.store.mend();
    until(&house, lease, Why::Doubted).await;
    assert_eq!(house.send(post("k")).await.line(), "409 outcome-unknown");
    assert_eq!(house.drain.drain(Duration::from_secs(1)).await, Drained { doubted: 0, abandoned: 0 });
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_lapses_before_its_doubt_is_stored_says_the_same() {
    let house = House::new(panicking());
    fail(&house, is_doubt);
    assert_eq!(house.send(post("k")).await.line(), "502 outcome-unknown");
    house.store.clock.advance(Duration::from_secs(30));
    assert_eq!(house.send(post("k")).await.line(), "409 outcome-unknown");
    let lease = lease(&house).await;
    house.store.mend();
    until(&house, lease, Why::Doubted).await;
    assert_eq!(house.send(post("k")).await.line(), "409 outcome-unknown");
}

#[tokio::test(start_paused = true)]
async fn a_doubt_that_is_never_stored_ends_with_the_drain() {
    let house = House::new(panicking());
    fail(&house, is_doubt);
    assert_eq!(house.send(post("k")).await.line(), "502 outcome-unknown");
    assert_eq!(house.drain.drain(Duration::ZERO).await, Drained { doubted: 1, abandoned: 0 });
    house.store.mend();
    house.store.clock.advance(Duration::from_mins(1));
    assert_eq!(house.beside(settings(Terms::default())).send(post("k")).await.line(), "409 outcome-unknown");
}

/// A handler over its time limit, whose doubt could not be stored; it goes on meanwhile.
async fn over_its_limit(run: Handler) -> (House, LeaseId) {
    let house = House::new(run);
    fail(&house, is_doubt);
    assert_eq!(house.send(post("k")).await.line(), "504 outcome-unknown");
    let lease = lease(&house).await;
    (house, lease)
}

#[tokio::test(start_paused = true)]
async fn a_doubt_is_stored_while_the_late_handler_goes_on() {
    let held = Held::new();
    let (house, lease) = over_its_limit(held.handler()).await;
    house.store.mend();
    until(&house, lease, Why::Doubted).await;
    assert_eq!(house.send(post("k")).await.line(), "409 outcome-unknown");
    held.go.notify_one();
    let done = |record: Option<&Record>| record.is_some_and(|record| matches!(record.state, State::Done { .. }));
    house.store.until(&identity("k"), done).await;
    assert_eq!(house.send(post("k")).await.line(), "201 replayed=true");
}

#[tokio::test(start_paused = true)]
async fn a_late_result_is_stored_where_its_doubt_never_was() {
    let held = Held::new();
    let (house, lease) = over_its_limit(held.handler()).await;
    held.go.notify_one();
    let done = |record: Option<&Record>| {
        record.is_some_and(|record| matches!(record.state, State::Done { .. }) && record.lease.id == lease)
    };
    house.store.until(&identity("k"), done).await;
    assert_eq!(house.send(post("k")).await.line(), "201 replayed=true");
    assert_eq!(house.drain.drain(Duration::from_secs(60)).await, Drained { doubted: 0, abandoned: 0 });
}

#[tokio::test(start_paused = true)]
async fn a_late_end_without_a_result_leaves_the_doubt_to_be_stored() {
    let (go, ended) = (Arc::new(Notify::new()), Arc::new(AtomicBool::new(false)));
    let (let_go, tell) = (go.clone(), ended.clone());
    let refusing = handler(move |_| {
        let (go, ended) = (let_go.clone(), tell.clone());
        async move {
            go.notified().await;
            ended.store(true, Ordering::SeqCst);
            Ok(Response::builder().status(400).body(Body::empty()).unwrap())
        }
    });
    let (house, lease) = over_its_limit(refusing).await;
    go.notify_one();
    while !ended.load(Ordering::SeqCst) {
        tokio::task::yield_now().await;
    }
    house.store.mend();
    until(&house, lease, Why::Doubted).await;
}

#[tokio::test(start_paused = true)]
async fn an_answer_without_its_receipt_is_put_in_doubt_later() {
    let claims: fn(&Swap) -> bool = |swap| matches!(swap.new, New::Claim(_));
    for which in [claims, is_doubt] {
        let policy = Policy { effect: Effect::Coupled, ..Policy::default() };
        let forgetful = handler(|_| async { Ok(Response::new(Body::from("done, honestly"))) });
        let house = House::with(settings(Terms { policy, ..Terms::default() }), forgetful);
        fail(&house, which);
        assert_eq!(house.send(post("k")).await.line(), "502 outcome-unknown");
        assert_eq!(house.drain.working(), 1, "it keeps its place");
        house.store.mend();
        let doubted = |record: Option<&Record>| {
            record.is_some_and(|record| matches!(record.state, State::Unknown { why: Why::AnsweredWithoutSettle, .. }))
        };
        house.store.until(&identity("k"), doubted).await;
        assert_eq!(house.send(post("k")).await.line(), "409 outcome-unknown");
    }
}
