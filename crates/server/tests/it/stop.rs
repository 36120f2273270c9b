//! Stopping in order: readiness first, replays to the last, doubt for what does not end.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

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

/// Connections that nobody uses end with the order to stop; one in the middle of a request ends with the drain.
#[tokio::test]
async fn open_connections_do_not_keep_a_server_from_stopping() {
    const KEPT: &str = "GET /a HTTP/1.1\r\nhost: x\r\n\r\n";
    const HALF_A_BODY: &str = "POST /orders HTTP/1.1\r\nhost: x\r\nidempotency-key: k\r\ncontent-length: 9\r\n\r\nhalf";
    for (sent, drain) in [("", "1h"), (KEPT, "1h"), (HALF_A_BODY, "1s")] {
        let upstream = Upstream::start(Play::Send("HTTP/1.1 204 No Content\r\n\r\n")).await;
        let mut running = Running::start(upstream.address, &format!("[limits]\ndrain = \"{drain}\"\n")).await;
        let mut open = TcpStream::connect(running.proxy).await.unwrap();
        open.write_all(sent.as_bytes()).await.unwrap();
        if sent == KEPT {
            let mut answer = [0; 12];
            open.read_exact(&mut answer).await.unwrap();
            assert_eq!(&answer, b"HTTP/1.1 204");
        }
        // It has been accepted before a request that came later was answered.
        assert_eq!(ask(running.proxy, "GET /b", &[], "").await.status(), 204);
        running.stop();
        let ended = tokio::time::timeout(Duration::from_secs(30), running.ended()).await;
        assert_eq!(ended.map(|drained| drained.doubted), Ok(0), "{sent:?}");
        drop(open);
    }
}
