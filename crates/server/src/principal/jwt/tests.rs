//! Which tokens name whom, by table, at a time that stands still.

mod rsa;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use counterfoil_core::Timestamp;
use counterfoil_middleware::PrincipalFault;
use counterfoil_store::clock::TestClock;
use http::Request;
use serde_json::{Value as Json, json};

use super::TokenCallers;
use crate::config::{Config, Flags, PrincipalSource};
use crate::principal::jwks::{Fetched, Jwks, Place};
use crate::principal::tests::kit::{Issuer, base64url, set};

/// 2023-11-14, in seconds.
const NOW: i64 = 1_700_000_000;

/// A place where these bytes are, or nothing.
struct At(Option<Vec<u8>>);

impl Place for At {
    fn fetch(&self) -> Fetched<'_> {
        Box::pin(std::future::ready(self.0.clone().map(Bytes::from).ok_or_else(|| "down".to_owned())))
    }
}

fn callers(keys: Option<&[Json]>, settings: &str) -> TokenCallers {
    let file = format!(
        "upstream = \"http://127.0.0.1:9000\"\n[principal]\nfrom = \"jwt\"\njwks = \"file:x\"\n\
         issuer = \"https://idp.example\"\naudience = [\"orders\", \"refunds\"]\n{settings}"
    );
    let config = Config::read(Some(&file), &|_| None, &Flags::default()).unwrap();
    let PrincipalSource::Jwt(terms) = config.principal.value else { panic!("another source") };
    let hour = Duration::from_hours(1);
    let jwks = Jwks::at(Box::new(At(keys.map(set))), hour, hour);
    let clock = TestClock::new(Timestamp::from_millis(NOW * 1000));
    TokenCallers::new(&terms, jwks, Arc::new(clock))
}

async fn known(callers: &TokenCallers, token: &str) -> Result<String, PrincipalFault> {
    let request = Request::builder().header("authorization", format!("Bearer {token}")).body(()).unwrap();
    callers.know(&request.into_parts().0).await.map(|caller| caller.name)
}

async fn check(callers: &TokenCallers, name: &str, token: &str, expected: Result<&str, &str>) {
    let found = known(callers, token).await.map_err(|fault| match fault {
        PrincipalFault::Unauthenticated { detail, challenge } => {
            assert_eq!(challenge.unwrap(), "Bearer realm=\"counterfoil\", error=\"invalid_token\"", "{name}");
            detail
        }
        other => panic!("{name}: {other:?}"),
    });
    assert_eq!(found, expected.map(str::to_owned).map_err(str::to_owned), "{name}");
}

fn claims() -> Json {
    json!({ "iss": "https://idp.example", "aud": "orders", "sub": "alice", "exp": NOW + 600 })
}

/// The usual claims with one of them another, or without it.
fn but(name: &str, value: Option<Json>) -> Json {
    let mut claims = claims();
    match value {
        Some(value) => claims[name] = value,
        None => drop(claims.as_object_mut().unwrap().remove(name)),
    }
    claims
}

#[tokio::test]
async fn claims_that_count() {
    let issuer = Issuer::new("one");
    let callers = callers(Some(&[issuer.jwk()]), "");
    let (other, audience) = (Err("the token is from another issuer"), Err("the token is for another audience"));
    let (expired, early) = (Err("the token has expired"), Err("the token does not hold yet"));
    let (endless, nobody) =
        (Err("the token does not say until when it holds"), Err("the token has no claim that names the caller"));
    let rows = [
        ("iss", Some(json!("https://idp.example")), Ok("alice")),
        ("iss", Some(json!("https://idp.example/")), other),
        ("iss", Some(json!(["https://idp.example"])), other),
        ("iss", None, other),
        ("aud", Some(json!("refunds")), Ok("alice")),
        ("aud", Some(json!(["else", "orders"])), Ok("alice")),
        ("aud", Some(json!("order")), audience),
        ("aud", Some(json!([])), audience),
        ("aud", Some(json!([["orders"]])), audience),
        ("aud", Some(json!({ "orders": true })), audience),
        ("aud", None, audience),
        ("exp", Some(json!(NOW - 29)), Ok("alice")),
        ("exp", Some(json!(NOW - 30)), expired),
        ("exp", Some(json!(NOW as f64 - 29.5)), Ok("alice")),
        ("exp", Some(json!(NOW as f64 - 30.5)), expired),
        ("exp", Some(json!(-1)), expired),
        ("exp", Some(json!(i64::MAX)), Ok("alice")),
        ("exp", Some(json!((NOW + 600).to_string())), endless),
        ("exp", None, endless),
        ("nbf", Some(json!(NOW + 30)), Ok("alice")),
        ("nbf", Some(json!(NOW + 31)), early),
        ("nbf", Some(json!("soon")), Err("the token's nbf is no time")),
        ("sub", Some(json!(7)), Ok("7")),
        ("sub", Some(json!("")), nobody),
        ("sub", Some(json!("a".repeat(1025))), nobody),
        ("sub", Some(json!(["alice"])), Err("the token cannot be read")),
        ("sub", Some(json!(7.5)), nobody),
        ("sub", None, nobody),
    ];
    for (name, value, expected) in rows {
        let claims = but(name, value);
        check(&callers, &claims.to_string(), &issuer.token(&claims), expected).await;
    }
}

