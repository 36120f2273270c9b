//! How callers are let in: HTTP/1.1 and HTTP/2, in clear, over TLS and through a Unix socket; and the bounds of each.

use std::path::Path;

use http::Request;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpStream, UnixStream};

use crate::authority::Authority;
use crate::caller::{Answer, ask, parse, raw};
use crate::polite::Polite;
use crate::running::{Running, config_before};
use crate::two::{Two, empty};

const ORDER: &str = "POST /orders HTTP/1.1\r\nhost: api.example\r\nconnection: close\r\nidempotency-key: k\r\n\
                     content-type: application/json\r\ncontent-length: 2\r\n\r\n{}";

async fn over(mut stream: impl AsyncRead + AsyncWrite + Unpin, text: &str) -> Answer {
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    // A server that closes TLS without a word has answered all the same.
    drop(stream.read_to_end(&mut answer).await);
    parse(&String::from_utf8(answer).unwrap())
}

/// Over HTTP/2: once, again, and unguarded at the same time.
async fn two(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, scheme: &str, upstream: &Polite) {
    let before = upstream.asked();
    let mut caller = Two::open(stream).await;
    let first = caller.order(scheme, "two").await;
    assert_eq!((first.status, first.headers["idempotent-replayed"].as_bytes()), (201, &b"false"[..]), "{first:?}");
    let mut other = caller.clone();
    let get = Request::get(format!("{scheme}://api.example/a")).body(empty()).unwrap();
    let (again, passed) = tokio::join!(caller.order(scheme, "two"), other.ask(get));
    assert_eq!((again.status, again.headers["idempotent-replayed"].as_bytes()), (201, &b"true"[..]), "{again:?}");
    assert_eq!(again.body, first.body);
    assert!(passed.body.starts_with("GET /a HTTP/1.1\n"), "{passed:?}");
    let told = format!("\nx-forwarded-host: api.example\nx-forwarded-proto: {scheme}\n");
    assert!(passed.body.contains(&told), "{passed:?}");
    assert_eq!(upstream.asked() - before, 2);
}

#[tokio::test]
async fn in_clear() {
    let upstream = Polite::tcp(false).await;
    let running = Running::before(&format!("http://{}", upstream.authority), "").await;
    let one = raw(running.proxy, ORDER).await;
    assert_eq!(one.status(), 201, "{one:?}");
    two(TcpStream::connect(running.proxy).await.unwrap(), "http", &upstream).await;
}

#[tokio::test]
async fn over_tls() {
    let upstream = Polite::tcp(false).await;
    let authority = Authority::new(&["api.example"]);
    let running = Running::before(&format!("http://{}", upstream.authority), &authority.table()).await;
    let connect = async |alpn: &[&str]| {
        let stream = TcpStream::connect(running.proxy).await.unwrap();
        let name = ServerName::try_from("api.example").unwrap();
        authority.connector(alpn).connect(name, stream).await.unwrap()
    };
    for alpn in [&[][..], &["http/1.1"]] {
        let one = over(connect(alpn).await, ORDER).await;
        assert_eq!(one.status(), 201, "{one:?}");
        assert!(one.body.contains("x-forwarded-proto: https\n"), "{one:?}");
        assert!(one.body.contains("\nforwarded: for=127.0.0.1;proto=https;host=\"api.example\"\n"), "{one:?}");
    }
    two(connect(&["h2", "http/1.1"]).await, "https", &upstream).await;
    // In clear nothing is answered, and nothing comes through.
    let before = upstream.asked();
    let clear = over(TcpStream::connect(running.proxy).await.unwrap(), ORDER).await;
    assert_eq!((clear.status(), upstream.asked()), (0, before));
}

#[tokio::test]
async fn through_a_unix_socket() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("counterfoil.sock");
    let upstream = Polite::unix(&folder.path().join("orders.sock"), false);
    let (listen, up) = (format!("unix:{}", path.display()), format!("unix:{}/orders.sock", folder.path().display()));
    // The file that a killed process left behind is replaced.
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    let mut running = Running::with(config_before(&up, &listen, "[forward]\ntrusted = [\"unix\"]\n")).await;
    assert_eq!(running.place.to_string(), listen);
    let connect = async || UnixStream::connect(&path).await.unwrap();
    let text = ORDER.replace("connection", "x-forwarded-for: 203.0.113.7\r\nconnection");
    let one = over(connect().await, &text).await;
    assert_eq!(one.status(), 201, "{one:?}");
    for line in ["\nhost: localhost\n", "\nx-forwarded-for: 203.0.113.7\n", "\nforwarded: for=unknown;proto=http;"] {
        assert!(one.body.contains(line), "{line:?} in {one:?}");
    }
    two(connect().await, "http", &upstream).await;
    // Somebody listens there: the second one is refused and leaves the first alone.
    let second = counterfoil_server::Server::start(config_before(&up, &listen, "")).await.err().unwrap().to_string();
    assert!(second.contains("cannot listen on unix:"), "{second}");
    assert_eq!(over(connect().await, ORDER).await.status(), 201);
    running.stop();
    running.ended().await;
    assert!(!Path::new(&path).exists());
    // A file that is no socket is not touched.
    std::fs::write(&path, "mine").unwrap();
    assert!(counterfoil_server::Server::start(config_before(&up, &listen, "")).await.is_err());
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");
}

