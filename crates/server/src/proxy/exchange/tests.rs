//! Connections that fail before, at and behind the first byte: only what the wire took of this request counts as sent.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use counterfoil_middleware::{Body, Fault};
use http::Request;
use http_body_util::BodyExt as _;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::super::line::Line;
use super::super::link::Link;
use super::super::pool::Pool;
use super::super::reach::{Place, Reached};
use super::{Came, Limit, noted, over};
use crate::config::Upstream;

/// HTTP/2: the preface, SETTINGS with three settings, and WINDOW_UPDATE come before the first request's first frame.
const BEFORE: usize = 24 + (9 + 4 * 6) + (9 + 4);

/// A line that takes so many bytes and then fails; once it took a request it says what it has to say, and then nothing,
/// or is at its end.
#[derive(Clone, Default)]
struct Taking(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    left: usize,
    taken: usize,
    /// It speaks once it took more than these.
    hears: usize,
    says: Vec<u8>,
    ended: bool,
    reader: Option<Waker>,
}

impl AsyncRead for Taking {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let mut state = self.0.lock().unwrap();
        if state.taken > state.hears && !state.says.is_empty() {
            buffer.put_slice(&std::mem::take(&mut state.says));
        } else if !state.ended {
            state.reader = Some(cx.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Taking {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let mut state = self.0.lock().unwrap();
        let taken = state.left.min(bytes.len());
        state.left -= taken;
        state.taken += taken;
        state.reader.take().into_iter().for_each(Waker::wake);
        if taken == 0 { Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())) } else { Poll::Ready(Ok(taken)) }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl Line for Taking {
    /// The worst: it looks as if it stood.
    fn is_quiet(&self) -> bool {
        true
    }
}

fn order() -> Request<Body> {
    Request::post("/orders").header("host", "orders:9000").body(Body::from("{}")).unwrap()
}

async fn exchange(link: Link, pool: &Arc<Pool>) -> Came {
    let permit = Arc::new(Semaphore::new(1)).acquire_owned().await.unwrap();
    let reached = Reached { link, place: Place::new(permit, pool.clone()), reused: false };
    let upstream = Upstream::parse("http://orders:9000").unwrap();
    let limit = Limit::Guarded { until: Instant::now() + Duration::from_secs(60), bytes: 1000 };
    over(reached, &upstream, limit, noted(order())).await
}

fn fault(came: Came) -> Fault {
    match came {
        Came::Answer(answer) => panic!("{answer:?}"),
        Came::Back(_, _, fault) | Came::Nothing(fault) => fault,
    }
}

#[track_caller]
fn check(name: &str, fault: &Fault, unsent: bool) {
    assert_eq!(matches!(fault, Fault::NotSent(_)), unsent, "{name}: {fault}");
    assert_eq!(matches!(fault, Fault::Broken(_)), !unsent, "{name}: {fault}");
}

#[tokio::test]
async fn what_the_wire_took() {
    let rows = [
        ("HTTP/1.1: the connection is at its end, and the request handed back", false, 0, true, true),
        ("HTTP/1.1: the first byte was not taken", false, 0, false, true),
        ("HTTP/1.1: one byte was taken", false, 1, false, false),
        ("HTTP/1.1: all but the body was taken", false, 60, false, false),
        ("HTTP/2: the connection is at its end", true, 0, true, true),
        ("HTTP/2: nothing was taken", true, 0, false, true),
        ("HTTP/2: part of the preface was taken", true, 10, false, true),
        ("HTTP/2: all but the request was taken", true, BEFORE, false, true),
        ("HTTP/2: part of the frame's header was taken", true, BEFORE + 8, false, true),
        ("HTTP/2: a frame of the request was begun", true, BEFORE + 9, false, false),
    ];
    for (name, two, left, ended, unsent) in rows {
        let line = Taking(Arc::new(Mutex::new(State { left, ended, ..State::default() })));
        let fault = match Link::shake(Box::new(line), two, false).await {
            Ok(link) => fault(exchange(link, &Arc::default()).await),
            Err(fault) => fault,
        };
        check(name, &fault, unsent);
    }
}

/// What an earlier request sent on the same connection says nothing about this one.
#[tokio::test]
async fn what_the_wire_took_of_the_second_request() {
    let settings = b"\0\0\0\x04\0\0\0\0\0".to_vec();
    let created = |body: &[u8]| [b"\0\0\x05\x01\x04\0\0\0\x01\x48\x03201".as_slice(), body].concat();
    let ended = [settings, created(b"\0\0\x02\0\x01\0\0\0\x01ok")].concat();
    let answer = b"HTTP/1.1 201 Created\r\ncontent-length: 2\r\n\r\nok".to_vec();
    let rows = [
        ("HTTP/1.1: nothing was taken", false, answer.clone(), 0, true),
        ("HTTP/1.1: one byte was taken", false, answer, 1, false),
        ("HTTP/2: nothing was taken", true, ended.clone(), 0, true),
        ("HTTP/2: part of the frame's header was taken", true, ended.clone(), 8, true),
        ("HTTP/2: a frame of the request was begun", true, ended, 9, false),
    ];
    for (name, two, says, left, unsent) in rows {
        let (line, pool) = (Taking::default(), Arc::new(Pool::default()));
        *line.0.lock().unwrap() = State { left: 10_000, hears: if two { BEFORE } else { 0 }, says, ..State::default() };
        let link = Link::shake(Box::new(line.clone()), two, false).await.unwrap();
        let Came::Answer(answer) = exchange(link, &pool).await else { panic!("{name}: no answer") };
        assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), "ok", "{name}");
        // What is left of the first exchange, settings acknowledged and the like, goes out before.
        tokio::task::yield_now().await;
        line.0.lock().unwrap().left = left;
        let link = pool.take(true).unwrap_or_else(|| panic!("{name}: it does not rest"));
        check(name, &fault(exchange(link, &pool).await), unsent);
    }
}