#[tokio::test]
async fn another_claim_may_name_the_caller() {
    let issuer = Issuer::new("one");
    let token = issuer.token(&but("tenant", Some(json!({ "id": "acme" }))));
    check(&callers(Some(&[issuer.jwk()]), "claim = \"/tenant/id\"\n"), "inside", &token, Ok("acme")).await;
    let nobody = Err("the token has no claim that names the caller");
    check(&callers(Some(&[issuer.jwk()]), "claim = \"/tenant/name\"\n"), "absent", &token, nobody).await;
}

#[tokio::test]
async fn signatures() {
    let (one, stranger) = (Issuer::new("one"), Issuer::new("one"));
    let (p256, p384) = (Issuer::p256("p256"), Issuer::p384("p384"));
    let keys = [one.jwk(), p256.jwk(), p384.jwk()];
    let every = "algorithms = [\"EdDSA\", \"ES256\", \"ES384\", \"RS256\"]\n";
    let callers = callers(Some(&keys), every);
    let (wrong, way) = (Err("the token's signature is wrong"), Err("the token is signed in a way that is not allowed"));
    let (unread, unknown) = (Err("the token cannot be read"), Err("the issuer has no key as the token names it"));
    let good = one.token(&claims());
    for issuer in [&one, &p256, &p384] {
        check(&callers, "good", &issuer.token(&claims()), Ok("alice")).await;
    }
    check(&callers, "another's key", &stranger.token(&claims()), wrong).await;

    let (message, signature) = good.rsplit_once('.').unwrap();
    let head = message.split('.').next().unwrap();
    let forged = base64url(but("sub", Some(json!("bob"))).to_string().as_bytes());
    check(&callers, "other claims", &format!("{head}.{forged}.{signature}"), wrong).await;
    check(&callers, "no signature", &format!("{message}."), wrong).await;
    check(&callers, "half a signature", &format!("{message}.{}", &signature[..40]), wrong).await;
    check(&callers, "two parts", message, unread).await;
    check(&callers, "four parts", &format!("{good}.x"), unread).await;
    check(&callers, "no token", "abc", unread).await;

    let header = |header: Json| one.sign(&header, &claims());
    check(&callers, "none", &header(json!({ "alg": "none", "kid": "one" })), unread).await;
    check(&callers, "HS256", &header(json!({ "alg": "HS256", "kid": "one" })), way).await;
    check(&callers, "PS256", &header(json!({ "alg": "PS256", "kid": "one" })), way).await;
    check(&callers, "a key of another kind", &header(json!({ "alg": "ES256", "kid": "one" })), unknown).await;
    check(&callers, "RS256 with no such key", &header(json!({ "alg": "RS256", "kid": "one" })), unknown).await;
    check(&callers, "another id", &header(json!({ "alg": "EdDSA", "kid": "two" })), unknown).await;
    check(&callers, "no id, one fits", &header(json!({ "alg": "EdDSA" })), Ok("alice")).await;
    check(&callers, "what must be understood", &header(json!({ "alg": "EdDSA", "kid": "one", "crit": ["x"] })), unread)
        .await;
    // A key that the token brings along is nobody's.
    let own = json!({ "alg": "EdDSA", "kid": "one", "jwk": stranger.jwk() });
    check(&callers, "its own key", &stranger.sign(&own, &claims()), wrong).await;
}

/// The public key as a shared secret: the oldest trick on verifiers that let the token choose.
#[tokio::test]
async fn an_algorithm_must_be_on_the_list() {
    let one = Issuer::p256("one");
    let only = callers(Some(&[one.jwk()]), "algorithms = [\"EdDSA\"]\n");
    check(&only, "ES256", &one.token(&claims()), Err("the token is signed in a way that is not allowed")).await;
    for name in ["none", "HS256", "hs256", "ES512"] {
        let file = format!(
            "upstream = \"http://127.0.0.1:9000\"\n[principal]\nfrom = \"jwt\"\njwks = \"file:x\"\nissuer = \"i\"\n\
             audience = \"a\"\nalgorithms = [\"{name}\"]\n"
        );
        assert!(Config::read(Some(&file), &|_| None, &Flags::default()).is_err(), "{name}");
    }
}

#[tokio::test]
async fn rsa() {
    let every = "algorithms = [\"RS256\", \"RS512\", \"PS256\"]\n";
    let wrong = Err("the token's signature is wrong");
    for zero_in_front in [false, true] {
        let callers = callers(Some(&[rsa::jwk(zero_in_front)]), every);
        for algorithm in ["RS256", "RS512", "PS256"] {
            check(&callers, algorithm, &rsa::token(algorithm, false), Ok("alice")).await;
        }
        check(&callers, "the short key's", &rsa::token("RS256", true), wrong).await;
    }
    check(&callers(Some(&[rsa::small_jwk()]), every), "too short", &rsa::token("RS256", true), wrong).await;
}

#[tokio::test]
async fn without_the_issuers_keys_nobody_is_judged() {
    let found = known(&callers(None, ""), &Issuer::new("one").token(&claims())).await;
    assert_eq!(found, Err(PrincipalFault::Unavailable { detail: "the issuer's keys cannot be had now".to_owned() }));
}
