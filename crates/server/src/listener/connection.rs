//! One connection of a caller: TLS, then HTTP/1.1 or HTTP/2, whichever it speaks. What may be in an HTTP/1.1 message
//! belongs to `framing`.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;

use counterfoil_middleware::{Body, Peer};
use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::AsyncReadExt as _;
use tokio::sync::watch;
use tokio::time::timeout;
use tower::Service;
use tower::util::{MapRequest, MapResponse};

use super::body::{CallerBody, Fate, Held};
use super::strict::{Known, Strict};
use super::{Arrival, Bounds, stopped};
use crate::stream::{AnyStream, Patient, Prefixed};
use crate::tls::H2;

/// What a client that speaks HTTP/2 without being asked begins with (RFC 9113 section 3.4).
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// How much of one stream's body may be on its way, in bytes.
const STREAM_WINDOW: u32 = 256 * 1024;
/// The same for a whole connection.
const CONNECTION_WINDOW: u32 = 1024 * 1024;
/// How much of one stream's answer is held for a slow reader, in bytes.
const SEND_BUFFER: usize = 256 * 1024;

/// A connection that is known well enough to be served.
struct Opened {
    stream: Prefixed<AnyStream>,
    secure: bool,
    two: bool,
}

/// Serves one connection to its end.
pub(super) async fn serve<S>(
    bounds: &Bounds,
    stream: AnyStream,
    peer: Option<SocketAddr>,
    service: S,
    mut stop: watch::Receiver<bool>,
) where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
{
    let opened = tokio::select! {
        opened = timeout(bounds.header, open(bounds, stream)) => opened,
        () = stopped(&mut stop) => return,
    };
    let opened = match opened {
        Ok(Ok(opened)) => opened,
        Ok(Err(error)) => return tracing::debug!(%error, ?peer, "a connection came to nothing"),
        Err(_) => return tracing::debug!(?peer, "a connection sent nothing in time"),
    };
    let arrival = Arrival { secure: opened.secure, unix: peer.is_none(), fate: Fate::default() };
    let (speaks_two, body, idle) = (opened.two, bounds.body, bounds.idle);
    let known = Known::default();
    let told = known.clone();
    let service = MapRequest::new(service, move |request: Request<Incoming>| {
        let arrival = Arrival { fate: Fate::default(), ..arrival.clone() };
        let fate = arrival.fate.clone();
        if told.begin() {
            fate.break_off();
        }
        let mut request = request.map(|incoming| CallerBody::wrap(incoming, speaks_two, fate, body, idle));
        if let Some(peer) = peer {
            request.extensions_mut().insert(Peer(peer));
        }
        request.extensions_mut().insert(arrival);
        request
    });
    let ended = if opened.two {
        two(bounds, opened, service, stop).await
    } else {
        one(bounds, opened, service, known, stop).await
    };
    if let Err(error) = ended {
        tracing::debug!(%error, ?peer, "a connection broke off");
    }
}

/// Shakes hands, and finds out which HTTP is spoken.
async fn open(bounds: &Bounds, stream: AnyStream) -> io::Result<Opened> {
    let Some(acceptor) = &bounds.tls else {
        let (read, two) = preface(stream).await?;
        return Ok(Opened { stream: read, secure: false, two });
    };
    let stream = acceptor.now().accept(stream).await?;
    let two = stream.get_ref().1.alpn_protocol() == Some(H2);
    Ok(Opened { stream: Prefixed::new(Vec::new(), Box::new(stream)), secure: true, two })
}

/// Reads until the bytes are HTTP/2's preface or cannot become it.
async fn preface(mut stream: AnyStream) -> io::Result<(Prefixed<AnyStream>, bool)> {
    let mut read = Vec::with_capacity(PREFACE.len());
    let mut buffer = [0; PREFACE.len()];
    while PREFACE.starts_with(&read) && read.len() < PREFACE.len() {
        let room = buffer.get_mut(..PREFACE.len() - read.len()).unwrap_or_default();
        let count = stream.read(room).await?;
        if count == 0 {
            break;
        }
        read.extend_from_slice(room.get(..count).unwrap_or_default());
    }
    let two = read == PREFACE;
    Ok((Prefixed::new(read, stream), two))
}

