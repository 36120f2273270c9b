//! Forwards a request to the upstream over a fresh HTTP/1.1 connection, once, and says by its error what is known.
//!
//! What does not belong here: whether to forward (the middleware), retries (there are none), and answers of our own
//! (`answer`, the middleware).

mod exchange;
mod headers;
mod upgrade;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use counterfoil_middleware::{Body, Fault, Guarded, Peer};
use http::uri::PathAndQuery;
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri, header};
use tower::Service;

use self::exchange::Limit;
use crate::config::{Config, Upstream};

/// The forwarding service. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Proxy {
    target: Arc<Target>,
}

#[derive(Debug)]
struct Target {
    upstream: Upstream,
    host: HeaderValue,
    connect: Duration,
    forward_key: bool,
    /// So many bytes of a guarded answer must come within the limit; a longer one is not kept and may take its time.
    kept_answer_max: usize,
}

impl Proxy {
    pub(crate) fn new(config: &Config) -> Self {
        let upstream = config.upstream.value.clone();
        // An authority that a URL was read with is a header value.
        let host = HeaderValue::try_from(upstream.authority()).unwrap_or_else(|_| HeaderValue::from_static(""));
        Self {
            target: Arc::new(Target {
                upstream,
                host,
                connect: config.limits.connect.value,
                forward_key: config.forward_key.value,
                kept_answer_max: config.limits.kept_answer_max.value,
            }),
        }
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
    if request.method() == Method::CONNECT {
        return Err(Fault::NotSent("tunnels (CONNECT) are not forwarded".to_owned()));
    }
    // After its limit nothing of a guarded run may still be sent, so its connection ends.
    let guarded = request.extensions().get::<Guarded>();
    let limit = guarded.map(|guarded| Limit { until: guarded.until, bytes: target.kept_answer_max });
    let guarded = limit.is_some();
    // An upgrade on a guarded route was refused by the middleware; the header would only be hop-by-hop there.
    let upgrade = if guarded { None } else { upgrade::asked(&mut request) };
    prepare(&target, &mut request, guarded);
    if let Some(upgrade) = &upgrade {
        upgrade.ask(request.headers_mut());
    }
    let mut answer = exchange::once(&target.upstream, target.connect, limit, request).await?;
    if answer.status() == StatusCode::SWITCHING_PROTOCOLS {
        return match upgrade {
            Some(upgrade) => Ok(upgrade.join(answer)),
            None => Err(Fault::Broken("the upstream switched protocols unasked".to_owned())),
        };
    }
    headers::remove_hop_by_hop(answer.headers_mut());
    // A version belongs to its hop (RFC 9110 section 6.2): the upstream may speak HTTP/1.0 to us.
    *answer.version_mut() = http::Version::HTTP_11;
    Ok(answer)
}

/// Makes the request that is sent of the request that came.
fn prepare(target: &Target, request: &mut Request<Body>, guarded: bool) {
    let peer = request.extensions().get::<Peer>().copied();
    let path = request.uri().path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/"));
    *request.uri_mut() = Uri::from(path);
    *request.version_mut() = http::Version::HTTP_11;
    let headers = request.headers_mut();
    headers::remove_hop_by_hop(headers);
    // The whole answer to an expectation is ours: the body was asked for when it was read.
    headers.remove(header::EXPECT);
    headers::tell_origin(headers, peer);
    headers.insert(header::HOST, target.host.clone());
    if guarded {
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        if !target.forward_key {
            headers.remove(HeaderName::from_static(counterfoil_core::wire::IDEMPOTENCY_KEY));
        }
    }
}
