//! From a request to a claim: authenticate, parse the key, read the body, fingerprint. In this order, and no store is
//! asked on the way.

use std::pin::pin;

use bytes::Bytes;
use counterfoil_core::wire::{IDEMPOTENCY_KEY, parse_key};
use counterfoil_core::{Asked, Claim, Identity};
use http::request::Parts;
use http::{HeaderMap, Request, header};

use crate::body::{BoxError, Gathered, gather};
use crate::operation::Matched;
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
    let lines = parts.headers.get_all(IDEMPOTENCY_KEY).iter().map(http::HeaderValue::as_bytes);
    let key = parse_key(lines).map_err(Rejection::MalformedKey)?.ok_or(Rejection::MissingKey)?;
    if asks_to_leave(&parts.headers) {
        return Err(Rejection::Upgrade);
    }
    let body = read(body, settings.request_body_max).await?;
    let asked = asked(&parts, &matched.path, body.clone());
    let identity = Identity::new(scope, matched.operation.clone(), key);
    let claim = Claim::new(identity, asked, &matched.terms.rule)
        .map_err(|error| Rejection::MalformedBody { why: error.to_string() })?;
    Ok(Admitted { parts, body, claim })
}

/// Whether an upgrade is asked for that cannot just be ignored: every one but the offer of cleartext HTTP/2, which some
/// clients make with every request and any server may pass over (RFC 9110 section 7.8).
fn asks_to_leave(headers: &HeaderMap) -> bool {
    let lines = headers.get_all(header::UPGRADE).iter();
    let mut protocols = lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b','));
    protocols.any(|protocol| !protocol.trim_ascii().is_empty() && !protocol.trim_ascii().eq_ignore_ascii_case(b"h2c"))
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

fn asked(parts: &Parts, path: &str, body: Bytes) -> Asked {
    let line = |(name, value): (&http::HeaderName, &http::HeaderValue)| {
        (name.as_str().to_owned(), Bytes::copy_from_slice(value.as_bytes()))
    };
    Asked {
        method: parts.method.as_str().to_owned(),
        path: path.to_owned(),
        query: parts.uri.query().unwrap_or_default().to_owned(),
        headers: parts.headers.iter().map(line).collect(),
        body,
    }
}
