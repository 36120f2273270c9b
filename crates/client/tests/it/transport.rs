//! What may be said of an attempt, for everything that a connection can do to it.

use std::time::Duration;

use bytes::Bytes;
use counterfoil_client::{Heard, Http, Outgoing, Transport as _};
use counterfoil_core::receipt::Body;
use http::{HeaderMap, HeaderValue, Method, Uri};
use rustls::RootCertStore;
use tokio::net::TcpListener;
use tokio::time::Instant;

use crate::peer::Step::{Close, Say, Silence, Until};
use crate::peer::{Peer, Step};

const BODY: &str = r#"{"item":"copper kettle"}"#;
const LONG: Duration = Duration::from_secs(30);
/// For what can only end at its limit.
const SHORT: Duration = Duration::from_millis(300);

fn order(url: Uri) -> Outgoing {
    let mut headers = HeaderMap::new();
    headers.insert("idempotency-key", HeaderValue::from_static("\"k-1\""));
    Outgoing { method: Method::POST, url, headers, body: Bytes::from_static(BODY.as_bytes()) }
}

async fn sent(http: &Http, url: Uri, limit: Duration) -> Heard {
    http.send(order(url), Instant::now() + limit).await
}

/// The outcome in a word, or the status and body of an answer.
fn word(heard: &Heard) -> String {
    match heard {
        Heard::Answered(receipt) => match &receipt.body {
            Body::Kept(body) => format!("{} {}", receipt.status, String::from_utf8_lossy(body)),
            Body::NotKept => format!("{} not kept", receipt.status),
        },
        Heard::NotSent(_) => "not sent".to_owned(),
        Heard::Uncertain(_) => "uncertain".to_owned(),
    }
}

async fn check(name: &str, peer: &Peer, limit: Duration, expected: &str) {
    let http = Http::trusting(peer.roots()).unwrap();
    let heard = sent(&http, peer.url("/orders"), limit).await;
    assert_eq!(word(&heard), expected, "{name}: {heard:?}");
    assert_eq!(peer.connections(), 1, "{name}: connections");
}

fn say(text: &str) -> Step {
    Say(text.as_bytes().to_vec())
}

#[tokio::test]
async fn over_http_1_1() {
    let whole = || Until(BODY.as_bytes());
    let huge = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{}", 9 << 20, "x".repeat(9 << 20));
    let rows: [(&str, Vec<Step>, Duration, &str); 14] = [
        ("an answer", vec![whole(), say("HTTP/1.1 201 Created\r\ncontent-length: 2\r\n\r\nok")], LONG, "201 ok"),
        ("an answer that ends with the connection", vec![whole(), say("HTTP/1.1 200 OK\r\n\r\nok")], LONG, "200 ok"),
        (
            "an answer in pieces",
            vec![whole(), say("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n")],
            LONG,
            "200 ok",
        ),
        (
            "an informational answer first",
            vec![whole(), say("HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n")],
            LONG,
            "204 ",
        ),
        (
            "a redirect is an answer",
            vec![whole(), say("HTTP/1.1 307 Temporary Redirect\r\nlocation: /elsewhere\r\ncontent-length: 0\r\n\r\n")],
            LONG,
            "307 ",
        ),
        (
            "an answer before the body was read",
            vec![Until(b"\r\n\r\n"), say("HTTP/1.1 413 Content Too Large\r\ncontent-length: 0\r\n\r\n")],
            LONG,
            "413 ",
        ),
        ("too large an answer", vec![whole(), Say(huge.into_bytes())], LONG, "200 not kept"),
        (
            "an answer that breaks off",
            vec![whole(), say("HTTP/1.1 200 OK\r\ncontent-length: 20\r\n\r\nok"), Close],
            LONG,
            "uncertain",
        ),
        (
            "a chunk that breaks off",
            vec![whole(), say("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nok"), Close],
            LONG,
            "uncertain",
        ),
        ("a header that breaks off", vec![whole(), say("HTTP/1.1 20"), Close], LONG, "uncertain"),
        ("closed once it was read", vec![whole(), Close], LONG, "uncertain"),
        ("closed after a part of it", vec![Until(b"POST"), Close], LONG, "uncertain"),
        ("no HTTP at all", vec![whole(), say("SSH-2.0-OpenSSH\r\n"), Close], LONG, "uncertain"),
        ("silence", vec![whole(), Silence], SHORT, "uncertain"),
    ];
    for (name, script, limit, expected) in rows {
        check(name, &Peer::start(script).await, limit, expected).await;
    }
}

/// Frames of a server: its settings, and what it says about stream 1.
fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Step {
    let mut bytes = vec![0, 0, u8::try_from(payload.len()).unwrap(), kind, flags, 0, 0, 0, stream];
    bytes.extend_from_slice(payload);
    Say(bytes)
}

#[tokio::test]
async fn over_http_2() {
    let settings = || frame(4, 0, 0, &[]);
    let whole = || Until(BODY.as_bytes());
    // `:status: 200` of the static table (RFC 7541).
    let begun = || frame(1, 4, 1, &[0x88]);
    let rows: [(&str, Vec<Step>, Duration, &str); 7] = [
        ("an answer", vec![settings(), whole(), begun(), frame(0, 1, 1, b"ok"), Silence], LONG, "200 ok"),
        ("refused unprocessed", vec![settings(), whole(), frame(3, 0, 1, &[0, 0, 0, 7]), Silence], LONG, "not sent"),
        ("reset", vec![settings(), whole(), frame(3, 0, 1, &[0, 0, 0, 2]), Silence], LONG, "uncertain"),
        (
            "passed over by a goodbye",
            vec![settings(), whole(), frame(7, 0, 0, &[0, 0, 0, 0, 0, 0, 0, 0]), Close],
            LONG,
            "not sent",
        ),
        (
            "a goodbye behind it",
            vec![settings(), whole(), frame(7, 0, 0, &[0, 0, 0, 1, 0, 0, 0, 0]), Close],
            LONG,
            "uncertain",
        ),
        (
            "an answer that is cut off without an error",
            vec![settings(), whole(), begun(), frame(0, 0, 1, b"o"), frame(3, 0, 1, &[0, 0, 0, 0]), Silence],
            LONG,
            "uncertain",
        ),
        ("silence", vec![settings(), whole(), Silence], SHORT, "uncertain"),
    ];
    for (name, script, limit, expected) in rows {
        check(name, &Peer::two(script).await, limit, expected).await;
    }
}

#[tokio::test]
async fn what_was_certainly_not_sent() {
    let clear = Http::trusting(RootCertStore::empty()).unwrap();
    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url: Uri = format!("http://{}/orders", nobody.local_addr().unwrap()).parse().unwrap();
    drop(nobody);
    assert_eq!(word(&sent(&clear, url, LONG).await), "not sent", "nobody listens");

    let peer = Peer::start(vec![Silence]).await;
    assert_eq!(word(&sent(&clear, peer.url("/"), Duration::ZERO).await), "not sent", "the limit is over");

    let secret = Peer::two(vec![Silence]).await;
    assert_eq!(word(&sent(&clear, secret.url("/"), LONG).await), "not sent", "a certificate that nobody signed");

    let no_name: Uri = "http://nowhere.invalid/".parse().unwrap();
    assert_eq!(word(&sent(&clear, no_name, LONG).await), "not sent", "no such name");
}
