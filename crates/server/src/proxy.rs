//! Forwards a request to the upstream over a fresh or rested connection, once, and says by its error what is known.
//!
//! What does not belong here: whether to forward (the middleware), retries (there are none), and answers of our own
//! (`answer`, the middleware).

mod answer;
mod exchange;
mod headers;
mod line;
mod link;
mod pool;
mod reach;
mod upgrade;
mod witness;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use counterfoil_core::wire::{IDEMPOTENCY_KEY, REPEATABILITY_FIRST_SENT, REPEATABILITY_REQUEST_ID};
use counterfoil_middleware::{Body, ChildKeys, Fault, Guarded, Peer, PermitText};
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri, header};
use tower::Service;

use self::exchange::Limit;
use self::headers::Origin;
use self::reach::Reach;
use crate::answer::no_tunnels;
use crate::config::{self, Config, HostSent};
use crate::error::ServerError;
use crate::listener::{Arrival, is_from};

/// Every header that may carry a caller's key.
const CARRIERS: [&str; 3] = [IDEMPOTENCY_KEY, REPEATABILITY_REQUEST_ID, REPEATABILITY_FIRST_SENT];

/// The forwarding service. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Proxy {
    target: Arc<Target>,
}

struct Target {
    reach: Reach,
    host: HeaderValue,
    host_sent: HostSent,
    trusted: Vec<config::Peer>,
    /// The headers that carry keys and are not forwarded.
    carriers: &'static [&'static str],
    /// So many bytes of a guarded answer must come within the limit; a longer one is not kept and may take its time.
    kept_answer_max: usize,
    answer: Duration,
    idle: Duration,
}

impl Proxy {
    pub(crate) fn new(config: &Config) -> Result<Self, ServerError> {
        let reach = Reach::new(config)?;
        // An authority that a URL was read with is a header value.
        let host = HeaderValue::try_from(reach.upstream.authority()).unwrap_or_else(|_| HeaderValue::from_static(""));
        let target = Target {
            reach,
            host,
            host_sent: config.forward.host.value,
            trusted: config.forward.trusted.value.clone(),
            carriers: match (config.forward_key.value, config.repeatability.value) {
                (true, _) => &[],
                (false, true) => &CARRIERS,
                (false, false) => &[IDEMPOTENCY_KEY],
            },
            kept_answer_max: config.limits.kept_answer_max.value,
            answer: config.limits.answer.value,
            idle: config.limits.idle.value,
        };
        Ok(Self { target: Arc::new(target) })
    }
}

impl Service<Request<Body>> for Proxy {
    type Response = Response<Body>;
    type Error = Fault;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Fault>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(forward(self.target.clone(), request))
    }
}

async fn forward(target: Arc<Target>, mut request: Request<Body>) -> Result<Response<Body>, Fault> {
    let guarded = request.extensions().get::<Guarded>();
    if request.method() == Method::CONNECT {
        // An answer of ours is never a result.
        return match guarded {
            Some(_) => Err(Fault::NotSent("tunnels (CONNECT) are not forwarded".to_owned())),
            None => Ok(no_tunnels()),
        };
    }
    // After its limit nothing of a guarded run may still be sent, so its connection ends.
    let limit = match guarded {
        Some(guarded) => Limit::Guarded { until: guarded.until, bytes: target.kept_answer_max },
        None => Limit::Unguarded { answer: target.answer, idle: target.idle },
    };
    let guarded = matches!(limit, Limit::Guarded { .. });
    if !guarded && let Some(arrival) = request.extensions().get::<Arrival>() {
        // What is known not to be a request is not begun.
        if arrival.fate.is_broken() {
            return Err(Fault::NotSent("the request's body is none".to_owned()));
        }
        arrival.fate.stream();
    }
    // An upgrade on a guarded route was refused by the middleware; the header would only be hop-by-hop there. HTTP/2
    // carries none, and one may be passed over (RFC 9110 section 7.8).
    let carried = !target.reach.is_two_in_clear();
    let upgrade = if guarded || !carried { None } else { upgrade::asked(&mut request) };
    prepare(&target, &mut request, guarded);
    if let Some(upgrade) = &upgrade {
        upgrade.ask(request.headers_mut());
    }
    let mut answer = exchange::once(&target.reach, limit, upgrade.is_some(), request).await?;
    headers::remove_permit(answer.headers_mut());
    if answer.status() == StatusCode::SWITCHING_PROTOCOLS {
        return match upgrade {
            Some(upgrade) => Ok(upgrade.join(answer, target.idle)),
            None => Err(Fault::Broken("the upstream switched protocols unasked".to_owned())),
        };
    }
    headers::remove_hop_by_hop(answer.headers_mut());
    // A version belongs to its hop (RFC 9110 section 6.2): the upstream may speak another one to us.
    *answer.version_mut() = http::Version::HTTP_11;
    Ok(answer)
}

/// Makes the request that is sent of the request that came.
fn prepare(target: &Target, request: &mut Request<Body>, guarded: bool) {
    let origin = origin(target, request);
    let path = request.uri().path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/"));
    *request.uri_mut() = Uri::from(path);
    *request.version_mut() = http::Version::HTTP_11;
    let permit = request.extensions_mut().remove::<PermitText>();
    let child_keys = request.extensions().get::<ChildKeys>().cloned();
    let headers = request.headers_mut();
    let trailers = headers::takes_trailers(headers);
    headers::remove_hop_by_hop(headers);
    headers::remove_permit(headers);
    headers::join_cookies(headers);
    // The whole answer to an expectation is ours: the body was asked for when it was read.
    headers.remove(header::EXPECT);
    headers::tell_origin(headers, &origin);
    let host = match target.host_sent {
        HostSent::Caller => origin.host.unwrap_or_else(|| target.host.clone()),
        HostSent::Upstream => target.host.clone(),
    };
    headers.insert(header::HOST, host);
    if guarded {
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        // A body that was read whole is sent without what came after it, and a receipt keeps none either.
        headers.remove(header::TRAILER);
        match &child_keys {
            // The caller's own key names an action of ours, and nothing at the upstream.
            Some(child_keys) => {
                remove_carriers(headers, &CARRIERS);
                child_keys.carry(headers);
            }
            None => remove_carriers(headers, target.carriers),
        }
        if let Some(permit) = permit {
            headers.insert(PermitText::HEADER, permit.value().clone());
        }
    } else if trailers {
        headers.insert(header::TE, HeaderValue::from_static("trailers"));
        headers.insert(header::CONNECTION, HeaderValue::from_static("te"));
    }
}

fn remove_carriers(headers: &mut HeaderMap, carriers: &[&'static str]) {
    for name in carriers {
        headers.remove(HeaderName::from_static(name));
    }
}

/// Who asked, how, and for which host.
fn origin(target: &Target, request: &Request<Body>) -> Origin {
    let peer = request.extensions().get::<Peer>().map(|peer| peer.0.ip().to_canonical());
    let arrival = request.extensions().get::<Arrival>();
    let trusted = is_from(&target.trusted, request.extensions());
    // The target's own host outranks the header (RFC 9112 section 3.2.2).
    let named = request.uri().authority().and_then(|named| HeaderValue::try_from(named.as_str()).ok());
    let host = named.or_else(|| request.headers().get(header::HOST).cloned());
    Origin { peer, secure: arrival.is_some_and(|arrival| arrival.secure), host, trusted }
}
