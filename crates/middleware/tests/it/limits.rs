//! Bounds: actions that run at once, and settings that would let nothing through.

use std::sync::atomic::Ordering;
use std::time::Duration;

use counterfoil_core::{Effect, Policy};
use counterfoil_middleware::{Error, GuardLayer, Settings, Terms};
use counterfoil_store::Gate;

use crate::kit::{Held, House, identity, post, settings};
use crate::store::Scripted;

#[tokio::test]
async fn beyond_the_most_that_run_nothing_is_claimed_and_what_stands_is_still_told() {
    let held = Held::new();
    let house = House::with(Settings { running_max: 1, ..settings(Terms::default()) }, held.handler());
    held.go.notify_one();
    assert_eq!(house.send(post("done")).await.line(), "201 replayed=false");
    held.begun.notified().await;
    let first = house.sending(post("a"));
    held.begun.notified().await;
    let refused = house.send(post("b")).await;
    assert_eq!(refused.line(), "503 too-many-running");
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert_eq!(house.store.stands(&identity("b")).await, None);
    assert_eq!(house.send(post("a")).await.line(), "409 in-progress");
    assert_eq!(house.send(post("done")).await.line(), "201 replayed=true");
    held.go.notify_one();
    assert_eq!(first.await.unwrap().line(), "201 replayed=false");
    held.go.notify_one();
    assert_eq!(house.send(post("b")).await.line(), "201 replayed=false");
    assert_eq!(held.effects.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn settings_without_sense_are_refused() {
    let policy = |policy: Policy| settings(Terms { policy, ..Terms::default() });
    let table = [
        (Settings { running_max: 0, ..settings(Terms::default()) }, "running_max is zero: set at least one"),
        (Settings { waiters_max: 0, ..settings(Terms::default()) }, "waiters_max is zero: set at least one"),
        (policy(Policy { lease: Duration::ZERO, ..Policy::default() }), "lease is zero: set at least one"),
        (
            policy(Policy { effect: Effect::KeyedUpstream, ..Policy::default() }),
            "the window of create-order is too short: say how long its upstream remembers a key, more than one run and a \
             margin of 5 minutes or one run, whichever is longer",
        ),
        (
            policy(Policy { effect: Effect::KeyedUpstream, window: Duration::from_hours(24), ..Policy::default() }),
            "the upstream of create-order has no way to say that it is still running: name its statuses or problem types",
        ),
        (
            settings(Terms {
                statuses: [(counterfoil_core::wire::ProblemType::Mismatch, 200)].into(),
                ..Terms::default()
            }),
            "mismatch cannot be answered with status 200: use 400 to 599",
        ),
    ];
    for (settings, expected) in table {
        let refused: Error = GuardLayer::new(Gate::new(Scripted::new()).unwrap(), settings).err().unwrap();
        assert_eq!(refused.to_string(), expected);
    }
}
