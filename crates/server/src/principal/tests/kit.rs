//! An issuer of tokens for the tests of principals: its keys, its set, and what it signs.

use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, EcdsaSigningAlgorithm,
    Ed25519KeyPair, KeyPair as _,
};
use serde_json::{Value as Json, json};

/// What stands in the header of a token: RFC 4648 section 5 without padding.
pub(crate) fn base64url(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let number = three.iter().fold(0, |number, byte| number << 8 | usize::from(*byte)) << (8 * (3 - three.len()));
        for digit in 0..=three.len() {
            text.push(char::from(DIGITS[number >> (18 - 6 * digit) & 63]));
        }
    }
    text
}

/// Somebody who signs with one key.
pub(crate) struct Issuer {
    id: &'static str,
    key: Key,
}

enum Key {
    Ed25519(Ed25519KeyPair),
    Ecdsa(EcdsaKeyPair, &'static str, &'static str),
}

impl Issuer {
    pub(crate) fn new(id: &'static str) -> Self {
        let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        Self { id, key: Key::Ed25519(Ed25519KeyPair::from_pkcs8(document.as_ref()).unwrap()) }
    }

    pub(crate) fn p256(id: &'static str) -> Self {
        Self::ecdsa(id, &ECDSA_P256_SHA256_FIXED_SIGNING, "ES256", "P-256")
    }

    pub(crate) fn p384(id: &'static str) -> Self {
        Self::ecdsa(id, &ECDSA_P384_SHA384_FIXED_SIGNING, "ES384", "P-384")
    }

    fn ecdsa(id: &'static str, kind: &'static EcdsaSigningAlgorithm, name: &'static str, curve: &'static str) -> Self {
        let random = SystemRandom::new();
        let document = EcdsaKeyPair::generate_pkcs8(kind, &random).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(kind, document.as_ref(), &random).unwrap();
        Self { id, key: Key::Ecdsa(pair, name, curve) }
    }

    /// Its public key as a set has it.
    pub(crate) fn jwk(&self) -> Json {
        match &self.key {
            Key::Ed25519(pair) => {
                json!({ "kty": "OKP", "crv": "Ed25519", "kid": self.id, "x": base64url(pair.public_key().as_ref()) })
            }
            Key::Ecdsa(pair, _, curve) => {
                // An uncompressed point: one byte, then both coordinates.
                let (x, y) = pair.public_key().as_ref()[1..].split_at((pair.public_key().as_ref().len() - 1) / 2);
                json!({ "kty": "EC", "crv": curve, "kid": self.id, "x": base64url(x), "y": base64url(y) })
            }
        }
    }

    /// A token of these claims.
    pub(crate) fn token(&self, claims: &Json) -> String {
        let algorithm = match &self.key {
            Key::Ed25519(_) => "EdDSA",
            Key::Ecdsa(_, name, _) => name,
        };
        self.sign(&json!({ "alg": algorithm, "kid": self.id }), claims)
    }

    /// A token with this header, whatever it says.
    pub(crate) fn sign(&self, header: &Json, claims: &Json) -> String {
        let message =
            format!("{}.{}", base64url(header.to_string().as_bytes()), base64url(claims.to_string().as_bytes()));
        let signature = match &self.key {
            Key::Ed25519(pair) => pair.sign(message.as_bytes()).as_ref().to_vec(),
            Key::Ecdsa(pair, ..) => pair.sign(&SystemRandom::new(), message.as_bytes()).unwrap().as_ref().to_vec(),
        };
        format!("{message}.{}", base64url(&signature))
    }
}

/// A set of keys as its URL answers.
pub(crate) fn set(keys: &[Json]) -> Vec<u8> {
    json!({ "keys": keys }).to_string().into_bytes()
}
