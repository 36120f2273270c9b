//! One request on one connection of its own, sent once. Every failure says whether the request was certainly not sent.

use std::time::Duration;

use counterfoil_middleware::{Body, Fault, is_event_stream};
use http::{HeaderValue, Request, Response, Uri, header};
use hyper::body::Incoming;
use hyper::client::conn::{TrySendError, http1, http2};
use hyper::rt::Executor as _;
use hyper_util::rt::TokioIo;
use tokio::time::Instant;

use super::answer::{Driven, Driver, Noted, Pace, Progress, Tasks};
use super::reach::{Reach, Reached};
use super::witness::{Watched, Witness};
use crate::config::Upstream;

/// The most bytes of an answer's header.
const HEADER_BYTES_MAX: usize = 64 * 1024;
/// The most lines of an answer's header.
const HEADER_LINES_MAX: usize = 256;
/// How much of an answer's body may be on its way over HTTP/2, in bytes.
const WINDOW: u32 = 1024 * 1024;

/// How long an exchange may take.
#[derive(Clone, Copy, Debug)]
pub(super) enum Limit {
    /// A guarded one. At this time its connection is closed, so that nothing of it can still be sent; an answer that
    /// has brought more bytes by then, or is a stream of events, goes on.
    Guarded { until: Instant, bytes: usize },
    /// An unguarded one: the answer begins so long after the last piece of the request went out, and then no pause is
    /// longer than `idle`.
    Unguarded { answer: Duration, idle: Duration },
}

/// Connects, sends, and waits for the answer's header; the body then streams. Dropping the future or the answer's
/// body closes the connection.
pub(super) async fn once(
    reach: &Reach,
    limit: Limit,
    switch: bool,
    request: Request<Body>,
) -> Result<Response<Body>, Fault> {
    let reached = match limit {
        Limit::Unguarded { .. } => reach.reach(switch).await?,
        // Past its limit nothing is begun.
        Limit::Guarded { until, .. } => tokio::time::timeout_at(until, reach.reach(switch))
            .await
            .map_err(|_| Fault::NotSent(format!("{}: no connection before the time limit", reach.upstream)))??,
    };
    over(reached, &reach.upstream, limit, request).await
}

/// The exchange on a connection that stands.
async fn over(
    reached: Reached,
    upstream: &Upstream,
    limit: Limit,
    request: Request<Body>,
) -> Result<Response<Body>, Fault> {
    let progress = Progress::new();
    let mut request = request.map(|body| Noted { body, progress: progress.clone() });
    if reached.two {
        address(&mut request, upstream)?;
    }
    let (sender, driver, witness) = shake(reached).await?;
    let sending = sender.send(request);
    let late = || Fault::TimedOut(format!("{upstream} did not answer in time"));
    let answered = tokio::select! {
        biased;
        answered = sending => answered,
        () = limit.passed(&progress) => return Err(late()),
    };
    match answered {
        Ok(answer) => {
            let pace = limit.pace(&answer);
            Ok(answer.map(|body| Body::new(Driven { body, pace, witness, driver: Some(driver) })))
        }
        Err(mut error) => {
            let unsent = error.take_message().is_some() || witness.is_unsent();
            let why = told(&error.into_error());
            Err(if unsent { Fault::NotSent(why) } else { Fault::Broken(why) })
        }
    }
}

impl Limit {
    /// Waits until the answer should have begun.
    async fn passed(self, progress: &Progress) {
        match self {
            Self::Guarded { until, .. } => tokio::time::sleep_until(until).await,
            Self::Unguarded { answer, .. } => progress.rested(answer).await,
        }
    }

    fn pace(self, answer: &Response<Incoming>) -> Pace {
        match self {
            Self::Guarded { .. } if is_event_stream(answer.headers()) => Pace::Any,
            Self::Guarded { until, bytes } => Pace::Until(Box::pin(tokio::time::sleep_until(until)), bytes),
            Self::Unguarded { idle, .. } => Pace::Pauses(idle, None),
        }
    }
}

/// HTTP/2 names the host in the request's target (RFC 9113 section 8.3.1).
fn address(request: &mut Request<Noted>, upstream: &Upstream) -> Result<(), Fault> {
    let host = request.headers_mut().remove(header::HOST);
    // It would take with it what it names.
    request.headers_mut().remove(header::CONNECTION);
    let host = host.as_ref().map_or(upstream.authority().as_bytes(), HeaderValue::as_bytes);
    let mut parts = std::mem::take(request.uri_mut()).into_parts();
    let scheme = if upstream.is_tls() { http::uri::Scheme::HTTPS } else { http::uri::Scheme::HTTP };
    parts.scheme = Some(scheme);
    parts.authority = Some(host.try_into().map_err(|error| Fault::NotSent(format!("the host: {error}")))?);
    *request.uri_mut() = Uri::from_parts(parts).map_err(|error| Fault::NotSent(format!("the target: {error}")))?;
    *request.version_mut() = http::Version::HTTP_2;
    Ok(())
}

/// What sends on a connection that was shaken hands on.
enum Sender {
    One(http1::SendRequest<Noted>),
    Two(http2::SendRequest<Noted>),
}

impl Sender {
    async fn send(self, request: Request<Noted>) -> Result<Response<Incoming>, TrySendError<Request<Noted>>> {
        match self {
            Self::One(mut sender) => sender.try_send_request(request).await,
            Self::Two(mut sender) => sender.try_send_request(request).await,
        }
    }
}

async fn shake(reached: Reached) -> Result<(Sender, Driver, Witness), Fault> {
    let not_sent = |error: hyper::Error| Fault::NotSent(told(&error));
    let (stream, witness) = Watched::new(reached.stream, reached.two);
    let stream = TokioIo::new(stream);
    let driver = Driver { tasks: Tasks::default(), _place: reached.place };
    let ended = |ended: hyper::Result<()>| {
        if let Err(error) = ended {
            tracing::debug!(%error, "a connection to the upstream ended");
        }
    };
    let sender = if reached.two {
        let mut builder = http2::Builder::new(driver.tasks.clone());
        builder.max_header_list_size(u32::try_from(HEADER_BYTES_MAX).unwrap_or(u32::MAX));
        builder.initial_stream_window_size(WINDOW).initial_connection_window_size(WINDOW);
        let (sender, connection) = builder.handshake(stream).await.map_err(not_sent)?;
        driver.tasks.execute(async move { ended(connection.await) });
        Sender::Two(sender)
    } else {
        let mut builder = http1::Builder::new();
        builder.max_buf_size(HEADER_BYTES_MAX).max_headers(HEADER_LINES_MAX);
        let (sender, connection) = builder.handshake(stream).await.map_err(not_sent)?;
        driver.tasks.execute(async move { ended(connection.with_upgrades().await) });
        Sender::One(sender)
    };
    Ok((sender, driver, witness))
}

/// The error with its cause, which is where the reason is.
fn told(error: &hyper::Error) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests;
