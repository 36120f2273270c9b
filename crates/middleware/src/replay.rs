//! Between an answer and its receipt: which headers are kept, and the answer that a receipt makes.
//! Which answers are kept at all belongs to `remember`.

use std::sync::Arc;

use bytes::Bytes;
use counterfoil_core::wire::{IDEMPOTENCY_EXPIRES, IDEMPOTENCY_STATUS, IDEMPOTENT_REPLAYED, list_items};
use counterfoil_core::{Receipt, Timestamp, receipt};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};

use crate::body::Body;
use crate::coding::decoded;
use crate::date::http_date;

const REPLAYED: [HeaderName; 5] =
    [header::LOCATION, header::ETAG, header::LAST_MODIFIED, header::LINK, header::RETRY_AFTER];

/// Headers that belong to one answer or one connection, whatever the settings say: cookies, the date, hop-by-hop
/// (RFC 9110 section 7.6.1), the length (it follows from the body), and what names one request.
const NEVER: [&str; 19] = [
    "set-cookie",
    "set-cookie2",
    "date",
    "age",
    "connection",
    "keep-alive",
    "proxy-connection",
    "proxy-authenticate",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "content-length",
    "request-id",
    "x-request-id",
    "x-correlation-id",
    "traceparent",
    "tracestate",
    "server-timing",
];

/// Prefixes of further headers that belong to one answer: rate limits, and our own.
const NEVER_PREFIXES: [&str; 4] = ["ratelimit", "x-ratelimit", "x-rate-limit", "idempoten"];

/// Whether a header belongs to one answer or one connection and is never replayed, whatever the settings say.
#[must_use]
pub fn is_never_replayed(name: &HeaderName) -> bool {
    let name = name.as_str();
    NEVER.contains(&name) || NEVER_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// The headers of an answer that its receipt keeps, in order, as bytes.
pub(crate) fn kept(headers: &HeaderMap, configured: &[HeaderName]) -> Arc<[(String, Bytes)]> {
    let named_by_connection = |name: &HeaderName| {
        let lines = headers.get_all(header::CONNECTION).iter().map(HeaderValue::as_bytes);
        list_items(lines).any(|token| token.eq_ignore_ascii_case(name.as_str().as_bytes()))
    };
    let wanted = |name: &HeaderName| {
        name.as_str().starts_with("content-") || REPLAYED.contains(name) || configured.contains(name)
    };
    headers
        .iter()
        .filter(|(name, _)| wanted(name) && !is_never_replayed(name) && !named_by_connection(name))
        .map(|(name, value)| (name.as_str().to_owned(), Bytes::copy_from_slice(value.as_bytes())))
        .collect()
}

/// What a receipt can say to a duplicate.
pub(crate) enum Told {
    /// The answer itself.
    Answer(Response<Body>),
    /// It is done, with this status and place, and its body was not kept.
    NotKept { status: u16, location: Option<HeaderValue> },
    /// Its status is none that HTTP can carry.
    Unreadable,
}

/// The answer that a receipt makes for an asker who accepts these codings. Headers that HTTP cannot carry are left out.
pub(crate) fn tell(receipt: &Receipt, accepts: &[HeaderValue]) -> Told {
    let receipt::Body::Kept(body) = &receipt.body else {
        let location = receipt.headers.iter().find(|(name, _)| name == header::LOCATION.as_str());
        let location = location.and_then(|(_, value)| HeaderValue::from_maybe_shared(value.clone()).ok());
        return Told::NotKept { status: receipt.status, location };
    };
    let Some(status) = StatusCode::from_u16(receipt.status).ok().filter(|status| status.as_u16() >= 200) else {
        return Told::Unreadable;
    };
    let mut answer = Response::new(Body::from(body.clone()));
    *answer.status_mut() = status;
    for (name, value) in receipt.headers.iter() {
        let name = HeaderName::from_bytes(name.as_bytes()).ok().filter(|name| !is_never_replayed(name));
        if let (Some(name), Ok(value)) = (name, HeaderValue::from_maybe_shared(value.clone())) {
            answer.headers_mut().append(name, value);
        }
    }
    if let Some(plain) = decoded(answer.headers_mut(), body, accepts) {
        *answer.body_mut() = Body::from(plain);
    }
    Told::Answer(answer)
}

/// Whether an answer is the remembered one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Replayed {
    Yes,
    No,
}

/// Marks a guarded answer.
pub(crate) fn mark(answer: &mut Response<Body>, replayed: Replayed, expires_at: Option<Timestamp>) {
    let replayed = match replayed {
        Replayed::Yes => "true",
        Replayed::No => "false",
    };
    answer.headers_mut().insert(IDEMPOTENT_REPLAYED, HeaderValue::from_static(replayed));
    if let Some(date) = expires_at.and_then(http_date) {
        answer.headers_mut().insert(IDEMPOTENCY_EXPIRES, date);
    }
}

/// Says on an answer where the protection is not as asked: `ignored`, `unrecorded`.
pub(crate) fn say(headers: &mut HeaderMap, status: &'static str) {
    headers.insert(IDEMPOTENCY_STATUS, HeaderValue::from_static(status));
}
