//! Requests that two programs could read in two ways: 400, the connection closed, and nothing behind them answered.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::faulty::{Faulty, Step, frame, send};
use crate::polite::Polite;
use crate::running::Running;

/// A request that must never be answered: it stands where a smuggler would put it.
const HIDDEN: &str = "GET /hidden HTTP/1.1\r\nhost: a\r\n\r\n";

/// Sends `text`, and answers what came back until the proxy closed.
async fn answers(running: &Running, text: &str) -> String {
    let mut stream = TcpStream::connect(running.proxy).await.unwrap();
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    // Bytes that nobody read end a connection with a reset.
    drop(stream.read_to_end(&mut answer).await);
    String::from_utf8(answer).unwrap()
}

#[track_caller]
fn check(name: &str, text: &str, answer: &str) {
    assert!(answer.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{name}: {text:?} was answered {answer:?}");
    assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{name}: {text:?} was answered {answer:?}");
}

/// In front of both kinds of routes: guarded ones carry a key.
#[tokio::test]
async fn headers() {
    let upstream = Polite::tcp(false).await;
    let running = Running::before(&format!("http://{}", upstream.authority), "").await;
    let chunks = "0\r\n\r\n";
    let rows = [
        ("CL.TE", "content-length: 5\r\ntransfer-encoding: chunked\r\n", chunks),
        ("TE.CL", "transfer-encoding: chunked\r\ncontent-length: 5\r\n", chunks),
        ("TE.TE", "transfer-encoding: chunked\r\ntransfer-encoding: identity\r\n", chunks),
        ("TE in a list", "transfer-encoding: identity, chunked\r\n", chunks),
        ("TE with a tab", "transfer-encoding:\tchunked, x\r\n", chunks),
        ("TE with a vertical tab", "transfer-encoding: \x0bchunked\r\n", chunks),
        ("TE before the colon", "transfer-encoding : chunked\r\n", chunks),
        ("TE folded", "transfer-encoding:\r\n chunked\r\n", chunks),
        ("TE behind a bare LF", "x: y\ntransfer-encoding: chunked\r\n", chunks),
        ("TE behind a bare CR", "x: y\rtransfer-encoding: chunked\r\n", chunks),
        ("two lengths", "content-length: 5\r\ncontent-length: 6\r\n", chunks),
        ("one length twice", "content-length: 5\r\ncontent-length: 5\r\n", chunks),
        ("lengths in a list", "content-length: 5, 5\r\n", chunks),
        ("a length with a sign", "content-length: +5\r\n", chunks),
        ("a length below zero", "content-length: -5\r\n", chunks),
        ("a length in hexadecimal", "content-length: 0x5\r\n", chunks),
        ("a length that overflows", "content-length: 18446744073709551621\r\n", chunks),
        ("no length", "content-length: \r\n", chunks),
        ("a space before the colon", "content-length : 5\r\n", chunks),
        ("a folded line", "x: y\r\n z\r\n", ""),
        ("a line folded by a tab", "x: y\r\n\tz\r\n", ""),
        ("a bare LF", "x: y\n", ""),
        ("a bare LF at the end", "x: y\r\n\n", ""),
        ("a NUL", "x: y\0z\r\n", ""),
        ("no colon", "x\r\n", ""),
        ("no name", ": y\r\n", ""),
        ("two hosts", "host: b\r\n", ""),
        ("one host twice", "host: a\r\n", ""),
    ];
    for (name, lines, body) in rows {
        for key in ["", "idempotency-key: k\r\n"] {
            let text = format!("POST /orders HTTP/1.1\r\nhost: a\r\n{key}{lines}\r\n{body}{HIDDEN}");
            check(name, &text, &answers(&running, &text).await);
        }
    }
    for (name, text) in [
        ("no host", format!("GET / HTTP/1.1\r\n\r\n{HIDDEN}")),
        ("a bare LF in the request line", format!("GET / HTTP/1.1\nhost: a\r\n\r\n{HIDDEN}")),
        ("a bare CR in the request line", format!("GET /\r HTTP/1.1\r\nhost: a\r\n\r\n{HIDDEN}")),
        ("chunks before HTTP/1.1", format!("POST / HTTP/1.0\r\ntransfer-encoding: chunked\r\n\r\n{chunks}{HIDDEN}")),
    ] {
        check(name, &text, &answers(&running, &text).await);
    }
    assert_eq!(upstream.asked(), 0);
}

/// Bodies in chunks that are none.
const CHUNKS: [(&str, &str); 16] = [
    ("no size", "\r\nabc\r\n0\r\n\r\n"),
    ("no hexadecimal", "3x\r\nabc\r\n0\r\n\r\n"),
    ("a prefix", "0x3\r\nabc\r\n0\r\n\r\n"),
    ("a sign", "+3\r\nabc\r\n0\r\n\r\n"),
    ("below zero", "-3\r\nabc\r\n0\r\n\r\n"),
    ("a space", "3 \r\nabc\r\n0\r\n\r\n"),
    ("a size that overflows", "10000000000000003\r\nabc\r\n0\r\n\r\n"),
    ("a bare LF behind the size", "3\nabc\r\n0\r\n\r\n"),
    ("a bare LF in an extension", "3;x\nabc\r\n0\r\n\r\n"),
    ("a bare LF behind the data", "3\r\nabc\n0\r\n\r\n"),
    ("more than the size", "3\r\nabcd\r\n0\r\n\r\n"),
    ("less than the size", "4\r\nabc\r\n0\r\n\r\n"),
    ("a bare LF behind the last chunk", "3\r\nabc\r\n0\n\r\n"),
    ("a bare LF behind a trailer", "3\r\nabc\r\n0\r\nx: y\n\r\n"),
    ("a folded trailer", "3\r\nabc\r\n0\r\nx: y\r\n z\r\n\r\n"),
    ("a length as a trailer", "3\r\nabc\r\n0\r\ncontent-length: 3\r\n\r\n"),
];

const CHUNKED: &str = "POST /orders HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n";

/// A guarded body is read before anything is sent, and of an unguarded one that is known to be none nothing is: the
/// upstream sees no connection.
#[tokio::test]
async fn chunks() {
    let upstream = Faulty::start(vec![Step::Head, Step::Act]).await;
    let running = Running::start(upstream.address, "").await;
    for (name, body) in CHUNKS {
        for key in ["", "idempotency-key: k\r\n"] {
            let text = format!("{CHUNKED}{key}\r\n{body}{HIDDEN}");
            check(name, &text, &answers(&running, &text).await);
        }
    }
    assert_eq!(upstream.counts(), (0, 0));
}

/// A request before it is answered as it should be.
#[tokio::test]
async fn chunks_behind_another_request() {
    let upstream = Polite::tcp(false).await;
    let running = Running::before(&format!("http://{}", upstream.authority), "").await;
    let first = "POST /first HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
    for (name, body) in CHUNKS {
        let text = format!("{first}{CHUNKED}\r\n{body}{HIDDEN}");
        let answer = answers(&running, &text).await;
        let (before, after) = answer.split_once("HTTP/1.1 400").unwrap_or((&answer, ""));
        assert!(before.starts_with("HTTP/1.1 201 Created\r\n"), "{name}: {answer:?}");
        assert!(!after.contains("HTTP/1.1 "), "{name}: {answer:?}");
    }
    assert_eq!(upstream.asked(), CHUNKS.len());
}

/// An unguarded body whose fault comes once its request is under way: the connection to the upstream is broken off, and
/// what it saw is never a whole request.
#[tokio::test]
async fn chunks_that_come_late() {
    for two in [false, true] {
        // Over HTTP/2 a request counts only once it is whole.
        let script = if two { vec![send(frame::settings()), Step::Two] } else { vec![Step::Head] };
        let upstream = Faulty::start(script).await;
        let http = if two { "[forward]\nhttp = \"2\"\n" } else { "" };
        let running = Running::start(upstream.address, http).await;
        for (index, (name, body)) in CHUNKS.into_iter().enumerate() {
            let mut stream = TcpStream::connect(running.proxy).await.unwrap();
            stream.write_all(format!("{CHUNKED}\r\n6\r\nbefore\r\n").as_bytes()).await.unwrap();
            if two {
                upstream.connected(index + 1).await;
            } else {
                upstream.asked().await;
            }
            stream.write_all(format!("{body}{HIDDEN}").as_bytes()).await.unwrap();
            let mut answer = Vec::new();
            drop(stream.read_to_end(&mut answer).await);
            check(name, body, &String::from_utf8(answer).unwrap());
            upstream.left().await;
        }
        assert_eq!(upstream.counts(), (CHUNKS.len(), if two { 0 } else { CHUNKS.len() }));
        for body in upstream.rests() {
            assert!(!body.ends_with("0\r\n\r\n"), "a whole request: {body:?}");
        }
    }
}

/// What is written as it should be is answered, one request after the other.
#[tokio::test]
async fn in_order() {
    let upstream = Polite::tcp(false).await;
    let running = Running::before(&format!("http://{}", upstream.authority), "").await;
    let chunked = "POST /b HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0\r\n\r\n";
    let guarded = "POST /c HTTP/1.1\r\nhost: a\r\nidempotency-key: k\r\ncontent-length: 3\r\n\r\nabc";
    let last = "GET /d HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
    let text = format!("GET /a HTTP/1.1\r\nhost: a\r\n\r\n{chunked}\r\n{guarded}{guarded}{last}");
    let answer = answers(&running, &text).await;
    let paths: Vec<&str> =
        answer.split(" HTTP/1.1\n").filter_map(|part| part.rsplit_once(' ')).map(|(_, path)| path).collect();
    assert_eq!(paths[..paths.len() - 1], ["/a", "/b", "/c", "/c", "/d"], "{answer}");
    assert_eq!(upstream.asked(), 4);
}
