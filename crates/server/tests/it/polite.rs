//! An upstream that speaks HTTP as it should, in every version and through every door, and answers with what it was
//! asked. What breaks on purpose is in `faulty`.

use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio_rustls::TlsAcceptor;

use crate::two::Unsized;

/// A running polite upstream.
pub(crate) struct Polite {
    /// Host and port, or nothing where it has none.
    pub(crate) authority: String,
    asked: Arc<AtomicUsize>,
    connections: Arc<AtomicUsize>,
}

impl Polite {
    /// In clear on a port.
    pub(crate) async fn tcp(two: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let authority = listener.local_addr().unwrap().to_string();
        let asked = Arc::new(AtomicUsize::new(0));
        let count = asked.clone();
        let connections = Arc::new(AtomicUsize::new(0));
        let accepted = connections.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                accepted.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(serve(stream, two, count.clone()));
            }
        });
        Self { authority, asked, connections }
    }

    /// Over TLS on a port, in the version that the caller chose.
    pub(crate) async fn tls(acceptor: TlsAcceptor) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let authority = listener.local_addr().unwrap().to_string();
        let asked = Arc::new(AtomicUsize::new(0));
        let count = asked.clone();
        let connections = Arc::new(AtomicUsize::new(0));
        let accepted = connections.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                accepted.fetch_add(1, Ordering::SeqCst);
                let (acceptor, count) = (acceptor.clone(), count.clone());
                tokio::spawn(async move {
                    let Ok(stream) = acceptor.accept(stream).await else { return };
                    let two = stream.get_ref().1.alpn_protocol() == Some(b"h2");
                    serve(stream, two, count).await;
                });
            }
        });
        Self { authority, asked, connections }
    }

    /// On a Unix socket.
    pub(crate) fn unix(path: &Path, two: bool) -> Self {
        let listener = UnixListener::bind(path).unwrap();
        let asked = Arc::new(AtomicUsize::new(0));
        let count = asked.clone();
        let connections = Arc::new(AtomicUsize::new(0));
        let accepted = connections.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                accepted.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(serve(stream, two, count.clone()));
            }
        });
        Self { authority: String::new(), asked, connections }
    }

    /// How many requests came.
    pub(crate) fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    /// How many connections they came on.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

async fn serve(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, two: bool, asked: Arc<AtomicUsize>) {
    let service = service_fn(move |request: Request<Incoming>| {
        asked.fetch_add(1, Ordering::SeqCst);
        async move { Ok::<_, Infallible>(echo(request).await) }
    });
    let stream = TokioIo::new(stream);
    // How a connection ends is the other side's business.
    if two {
        drop(http2::Builder::new(TokioExecutor::new()).serve_connection(stream, service).await);
    } else {
        drop(http1::Builder::new().serve_connection(stream, service).await);
    }
}

/// Answers with the request line, the header lines in order of name, the body, and its trailers.
async fn echo(request: Request<Incoming>) -> Response<http_body_util::combinators::BoxBody<Bytes, Infallible>> {
    let (parts, body) = request.into_parts();
    let mut text = format!("{} {} {:?}\n", parts.method, parts.uri, parts.version);
    text.push_str(&lines(&parts.headers));
    let whole = body.collect().await.unwrap();
    let trailers = whole.trailers().cloned().unwrap_or_default();
    text.push_str(&format!("\n{}\n{}", String::from_utf8_lossy(&whole.to_bytes()), lines(&trailers)));
    let mut sum = HeaderMap::new();
    sum.insert("x-sum", "7".parse().unwrap());
    let body = Full::new(Bytes::from(text));
    let mut answer = if parts.headers.contains_key(http::header::TE) {
        Response::new(Unsized(body.with_trailers(std::future::ready(Some(Ok(sum))))).boxed())
    } else {
        Response::new(body.boxed())
    };
    *answer.status_mut() = StatusCode::CREATED;
    answer.headers_mut().insert("trailer", "x-sum".parse().unwrap());
    answer
}

fn lines(headers: &HeaderMap) -> String {
    let mut lines: Vec<String> = headers
        .iter()
        .map(|(name, value)| format!("{name}: {}\n", String::from_utf8_lossy(value.as_bytes())))
        .collect();
    lines.sort_unstable();
    lines.concat()
}
