//! One request on one connection, sent once. Every failure says whether the request was certainly not sent.

use std::time::Duration;

use counterfoil_middleware::{Body, ChildKeys, Fault, is_event_stream};
use http::{HeaderValue, Request, Response, StatusCode, Uri, header};
use hyper::body::Incoming;
use tokio::time::Instant;

use super::answer::{Driven, Noted, Pace, Progress};
use super::link::told;
use super::reach::{Need, Place, Reach, Reached};
use crate::config::Upstream;

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

/// Connects, sends, and waits for the answer's header; the body then streams. Dropping the future, or the answer's
/// body before its end, closes the connection.
pub(super) async fn once(
    reach: &Reach,
    limit: Limit,
    switch: bool,
    request: Request<Body>,
) -> Result<Response<Body>, Fault> {
    let need = Need { guarded: matches!(limit, Limit::Guarded { .. }), switch };
    let reached = limit.begun(&reach.upstream, async {
        match reach.at_hand(need) {
            Some(reached) => Ok(reached),
            None => reach.reach(need).await,
        }
    });
    let reached = reached.await?;
    let (two, reused) = (reached.link.is_two(), reached.reused);
    let (request, place) = match over(reached, &reach.upstream, limit, noted(request)).await {
        Came::Answer(answer) => return Ok(answer),
        // It ended while it rested, nothing of the request was sent, and all of it is still here: so this is still the
        // first time that it is sent. On a connection of its own the same is a fault.
        Came::Back(request, place, _) if reused => (request, place),
        Came::Back(_, _, fault) | Came::Nothing(fault) => return Err(fault),
    };
    let reached = limit.begun(&reach.upstream, reach.anew(need, place)).await?;
    if reached.link.is_two() != two {
        return Err(Fault::NotSent(format!("{}: it does not speak the HTTP that it spoke before", reach.upstream)));
    }
    match over(reached, &reach.upstream, limit, request).await {
        Came::Answer(answer) => Ok(answer),
        Came::Back(_, _, fault) | Came::Nothing(fault) => Err(fault),
    }
}

/// What came of an exchange.
enum Came {
    Answer(Response<Body>),
    /// Nothing was sent, and the request is handed back as it is sent.
    Back(Request<Noted>, Place, Fault),
    Nothing(Fault),
}

fn noted(request: Request<Body>) -> Request<Noted> {
    request.map(|body| Noted::new(body, &Progress::new()))
}

/// The exchange on a connection that stands.
async fn over(reached: Reached, upstream: &Upstream, limit: Limit, mut request: Request<Noted>) -> Came {
    let Reached { mut link, place, .. } = reached;
    if link.is_two()
        && let Err(fault) = address(&mut request, upstream)
    {
        return Came::Nothing(fault);
    }
    // The last moment at which nothing of it is sent.
    if let Some(Err(fault)) = request.extensions().get::<ChildKeys>().map(ChildKeys::may_send) {
        return Came::Nothing(fault);
    }
    let progress = request.body().progress();
    let late = || Fault::TimedOut(format!("{upstream} did not answer in time"));
    let answered = tokio::select! {
        biased;
        answered = link.send(request) => answered,
        () = limit.passed(&progress) => return Came::Nothing(late()),
    };
    match answered {
        Ok(answer) => {
            let pace = limit.pace(&answer);
            if !progress.is_over() {
                link.leave();
            }
            let (head, body) = answer.into_parts();
            let body = Driven::new(body, pace, link, place);
            // What was switched to lives as long as its body.
            let switched = head.status == StatusCode::SWITCHING_PROTOCOLS;
            let body = if switched { Body::new(body) } else { body.at_hand().await };
            Came::Answer(Response::from_parts(head, body))
        }
        Err(mut error) => {
            let back = error.take_message();
            let why = told(&error.into_error());
            match back {
                Some(request) => Came::Back(request, place, Fault::NotSent(why)),
                None if link.witness.is_unsent() => Came::Nothing(Fault::NotSent(why)),
                None => Came::Nothing(Fault::Broken(why)),
            }
        }
    }
}

impl Limit {
    /// Waits for a connection. Past the limit nothing is begun.
    async fn begun(
        self,
        upstream: &Upstream,
        reaching: impl Future<Output = Result<Reached, Fault>>,
    ) -> Result<Reached, Fault> {
        let Self::Guarded { until, .. } = self else { return reaching.await };
        let late = || Fault::NotSent(format!("{upstream}: no connection before the time limit"));
        if until <= Instant::now() {
            return Err(late());
        }
        let reached = tokio::time::timeout_at(until, reaching).await.map_err(|_| late())?;
        // A time-out looks at its clock only where it has to wait.
        if until <= Instant::now() { Err(late()) } else { reached }
    }

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
    if request.version() == http::Version::HTTP_2 {
        // It came back from a connection that had ended.
        return Ok(());
    }
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

#[cfg(test)]
mod tests;
