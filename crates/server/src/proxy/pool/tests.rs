//! Which connections rest, for whom, and for how long.

use std::sync::Arc;
use std::time::Duration;

use counterfoil_middleware::Body;
use http::Request;
use http_body::Body as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::time::{advance, pause};

use super::super::answer::{Noted, Progress};
use super::super::link::Link;
use super::{Pool, RESTING_MAX};

const ANSWER: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/// A connection that has carried one request, answered with these bytes, and the upstream's end of it.
async fn carried(pool: &Arc<Pool>, answer: &str) -> UnixStream {
    let (line, mut upstream) = UnixStream::pair().unwrap();
    let mut link = Link::shake(Box::new(line), false, false).await.unwrap();
    let request = Request::get("/").body(Noted::new(Body::empty(), &Progress::new())).unwrap();
    let asked = async {
        let mut bytes = [0; 1000];
        let count = upstream.read(&mut bytes).await.unwrap();
        assert!(bytes[..count].ends_with(b"\r\n\r\n"));
        upstream.write_all(answer.as_bytes()).await.unwrap();
    };
    let (sent, ()) = tokio::join!(link.send(request), asked);
    let mut body = sent.map_err(hyper::client::conn::TrySendError::into_error).unwrap().into_body();
    std::future::poll_fn(|cx| {
        let polled = std::pin::Pin::new(&mut body).poll_frame(cx);
        link.drive(cx);
        if polled.is_pending() { std::pin::Pin::new(&mut body).poll_frame(cx) } else { polled }
    })
    .await;
    pool.rest(link);
    upstream
}

/// Whether a guarded and another request would get the connection.
fn check(pool: &Pool, name: &str, guarded: bool, unguarded: bool) {
    assert_eq!(pool.take(true).is_some(), guarded, "{name}");
    if !guarded {
        assert_eq!(pool.take(false).is_some(), unguarded, "{name}");
    }
}

#[tokio::test]
async fn only_what_stands_and_is_quiet() {
    let stale = "HTTP/1.1 408 Request Timeout\r\nconnection: close\r\n\r\n";
    let last = ANSWER.replace("content-length", "connection: close\r\ncontent-length");
    let rows = [
        ("quiet", ANSWER, "", false, true),
        ("closed since", ANSWER, "", true, false),
        ("spoken on since", ANSWER, stale, false, false),
        ("spoken on and closed since", ANSWER, stale, true, false),
        ("more came than the answer", &format!("{ANSWER}{ANSWER}"), "", false, false),
        ("a byte more came than the answer", &format!("{ANSWER}\n"), "", false, false),
        ("said to be the last", &last, "", false, false),
        ("of HTTP/1.0", &ANSWER.replace("1.1", "1.0"), "", false, false),
    ];
    for (name, answer, later, closes, stands) in rows {
        let pool = Arc::new(Pool::default());
        let mut upstream = carried(&pool, answer).await;
        upstream.write_all(later.as_bytes()).await.unwrap();
        if closes {
            upstream.shutdown().await.unwrap();
        }
        // The runtime is not asked in between: it does not know yet.
        check(&pool, name, stands, stands);
    }
}

#[tokio::test]
async fn for_so_long() {
    let rows = [("hardly", 400, true, true), ("a moment", 600, false, true), ("too long", 1600, false, false)];
    for (name, millis, guarded, unguarded) in rows {
        let pool = Arc::new(Pool::default());
        let _upstream = carried(&pool, ANSWER).await;
        pause();
        advance(Duration::from_millis(millis)).await;
        check(&pool, name, guarded, unguarded);
        tokio::time::resume();
    }
}

/// Nobody has to come for a connection to be closed.
#[tokio::test]
async fn closed_by_itself() {
    let pool = Arc::new(Pool::default());
    let mut upstream = carried(&pool, ANSWER).await;
    let mut rest = Vec::new();
    pause();
    upstream.read_to_end(&mut rest).await.unwrap();
    assert_eq!(rest, b"");
    assert_eq!(pool.resting().links.len(), 0);
}

#[tokio::test]
async fn so_many() {
    let pool = Arc::new(Pool::default());
    let mut upstreams = Vec::new();
    for _ in 0..=RESTING_MAX {
        upstreams.push(carried(&pool, ANSWER).await);
    }
    assert!(pool.resting().links.len() <= RESTING_MAX);
    pool.trim(2);
    assert_eq!(pool.resting().links.len(), 2);
    // Those that have rested longest go first.
    let mut rest = Vec::new();
    upstreams[0].read_to_end(&mut rest).await.unwrap();
    assert!(pool.take(true).is_some());
}
