//! Connections that fail before, at and behind the first byte: only what the wire took counts as sent.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use counterfoil_middleware::{Body, Fault};
use http::Request;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::super::reach::Reached;
use super::{Limit, over};
use crate::config::Upstream;

/// A stream that takes so many bytes and then fails; it says nothing, or is at its end.
struct Taking {
    left: usize,
    ended: bool,
}

impl AsyncRead for Taking {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, _: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.ended { Poll::Ready(Ok(())) } else { Poll::Pending }
    }
}

impl AsyncWrite for Taking {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let taken = self.left.min(bytes.len());
        self.left -= taken;
        if taken == 0 { Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())) } else { Poll::Ready(Ok(taken)) }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

async fn fault(two: bool, left: usize, ended: bool) -> Fault {
    let place = Arc::new(Semaphore::new(1)).acquire_owned().await.unwrap();
    let reached = Reached { stream: Box::new(Taking { left, ended }), two, place };
    let upstream = Upstream::parse("http://orders:9000").unwrap();
    let limit = Limit::Guarded { until: Instant::now() + Duration::from_secs(60), bytes: 1 };
    let request = Request::post("/orders").header("host", "orders:9000").body(Body::from("{}")).unwrap();
    over(reached, &upstream, limit, request).await.err().unwrap()
}

#[track_caller]
fn check(name: &str, fault: &Fault, unsent: bool) {
    assert_eq!(matches!(fault, Fault::NotSent(_)), unsent, "{name}: {fault}");
    assert_eq!(matches!(fault, Fault::Broken(_)), !unsent, "{name}: {fault}");
}

#[tokio::test]
async fn what_the_wire_took() {
    // The preface, SETTINGS with three settings, and WINDOW_UPDATE come before the request's first frame.
    let before = 24 + (9 + 4 * 6) + (9 + 4);
    let rows = [
        ("HTTP/1.1: the connection is at its end, and the request handed back", false, 0, true, true),
        ("HTTP/1.1: the first byte was not taken", false, 0, false, true),
        ("HTTP/1.1: one byte was taken", false, 1, false, false),
        ("HTTP/1.1: all but the body was taken", false, 60, false, false),
        ("HTTP/2: the connection is at its end", true, 0, true, true),
        ("HTTP/2: nothing was taken", true, 0, false, true),
        ("HTTP/2: part of the preface was taken", true, 10, false, true),
        ("HTTP/2: all but the request was taken", true, before, false, true),
        ("HTTP/2: part of the frame's header was taken", true, before + 8, false, true),
        ("HTTP/2: a frame of the request was begun", true, before + 9, false, false),
    ];
    for (name, two, left, ended, unsent) in rows {
        check(name, &fault(two, left, ended).await, unsent);
    }
}
