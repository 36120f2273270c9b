//! A set of public keys (RFC 7517 section 5), and which of them a token may be signed with. Where it comes from belongs to
//! the parent.

use std::sync::Arc;

use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyOperations, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use serde_json::Value as Json;

/// The most keys of a set.
const KEYS_MAX: usize = 100;

/// Keys that can verify.
pub(super) struct KeySet(Vec<PublicKey>);

struct PublicKey {
    id: Option<String>,
    kind: Kind,
    /// The one algorithm that the issuer uses it with, where it says so.
    only: Option<Algorithm>,
    key: Arc<DecodingKey>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Rsa,
    P256,
    P384,
    Ed25519,
}

/// What a token may be signed with.
pub(super) enum Fitting {
    Keys(Vec<Arc<DecodingKey>>),
    /// The token names none, and several would do.
    Several,
    None,
}

impl KeySet {
    /// Reads a set. Keys of other kinds and for other uses are passed over: issuers publish them too.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, String> {
        let json: Json = serde_json::from_slice(bytes).map_err(|error| format!("it is no JSON: {error}"))?;
        let keys = json.get("keys").and_then(Json::as_array).ok_or("it has no list of keys")?;
        if keys.len() > KEYS_MAX {
            return Err(format!("it has {} keys, over {KEYS_MAX}", keys.len()));
        }
        let keys: Vec<PublicKey> = keys.iter().filter_map(PublicKey::read).collect();
        if keys.is_empty() { Err("it has no public key that can verify".to_owned()) } else { Ok(Self(keys)) }
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// With an id: every key that has it and fits. Without one: the only key that fits.
    pub(super) fn fitting(&self, id: Option<&str>, algorithm: Algorithm) -> Fitting {
        let named = |key: &&PublicKey| id.is_none_or(|id| key.id.as_deref() == Some(id));
        let fitting = self.0.iter().filter(named).filter(|key| key.fits(algorithm));
        let keys: Vec<_> = fitting.map(|key| key.key.clone()).collect();
        match keys.len() {
            0 => Fitting::None,
            1 => Fitting::Keys(keys),
            _ if id.is_none() => Fitting::Several,
            _ => Fitting::Keys(keys),
        }
    }
}

impl PublicKey {
    fn read(json: &Json) -> Option<Self> {
        let jwk: Jwk = serde_json::from_value(json.clone()).ok()?;
        let kind = match &jwk.algorithm {
            AlgorithmParameters::RSA(_) => Kind::Rsa,
            AlgorithmParameters::EllipticCurve(key) if key.curve == EllipticCurve::P256 => Kind::P256,
            AlgorithmParameters::EllipticCurve(key) if key.curve == EllipticCurve::P384 => Kind::P384,
            AlgorithmParameters::OctetKeyPair(key) if key.curve == EllipticCurve::Ed25519 => Kind::Ed25519,
            // Shared secrets verify nothing here, and other curves cannot.
            _ => return None,
        };
        let signs = jwk.common.public_key_use.as_ref().is_none_or(|used| *used == PublicKeyUse::Signature);
        let operations = jwk.common.key_operations.as_ref();
        let verifies = operations.is_none_or(|operations| operations.contains(&KeyOperations::Verify));
        if !signs || !verifies {
            return None;
        }
        let only = match jwk.common.key_algorithm {
            Some(named) => Some(Algorithm::try_from(named).ok()?),
            None => None,
        };
        let key = Arc::new(DecodingKey::from_jwk(&jwk).ok()?);
        Some(Self { id: jwk.common.key_id, kind, only, key })
    }

    fn fits(&self, algorithm: Algorithm) -> bool {
        self.only.is_none_or(|only| only == algorithm)
            && match algorithm {
                Algorithm::RS256
                | Algorithm::RS384
                | Algorithm::RS512
                | Algorithm::PS256
                | Algorithm::PS384
                | Algorithm::PS512 => self.kind == Kind::Rsa,
                Algorithm::ES256 => self.kind == Kind::P256,
                Algorithm::ES384 => self.kind == Kind::P384,
                Algorithm::EdDSA => self.kind == Kind::Ed25519,
                // Shared secrets, and what a later version of the library adds.
                _ => false,
            }
    }
}

#[cfg(test)]
mod tests;
