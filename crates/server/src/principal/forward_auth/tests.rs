//! What the application is told, and what its answers mean, by table. That it is asked for every call is tested from
//! outside, in `tests/it`.

use bytes::Bytes;
use counterfoil_middleware::{Peer, PrincipalFault};
use http::{HeaderMap, Request, StatusCode};
use serde_json::{Value as Json, json};

use super::{Answered, AskedApplication, Outbound};
use crate::config::{Config, Flags, PrincipalSource};

fn application(settings: &str) -> AskedApplication {
    let file = format!(
        "upstream = \"http://127.0.0.1:9000\"\n[principal]\nfrom = \"forward-auth\"\nurl = \"http://127.0.0.1:9000/who\"\n\
         answer_header = \"X-User\"\n{settings}"
    );
    let config = Config::read(Some(&file), &|_| None, &Flags::default()).unwrap();
    let PrincipalSource::ForwardAuth(asked) = config.principal.value else { panic!("another source") };
    AskedApplication::new(&asked, Outbound::new(false).unwrap())
}

fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in lines {
        headers.append(*name, value.parse().unwrap());
    }
    headers
}

#[track_caller]
fn check(
    status: u16,
    lines: &[(&'static str, &'static str)],
    expected: Result<(&str, Json), (u16, &str, Option<&str>)>,
) {
    let status = StatusCode::from_u16(status).unwrap();
    let answered = Answered { status, headers: headers(lines), body: Bytes::new() };
    let found = match application("answer_claims = [\"X-Mode\", \"x-role\"]\n").judge(&answered) {
        Ok(caller) => Ok((caller.name, caller.claims)),
        Err(PrincipalFault::Unauthenticated { detail, challenge }) => {
            Err((401, detail, challenge.map(|challenge| challenge.to_str().unwrap().to_owned())))
        }
        Err(PrincipalFault::Forbidden { detail }) => Err((403, detail, None)),
        Err(PrincipalFault::Unavailable { detail }) => Err((503, detail, None)),
        Err(other) => panic!("{other:?}"),
    };
    let expected = expected
        .map(|(name, claims)| (name.to_owned(), claims))
        .map_err(|(status, detail, challenge)| (status, detail.to_owned(), challenge.map(str::to_owned)));
    assert_eq!(found, expected, "{status} {lines:?}");
}

#[test]
fn answers() {
    let alice = ("x-user", "alice");
    check(200, &[alice], Ok(("alice", json!({}))));
    check(204, &[alice, ("x-mode", "live")], Ok(("alice", json!({ "x-mode": "live" }))));
    check(200, &[alice, ("x-role", "a"), ("x-role", "b")], Ok(("alice", json!({ "x-role": ["a", "b"] }))));
    check(200, &[alice, ("x-other", "a")], Ok(("alice", json!({}))));

    let nobody = Err((401, "the application named nobody", None));
    check(200, &[], nobody.clone());
    check(200, &[("x-user", "")], nobody.clone());
    check(200, &[alice, alice], nobody.clone());
    check(200, &[("x-user", "ä")], nobody);

    let unknown = |challenge| Err((401, "the application does not know the caller", challenge));
    check(401, &[("www-authenticate", "Basic realm=\"a\"")], unknown(Some("Basic realm=\"a\"")));
    check(401, &[alice], unknown(None));
    check(302, &[alice, ("location", "/login")], unknown(None));
    check(404, &[alice], unknown(None));
    check(400, &[], unknown(None));
    check(403, &[alice], Err((403, "the application does not allow this", None)));
    for status in [408, 429, 500, 502, 503, 504] {
        check(status, &[alice], Err((503, "the application that knows the callers cannot tell now", None)));
    }
}

#[test]
fn what_the_application_is_told() {
    let mut request = Request::post("http://api.example/orders?a=1").body(()).unwrap();
    *request.headers_mut() = headers(&[
        ("host", "api.example"),
        ("authorization", "Bearer abc"),
        ("cookie", "a=1"),
        ("cookie", "b=2"),
        ("x-forwarded-for", "203.0.113.9"),
        ("x-forwarded-method", "GET"),
        ("x-forwarded-uri", "/public"),
        ("x-user", "mallory"),
        ("idempotency-key", "k"),
        ("content-length", "7"),
    ]);
    request.extensions_mut().insert(Peer("10.0.0.1:5".parse().unwrap()));
    let (parts, ()) = request.into_parts();
    let told = |settings: &str| {
        let question = application(settings).question(&parts);
        let mut lines: Vec<String> =
            question.iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect();
        lines.sort();
        lines
    };
    let always = [
        "x-forwarded-for: 10.0.0.1",
        "x-forwarded-host: api.example",
        "x-forwarded-method: POST",
        "x-forwarded-uri: /orders?a=1",
    ];
    assert_eq!(told(""), [&["authorization: Bearer abc", "cookie: a=1", "cookie: b=2"], always.as_slice()].concat());
    assert_eq!(told("send = [\"X-Absent\"]\n"), always);
}
