//! What becomes of a question when the other side is slow, rude or not who it says.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{RootCertStore, ServerConfig};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::{Limits, Outbound};
use crate::config::Url;

/// What the other side does with a connection once it was asked.
#[derive(Clone)]
enum Play {
    Send(String),
    /// It sends this and then says no more, and does not close.
    Hang(&'static str),
}

async fn play(mut stream: impl AsyncRead + AsyncWrite + Unpin, play: Play) {
    let mut asked = Vec::new();
    let mut buffer = [0; 1024];
    while !asked.ends_with(b"\r\n\r\n") {
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => return,
            Ok(count) => asked.extend_from_slice(&buffer[..count]),
        }
    }
    let (bytes, hangs) = match &play {
        Play::Send(bytes) => (bytes.as_str(), false),
        Play::Hang(bytes) => (*bytes, true),
    };
    drop(stream.write_all(bytes.as_bytes()).await);
    drop(stream.flush().await);
    if hangs {
        drop(stream.read(&mut buffer).await);
    }
    drop(stream.shutdown().await);
}

async fn server(tls: Option<TlsAcceptor>, script: Play) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (tls, script) = (tls.clone(), script.clone());
            tokio::spawn(async move {
                match tls {
                    Some(tls) => {
                        if let Ok(stream) = tls.accept(stream).await {
                            play(stream, script).await;
                        }
                    }
                    None => play(stream, script).await,
                }
            });
        }
    });
    address
}

const LIMITS: Limits = Limits { time: Duration::from_secs(30), body_bytes: Some(100) };

async fn asked(script: Play, limits: Limits) -> Result<(u16, String), String> {
    let address = server(None, script).await;
    let url = Url::parse(&format!("http://{address}/who?a=1")).unwrap();
    let answered = Outbound::new(false).unwrap().get(&url, HeaderMap::new(), limits).await;
    answered
        .map(|answered| (answered.status.as_u16(), String::from_utf8(answered.body.to_vec()).unwrap()))
        .map_err(|why| why.replace(&address.to_string(), "HOST"))
}

#[tokio::test]
async fn answers() {
    let send = |text: &str| Play::Send(text.to_owned());
    let huge_header = format!("HTTP/1.1 200 OK\r\nx-huge: {}\r\n\r\n", "a".repeat(100_000));
    let many_lines = format!("HTTP/1.1 200 OK\r\n{}\r\n", "x-a: b\r\n".repeat(200));
    let huge_body = format!("HTTP/1.1 200 OK\r\n\r\n{}", "a".repeat(1_000_000));
    let moved = "HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n";
    let no_body = Limits { body_bytes: None, ..LIMITS };
    let rows = [
        ("whole", send("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nab"), LIMITS, Ok((200, "ab"))),
        ("until it closes", send("HTTP/1.1 401 No\r\n\r\nno"), LIMITS, Ok((401, "no"))),
        ("a redirect is not followed", send(moved), LIMITS, Ok((302, ""))),
        (
            "the body is not waited for",
            Play::Hang("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n"),
            no_body,
            Ok((200, "")),
        ),
        ("a huge body that nobody reads", send(&huge_body), no_body, Ok((200, ""))),
        ("a huge body", send(&huge_body), LIMITS, Err("length limit exceeded")),
        ("a huge header", send(&huge_header), no_body, Err("message head is too large")),
        ("many lines", send(&many_lines), no_body, Err("message head is too large")),
        ("no HTTP", send("hello\r\n\r\n"), no_body, Err("invalid HTTP version parsed")),
        ("closed at once", send(""), no_body, Err("connection closed before message completed")),
        (
            "cut off",
            send("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nab"),
            LIMITS,
            Err("error reading a body from connection"),
        ),
    ];
    for (name, script, limits, expected) in rows {
        let found = asked(script, limits).await;
        let expected = expected
            .map(|(status, body)| (status, body.to_owned()))
            .map_err(|why| format!("http://HOST/who?a=1: {why}"));
        assert_eq!(found, expected, "{name}");
    }
}

#[tokio::test]
async fn a_time_limit_covers_all_of_it() {
    let limits = Limits { time: Duration::from_millis(100), ..LIMITS };
    for silence in ["", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nab"] {
        let found = asked(Play::Hang(silence), limits).await;
        assert_eq!(found, Err("http://HOST/who?a=1: no answer in 100ms".to_owned()), "{silence:?}");
    }
}

#[tokio::test]
async fn nobody_there() {
    let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let url = Url::parse(&format!("http://{address}")).unwrap();
    let why = Outbound::new(false).unwrap().get(&url, HeaderMap::new(), LIMITS).await.unwrap_err();
    assert!(why.contains("refused"), "{why}");
}

/// An authority of the test's own, and a server's side with a certificate of it for 127.0.0.1.
fn authority() -> (RootCertStore, TlsAcceptor) {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let own_key = KeyPair::generate().unwrap();
    let root = params.self_signed(&own_key).unwrap();
    let issuer = Issuer::new(params, own_key);
    let key = KeyPair::generate().unwrap();
    let leaf = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap().signed_by(&key, &issuer).unwrap();

    let mut roots = RootCertStore::empty();
    roots.add(root.der().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let config = config.with_no_client_auth().with_single_cert(vec![leaf.der().clone()], key).unwrap();
    (roots, TlsAcceptor::from(Arc::new(config)))
}

#[tokio::test]
async fn only_a_known_authority_is_believed() {
    let (roots, tls) = authority();
    let (others, _) = authority();
    let script = Play::Send("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nab".to_owned());
    let address = server(Some(tls), script).await;
    let url = Url::parse(&format!("https://{address}/keys")).unwrap();

    let believed = Outbound::believing(roots.clone()).unwrap().get(&url, HeaderMap::new(), LIMITS).await.unwrap();
    assert_eq!((believed.status.as_u16(), believed.body.as_ref()), (200, b"ab".as_slice()));
    let why = Outbound::believing(others).unwrap().get(&url, HeaderMap::new(), LIMITS).await.unwrap_err();
    assert!(why.contains("certificate"), "{why}");
    let elsewhere = Url::parse(&format!("https://localhost:{}/keys", address.port())).unwrap();
    let why = Outbound::believing(roots).unwrap().get(&elsewhere, HeaderMap::new(), LIMITS).await.unwrap_err();
    assert!(why.contains("certificate"), "{why}");
}
