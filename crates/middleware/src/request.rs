//! From a request to a claim: authenticate, parse the key, read the body, fingerprint. In this order, and no store is
//! asked on the way.

use std::pin::pin;

use bytes::Bytes;
use counterfoil_core::wire::list_items;
use counterfoil_core::{Asked, Claim, Identity, Scope};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Request, header};

use crate::body::{BoxError, Gathered, gather};
use crate::carrier;
use crate::operation::Matched;
use crate::principal::PrincipalFault;
use crate::reject::Rejection;
use crate::settings::Settings;

/// A request that may be claimed.
pub(crate) struct Admitted {
    pub(crate) parts: Parts,
    pub(crate) body: Bytes,
    pub(crate) claim: Claim,
}

/// Does everything that comes before the claim.
pub(crate) async fn admit<B>(settings: &Settings, matched: &Matched, request: Request<B>) -> Result<Admitted, Rejection>
where
    B: http_body::Body<Data = Bytes> + Send,
    B::Error: Into<BoxError>,
{
    let (mut parts, body) = request.into_parts();
    parts.extensions.insert(matched.operation.clone());
    let scope = settings.principal.principal(&parts).await.map_err(Rejection::Principal)?;
    if is_early(&parts.headers) {
        return Err(Rejection::TooEarly);
    }
    let carried = carrier::read(&parts.headers, settings.repeatability)?;
    if asks_to_leave(&parts.headers) {
        return Err(Rejection::Upgrade);
    }
    let body = read(body, settings.request_body_max).await?;
    let asked = asked(&parts, matched, body.clone());
    let identity = Identity::new(scope, matched.operation.clone(), carried.key);
    let claim = Claim::new(identity, asked, &matched.terms.rule)
        .map_err(|error| Rejection::MalformedBody { why: error.to_string() })?;
    let claim = match carried.first_sent {
        Some(at) => claim.first_sent(at),
        None => claim,
    };
    Ok(Admitted { parts, body, claim })
}

/// Asks again who is calling, after a wait: whoever lost the right meanwhile is answered as a fresh request would be.
pub(crate) async fn admit_again(settings: &Settings, parts: &Parts, scope: &Scope) -> Result<(), Rejection> {
    let found = settings.principal.principal(parts).await.map_err(Rejection::Principal)?;
    if found == *scope {
        return Ok(());
    }
    // What was claimed would be another's: as a request of its own it is decided anew.
    let detail = "who the caller is changed while the request waited: send it again".to_owned();
    Err(Rejection::Principal(PrincipalFault::Unavailable { detail }))
}

/// Whether a server in front took it from early data (RFC 8470 section 5.1).
fn is_early(headers: &HeaderMap) -> bool {
    headers.get_all("early-data").iter().any(|value| value.as_bytes().trim_ascii() == b"1")
}

/// Whether an upgrade is asked for that cannot just be ignored: every one but the offer of cleartext HTTP/2, which some
/// clients make with every request and any server may pass over (RFC 9110 section 7.8).
fn asks_to_leave(headers: &HeaderMap) -> bool {
    let lines = headers.get_all(header::UPGRADE).iter().map(HeaderValue::as_bytes);
    list_items(lines).any(|protocol| !protocol.eq_ignore_ascii_case(b"h2c"))
}

async fn read<B>(body: B, limit: usize) -> Result<Bytes, Rejection>
where
    B: http_body::Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    match gather(pin!(body), limit).await {
        Gathered::Whole { bytes, .. } => Ok(bytes),
        Gathered::Over { .. } => Err(Rejection::BodyTooLarge { limit }),
        Gathered::Broken(error) => {
            tracing::info!(%error, "a guarded request's body broke off");
            Err(Rejection::MalformedBody { why: "it broke off".to_owned() })
        }
    }
}

fn asked(parts: &Parts, matched: &Matched, body: Bytes) -> Asked {
    Asked {
        method: Some(parts.method.clone()),
        path: matched.path.clone(),
        query: parts.uri.query().unwrap_or_default().to_owned(),
        headers: parts.headers.clone(),
        body,
    }
}
