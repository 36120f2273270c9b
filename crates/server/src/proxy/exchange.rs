//! One request on one connection of its own. Every failure says whether the request was certainly not sent.

use std::future::Future as _;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use counterfoil_middleware::{Body, BoxError, Fault};
use http::{HeaderValue, Request, Response, header};
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::{Instant, Sleep};

use crate::config::Upstream;

/// The most bytes of an answer's header.
const HEADER_BYTES_MAX: usize = 64 * 1024;

/// How long an exchange may last.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limit {
    /// Then its connection is closed, so that nothing of it can still be sent.
    pub(super) until: Instant,
    /// An answer that has brought more bytes by then, or is a stream of events, goes on.
    pub(super) bytes: usize,
}

/// Connects, sends, and waits for the answer's header; the body then streams. Dropping the future or the answer's
/// body closes the connection.
pub(super) async fn once(
    upstream: &Upstream,
    connect: Duration,
    limit: Option<Limit>,
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
    let sending = sender.try_send_request(request);
    let answered = match limit {
        None => sending.await,
        Some(limit) => tokio::time::timeout_at(limit.until, sending)
            .await
            .map_err(|_| Fault::TimedOut(format!("{upstream} did not answer in time")))?,
    };
    match answered {
        Ok(answer) => {
            let limit = limit.filter(|_| !is_event_stream(&answer));
            let deadline = limit.map(|limit| (Box::pin(tokio::time::sleep_until(limit.until)), limit.bytes));
            Ok(answer.map(|body| Body::new(Driven { body, deadline, driver: Some(driver) })))
        }
        Err(mut error) => {
            let unsent = error.take_message().is_some();
            let why = told(&error.into_error());
            Err(if unsent { Fault::NotSent(why) } else { Fault::Broken(why) })
        }
    }
}

fn is_event_stream(answer: &Response<Incoming>) -> bool {
    let media_type = answer.headers().get(header::CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    let essence = media_type.split(|byte| *byte == b';').next().unwrap_or_default();
    essence.trim_ascii().eq_ignore_ascii_case(b"text/event-stream")
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
    /// When the connection ends, and how many more bytes lift that.
    deadline: Option<(Pin<Box<Sleep>>, usize)>,
    driver: Option<Driver>,
}

impl Driven {
    /// Whether the limit has passed, which ends the connection.
    fn is_over(&mut self, cx: &mut Context<'_>) -> bool {
        let over = self.deadline.as_mut().is_some_and(|(until, _)| until.as_mut().poll(cx).is_ready());
        if over {
            self.driver = None;
        }
        over
    }

    fn count(&mut self, frame: &Frame<Bytes>) {
        let came = frame.data_ref().map_or(0, Bytes::len);
        self.deadline = self.deadline.take().and_then(|(until, left)| Some((until, left.checked_sub(came)?)));
    }
}

impl http_body::Body for Driven {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if self.is_over(cx) {
            return Poll::Ready(Some(Err("the answer did not end in time".into())));
        }
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        if let Poll::Ready(Some(Ok(frame))) = &polled {
            self.count(frame);
        }
        polled.map_err(BoxError::from)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
