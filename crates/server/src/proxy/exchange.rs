//! One request on one connection of its own. Every failure says whether the request was certainly not sent.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use counterfoil_middleware::{Body, Fault};
use http::{Request, Response};
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use crate::config::Upstream;

/// The most bytes of an answer's header.
const HEADER_BYTES_MAX: usize = 64 * 1024;

/// Connects, sends, and waits for the answer's header; the body then streams. Dropping the future or the answer's
/// body closes the connection.
pub(super) async fn once(
    upstream: &Upstream,
    connect: Duration,
    request: Request<Body>,
) -> Result<Response<Body>, Fault> {
    let stream = tokio::time::timeout(connect, reach(upstream)).await.map_err(|_| {
        Fault::NotSent(format!("no connection to {upstream} in {}", crate::config::print_span(connect)))
    })??;
    let mut builder = http1::Builder::new();
    builder.max_buf_size(HEADER_BYTES_MAX);
    let shaken = builder.handshake::<_, Body>(TokioIo::new(stream)).await;
    let (mut sender, connection) = shaken.map_err(|error| Fault::NotSent(error.to_string()))?;
    let driver = Driver(tokio::spawn(async move {
        if let Err(error) = connection.with_upgrades().await {
            tracing::debug!(%error, "a connection to the upstream ended");
        }
    }));
    match sender.try_send_request(request).await {
        Ok(answer) => Ok(answer.map(|body| Body::new(Driven { body, _driver: driver }))),
        Err(mut error) => {
            let unsent = error.take_message().is_some();
            let why = told(&error.into_error());
            Err(if unsent { Fault::NotSent(why) } else { Fault::Broken(why) })
        }
    }
}

/// Resolves the name and connects to the first address that takes the connection.
async fn reach(upstream: &Upstream) -> Result<TcpStream, Fault> {
    let not_sent = |error: std::io::Error| Fault::NotSent(format!("{upstream}: {error}"));
    let stream = TcpStream::connect(upstream.target()).await.map_err(not_sent)?;
    stream.set_nodelay(true).map_err(not_sent)?;
    Ok(stream)
}

/// The error with its cause, which is where the reason is.
fn told(error: &hyper::Error) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

/// The task that drives a connection; dropped, it ends and the connection closes.
struct Driver(JoinHandle<()>);

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// An answer's body with the task that feeds it.
struct Driven {
    body: Incoming,
    _driver: Driver,
}

impl http_body::Body for Driven {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
