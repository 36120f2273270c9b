//! Connections to the upstream that carry more than one request: which are taken again, and what a fault on one of them
//! leaves behind.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::authority::Authority;
use crate::caller::{Answer, ask, order};
use crate::faulty::{Faulty, Step, frame, send};
use crate::polite::Polite;
use crate::running::Running;

use Step::{Alone, Close, Head, Read, Reset, Two, TwoMore};

const FIRST: &str = "HTTP/1.1 201 Created\r\ncontent-length: 5\r\n\r\nfirst";
/// More tries than it takes on a busy machine until two requests follow each other closely enough.
const TRIES: usize = 20;

fn first() -> Vec<Step> {
    vec![Head, Read(2), send(FIRST)]
}

fn first_two() -> Vec<Step> {
    let answer = [frame::created(), frame::data(b"first", true)].concat();
    vec![send(frame::settings()), Two, send(answer)]
}

/// Whether what follows a first exchange is guarded.
#[derive(Clone, Copy, Debug)]
enum Next {
    Guarded,
    /// An unguarded request with this method and path.
    Passing(&'static str),
}

/// A first exchange, and what came of the next one: its answer, and the connections and requests that the upstream has
/// seen in all.
async fn next(script: &[Step], more: &str, next: Next) -> (Running, Faulty, Answer) {
    let upstream = Faulty::start(script.to_vec()).await;
    let running = Running::start(upstream.address, more).await;
    let first = order(running.proxy, "a", "{}").await;
    assert!(first.status() == 201 && first.body == "first", "{first:?}");
    let answer = match next {
        Next::Guarded => order(running.proxy, "b", "{}").await,
        Next::Passing(line) => ask(running.proxy, line, &[], "{}").await,
    };
    (running, upstream, answer)
}

/// Polite upstreams through every door: requests one after the other share a connection.
#[tokio::test]
async fn one_connection_for_many() {
    let authority = Authority::new(&["127.0.0.1"]);
    let roots = format!("roots = \"{}\"\n", authority.roots().display());
    for (name, two, tls) in [("1.1", false, false), ("2", true, false), ("1.1", false, true), ("2", true, true)] {
        let upstream = match tls {
            true => Polite::tls(authority.acceptor(&["h2", "http/1.1"])).await,
            false => Polite::tcp(two).await,
        };
        let scheme = if tls { "https" } else { "http" };
        let more = format!("[forward]\nhttp = \"{name}\"\n{}", if tls { &roots } else { "" });
        let running = Running::before(&format!("{scheme}://{}", upstream.authority), &more).await;
        for number in 0..TRIES {
            assert_eq!(order(running.proxy, &number.to_string(), "{}").await.status(), 201);
            assert_eq!(ask(running.proxy, "PUT /a", &[], "text").await.status(), 201);
            assert_eq!(ask(running.proxy, "GET /b", &[], "").await.status(), 201);
        }
        let (asked, connections) = (upstream.asked(), upstream.connections());
        assert_eq!(asked, 3 * TRIES, "{name}");
        // On a busy machine a connection may rest for too long now and then.
        assert!(connections <= TRIES, "{name} over {scheme}: {connections} connections for {asked} requests");
    }
}

/// Bytes of the next request went out on a connection that was used before: doubt, and nothing is sent again.
#[tokio::test]
async fn a_fault_behind_the_first_byte() {
    let with = |first: Vec<Step>, more: Vec<Step>| [first, more].concat();
    let answer = |ends| frame::second(frame::data(b"half", ends));
    let rows = [
        ("reset behind the header", with(first(), vec![Head, Reset]), "1.1"),
        ("closed behind the body", with(first(), vec![Head, Read(2), Close]), "1.1"),
        ("cut in the answer", with(first(), vec![Head, Read(2), send("HTTP/1.1 2"), Close]), "1.1"),
        ("h2: closed", with(first_two(), vec![TwoMore, Close]), "2"),
        ("h2: reset", with(first_two(), vec![TwoMore, Reset]), "2"),
        ("h2: canceled", with(first_two(), vec![TwoMore, send(frame::second(frame::reset(frame::CANCEL)))]), "2"),
        ("h2: GOAWAY at the stream", with(first_two(), vec![TwoMore, send(frame::goaway(3, 0)), Close]), "2"),
        (
            "h2: cut in the answer",
            with(first_two(), vec![TwoMore, send(frame::second(frame::created())), send(answer(false)), Close]),
            "2",
        ),
    ];
    for (name, script, http) in rows {
        let more = format!("[forward]\nhttp = \"{http}\"\n");
        // The first request of a fresh connection would be another test.
        let (running, upstream, answer) = reused(&script, &more, Next::Guarded).await;
        assert_eq!((answer.status(), answer.problem().as_str()), (502, "outcome-unknown"), "{name}: {answer:?}");
        let again = order(running.proxy, "b", "{}").await;
        assert_eq!((again.status(), again.problem().as_str()), (409, "outcome-unknown"), "{name}: {again:?}");
        assert_eq!(upstream.counts(), (1, 2), "{name}");
        if name.starts_with("h2: cut") || name.starts_with("cut") {
            continue;
        }
        for line in ["PUT /a", "DELETE /a", "POST /a"] {
            let (_running, upstream, answer) = reused(&script, &more, Next::Passing(line)).await;
            assert_eq!((answer.status(), upstream.counts()), (502, (1, 2)), "{name}: {line}");
        }
    }
}

/// The same, tried until the connection was really used again.
async fn reused(script: &[Step], more: &str, which: Next) -> (Running, Faulty, Answer) {
    for _ in 0..TRIES {
        let found = next(script, more, which).await;
        if found.1.counts().0 == 1 {
            return found;
        }
    }
    panic!("the connection is never used again");
}

/// The upstream says of the stream that it was not processed: the key is free, on a connection that was used before too.
#[tokio::test]
async fn a_stream_that_is_turned_away() {
    let rows = [
        ("refused", vec![TwoMore, send(frame::second(frame::reset(frame::REFUSED_STREAM)))]),
        ("GOAWAY below", vec![TwoMore, send(frame::goaway(1, frame::NO_ERROR))]),
    ];
    for (name, then) in rows {
        let script = [first_two(), then].concat();
        let (_running, upstream, answer) = reused(&script, "[forward]\nhttp = \"2\"\n", Next::Guarded).await;
        assert_eq!((answer.status(), answer.problem().as_str()), (502, "upstream-unreachable"), "{name}: {answer:?}");
        assert_eq!(upstream.counts(), (1, 2), "{name}");
    }
}

/// What came behind an answer, or ended the connection, is never taken for the next answer, and no request is lost to it.
#[tokio::test]
async fn what_comes_unasked() {
    let stale = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nstale";
    let late = "HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    let rows = [
        ("closed", vec![Close], ""),
        ("reset", vec![Reset], ""),
        ("another answer", vec![send(stale)], ""),
        ("a time-out", vec![send(late), Close], ""),
        ("a byte", vec![send("\n")], ""),
        ("h2: GOAWAY", vec![send(frame::goaway(1, 0))], "2"),
        ("h2: GOAWAY, then closed", vec![send(frame::goaway(1, 0)), Close], "2"),
        ("h2: closed", vec![Close], "2"),
    ];
    for (name, then, http) in rows {
        let (begin, more) = match http {
            "2" => (first_two(), "[forward]\nhttp = \"2\"\n"),
            _ => (first(), ""),
        };
        let upstream = Faulty::start([begin, then].concat()).await;
        let running = Running::start(upstream.address, more).await;
        for (number, key) in ["a", "b", "c"].into_iter().enumerate() {
            let answer = order(running.proxy, key, "{}").await;
            assert_eq!((answer.status(), answer.body.as_str()), (201, "first"), "{name}: {answer:?}");
            assert_eq!(upstream.counts(), (number + 1, number + 1), "{name}");
            upstream.rested().await;
        }
    }
}

