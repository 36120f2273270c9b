//! Frozen requests: where the key goes, what is refused, and what counts as the same action.

use ::bytes::Bytes;

use super::*;

fn header(name: &str, value: &str) -> Header {
    Header { name: name.to_owned(), value: Value::Plain(Bytes::copy_from_slice(value.as_bytes())) }
}

#[test]
fn the_key_goes_where_the_profile_says() {
    let quoted = Carrier::Header { name: "idempotency-key".to_owned(), encoding: Encoding::Quoted, first_sent: None };
    let check = |carrier: &Carrier, change: &dyn Fn(&mut Draft), wanted: (Option<&str>, &str, &str)| {
        let mut draft = draft();
        change(&mut draft);
        let request = draft.freeze(&Key::new("a b\"c").unwrap(), carrier).unwrap();
        let body = String::from_utf8(request.body.to_vec()).unwrap();
        let value = request.key_header().map(|(_, value)| value);
        assert_eq!((value.as_deref(), request.target.as_str(), body.as_str()), wanted, "{carrier:?}");
    };
    let json = r#"{"amount":5,"currency":"eur"}"#;
    let target = "/v1/charges?expand=all";
    check(&header_carrier(), &|_| {}, (Some("a b\"c"), target, json));
    check(&quoted, &|_| {}, (Some(r#""a b\"c""#), target, json));
    let member = Carrier::Member("idempotency_key".to_owned());
    check(&member, &|_| {}, (None, target, r#"{"idempotency_key":"a b\"c","amount":5,"currency":"eur"}"#));
    // Every other byte stays: no number is written anew.
    let exact = " {\n \"n\": 1.10e2 }";
    check(
        &member,
        &|draft| draft.body = exact.into(),
        (None, target, " {\"idempotency_key\":\"a b\\\"c\",\n \"n\": 1.10e2 }"),
    );
    check(&member, &|draft| draft.body = "{}".into(), (None, target, r#"{"idempotency_key":"a b\"c"}"#));
    let token = Carrier::Parameter("ClientToken".to_owned());
    check(&token, &|_| {}, (None, "/v1/charges?expand=all&ClientToken=a%20b%22c", json));
    let form = |draft: &mut Draft| {
        draft.headers = vec![header("content-type", "application/x-www-form-urlencoded; charset=utf-8")];
        draft.body = "Action=RunInstances".into();
    };
    check(&token, &form, (None, target, "Action=RunInstances&ClientToken=a%20b%22c"));
}

#[test]
fn what_cannot_be_kept_is_refused_with_the_next_step() {
    let check = |carrier: &Carrier, change: &dyn Fn(&mut Draft), wanted: &str| {
        let mut draft = draft();
        change(&mut draft);
        let refused = draft.freeze(&key(), carrier).map(|_| ()).unwrap_err().to_string();
        assert!(refused.contains(wanted), "{refused:?} says {wanted:?}");
        assert!(!refused.contains("hunter2"), "{refused:?} shows a secret");
    };
    let plain = header_carrier();
    let member = Carrier::Member("idempotency_key".to_owned());
    check(&plain, &|draft| draft.headers.push(header("authorization", "Bearer hunter2")), "env:NAME");
    check(&plain, &|draft| draft.headers.push(header("cookie", "hunter2")), "env:NAME");
    check(&plain, &|draft| draft.headers.push(header("idempotency-key", "hunter2")), "--key");
    check(&plain, &|draft| draft.headers.push(header("content-length", "1")), "leave it out");
    check(&plain, &|draft| draft.headers.push(header("X-Upper", "1")), "lower case");
    check(&plain, &|draft| draft.headers.push(header("x", "a\nb")), "no header's value");
    check(&plain, &|draft| draft.headers = vec![header("x", "1"); HEADERS_MAX + 1], "64");
    check(&plain, &|draft| draft.url = "https://user:hunter2@api.example/".to_owned(), "by reference");
    check(&plain, &|draft| draft.url = "/v1/charges".to_owned(), "absolute");
    check(&plain, &|draft| draft.url = "ftp://api.example/".to_owned(), "neither");
    check(&plain, &|draft| draft.url = "https://api.example/#x".to_owned(), "fragment");
    check(&plain, &|draft| draft.url = format!("https://api.example/{}", "x".repeat(URL_BYTES_MAX)), "8 KiB");
    check(&plain, &|draft| draft.body = vec![0; BODY_BYTES_MAX + 1].into(), "8 MiB");
    check(&plain, &|draft| draft.method = http::Method::GET, "without");
    check(&member, &|draft| draft.body = "[1]".into(), "JSON object");
    check(&member, &|draft| draft.body = "".into(), "JSON object");
    check(&member, &|draft| draft.body = r#"{"idempotency_key":1}"#.into(), "already holds a key");
    let token = Carrier::Parameter("expand".to_owned());
    check(&token, &|_| {}, "already hold a key");
    for name in ["", " ", "a\n", &"x".repeat(NAME_BYTES_MAX + 1)] {
        assert_eq!(Name::new(name), Err(crate::Error::IntentName), "{name:?}");
    }
}

#[test]
fn references_are_read_and_anything_else_is_not_one() {
    let check = |text: &str, wanted: Option<(&str, SecretSource)>| {
        let wanted = wanted.map(|(prefix, source)| Secret { prefix: prefix.to_owned(), source });
        assert_eq!(Secret::parse(text), wanted, "{text:?}");
    };
    let env = |name: &str| SecretSource::Env(name.to_owned());
    check("env:TOKEN", Some(("", env("TOKEN"))));
    check("Bearer env:TOKEN_2", Some(("Bearer ", env("TOKEN_2"))));
    check("file:secrets/token", Some(("", SecretSource::File("secrets/token".to_owned()))));
    check("Bearer file:/etc/env:x", Some(("Bearer ", SecretSource::File("/etc/env:x".to_owned()))));
    for text in ["", "env:", "env:2X", "env:A B", "file:", "Bearer", "two words env:X", "Bearerenv:X", "Bearer  env:X"]
    {
        check(text, None);
    }
}

#[test]
fn the_same_action_is_told_from_another_and_from_a_drift_of_scope() {
    let check = |change: &dyn Fn(&mut Draft), wanted: &[&str], drift: bool| {
        let mut other = draft();
        change(&mut other);
        let found = request().differences(&other).unwrap();
        let words: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(words, wanted);
        assert_eq!(found.iter().any(Difference::is_drift), drift, "{words:?}");
    };
    check(&|_| {}, &[], false);
    check(&|draft| draft.body = r#"{ "currency":"eur", "amount":5.0 }"#.into(), &[], false);
    check(&|draft| draft.url = "HTTPS://API.example:443/v1/charges?expand=all".to_owned(), &[], false);
    check(&|draft| draft.headers[0] = header("content-type", "application/json; charset=utf-8"), &[], false);
    check(&|draft| draft.headers.reverse(), &[], false);
    check(&|draft| draft.profile.version = 9, &[], false);
    check(&|draft| draft.body = r#"{"amount":6,"currency":"eur"}"#.into(), &["body"], false);
    check(&|draft| draft.headers[0] = header("content-type", "text/plain"), &["body"], false);
    check(&|draft| draft.method = http::Method::PATCH, &["method"], false);
    check(&|draft| draft.url = "https://api.example/v1/refunds?expand=all".to_owned(), &["path"], false);
    check(&|draft| draft.url = "https://api.example/v1/charges".to_owned(), &["query"], false);
    check(&|draft| draft.headers.push(header("stripe-version", "2")), &["header `stripe-version`"], false);
    check(&|draft| draft.url = "https://eu.api.example/v1/charges?expand=all".to_owned(), &["host"], true);
    check(&|draft| draft.url = "https://api.example:8443/v1/charges?expand=all".to_owned(), &["host"], true);
    check(&|draft| draft.scope = None, &["scope"], true);
    check(&|draft| draft.profile.id = "stripe-v2".to_owned(), &["profile"], true);
    let other = || Value::Secret(Secret::parse("Bearer env:OTHER").unwrap());
    check(&|draft| draft.headers[1].value = other(), &["credential in `authorization`"], true);
    check(&|draft| drop(draft.headers.pop()), &["credential in `authorization`"], true);
}

#[test]
fn debug_shows_no_secret() {
    let shown = format!("{:?} {:?}", request(), Intent::new(request(), terms(Promise::Assumed), at(0)));
    for secret in ["8e03978e", "expand", "eur", "TOKEN"] {
        assert!(!shown.contains(secret), "{secret} in {shown}");
    }
}
