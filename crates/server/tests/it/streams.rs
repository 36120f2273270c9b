//! Unguarded traffic streams in both directions, a caller that leaves cancels it and never a guarded action, and time
//! limits cut what rests.

use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::BodyExt as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::caller::{ask, order, parse, raw};
use crate::faulty::{Faulty, Step, frame, send};
use crate::running::Running;
use crate::two::{Two, Unsized, empty, full};
use crate::upstream::{Play, Upstream};

/// Reads until `text` has come.
async fn until(stream: &mut TcpStream, text: &str) -> String {
    let mut read = String::new();
    let mut buffer = [0; 4096];
    while !read.contains(text) {
        let count = stream.read(&mut buffer).await.unwrap();
        assert_ne!(count, 0, "closed before {text:?}: {read:?}");
        read.push_str(std::str::from_utf8(&buffer[..count]).unwrap());
    }
    read
}

/// The upstream answers each piece as it comes: neither direction waits for the other's end.
#[tokio::test]
async fn both_directions_stream() {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: 1\n\n";
    let script =
        vec![Step::Head, send(head), Step::Read("3\r\nabc\r\n".len()), send("data: 2\n\n"), Step::Read(5), Step::Close];
    let upstream = Faulty::start(script).await;
    let running = Running::start(upstream.address, "").await;
    let mut stream = TcpStream::connect(running.proxy).await.unwrap();
    stream.write_all(b"POST /talk HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n").await.unwrap();
    until(&mut stream, "data: 1\n\n").await;
    stream.write_all(b"3\r\nabc\r\n").await.unwrap();
    until(&mut stream, "data: 2\n\n").await;
    stream.write_all(b"0\r\n\r\n").await.unwrap();
    until(&mut stream, "0\r\n\r\n").await;

    // The same over HTTP/2.
    let mut caller = Two::open(TcpStream::connect(running.proxy).await.unwrap()).await;
    let (more, pieces) = tokio::sync::mpsc::channel::<Bytes>(1);
    let request = Request::post("http://a/talk").body(Unsized(Pieces(pieces)).boxed_unsync()).unwrap();
    let mut answer = caller.send(request).await.unwrap().into_body();
    let mut next = async || loop {
        match answer.frame().await.map(|frame| frame.unwrap().into_data().unwrap()) {
            Some(piece) if piece.is_empty() => {}
            other => return other,
        }
    };
    assert_eq!(next().await.as_deref(), Some(&b"data: 1\n\n"[..]));
    more.send(Bytes::from_static(b"abc")).await.unwrap();
    assert_eq!(next().await.as_deref(), Some(&b"data: 2\n\n"[..]));
    drop(more);
    assert_eq!(next().await, None);
}

/// A body of the pieces that are handed in.
struct Pieces(tokio::sync::mpsc::Receiver<Bytes>);

impl http_body::Body for Pieces {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<http_body::Frame<Bytes>, std::io::Error>>> {
        self.0.poll_recv(cx).map(|piece| piece.map(|piece| Ok(http_body::Frame::data(piece))))
    }
}

/// Bodies far larger than anything that is held.
#[tokio::test]
async fn long_bodies_pass() {
    let length = 8 << 20;
    let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{}", "y".repeat(length));
    let upstream = Faulty::start(vec![Step::Head, Step::Read(length), send(answer), Step::Close]).await;
    let running = Running::start(upstream.address, "").await;
    let body = "x".repeat(length);
    let answer = ask(running.proxy, "PUT /file", &[], &body).await;
    assert_eq!((answer.status(), answer.body.len()), (200, length));
    let mut caller = Two::open(TcpStream::connect(running.proxy).await.unwrap()).await;
    let answer = caller.ask(Request::put("http://a/file").body(full(&body)).unwrap()).await;
    assert_eq!((answer.status, answer.body.len()), (200, length));
}

