//! `[cors]`: which pages of other origins may read answers that the upstream did not make. What is answered belongs to
//! the middleware.

use counterfoil_core::complaint::Pad;
use http::{HeaderValue, Uri};
use toml::Value;

use super::reader::{Section, text};
use super::setting::Setting;
use super::terms::bounded;

const ORIGIN_ACCEPTED: &str =
    "an origin as browsers send it, like \"https://shop.example\" or \"http://localhost:5173\"";

/// Which pages may read replays and problem documents.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cors {
    /// Their origins.
    pub origins: Setting<Vec<HeaderValue>>,
    /// Whether their requests may carry the browser's credentials.
    pub credentials: Setting<bool>,
}

impl Cors {
    pub(crate) fn read(section: Option<Section<'_>>, pad: &Pad) -> Self {
        let empty = toml::Table::new();
        let section = section.unwrap_or_else(|| Section::root(&empty, pad));
        let cors = Self {
            origins: Setting::or(bounded(&section, "origins", ORIGIN_ACCEPTED, parse_origin), Vec::new()),
            credentials: Setting::or(section.flag("credentials"), false),
        };
        if cors.credentials.value && cors.origins.value.is_empty() {
            section.complain("credentials", "there are no origins", "origins beside it");
        }
        section.finish();
        cors
    }
}

/// Scheme, host and port, and nothing behind them: browsers send no slash at the end.
fn parse_origin(value: &Value) -> Result<HeaderValue, String> {
    let text = text(value)?;
    let wrong = || format!("{text:?} is no origin");
    let uri: Uri = text.parse().map_err(|_| wrong())?;
    let scheme = uri.scheme_str().filter(|scheme| ["http", "https"].contains(scheme)).ok_or_else(wrong)?;
    let authority = uri.authority().ok_or_else(wrong)?.as_str();
    if text != format!("{scheme}://{authority}") || text != text.to_ascii_lowercase() || authority.contains('@') {
        return Err(wrong());
    }
    HeaderValue::from_str(text).map_err(|_| wrong())
}
