//! `[principal]` and `[scope]` as the effective configuration shows them. Of a key it shows whose it is and the first
//! digits of its digest.

use std::fmt::Write as _;

use http::HeaderName;
use serde_json::Value as Json;
use toml::{Table, Value};

use super::{Page, print_span};
use crate::config::Config;
use crate::config::claims::{Requirement, ScopePart};
use crate::config::principal::{ForwardAuth, Jwt, PrincipalSource, shown_key};
use crate::config::setting::Origin;

pub(super) fn principal(page: &mut Page, config: &Config) {
    let (source, origin) = (&config.principal.value, config.principal.origin);
    page.table("[principal]");
    page.line("from", source.to_string(), origin);
    match source {
        PrincipalSource::None => {}
        PrincipalSource::Header { name, peers } => {
            page.line("header", name.as_str(), origin);
            page.line("peers", peers.iter().map(ToString::to_string).collect::<Vec<_>>(), origin);
        }
        PrincipalSource::ApiKeys(keys) => {
            page.setting("header", &keys.header, |name| name.as_str().to_owned());
            for key in &keys.keys {
                let _ = writeln!(page.0, "# {}", shown_key(key));
            }
        }
        PrincipalSource::Jwt(jwt) => print_jwt(page, jwt, origin),
        PrincipalSource::ForwardAuth(asked) => forward_auth(page, asked, origin),
    }
    if !config.require.is_empty() {
        page.line("require", require(&config.require), Origin::File);
    }
}

fn print_jwt(page: &mut Page, jwt: &Jwt, origin: Origin) {
    page.line("jwks", jwt.jwks.to_string(), origin);
    page.line("issuer", jwt.issuer.as_str(), origin);
    page.line("audience", jwt.audience.clone(), origin);
    page.setting("claim", &jwt.claim, ToString::to_string);
    page.setting("algorithms", &jwt.algorithms, |algorithms| {
        algorithms.iter().map(|algorithm| algorithm.name()).collect::<Vec<_>>()
    });
    page.setting("header", &jwt.header, |name| name.as_str().to_owned());
    page.setting("jwks_refresh", &jwt.jwks_refresh, |span| print_span(*span));
    page.setting("jwks_keep", &jwt.jwks_keep, |span| print_span(*span));
}

fn forward_auth(page: &mut Page, asked: &ForwardAuth, origin: Origin) {
    let names = |names: &Vec<HeaderName>| names.iter().map(|name| name.as_str().to_owned()).collect::<Vec<_>>();
    page.line("url", asked.url.to_string(), origin);
    page.line("answer_header", asked.answer_header.as_str(), origin);
    page.setting("answer_claims", &asked.answer_claims, names);
    page.setting("send", &asked.send, names);
    page.setting("timeout", &asked.timeout, |span| print_span(*span));
}

pub(super) fn scope(page: &mut Page, parts: &[(String, ScopePart)]) {
    if parts.is_empty() {
        return;
    }
    page.table("[scope]");
    for (name, part) in parts {
        let value = match part {
            ScopePart::Constant(text) => Value::from(text.as_str()),
            ScopePart::Claim(claim) => Value::Table(Table::from_iter([("claim".to_owned(), claim.as_str().into())])),
        };
        page.line(name, value, Origin::File);
    }
}

pub(super) fn require(required: &[Requirement]) -> Value {
    let entry = |required: &Requirement| {
        let values = required.one_of.iter().map(plain).collect::<Vec<_>>();
        let value = match values.as_slice() {
            [one] => one.clone(),
            several => Value::Array(several.to_vec()),
        };
        (required.claim.as_str().to_owned(), value)
    };
    Value::Table(required.iter().map(entry).collect())
}

/// A plain value as the file has it; a requirement holds no other.
fn plain(value: &Json) -> Value {
    match value {
        Json::Bool(flag) => Value::from(*flag),
        Json::Number(number) => Value::from(number.as_i64().unwrap_or_default()),
        Json::String(text) => Value::from(text.as_str()),
        Json::Null | Json::Array(_) | Json::Object(_) => Value::from(value.to_string()),
    }
}
