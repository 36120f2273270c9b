//! Stopping in order: what is refused while a guard drains, what may end, and what is left in doubt.
//! Signals belong to the server.

use std::sync::atomic::Ordering;
use std::time::Duration;

use counterfoil_core::{State, Why};
use counterfoil_middleware::{Drained, Terms};

use crate::kit::{Held, House, identity, post, settings};

#[tokio::test]
async fn what_runs_is_waited_for_and_nothing_new_begins() {
    let held = Held::new();
    let house = House::new(held.handler());
    held.go.notify_one();
    assert_eq!(house.send(post("done")).await.line(), "201 replayed=false");
    held.begun.notified().await;
    let first = house.sending(post("k"));
    held.begun.notified().await;
    assert_eq!(house.drain.working(), 1);
    house.drain.close();
    let drain = house.drain.clone();
    let drained = tokio::spawn(async move { drain.drain(Duration::from_hours(1)).await });
    let refused = house.send(post("new")).await;
    assert_eq!(refused.line(), "503 too-many-running");
    assert_eq!(refused.header("retry-after"), Some("5"));
    assert_eq!(house.store.stands(&identity("new")).await, None);
    assert_eq!(house.send(post("done")).await.line(), "201 replayed=true");
    assert_eq!(house.send(post("k")).await.line(), "409 in-progress");
    assert!(!drained.is_finished());
    held.go.notify_one();
    assert_eq!(first.await.unwrap().line(), "201 replayed=false");
    assert_eq!(drained.await.unwrap(), Drained { doubted: 0, abandoned: 0 });
    assert_eq!(house.drain.drain(Duration::ZERO).await, Drained { doubted: 0, abandoned: 0 });
}

#[tokio::test]
async fn what_is_left_is_put_in_doubt_and_its_callers_told() {
    let held = Held::new();
    let house = House::new(held.handler());
    let first = house.sending(post("k"));
    held.begun.notified().await;
    assert_eq!(house.drain.drain(Duration::ZERO).await, Drained { doubted: 1, abandoned: 0 });
    assert_eq!(first.await.unwrap().line(), "502 outcome-unknown");
    let state = house.store.stands(&identity("k")).await.unwrap().state;
    assert!(matches!(state, State::Unknown { why: Why::Doubted, .. }), "{state:?}");
    let restarted = house.beside(settings(Terms::default()));
    assert_eq!(restarted.send(post("k")).await.line(), "409 outcome-unknown");
    assert_eq!(held.effects.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_second_drain_ends_a_first_that_waits() {
    let held = Held::new();
    let house = House::new(held.handler());
    let first = house.sending(post("k"));
    held.begun.notified().await;
    let drain = house.drain.clone();
    let patient = tokio::spawn(async move { drain.drain(Duration::from_hours(1)).await });
    tokio::task::yield_now().await;
    assert!(!patient.is_finished());
    house.drain.drain(Duration::ZERO).await;
    assert_eq!(first.await.unwrap().line(), "502 outcome-unknown");
    patient.await.unwrap();
}
