//! Which keys of a set can verify what, by table.

use jsonwebtoken::Algorithm;
use serde_json::{Value as Json, json};

use super::{Fitting, KeySet};
use crate::principal::tests::kit::{Issuer, set};

/// How many keys of the set would do.
#[track_caller]
fn check(keys: &[Json], id: Option<&str>, algorithm: Algorithm, expected: Result<usize, &str>) {
    let found = match KeySet::parse(&set(keys)) {
        Ok(set) => match set.fitting(id, algorithm) {
            Fitting::Keys(keys) => Ok(keys.len()),
            Fitting::Several => Err("several".to_owned()),
            Fitting::None => Ok(0),
        },
        Err(why) => Err(why),
    };
    assert_eq!(found, expected.map_err(str::to_owned), "{keys:?} {id:?} {algorithm:?}");
}

fn with(mut key: Json, name: &str, value: Json) -> Json {
    key[name] = value;
    key
}

#[test]
fn keys_that_fit() {
    let (ed, p256, p384) = (Issuer::new("a").jwk(), Issuer::p256("b").jwk(), Issuer::p384("c").jwk());
    let other = Issuer::new("d").jwk();
    let all = [ed.clone(), p256.clone(), p384];
    check(&all, Some("a"), Algorithm::EdDSA, Ok(1));
    check(&all, Some("b"), Algorithm::ES256, Ok(1));
    check(&all, Some("c"), Algorithm::ES384, Ok(1));
    check(&all, None, Algorithm::ES256, Ok(1));
    check(&all, Some("a"), Algorithm::ES256, Ok(0));
    check(&all, Some("b"), Algorithm::ES384, Ok(0));
    check(&all, Some("b"), Algorithm::RS256, Ok(0));
    check(&all, Some("b"), Algorithm::HS256, Ok(0));
    check(&all, Some("e"), Algorithm::EdDSA, Ok(0));
    check(&[ed.clone(), other.clone()], None, Algorithm::EdDSA, Err("several"));
    check(&[ed.clone(), with(other, "kid", json!("a"))], Some("a"), Algorithm::EdDSA, Ok(2));
    check(&[with(ed.clone(), "alg", json!("EdDSA"))], Some("a"), Algorithm::EdDSA, Ok(1));
    check(&[with(p256.clone(), "use", json!("sig"))], Some("b"), Algorithm::ES256, Ok(1));
    check(&[with(p256.clone(), "key_ops", json!(["verify"]))], Some("b"), Algorithm::ES256, Ok(1));
}

#[test]
fn keys_that_are_passed_over() {
    let nothing = Err("it has no public key that can verify");
    let (ed, p256) = (Issuer::new("a").jwk(), Issuer::p256("b").jwk());
    for key in [
        json!({ "kty": "oct", "kid": "a", "k": "c2VjcmV0" }),
        json!({ "kty": "oct", "kid": "a", "k": "c2VjcmV0", "alg": "EdDSA" }),
        with(ed.clone(), "crv", json!("Ed448")),
        with(ed.clone(), "use", json!("enc")),
        with(ed.clone(), "key_ops", json!(["sign"])),
        with(ed.clone(), "alg", json!("RSA-OAEP")),
        with(ed.clone(), "x", json!("not base64!")),
        with(p256, "crv", json!("secp256k1")),
        json!({ "kty": "new" }),
        json!(7),
    ] {
        check(std::slice::from_ref(&key), Some("a"), Algorithm::EdDSA, nothing);
        check(&[key, ed.clone()], Some("a"), Algorithm::EdDSA, Ok(1));
    }
    check(&[], None, Algorithm::EdDSA, nothing);
    check(&vec![ed; 101], None, Algorithm::EdDSA, Err("it has 101 keys, over 100"));
}

#[test]
fn texts_that_are_no_set() {
    for (text, expected) in [
        ("", "it is no JSON: EOF while parsing a value at line 1 column 0"),
        ("[]", "it has no list of keys"),
        ("{\"keys\": {}}", "it has no list of keys"),
        ("<html>", "it is no JSON: expected value at line 1 column 1"),
    ] {
        assert_eq!(KeySet::parse(text.as_bytes()).err().as_deref(), Some(expected), "{text}");
    }
}