async fn one<S>(
    bounds: &Bounds,
    opened: Opened,
    service: S,
    known: Known,
    mut stop: watch::Receiver<bool>,
) -> hyper::Result<()>
where
    S: Service<Request<Incoming>, Response = Response<Body>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
{
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(bounds.header);
    http.max_buf_size(bounds.header_bytes_max).max_headers(bounds.header_lines_max);
    let stream = Strict::new(Patient::new(opened.stream, bounds.idle), known.clone());
    let service = MapResponse::new(service, move |answer: Response<Body>| {
        if answer.status() == StatusCode::SWITCHING_PROTOCOLS {
            known.switch();
        }
        answer
    });
    let served = http.serve_connection(TokioIo::new(stream), TowerToHyperService::new(service)).with_upgrades();
    let mut served = std::pin::pin!(served);
    tokio::select! {
        ended = served.as_mut() => ended,
        () = stopped(&mut stop) => {
            served.as_mut().graceful_shutdown();
            served.await
        }
    }
}

async fn two<S>(bounds: &Bounds, opened: Opened, service: S, mut stop: watch::Receiver<bool>) -> hyper::Result<()>
where
    S: Service<Request<Incoming>, Response = Response<Body>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
{
    let mut http = http2::Builder::new(TokioExecutor::new());
    http.timer(TokioTimer::new());
    http.max_concurrent_streams(bounds.streams_max);
    http.max_header_list_size(u32::try_from(bounds.header_bytes_max).unwrap_or(u32::MAX));
    http.initial_stream_window_size(STREAM_WINDOW).initial_connection_window_size(CONNECTION_WINDOW);
    http.max_send_buf_size(SEND_BUFFER);
    // A peer that is gone without a word is found by asking.
    http.keep_alive_interval(Some(bounds.idle)).keep_alive_timeout(bounds.header);
    let held = Held::default();
    let (counted, lines_max) = (held.clone(), bounds.header_lines_max);
    let service = Counting { service, held: counted, lines_max };
    let stream = Patient::new(opened.stream, bounds.idle);
    let served = http.serve_connection(TokioIo::new(stream), TowerToHyperService::new(service));
    let mut served = std::pin::pin!(served);
    tokio::select! {
        ended = served.as_mut() => return ended,
        () = stopped(&mut stop) => {
            served.as_mut().graceful_shutdown();
            return served.await;
        }
        () = held.rested(bounds.header) => served.as_mut().graceful_shutdown(),
    }
    // Nothing was asked for as long as a header may take. What does not take its leave now is cut off, unless a
    // request came in the last moment.
    loop {
        match timeout(bounds.header, served.as_mut()).await {
            Ok(ended) => return ended,
            Err(_) if held.is_empty() => return Ok(()),
            Err(_) => {}
        }
    }
}

/// Counts what is under way on one HTTP/2 connection, and refuses headers with too many lines.
#[derive(Clone)]
struct Counting<S> {
    service: S,
    held: Held,
    lines_max: usize,
}

impl<S> Service<Request<Incoming>> for Counting<S>
where
    S: Service<Request<Incoming>, Response = Response<Body>, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = std::pin::Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, cx: &mut std::task::Context<'_>) -> std::task::Poll<Result<(), Infallible>> {
        self.service.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Incoming>) -> Self::Future {
        let place = self.held.enter();
        let lines = request.headers().len();
        if lines > self.lines_max || request.headers().get_all(http::header::HOST).iter().count() > 1 {
            let status = if lines > self.lines_max {
                StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE
            } else {
                StatusCode::BAD_REQUEST
            };
            let mut answer = Response::new(Body::empty());
            *answer.status_mut() = status;
            return Box::pin(std::future::ready(Ok(answer)));
        }
        let answering = self.service.call(request);
        Box::pin(async move { answering.await.map(|answer| answer.map(|body| place.hold(body))) })
    }
}