/// Whoever may connect to the socket's file may be the one that names the callers.
#[tokio::test]
async fn principals_by_header_through_a_unix_socket() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("counterfoil.sock");
    let upstream = Polite::tcp(false).await;
    let (up, listen) = (format!("http://{}", upstream.authority), format!("unix:{}", path.display()));
    let named = "[principal]\nfrom = \"header\"\nheader = \"x-user\"\npeers = [\"unix\"]\n";
    let _running = Running::with(config_before(&up, &listen, named)).await;
    let order = async |user: &str| {
        let text = ORDER.replace("connection", &format!("{user}connection"));
        let answer = over(UnixStream::connect(&path).await.unwrap(), &text).await;
        (answer.status(), answer.header("idempotent-replayed") == Some("true"))
    };
    assert_eq!(order("x-user: alice\r\n").await, (201, false));
    assert_eq!(order("x-user: alice\r\n").await, (201, true));
    assert_eq!(order("x-user: bob\r\n").await, (201, false));
    assert_eq!(order("").await, (401, false));
    assert_eq!(order("x-user: alice\r\nx-user: bob\r\n").await, (401, false));
    assert_eq!(upstream.asked(), 2);
}

#[tokio::test]
async fn headers_are_bounded() {
    let upstream = Polite::tcp(false).await;
    let more = "[limits]\nheader_bytes = \"8KiB\"\nheader_lines = 20\n";
    let running = Running::before(&format!("http://{}", upstream.authority), more).await;
    let many: Vec<String> = (0..20).map(|index| format!("x-{index}: 1")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let long = format!("x: {}", "y".repeat(9000));
    for headers in [many.as_slice(), &[long.as_str()]] {
        let answer = ask(running.proxy, "GET /", headers, "").await;
        assert_eq!((answer.status(), upstream.asked()), (431, 0), "{answer:?}");
    }
    let mut caller = Two::open(TcpStream::connect(running.proxy).await.unwrap()).await;
    for (name, lines, length) in [("many", 25, 1), ("long", 1, 9000)] {
        let mut request = Request::get("http://api.example/");
        for index in 0..lines {
            request = request.header(format!("x-{index}"), "y".repeat(length));
        }
        let answer = caller.ask(request.body(empty()).unwrap()).await;
        assert_eq!((answer.status, upstream.asked()), (431, 0), "{name}");
    }
    let few = ask(running.proxy, "GET /", &many[..10], "").await;
    assert_eq!(few.status(), 201);
}

/// A caller that says nothing, or says it slowly, loses its place, whatever it seems to speak.
#[tokio::test]
async fn slow_callers_lose_their_place() {
    let upstream = Polite::tcp(false).await;
    let authority = Authority::new(&["api.example"]);
    let up = format!("http://{}", upstream.authority);
    let clear = Running::before(&up, "[limits]\nheader = \"1s\"\n").await;
    let tls = Running::before(&up, &format!("{}[limits]\nheader = \"1s\"\n", authority.table())).await;
    let preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    let settings = "\0\0\0\x04\0\0\0\0\0";
    // The header of a request that never comes.
    let half = "\0\0\u{40}\x01\x04\0\0\0\x01\u{7f}";
    for (name, running, text) in [
        ("nothing", &clear, String::new()),
        ("half a line", &clear, "GET / HT".to_owned()),
        ("half a header", &clear, "GET / HTTP/1.1\r\nhost: a\r\n".to_owned()),
        ("half a preface", &clear, preface[..20].to_owned()),
        ("a preface", &clear, preface.to_owned()),
        ("no request", &clear, format!("{preface}{settings}")),
        ("half a request", &clear, format!("{preface}{settings}{half}")),
        ("nothing to TLS", &tls, String::new()),
        ("half a handshake", &tls, "\x16\x03\x01\x02\0".to_owned()),
    ] {
        let mut stream = TcpStream::connect(running.proxy).await.unwrap();
        stream.write_all(text.as_bytes()).await.unwrap();
        let mut rest = Vec::new();
        let ended = tokio::time::timeout(std::time::Duration::from_secs(10), stream.read_to_end(&mut rest)).await;
        assert!(ended.is_ok(), "{name}: the connection still stands");
    }
    assert_eq!(upstream.asked(), 0);
}

/// Requests beyond the limit of one connection wait for their turn.
#[tokio::test]
async fn streams_are_bounded() {
    let upstream = Polite::tcp(false).await;
    let running = Running::before(&format!("http://{}", upstream.authority), "[limits]\nhttp2_streams = 2\n").await;
    let mut stream = TcpStream::connect(running.proxy).await.unwrap();
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await.unwrap();
    let mut header = [0; 9];
    stream.read_exact(&mut header).await.unwrap();
    let mut settings = vec![0; usize::from(header[2])];
    stream.read_exact(&mut settings).await.unwrap();
    assert_eq!(header[3], 4);
    let streams = settings.chunks(6).find(|setting| setting[..2] == [0, 3]);
    assert_eq!(streams.map(|setting| &setting[2..]), Some(&[0, 0, 0, 2][..]));
}
