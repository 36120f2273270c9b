//! Upgrades: joined on unguarded routes whatever each side is reached by, refused on guarded ones, and tunnels refused
//! everywhere.

use http::{Method, Request};
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;

use crate::authority::Authority;
use crate::caller::raw;
use crate::polite::Polite;
use crate::running::Running;
use crate::two::{Two, empty};
use crate::upstream::{Play, Upstream};

const SWITCH: &str = "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
                      sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\nhello from above;";
const ASK: &str = "GET /live HTTP/1.1\r\nhost: api.example\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\
                   sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

/// Asks for an upgrade and talks with the upstream through it, in bytes that are no HTTP; then hangs up.
async fn talk(mut stream: impl AsyncRead + AsyncWrite + Unpin) {
    stream.write_all(ASK.as_bytes()).await.unwrap();
    let mut text = String::new();
    let mut buffer = [0; 1024];
    while !text.ends_with("hello from above;") {
        let count = stream.read(&mut buffer).await.unwrap();
        assert_ne!(count, 0, "{text}");
        text.push_str(std::str::from_utf8(&buffer[..count]).unwrap());
    }
    assert!(text.starts_with("HTTP/1.1 101 Switching Protocols\r\n"), "{text}");
    assert!(text.contains("\r\nsec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"), "{text}");
    // What follows is no HTTP, and nothing of it is looked at.
    for size in [1, 14, 300_000] {
        let bytes: Vec<u8> = b"\x81\x85\0\n\r\n :\xff\r\n\r\nGET".iter().copied().cycle().take(size).collect();
        let mut back = vec![0; size];
        let (mut from, mut to) = tokio::io::split(&mut stream);
        let (sent, read) = tokio::join!(to.write_all(&bytes), from.read_exact(&mut back));
        sent.unwrap();
        read.unwrap();
        assert!(back == bytes, "{size} bytes came back otherwise");
    }
    stream.shutdown().await.unwrap();
    let mut rest = Vec::new();
    // A server that closes TLS without a word has closed all the same.
    drop(stream.read_to_end(&mut rest).await);
    assert!(rest.is_empty());
}

#[tokio::test]
async fn an_unguarded_connection_switches() {
    let upstream = Upstream::start(Play::Echo(SWITCH)).await;
    let running = Running::start(upstream.address, "").await;
    talk(TcpStream::connect(running.proxy).await.unwrap()).await;
    assert!(upstream.seen()[0].contains("upgrade: websocket\r\n"), "{:?}", upstream.seen());
}

/// An upstream over TLS that offers HTTP/2 as well, switches, and sends back what it gets; and what it was asked.
async fn echo_over_tls(acceptor: TlsAcceptor) -> (String, mpsc::Receiver<(Option<Vec<u8>>, String)>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let authority = listener.local_addr().unwrap().to_string();
    let (tell, told) = mpsc::channel(8);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let mut stream = acceptor.accept(stream).await.unwrap();
            let spoken = stream.get_ref().1.alpn_protocol().map(<[u8]>::to_vec);
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(stream.read_u8().await.unwrap());
            }
            tell.send((spoken, String::from_utf8(head).unwrap())).await.unwrap();
            stream.write_all(SWITCH.as_bytes()).await.unwrap();
            let (mut from, mut to) = tokio::io::split(stream);
            drop(tokio::io::copy(&mut from, &mut to).await);
            drop(to.shutdown().await);
        }
    });
    (authority, told)
}

/// Through the listener's TLS, to an upstream's TLS, and both; with every choice that ALPN leaves.
#[tokio::test]
async fn upgrades_over_tls() {
    let authority = Authority::new(&["api.example", "127.0.0.1"]);
    let clear = Upstream::start(Play::Echo(SWITCH)).await;
    let both: &[&str] = &["h2", "http/1.1"];
    let (secret, mut told) = echo_over_tls(authority.acceptor(both)).await;
    let roots = format!("[forward]\nroots = \"{}\"\n", authority.roots().display());
    let (to_clear, to_secret) = (format!("http://{}", clear.address), format!("https://{secret}"));
    for (up, tls) in [(&to_clear, true), (&to_secret, false), (&to_secret, true)] {
        let mut more = if *up == to_secret { roots.clone() } else { String::new() };
        if tls {
            more.push_str(&authority.table());
        }
        let running = Running::before(up, &more).await;
        let stream = TcpStream::connect(running.proxy).await.unwrap();
        if tls {
            for alpn in [&["http/1.1"][..], &[]] {
                let stream = TcpStream::connect(running.proxy).await.unwrap();
                let name = ServerName::try_from("api.example").unwrap();
                talk(authority.connector(alpn).connect(name, stream).await.unwrap()).await;
            }
        } else {
            talk(stream).await;
        }
        if *up == to_secret {
            // HTTP/2 carries no upgrade, so it is not chosen, though it is offered.
            let (spoken, head) = told.recv().await.unwrap();
            assert_eq!(spoken.as_deref(), Some(&b"http/1.1"[..]));
            for line in ["upgrade: websocket", "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==", "connection: upgrade"] {
                assert!(head.contains(&format!("{line}\r\n")), "{line} in {head}");
            }
        }
    }
}

/// A guarded route refuses, over TLS as in clear, and the upstream hears nothing.
#[tokio::test]
async fn a_guarded_connection_does_not_switch() {
    let authority = Authority::new(&["api.example"]);
    let upstream = Upstream::start(Play::Echo(SWITCH)).await;
    let text = ASK.replace("GET /live", "POST /orders").replace("\r\n\r\n", "\r\nidempotency-key: k\r\n\r\n");
    let running = Running::before(&format!("http://{}", upstream.address), &authority.table()).await;
    let stream = TcpStream::connect(running.proxy).await.unwrap();
    let name = ServerName::try_from("api.example").unwrap();
    let mut stream = authority.connector(&[]).connect(name, stream).await.unwrap();
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut line = [0; 12];
    stream.read_exact(&mut line).await.unwrap();
    assert_eq!(&line, b"HTTP/1.1 501");
    assert!(upstream.seen().is_empty());
}

/// Neither version makes a tunnel, and over HTTP/2 none for a WebSocket is offered (RFC 8441 section 3): callers that
/// want one open an HTTP/1.1 connection.
#[tokio::test]
async fn tunnels_are_refused() {
    let upstream = Polite::tcp(false).await;
    let running = Running::before(&format!("http://{}", upstream.authority), "").await;
    let one = raw(running.proxy, "CONNECT db.internal:5432 HTTP/1.1\r\nhost: db.internal:5432\r\n\r\n").await;
    assert_eq!((one.status(), one.problem().as_str()), (501, "not-supported"), "{one:?}");
    let mut caller = Two::open(TcpStream::connect(running.proxy).await.unwrap()).await;
    let request = Request::builder().method(Method::CONNECT).uri("db.internal:5432").body(empty()).unwrap();
    let two = caller.ask(request).await;
    assert_eq!(two.status, 501, "{two:?}");
    assert!(two.body.contains("urn:counterfoil:problem:not-supported"), "{two:?}");
    let mut request = Request::builder().method(Method::CONNECT).uri("http://api.example/live").body(empty()).unwrap();
    request.extensions_mut().insert(hyper::ext::Protocol::from_static("websocket"));
    assert!(caller.send(request).await.is_err(), "a tunnel for a WebSocket was offered");
    assert_eq!(upstream.asked(), 0);
}
