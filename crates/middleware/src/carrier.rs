//! In which headers a key travels: `Idempotency-Key`, or, where it is switched on, the pair `Repeatability-Request-ID`
//! and `Repeatability-First-Sent` (OASIS Repeatable Requests 1.0). The spelling of a key belongs to `core::wire`.

use counterfoil_core::wire::{
    IDEMPOTENCY_KEY, REPEATABILITY_FIRST_SENT, REPEATABILITY_REQUEST_ID, REPEATABILITY_RESULT, parse_key,
};
use counterfoil_core::{Key, Timestamp};
use http::{HeaderMap, HeaderValue, Response};

use crate::body::Body;
use crate::date;
use crate::reject::{Ours, Rejection};

/// What a carrier brought.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Carried {
    pub(crate) key: Key,
    /// When the action was first asked for, where the carrier says so.
    pub(crate) first_sent: Option<Timestamp>,
}

/// Whether a request carries a key, well formed or not.
pub(crate) fn is_keyed(headers: &HeaderMap, repeatability: bool) -> bool {
    headers.contains_key(IDEMPOTENCY_KEY) || is_repeatable(headers, repeatability)
}

/// Whether the second carrier was used, where it is switched on; the answer must tell what became of the request then.
/// One of its headers is enough: the other is missing, and not ignored.
pub(crate) fn is_repeatable(headers: &HeaderMap, repeatability: bool) -> bool {
    repeatability && (headers.contains_key(REPEATABILITY_REQUEST_ID) || headers.contains_key(REPEATABILITY_FIRST_SENT))
}

/// Reads the key from the one carrier that was used.
pub(crate) fn read(headers: &HeaderMap, repeatability: bool) -> Result<Carried, Rejection> {
    if !is_repeatable(headers, repeatability) {
        let key = key(headers, IDEMPOTENCY_KEY)?.ok_or(Rejection::MissingKey)?;
        return Ok(Carried { key, first_sent: None });
    }
    if headers.contains_key(IDEMPOTENCY_KEY) {
        let why = "it came in Idempotency-Key and in Repeatability-Request-ID: send one of them";
        return Err(Rejection::MalformedCarrier { why });
    }
    repeated(headers)
}

fn key(headers: &HeaderMap, name: &str) -> Result<Option<Key>, Rejection> {
    parse_key(headers.get_all(name).iter().map(HeaderValue::as_bytes)).map_err(Rejection::MalformedKey)
}

fn repeated(headers: &HeaderMap) -> Result<Carried, Rejection> {
    let malformed = |why| Rejection::MalformedCarrier { why };
    let id = key(headers, REPEATABILITY_REQUEST_ID)?
        .ok_or(malformed("Repeatability-Request-ID is missing: send both headers"))?;
    let mut dates = headers.get_all(REPEATABILITY_FIRST_SENT).iter();
    let date = dates.next().ok_or(malformed("Repeatability-First-Sent is missing: send both headers"))?;
    if dates.next().is_some() {
        return Err(malformed("Repeatability-First-Sent came twice: send it once"));
    }
    let first_sent = date.to_str().ok().and_then(date::read);
    let first_sent = first_sent.ok_or(malformed(
        "Repeatability-First-Sent is no HTTP date: send the moment of the first attempt, like Sun, 06 Nov 1994 08:49:37 GMT",
    ))?;
    Ok(Carried { key: folded(id)?, first_sent: Some(first_sent) })
}

/// A UUID means the same in either case; every other text is taken as it is.
fn folded(id: Key) -> Result<Key, Rejection> {
    let text = id.as_str();
    let is_uuid = text.len() == uuid::fmt::Hyphenated::LENGTH && uuid::Uuid::try_parse(text).is_ok();
    if is_uuid { Key::new(text.to_ascii_lowercase()).map_err(Rejection::MalformedKey) } else { Ok(id) }
}

/// Says what became of a request under the second carrier's terms: an answer of ours is a refusal, every other is the action's.
pub(crate) fn tell(answer: &mut Response<Body>) {
    let result = if answer.extensions().get::<Ours>().is_some() { "rejected" } else { "accepted" };
    answer.headers_mut().insert(REPEATABILITY_RESULT, HeaderValue::from_static(result));
}

#[cfg(test)]
mod tests;
