//! Callers known by a signed token: its signature by the issuer's key, then its claims. The keys belong to `jwks`.

use std::sync::Arc;

use counterfoil_core::{Scope, Timestamp};
use counterfoil_middleware::PrincipalFault;
use counterfoil_store::clock::Clock;
use http::request::Parts;
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Algorithm as Signed, DecodingKey, Validation, decode, decode_header};
use serde_json::Value as Json;

use super::credential::{credential, refused};
use super::jwks::{Jwks, NoKey};
use super::{Caller, CallerAnswer, Source, plain};
use crate::config::{Algorithm, Jwt};

/// How far the issuer's clock and ours may differ, in milliseconds.
const LEEWAY_MS: i64 = 30_000;

/// The callers of one issuer.
pub(super) struct TokenCallers {
    terms: Jwt,
    keys: Arc<Jwks>,
    clock: Arc<dyn Clock>,
}

impl TokenCallers {
    pub(super) fn new(terms: &Jwt, keys: Arc<Jwks>, clock: Arc<dyn Clock>) -> Self {
        Self { terms: terms.clone(), keys, clock }
    }

    async fn know(&self, parts: &Parts) -> Result<Caller, PrincipalFault> {
        let header = &self.terms.header.value;
        let token = credential(parts, header)?;
        let refused = |why: &str| refused(header, why);
        let head = decode_header(token).map_err(|_| refused("the token cannot be read"))?;
        if !self.terms.algorithms.value.iter().any(|allowed| signed(*allowed) == head.alg) {
            return Err(refused("the token is signed in a way that is not allowed"));
        }
        let keys = self.keys.keys(head.kid.as_deref(), head.alg).await.map_err(|why| match why {
            NoKey::Unknown => refused("the issuer has no key as the token names it"),
            NoKey::Ambiguous => refused("the token names no key, and the issuer has several"),
            NoKey::Unavailable => {
                PrincipalFault::Unavailable { detail: "the issuer's keys cannot be had now".to_owned() }
            }
        })?;
        let claims = verified(token, head.alg, &keys).map_err(refused)?;
        judge(&self.terms, &claims, self.clock.reading().wall).map_err(refused)?;
        let name = self.terms.claim.value.find(&claims).and_then(plain);
        let name = name.filter(|name| Scope::principal(name.as_str()).is_ok());
        let name = name.ok_or_else(|| refused("the token has no claim that names the caller"))?;
        Ok(Caller::named(name, claims))
    }
}

impl Source for TokenCallers {
    fn caller<'a>(&'a self, parts: &'a Parts) -> CallerAnswer<'a> {
        Box::pin(self.know(parts))
    }
}

/// The claims, where one of `keys` signed them.
fn verified(token: &str, algorithm: Signed, keys: &[Arc<DecodingKey>]) -> Result<Json, &'static str> {
    let mut signature_only = Validation::new(algorithm);
    signature_only.required_spec_claims.clear();
    signature_only.validate_exp = false;
    signature_only.validate_aud = false;
    let mut why = "the token's signature is wrong";
    for key in keys {
        match decode::<Json>(token, key, &signature_only) {
            Ok(token) => return Ok(token.claims),
            Err(error) if matches!(error.kind(), ErrorKind::InvalidSignature) => {}
            Err(_) => why = "the token cannot be read",
        }
    }
    Err(why)
}

/// Whether these claims are the issuer's, for this service, and of now (RFC 7519 section 4.1).
fn judge(terms: &Jwt, claims: &Json, now: Timestamp) -> Result<(), &'static str> {
    if claims.get("iss").and_then(Json::as_str) != Some(terms.issuer.as_str()) {
        return Err("the token is from another issuer");
    }
    let ours = |audience: &Json| audience.as_str().is_some_and(|name| terms.audience.iter().any(|ours| ours == name));
    let for_us = match claims.get("aud") {
        Some(Json::Array(several)) => several.iter().any(ours),
        Some(one) => ours(one),
        None => false,
    };
    if !for_us {
        return Err("the token is for another audience");
    }
    let now = now.as_millis();
    let expires = claims.get("exp").and_then(millis).ok_or("the token does not say until when it holds")?;
    if now >= expires.saturating_add(LEEWAY_MS) {
        return Err("the token has expired");
    }
    let begins = match claims.get("nbf") {
        Some(begins) => millis(begins).ok_or("the token's nbf is no time")?,
        None => i64::MIN,
    };
    if now < begins.saturating_sub(LEEWAY_MS) {
        return Err("the token does not hold yet");
    }
    Ok(())
}

/// A time in seconds, which may have a fraction (RFC 7519 section 2), in milliseconds.
fn millis(claim: &Json) -> Option<i64> {
    match claim.as_i64() {
        Some(seconds) => Some(seconds.saturating_mul(1000)),
        // The cast saturates.
        None => claim.as_f64().filter(|seconds| seconds.is_finite()).map(|seconds| (seconds * 1000.0) as i64),
    }
}

const fn signed(algorithm: Algorithm) -> Signed {
    match algorithm {
        Algorithm::Rs256 => Signed::RS256,
        Algorithm::Rs384 => Signed::RS384,
        Algorithm::Rs512 => Signed::RS512,
        Algorithm::Ps256 => Signed::PS256,
        Algorithm::Ps384 => Signed::PS384,
        Algorithm::Ps512 => Signed::PS512,
        Algorithm::Es256 => Signed::ES256,
        Algorithm::Es384 => Signed::ES384,
        Algorithm::EdDsa => Signed::EdDSA,
    }
}

#[cfg(test)]
mod tests;
