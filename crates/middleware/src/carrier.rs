//! In which headers a key travels: `Idempotency-Key`, or, where it is switched on, the pair `Repeatability-Request-ID`
//! and `Repeatability-First-Sent` (OASIS Repeatable Requests 1.0). The spelling of a key belongs to `core::wire`.

use counterfoil_core::wire::{IDEMPOTENCY_KEY, parse_key};
use counterfoil_core::{Key, Timestamp};
use http::{HeaderMap, HeaderValue, Response};

use crate::body::Body;
use crate::date;
use crate::reject::{Ours, Rejection};

/// Names the action in the second carrier.
const REQUEST_ID: &str = "repeatability-request-id";
/// When the client first sent it, as an HTTP date; the same in every attempt.
const FIRST_SENT: &str = "repeatability-first-sent";
/// Whether the request was taken under the second carrier's terms: `accepted`, `rejected`.
const RESULT: &str = "repeatability-result";

/// What a carrier brought.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Carried {
    pub(crate) key: Key,
    /// When the action was first asked for, where the carrier says so.
    pub(crate) first_sent: Option<Timestamp>,
}

/// Whether a request carries a key, well formed or not.
pub(crate) fn is_keyed(headers: &HeaderMap, repeatability: bool) -> bool {
    headers.contains_key(IDEMPOTENCY_KEY) || (repeatability && is_repeatable(headers))
}

/// Whether the second carrier was used. One of its headers is enough: the other is then missing, and not ignored.
fn is_repeatable(headers: &HeaderMap) -> bool {
    headers.contains_key(REQUEST_ID) || headers.contains_key(FIRST_SENT)
}

/// Reads the key from the one carrier that was used.
pub(crate) fn read(headers: &HeaderMap, repeatability: bool) -> Result<Carried, Rejection> {
    let repeatable = repeatability && is_repeatable(headers);
    if repeatable && headers.contains_key(IDEMPOTENCY_KEY) {
        let why = "it came in Idempotency-Key and in Repeatability-Request-ID: send one of them";
        return Err(Rejection::MalformedCarrier { why });
    }
    if repeatable {
        return repeated(headers);
    }
    let key = key(headers, IDEMPOTENCY_KEY)?.ok_or(Rejection::MissingKey)?;
    Ok(Carried { key, first_sent: None })
}

fn key(headers: &HeaderMap, name: &str) -> Result<Option<Key>, Rejection> {
    parse_key(headers.get_all(name).iter().map(HeaderValue::as_bytes)).map_err(Rejection::MalformedKey)
}

fn repeated(headers: &HeaderMap) -> Result<Carried, Rejection> {
    let malformed = |why| Rejection::MalformedCarrier { why };
    let id = key(headers, REQUEST_ID)?.ok_or(malformed("Repeatability-Request-ID is missing: send both headers"))?;
    let mut dates = headers.get_all(FIRST_SENT).iter();
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
    let hyphens = [8, 13, 18, 23];
    let is_uuid = text.len() == 36
        && text.bytes().enumerate().all(
            |(at, byte)| {
                if hyphens.contains(&at) { byte == b'-' } else { byte.is_ascii_hexdigit() }
            },
        );
    if is_uuid { Key::new(text.to_ascii_lowercase()).map_err(Rejection::MalformedKey) } else { Ok(id) }
}

/// Whether the answer to a request must say what became of it under the second carrier's terms.
pub(crate) fn is_told(headers: &HeaderMap, repeatability: bool) -> bool {
    repeatability && is_repeatable(headers)
}

/// Says it: an answer of ours is a refusal, every other is the action's.
pub(crate) fn tell(answer: &mut Response<Body>) {
    let result = if answer.extensions().get::<Ours>().is_some() { "rejected" } else { "accepted" };
    answer.headers_mut().insert(RESULT, HeaderValue::from_static(result));
}

#[cfg(test)]
mod tests;