/// A caller that leaves ends its unguarded request, before and within the answer.
#[tokio::test]
async fn a_caller_that_leaves_cancels() {
    let begun = send("HTTP/1.1 200 OK\r\n\r\nbegun");
    for (name, script) in [("before the answer", vec![Step::Head]), ("within the answer", vec![Step::Head, begun])] {
        let upstream = Faulty::start(script).await;
        let running = Running::start(upstream.address, "").await;
        let mut stream = TcpStream::connect(running.proxy).await.unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
        upstream.asked().await;
        drop(stream);
        gone(&upstream, name).await;
        let mut caller = Two::open(TcpStream::connect(running.proxy).await.unwrap()).await;
        let mut other = caller.clone();
        let asking = tokio::spawn(async move {
            let answer = caller.send(Request::get("http://a/").body(empty()).unwrap()).await?;
            answer.into_body().collect().await
        });
        upstream.asked().await;
        asking.abort();
        gone(&upstream, name).await;
        // Only the stream ended, and not the connection.
        let next =
            tokio::spawn(async move { other.send(Request::get("http://a/").body(empty()).unwrap()).await.is_ok() });
        upstream.asked().await;
        next.abort();
    }
}

async fn gone(upstream: &Faulty, name: &str) {
    let left = tokio::time::timeout(Duration::from_secs(10), upstream.left()).await;
    assert!(left.is_ok(), "{name}: the upstream is still asked");
}

/// A guarded action goes on without its caller, whichever way that left, and the retry gets its result.
#[tokio::test]
async fn a_guarded_action_goes_on() {
    for reset in [false, true] {
        let answer = "HTTP/1.1 201 Created\r\ncontent-length: 4\r\n\r\ndone";
        let upstream = Faulty::start(vec![Step::Head, Step::Read(2), Step::Read(0), send(answer)]).await;
        let running = Running::start(upstream.address, "[defaults]\nduplicates = \"wait 10s\"\n").await;
        let mut stream = TcpStream::connect(running.proxy).await.unwrap();
        let text = "POST /orders HTTP/1.1\r\nhost: a\r\nidempotency-key: k\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}";
        stream.write_all(text.as_bytes()).await.unwrap();
        upstream.asked().await;
        if reset {
            stream.set_zero_linger().unwrap();
        }
        drop(stream);
        let again = order(running.proxy, "k", "{}").await;
        assert_eq!((again.status(), again.header("idempotent-replayed")), (201, Some("true")), "{again:?}");
        assert_eq!(upstream.counts(), (1, 1));
    }
}

/// A caller of HTTP/2 that leaves in the middle of its body has not asked for anything, whatever it says as it goes.
#[tokio::test]
async fn a_body_that_breaks_off_is_not_run() {
    let answer = "HTTP/1.1 201 Created\r\ncontent-length: 4\r\n\r\ndone";
    let upstream = Faulty::start(vec![Step::Head, send(answer)]).await;
    let running = Running::start(upstream.address, "").await;
    for code in [frame::NO_ERROR, frame::CANCEL] {
        let mut stream = TcpStream::connect(running.proxy).await.unwrap();
        let header = |name: &str, value: &str| {
            let (name, value) = (name.as_bytes(), value.as_bytes());
            [&[0, name.len() as u8][..], name, &[value.len() as u8], value].concat()
        };
        // POST, http, then /orders and the rest by name.
        let block = [
            b"\x83\x86".to_vec(),
            header(":path", "/orders"),
            header(":authority", "a"),
            header("idempotency-key", "k"),
        ];
        let block = block.concat();
        let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
        bytes.extend(frame::settings());
        bytes.extend([0, 0, block.len() as u8, 1, 4, 0, 0, 0, 1]);
        bytes.extend(block);
        bytes.extend(frame::data(b"{", false));
        bytes.extend(frame::ping());
        stream.write_all(&bytes).await.unwrap();
        pinged(&mut stream).await;
        stream.write_all(&[frame::reset(code), frame::ping()].concat()).await.unwrap();
        pinged(&mut stream).await;
        drop(stream);
    }
    // A key that was claimed for half a body would be a mismatch now.
    let whole = order(running.proxy, "k", "{}").await;
    assert_eq!((whole.status(), whole.header("idempotent-replayed")), (201, Some("false")), "{whole:?}");
    assert_eq!(upstream.counts(), (1, 1));
}

/// Reads the answer to a ping, which comes behind whatever the frames before it did.
async fn pinged(stream: &mut TcpStream) {
    let mut read = Vec::new();
    while !read.windows(8).any(|window| window == frame::PING) {
        let mut buffer = [0; 1024];
        let count = stream.read(&mut buffer).await.unwrap();
        assert_ne!(count, 0);
        read.extend_from_slice(&buffer[..count]);
    }
}

