//! Stopping in order: readiness first, replays to the last, doubt for what does not end.

use crate::caller::{ask, order};
use crate::running::Running;
use crate::upstream::{Play, Upstream};

#[tokio::test]
async fn an_idle_server_stops_at_once() {
    let upstream = Upstream::start(Play::Close).await;
    let mut running = Running::start(upstream.address, "[limits]\ndrain = \"1h\"\n").await;
    running.stop();
    let drained = running.ended().await;
    assert_eq!((drained.doubted, drained.abandoned), (0, 0));
}

#[tokio::test]
async fn what_runs_is_waited_for_and_then_doubted() {
    let upstream = Upstream::start(Play::Hang).await;
    let mut running = Running::start(upstream.address, "[limits]\ndrain = \"2s\"\n").await;
    let (proxy, admin) = (running.proxy, running.admin);
    let slow = tokio::spawn(async move { order(proxy, "slow", "{}").await });
    upstream.arrived().await;
    running.stop();
    // The order to stop is seen by the next request that comes after it, or the one after that.
    let ready = loop {
        let ready = ask(admin, "GET /readyz", &[], "").await;
        if ready.status() == 503 {
            break ready;
        }
    };
    assert!(ready.body.contains("stopping"), "{ready:?}");
    let refused = loop {
        let refused = order(proxy, "new", "{}").await;
        if refused.status() == 503 {
            break refused;
        }
    };
    assert_eq!(refused.problem(), "too-many-running");
    let duplicate = order(proxy, "slow", "{}").await;
    assert_eq!((duplicate.status(), duplicate.problem().as_str()), (409, "in-progress"));
    let slow = slow.await.unwrap();
    assert_eq!((slow.status(), slow.problem().as_str()), (502, "outcome-unknown"));
    let drained = running.ended().await;
    assert_eq!((drained.doubted, drained.abandoned), (1, 0));
    assert_eq!(upstream.seen().len(), 1);
}
