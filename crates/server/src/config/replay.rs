//! `replay_headers`: which further headers of an answer a receipt may show again. The usual list is the middleware's.

use counterfoil_middleware::is_never_replayed;
use http::HeaderName;
use toml::Value;

use super::reader::text;

pub(crate) const ACCEPTED: &str = "a header name that is safe to show again, like \"x-order-id\"";

pub(crate) fn parse(value: &Value) -> Result<HeaderName, String> {
    let text = text(value)?;
    let name = HeaderName::try_from(text).map_err(|_| format!("{text:?} is no header name"))?;
    if is_never_replayed(&name) {
        return Err(format!("{name} belongs to one exchange and is never replayed"));
    }
    Ok(name)
}