#[tokio::test]
async fn time_limits() {
    let more = "[limits]\nbody = \"1s\"\nanswer = \"1s\"\nidle = \"2s\"\n";
    let upstream = Upstream::start(Play::Hang).await;
    let running = Running::start(upstream.address, more).await;
    // An unguarded request that is not answered.
    let answer = ask(running.proxy, "GET /", &[], "").await;
    assert_eq!(answer.status(), 504, "{answer:?}");
    // Guarded bodies that stop, and that drip: cut before anything is claimed.
    let head = "POST /orders HTTP/1.1\r\nhost: a\r\nidempotency-key: k\r\ncontent-length: 9\r\n\r\n";
    let stopped = raw(running.proxy, &format!("{head}half")).await;
    assert_eq!((stopped.status(), stopped.header("connection")), (408, Some("close")), "{stopped:?}");
    assert_eq!(drip(&running, &head.replace("9", "9999")).await.status(), 408);
    // An unguarded body that stops.
    let unguarded = head.replace("idempotency-key: k\r\n", "");
    let stopped = raw(running.proxy, &format!("{unguarded}half")).await;
    assert_eq!(stopped.status(), 408, "{stopped:?}");
    // The key is free.
    let asked = upstream.seen().len();
    let proxy = running.proxy;
    let free = tokio::spawn(async move { order(proxy, "k", "{}").await });
    while upstream.seen().len() == asked {
        upstream.arrived().await;
    }
    free.abort();
}

/// Sends a header, then a byte at short intervals, until the proxy answers.
async fn drip(running: &Running, head: &str) -> crate::caller::Answer {
    let stream = TcpStream::connect(running.proxy).await.unwrap();
    let (mut read, mut write) = stream.into_split();
    write.write_all(head.as_bytes()).await.unwrap();
    let dripping = tokio::spawn(async move {
        let mut timer = tokio::time::interval(Duration::from_millis(50));
        loop {
            timer.tick().await;
            if write.write_all(b"x").await.is_err() {
                return;
            }
        }
    });
    let mut answer = Vec::new();
    drop(read.read_to_end(&mut answer).await);
    dripping.abort();
    parse(&String::from_utf8(answer).unwrap())
}

/// An unguarded body may take as long as it goes on; nothing else about it is limited.
#[tokio::test]
async fn a_long_body_outlasts_the_limits() {
    let script = vec![Step::Head, Step::Read(40), send("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")];
    let upstream = Faulty::start(script).await;
    let running = Running::start(upstream.address, "[limits]\nbody = \"1s\"\nanswer = \"1s\"\nidle = \"1s\"\n").await;
    let head = "POST /file HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: 40\r\n\r\n";
    assert_eq!(drip(&running, head).await.status(), 200);
}

/// Streams that rest are cut: an answer, and both sides of a connection that switched protocols.
#[tokio::test]
async fn what_rests_is_cut() {
    let more = "[limits]\nidle = \"1s\"\n";
    let upstream = Faulty::start(vec![Step::Head, send("HTTP/1.1 200 OK\r\n\r\nbegun")]).await;
    let running = Running::start(upstream.address, more).await;
    let answer = ask(running.proxy, "GET /", &[], "").await;
    assert_eq!(answer.status(), 200);
    assert!(answer.body.contains("begun") && !answer.body.ends_with("0\r\n\r\n"), "it has no end: {answer:?}");
    upstream.left().await;

    let switch = "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\nhello";
    let upstream = Faulty::start(vec![Step::Head, send(switch)]).await;
    let running = Running::start(upstream.address, more).await;
    let text = "GET / HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n";
    let answer = raw(running.proxy, text).await;
    assert_eq!((answer.status(), answer.body.as_str()), (101, "hello"));
    upstream.left().await;
}

/// A caller that reads nothing does not hold its place for ever.
#[tokio::test]
async fn a_caller_that_reads_nothing_is_cut() {
    let answer = format!("HTTP/1.1 200 OK\r\n\r\n{}", "y".repeat(32 << 20));
    let upstream = Faulty::start(vec![Step::Head, send(answer)]).await;
    let running = Running::start(upstream.address, "[limits]\nidle = \"1s\"\n").await;
    let mut stream = TcpStream::connect(running.proxy).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
    gone(&upstream, "a caller that reads nothing").await;
}
