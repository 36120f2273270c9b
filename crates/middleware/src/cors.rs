//! What a browser lets a page of another origin read (the Fetch standard's CORS protocol): our headers, and, for the
//! origins that are named, our own answers and replays. A preflight is an `OPTIONS` request and passes unguarded; the
//! application answers it.

use counterfoil_core::wire::{IDEMPOTENCY_EXPIRES, IDEMPOTENCY_STATUS, IDEMPOTENT_REPLAYED};
use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, RETRY_AFTER, VARY,
};
use http::{HeaderMap, HeaderValue};

/// Pages that may read answers which the application did not make: replays and problem documents.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Cors {
    /// Their origins, as browsers send them: `https://shop.example`.
    pub origins: Vec<HeaderValue>,
    /// Whether their requests may carry cookies and other credentials of the browser.
    pub credentials: bool,
}

/// Lets `origin` read `answer` where it may, and our headers wherever it may read the answer at all. What the
/// application said of CORS stands.
pub(crate) fn open(answer: &mut HeaderMap, origin: Option<&HeaderValue>, cors: &Cors) {
    let Some(origin) = origin else { return };
    if !answer.contains_key(ACCESS_CONTROL_ALLOW_ORIGIN) && cors.origins.contains(origin) {
        answer.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
        answer.append(VARY, HeaderValue::from_static("origin"));
        if cors.credentials {
            answer.insert(ACCESS_CONTROL_ALLOW_CREDENTIALS, HeaderValue::from_static("true"));
        }
    }
    if !answer.contains_key(ACCESS_CONTROL_ALLOW_ORIGIN) {
        return;
    }
    let ours =
        [IDEMPOTENT_REPLAYED, IDEMPOTENCY_EXPIRES, IDEMPOTENCY_STATUS, RETRY_AFTER.as_str(), "repeatability-result"];
    let ours: Vec<&str> = ours.into_iter().filter(|name| answer.contains_key(*name)).collect();
    if let Ok(names) = HeaderValue::try_from(ours.join(", "))
        && !ours.is_empty()
    {
        // A list of its own: what the application exposes stands beside it.
        answer.append(ACCESS_CONTROL_EXPOSE_HEADERS, names);
    }
}

#[cfg(test)]
mod tests;