/// An answer that comes before the request was sent whole ends its connection, whatever becomes of the rest.
#[tokio::test]
async fn an_early_answer_is_the_last() {
    let upstream = Faulty::start(vec![Head, send(FIRST)]).await;
    let running = Running::start(upstream.address, "").await;
    for number in 1..=2 {
        let mut caller = TcpStream::connect(running.proxy).await.unwrap();
        caller.write_all(b"PUT /a HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\nhalf").await.unwrap();
        let mut text = String::new();
        while !text.ends_with("first") {
            let mut bytes = [0; 1024];
            let count = caller.read(&mut bytes).await.unwrap();
            assert_ne!(count, 0, "{text}");
            text.push_str(std::str::from_utf8(&bytes[..count]).unwrap());
        }
        assert_eq!(upstream.counts(), (number, number));
    }
}

/// An upload goes on while nobody takes the answer that began before its end.
#[tokio::test]
async fn an_upload_goes_on_behind_an_early_answer() {
    const LENGTH: usize = 32 << 20;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let running = Running::start(listener.local_addr().unwrap(), "").await;
    let upstream = tokio::spawn(async move {
        let (mut from, mut to) = listener.accept().await.unwrap().0.into_split();
        let mut bytes = vec![0; 64 << 10];
        let mut came = from.read(&mut bytes).await.unwrap();
        let answer = tokio::spawn(async move {
            to.write_all(format!("HTTP/1.1 200 OK\r\ncontent-length: {LENGTH}\r\n\r\n").as_bytes()).await.unwrap();
            drop(to.write_all(&vec![b'x'; LENGTH]).await);
        });
        while came < LENGTH {
            came += from.read(&mut bytes).await.unwrap();
        }
        answer.abort();
    });
    let mut caller = TcpStream::connect(running.proxy).await.unwrap();
    let head = format!("PUT /a HTTP/1.1\r\nhost: x\r\ncontent-length: {LENGTH}\r\n\r\n");
    let upload = async {
        caller.write_all(head.as_bytes()).await.unwrap();
        caller.write_all(&vec![b'x'; LENGTH]).await.unwrap();
        upstream.await.unwrap();
    };
    tokio::time::timeout(Duration::from_secs(20), upload).await.unwrap();
}

/// What rests gives way where there is no place for another connection.
#[tokio::test]
async fn what_rests_gives_way() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let alone = vec![Head, Read(2), Alone, send(FIRST)];
    let upstream = Faulty::on(listener, vec![first(), alone]);
    // Less than what rests would be left to rest.
    let more = "[limits]\nupstream_connections = 1\nanswer = \"1s\"\n";
    let running = Running::start(upstream.address, more).await;
    assert_eq!(order(running.proxy, "a", "{}").await.body, "first");
    let upgrade = ["connection: upgrade", "upgrade: x"];
    assert_eq!(ask(running.proxy, "PUT /a", &upgrade, "{}").await.status(), 201);
    assert_eq!(upstream.counts(), (2, 2));
}
