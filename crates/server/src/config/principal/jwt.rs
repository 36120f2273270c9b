//! `from = "jwt"`: whose tokens are believed, and what in them names the caller. Judging a token belongs to
//! `principal::jwt`.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use http::HeaderName;
use http::header::AUTHORIZATION;
use toml::Value;

use super::{CREDENTIAL_ACCEPTED, missing, parse_credential_header};
use crate::config::claims::ClaimName;
use crate::config::reader::{Section, text};
use crate::config::setting::Setting;
use crate::config::terms::span;
use crate::config::url::Url;

const JWKS_ACCEPTED: &str = "\"file:PATH\" or a URL like \"https://idp.example/.well-known/jwks.json\"";
const ISSUER_ACCEPTED: &str = "the value of the claim iss, like \"https://idp.example\"";
const AUDIENCE_ACCEPTED: &str = "a value of the claim aud like \"orders\", or a list of such values";
const CLAIM_ACCEPTED: &str = "a claim's name like \"sub\"";
const ALGORITHMS_ACCEPTED: &str =
    "\"RS256\", \"RS384\", \"RS512\", \"PS256\", \"PS384\", \"PS512\", \"ES256\", \"ES384\" or \"EdDSA\"";

/// The longest issuer or audience, in bytes.
const NAME_BYTES_MAX: usize = 1024;
/// The most audiences.
const AUDIENCES_MAX: usize = 16;

/// Callers known by signed tokens of one issuer.
#[derive(Clone, PartialEq, Debug)]
pub struct Jwt {
    /// Where the issuer's public keys are.
    pub jwks: JwksPlace,
    /// The one issuer.
    pub issuer: String,
    /// A token must be for one of these.
    pub audience: Vec<String>,
    /// Which claim names the caller.
    pub claim: Setting<ClaimName>,
    /// How tokens may be signed.
    pub algorithms: Setting<Vec<Algorithm>>,
    /// Which header brings the token; `authorization` brings it as a bearer token.
    pub header: Setting<HeaderName>,
    /// How old the keys may become before they are fetched again.
    pub jwks_refresh: Setting<Duration>,
    /// How old they may become while they cannot be fetched.
    pub jwks_keep: Setting<Duration>,
}

/// Where a set of keys (RFC 7517 section 5) is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum JwksPlace {
    /// A file.
    File(PathBuf),
    /// A URL.
    Url(Url),
}

impl JwksPlace {
    /// Reads `file:PATH`, `http://…` or `https://…`.
    ///
    /// # Errors
    /// What is wrong with the text.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text.strip_prefix("file:") {
            Some(path) if path.is_empty() || path.starts_with("//") => Err(format!("{path:?} is no plain path")),
            Some(path) => Ok(Self::File(PathBuf::from(path))),
            None => Url::parse(text).map(Self::Url),
        }
    }
}

impl fmt::Display for JwksPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "file:{}", path.display()),
            Self::Url(url) => url.fmt(f),
        }
    }
}

/// A way to sign with a private key and to verify with a public one (RFC 7518 section 3.1, RFC 8037). Shared secrets and
/// `none` are not among them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Algorithm {
    /// RSASSA-PKCS1-v1_5 with SHA-256.
    Rs256,
    /// RSASSA-PKCS1-v1_5 with SHA-384.
    Rs384,
    /// RSASSA-PKCS1-v1_5 with SHA-512.
    Rs512,
    /// RSASSA-PSS with SHA-256.
    Ps256,
    /// RSASSA-PSS with SHA-384.
    Ps384,
    /// RSASSA-PSS with SHA-512.
    Ps512,
    /// ECDSA on P-256 with SHA-256.
    Es256,
    /// ECDSA on P-384 with SHA-384.
    Es384,
    /// Ed25519.
    EdDsa,
}

impl Algorithm {
    /// Every one.
    pub const ALL: [Self; 9] = [
        Self::Rs256,
        Self::Rs384,
        Self::Rs512,
        Self::Ps256,
        Self::Ps384,
        Self::Ps512,
        Self::Es256,
        Self::Es384,
        Self::EdDsa,
    ];

    /// As a token's header spells it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rs256 => "RS256",
            Self::Rs384 => "RS384",
            Self::Rs512 => "RS512",
            Self::Ps256 => "PS256",
            Self::Ps384 => "PS384",
            Self::Ps512 => "PS512",
            Self::Es256 => "ES256",
            Self::Es384 => "ES384",
            Self::EdDsa => "EdDSA",
        }
    }

    fn parse(value: &Value) -> Result<Self, String> {
        let name = text(value)?;
        let found = Self::ALL.into_iter().find(|algorithm| algorithm.name() == name);
        found.ok_or_else(|| match name {
            "none" => "a token that is not signed names nobody".to_owned(),
            "HS256" | "HS384" | "HS512" => format!("{name} needs a shared secret, and a set of public keys has none"),
            _ => format!("{name:?} is no such algorithm"),
        })
    }
}

pub(super) fn read(section: &Section<'_>) -> Option<Jwt> {
    let jwks = section.text("jwks", JWKS_ACCEPTED, JwksPlace::parse);
    let issuer = section.text("issuer", ISSUER_ACCEPTED, parse_name);
    let audience = section.read("audience", AUDIENCE_ACCEPTED, parse_audience);
    missing(
        section,
        &[("jwks", JWKS_ACCEPTED), ("issuer", ISSUER_ACCEPTED), ("audience", AUDIENCE_ACCEPTED)],
        "a token is believed only from one issuer and for this service",
    );
    let claim = section.text("claim", CLAIM_ACCEPTED, ClaimName::parse);
    let algorithms = section.list("algorithms", ALGORITHMS_ACCEPTED, Algorithm::parse);
    if algorithms.is_some() && !(1..=Algorithm::ALL.len()).contains(&section.length("algorithms")) {
        section.complain("algorithms", "an empty or too long list", ALGORITHMS_ACCEPTED);
    }
    let header = section.text("header", CREDENTIAL_ACCEPTED, parse_credential_header);
    let day = 86_400;
    let jwks_refresh = Setting::or(span(section, "jwks_refresh", 10, day), Duration::from_mins(10));
    let jwks_keep = Setting::or(span(section, "jwks_keep", 10, 30 * day), Duration::from_hours(6));
    if jwks_keep.value < jwks_refresh.value {
        section.complain("jwks_keep", "shorter than jwks_refresh", "a span not shorter than jwks_refresh");
    }
    Some(Jwt {
        jwks: jwks?,
        issuer: issuer?,
        audience: audience?,
        claim: Setting::or(claim, ClaimName::subject()),
        algorithms: Setting::or(algorithms, vec![Algorithm::Rs256, Algorithm::Es256, Algorithm::EdDsa]),
        header: Setting::or(header, AUTHORIZATION),
        jwks_refresh,
        jwks_keep,
    })
}

fn parse_name(text: &str) -> Result<String, String> {
    match text.len() {
        1..=NAME_BYTES_MAX => Ok(text.to_owned()),
        bytes => Err(format!("it has {bytes} bytes, not 1 to {NAME_BYTES_MAX}")),
    }
}

fn parse_audience(value: &Value) -> Result<Vec<String>, String> {
    let Some(items) = value.as_array() else { return Ok(vec![parse_name(text(value)?)?]) };
    if items.is_empty() || items.len() > AUDIENCES_MAX {
        return Err(format!("a list of {} audiences", items.len()));
    }
    items.iter().map(|item| parse_name(text(item)?)).collect()
}
