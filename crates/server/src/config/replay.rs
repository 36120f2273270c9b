//! `replay_headers`: which further headers of an answer a receipt may show again. The usual list is the middleware's.

use http::HeaderName;
use toml::Value;

use super::reader::text;

pub(crate) const ACCEPTED: &str = "a header name that is safe to show again, like \"x-order-id\"";

/// Never replayed: they belong to one exchange or one connection (RFC 9110 section 7.6.1), or are secrets. The
/// middleware refuses these and more when the layer is made; here they are told beside all other faults.
const NEVER: [&str; 13] = [
    "age",
    "connection",
    "content-length",
    "date",
    "keep-alive",
    "proxy-authenticate",
    "proxy-connection",
    "set-cookie",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "x-request-id",
];

pub(crate) fn parse(value: &Value) -> Result<HeaderName, String> {
    let text = text(value)?;
    let name = HeaderName::try_from(text).map_err(|_| format!("{text:?} is no header name"))?;
    if NEVER.contains(&name.as_str()) || name.as_str().starts_with("idempoten") {
        return Err(format!("{name} belongs to one exchange and is never replayed"));
    }
    Ok(name)
}
