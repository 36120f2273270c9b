//! `from = "api-keys"`: the table of hashed keys. Looking a key up belongs to `principal::api_keys`.

use std::collections::BTreeSet;
use std::fmt;

use http::HeaderName;
use http::header::AUTHORIZATION;
use serde_json::{Map, Value as Json};
use toml::Value;

use super::{CREDENTIAL_ACCEPTED, parse_credential_header, parse_principal};
use crate::config::claims::scalar;
use crate::config::reader::Section;
use crate::config::setting::Setting;

const KEYS_ACCEPTED: &str = "tables [[principal.keys]] with principal and sha256";
const PRINCIPAL_ACCEPTED: &str = "the name of who has the key, 1 to 1,024 bytes";
const SHA256_ACCEPTED: &str = "the 64 hexadecimal digits that `printf %s KEY | sha256sum` prints";
const CLAIM_ACCEPTED: &str = "a text, whole number, true or false";

/// The most keys.
const KEYS_MAX: usize = 5000;
/// The most claims of one key.
const CLAIMS_MAX: usize = 16;

/// Callers known by a key of their own.
#[derive(Clone, PartialEq, Debug)]
pub struct ApiKeys {
    /// Which header brings the key; `authorization` brings it as a bearer token.
    pub header: Setting<HeaderName>,
    /// Whose they are.
    pub keys: Vec<ApiKey>,
}

/// One key, known by its digest only.
#[derive(Clone, PartialEq)]
pub struct ApiKey {
    /// Whose it is.
    pub principal: String,
    /// SHA-256 of the key.
    pub sha256: [u8; 32],
    /// What else is known of whoever has it: an object of plain values.
    pub claims: Json,
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiKey").field("principal", &self.principal).finish_non_exhaustive()
    }
}

pub(super) fn read(section: &Section<'_>) -> Option<ApiKeys> {
    let header = section.text("header", CREDENTIAL_ACCEPTED, parse_credential_header);
    let tables = section.tables("keys");
    if !section.has("keys") || tables.len() > KEYS_MAX {
        section.complain("keys", format!("{} keys", tables.len()), format!("1 to {KEYS_MAX} {KEYS_ACCEPTED}"));
        return None;
    }
    let mut seen = BTreeSet::new();
    let mut keys = Vec::with_capacity(tables.len());
    for table in tables {
        let principal = table.text("principal", PRINCIPAL_ACCEPTED, parse_principal);
        let sha256 = table.text("sha256", SHA256_ACCEPTED, parse_sha256);
        for (key, accepted) in [("principal", PRINCIPAL_ACCEPTED), ("sha256", SHA256_ACCEPTED)] {
            if !table.has(key) {
                table.complain(key, "missing", accepted);
            }
        }
        let claims = claims(&table);
        table.finish();
        if sha256.is_some_and(|sha256| !seen.insert(sha256)) {
            table.complain("sha256", "an earlier entry has the same key", "a key of its own");
        }
        if let (Some(principal), Some(sha256)) = (principal, sha256) {
            keys.push(ApiKey { principal, sha256, claims });
        }
    }
    Some(ApiKeys { header: Setting::or(header, AUTHORIZATION), keys })
}

fn claims(table: &Section<'_>) -> Json {
    let Some(claims) = table.table("claims") else { return Json::Object(Map::new()) };
    let mut read = Map::new();
    for (name, value) in claims.entries() {
        match scalar(value) {
            Ok(value) => {
                read.insert(name.clone(), value);
            }
            Err(fault) => claims.complain(name, fault, CLAIM_ACCEPTED),
        }
    }
    if read.len() > CLAIMS_MAX {
        table.complain("claims", format!("{} claims", read.len()), format!("at most {CLAIMS_MAX}"));
    }
    Json::Object(read)
}

/// The text is not shown: somebody may have written the key itself.
fn parse_sha256(text: &str) -> Result<[u8; 32], String> {
    let no = || "it is no SHA-256 in hexadecimal; a key itself never stands here".to_owned();
    let digits = text.as_bytes();
    if digits.len() != 64 || !digits.is_ascii() {
        return Err(no());
    }
    let mut sha256 = [0; 32];
    for (byte, pair) in sha256.iter_mut().zip(digits.chunks(2)) {
        let pair = std::str::from_utf8(pair).map_err(|_| no())?;
        // A sign would be read as part of a number.
        let plain = pair.bytes().all(|digit| digit.is_ascii_hexdigit());
        *byte = u8::from_str_radix(pair, 16).ok().filter(|_| plain).ok_or_else(no)?;
    }
    Ok(sha256)
}

/// What a page shows of a key: whose it is, and enough of the digest to find the line.
pub(crate) fn shown(key: &ApiKey) -> String {
    let [first, second, third, fourth, ..] = key.sha256;
    let claims = key.claims.as_object().filter(|claims| !claims.is_empty());
    let claims = claims.map(|claims| format!(", claims {}", Json::Object(claims.clone()))).unwrap_or_default();
    let name = Value::from(key.principal.as_str());
    format!("a key of {name}: sha256 {first:02x}{second:02x}{third:02x}{fourth:02x}…{claims}")
}
