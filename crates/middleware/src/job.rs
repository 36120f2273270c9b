//! A request that was admitted and may be run: what a claim is made of, and what the handler gets.
//! How it came to be belongs to `request`, how it runs to `run`.

use bytes::Bytes;
use counterfoil_core::{Claim, Digest, Operation, Receipt};
use http::header::ACCEPT_ENCODING;
use http::request::Parts;
use http::{HeaderValue, Request, Response};
use tokio::time::Instant;

use crate::body::Body;
use crate::operation::Matched;
use crate::reject::{Rejection, refuse};
use crate::replay::{Told, tell};
use crate::request::Admitted;

/// A request extension: this request is guarded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Guarded {
    /// Which operation it is.
    pub operation: Operation,
    /// The identity's digest, which logs may show.
    pub digest: Digest,
    /// After this instant nothing of the run may still be sent.
    pub until: Instant,
}

/// An admitted request and the service that would run it.
pub(crate) struct Job<S> {
    pub(crate) service: S,
    pub(crate) claim: Claim,
    pub(crate) about: About,
    pub(crate) parts: Parts,
    body: Bytes,
}

/// What an admitted request is about.
pub(crate) struct About {
    pub(crate) matched: Box<Matched>,
    pub(crate) digest: Digest,
    /// What the asker says of codings.
    accepts: Vec<HeaderValue>,
}

impl About {
    /// The answer that `receipt` makes for this asker.
    pub(crate) fn tell(&self, receipt: &Receipt) -> Told {
        tell(receipt, &self.accepts)
    }

    /// The answer of ours for `rejection`, told and counted.
    pub(crate) fn refuse(&self, rejection: &Rejection) -> Response<Body> {
        refuse(rejection, &self.matched, Some(self.digest))
    }
}

impl<S> Job<S> {
    pub(crate) fn new(service: S, admitted: Admitted, matched: Box<Matched>) -> Self {
        let Admitted { parts, body, claim } = admitted;
        let digest = claim.identity().digest();
        let accepts = parts.headers.get_all(ACCEPT_ENCODING).iter().cloned().collect();
        Self { service, claim, about: About { matched, digest, accepts }, parts, body }
    }

    /// The service, the request that it gets, and what stays with the run, which ends by `until`.
    pub(crate) fn split(self, until: Instant) -> (S, Request<Body>, Claim, About) {
        let Self { service, claim, about, parts, body } = self;
        let mut request = Request::from_parts(parts, Body::from(body));
        let guarded = Guarded { operation: about.matched.operation.clone(), digest: about.digest, until };
        request.extensions_mut().insert(guarded);
        (service, request, claim, about)
    }
}
