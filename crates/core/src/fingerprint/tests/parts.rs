//! Everything beside the body: request line, media type, codings, chosen headers; and what `auto` becomes.

use super::Is::{Different, Same};
use super::{Ask, BodyError, Is, check, rule};

#[test]
fn every_part_counts() {
    let base = Ask::json("{}");
    let edit = |change: &dyn Fn(&mut Ask)| {
        let mut ask = base.clone();
        change(&mut ask);
        ask
    };
    let others = [
        edit(&|ask| ask.method = "PATCH".into()),
        edit(&|ask| ask.operation = "cancel-order".into()),
        edit(&|ask| ask.path = "/orders/".into()),
        edit(&|ask| ask.query = "dry=1".into()),
        edit(&|ask| ask.body = b"[]".to_vec()),
        // What moves from one part into the next is not the same request.
        edit(&|ask| {
            ask.operation = "create-order/".into();
            ask.path = "orders".into();
        }),
    ];
    for text in ["auto", "json", "bytes"] {
        for (index, other) in others.iter().enumerate() {
            check(text, &base, other, Different);
            for another in &others[index + 1..] {
                check(text, other, another, Different);
            }
        }
    }
}

#[test]
fn media_types_and_codings() {
    let ask = |media: &str, coding: &str| {
        let ask = Ask::new(media, "{}");
        if coding.is_empty() { ask } else { ask.with("content-encoding", coding) }
    };
    type Content<'a> = (&'a str, &'a str);
    let table: &[(Content<'_>, Content<'_>, Is)] = &[
        (("application/json", ""), ("Application/JSON ; charset=utf-8", ""), Same),
        (("application/json", ""), ("application/vnd.x+json", ""), Different),
        (("application/json", ""), ("text/plain", ""), Different),
        (("application/json", ""), ("", ""), Different),
        (("garbage", ""), ("", ""), Different),
        (("garbage", ""), ("Garbage", ""), Different),
        (("text/plain", ""), ("text/plain", "Identity"), Same),
        (("text/plain", "gzip"), ("text/plain", "GZIP"), Same),
        (("text/plain", "gzip"), ("text/plain", ""), Different),
        (("text/plain", "gzip"), ("text/plain", "br"), Different),
        (("text/plain", "gzip, br"), ("text/plain", "br, gzip"), Different),
        (("application/json", "gzip"), ("application/json", ""), Different),
    ];
    for (first, second, expected) in table {
        check("auto", &ask(first.0, first.1), &ask(second.0, second.1), *expected);
        check("bytes", &ask(first.0, first.1), &ask(second.0, second.1), *expected);
    }
    for text in ["json", "form", "multipart"] {
        assert_eq!(ask("application/json", "gzip").under(&rule(text)), Err(BodyError::Coded));
        assert_ne!(ask("application/json", "identity").under(&rule(text)), Err(BodyError::Coded));
    }
    let twice = ask("application/json", "").with("content-type", "application/json");
    check("auto", &twice, &ask("application/json", ""), Different);
}

#[test]
fn auto_is_stored_as_what_it_became() {
    let table: &[(&str, &str, &str, &str)] = &[
        ("auto", "application/json", "{}", "json"),
        ("auto", "application/problem+json; a=b", "{}", "json"),
        ("auto", "application/json", "{", "bytes"),
        ("auto", "text/json", "{}", "bytes"),
        ("auto", "", "{}", "bytes"),
        ("auto", "application/x-www-form-urlencoded", "a=1", "form"),
        ("auto", "application/x-www-form-urlencoded", "a=%", "bytes"),
        ("auto", "multipart/form-data; boundary=b", "--b--", "multipart"),
        ("auto", "multipart/form-data", "--b--", "bytes"),
        ("auto;ignore=/a/b,/t", "application/json", "{}", "json;ignore=/a/b,/t"),
        ("auto;ignore=/a/b,/t", "application/x-www-form-urlencoded", "", "form;ignore=/t"),
        ("auto;ignore=/a/b", "application/x-www-form-urlencoded", "", "form"),
        ("auto;ignore=/t;headers=x-a", "application/json", "{", "bytes;headers=x-a"),
        ("auto;headers=x-a", "application/json", "{}", "json;headers=x-a"),
    ];
    for (text, media, body, stored) in table {
        let fingerprint = Ask::new(media, body).under(&rule(text)).unwrap();
        assert_eq!(fingerprint.rule().as_text(), *stored, "{text} {media} {body}");
    }
}

#[test]
fn one_body_under_two_rules_is_two_fingerprints() {
    let ask = Ask::json("{}");
    let of = |text: &str| *ask.under(&rule(text)).unwrap().digest();
    let texts = ["json", "bytes", "form", "json;ignore=/a", "json;choose=/a", "json;headers=x-a"];
    for (index, text) in texts.iter().enumerate() {
        for other in &texts[index + 1..] {
            assert_ne!(of(text), of(other), "{text} {other}");
        }
    }
}

#[test]
fn chosen_headers() {
    let plain = || Ask::json("{}");
    let table: Vec<(&str, Ask, Ask, Is)> = vec![
        ("", plain().with("x-a", "1"), plain(), Same),
        ("x-a", plain().with("x-a", "1"), plain().with("X-A", "1").with("x-b", "2"), Same),
        ("x-a", plain().with("x-a", "1"), plain().with("x-a", "2"), Different),
        ("x-a", plain().with("x-a", ""), plain(), Different),
        ("x-a", plain().with("x-a", "1").with("x-a", "2"), plain().with("x-a", "1, 2"), Different),
        ("x-a", plain().with("x-a", "1").with("x-a", "2"), plain().with("x-a", "2").with("x-a", "1"), Different),
        ("x-a,x-b", plain().with("x-a", "1"), plain().with("x-b", "1"), Different),
        ("x-a,x-b", plain().with("x-a", "1").with("x-b", "2"), plain().with("x-b", "2").with("x-a", "1"), Same),
        ("x-a", plain().with("x-a", b"\xff"), plain().with("x-a", b"\xfe"), Different),
        ("content-type", plain(), Ask::new("application/json; charset=utf-8", "{}"), Different),
    ];
    for (names, first, second, expected) in &table {
        for kind in ["auto", "json", "bytes"] {
            let headers = if names.is_empty() { String::new() } else { format!(";headers={names}") };
            check(&format!("{kind}{headers}"), first, second, *expected);
        }
    }
}

#[test]
fn debug_shows_neither_body_nor_header_values() {
    let fingerprint = Ask::json("{}").under(&rule("auto")).unwrap();
    let shown = format!("{fingerprint:?}");
    assert!(shown.starts_with("Fingerprint(json ") && shown.len() == 34, "{shown}");
    let parts = super::Parts {
        method: "POST",
        operation: "o",
        path: "/p",
        query: "q=secret",
        headers: &[("authorization", b"secret")],
        body: b"secret",
    };
    assert!(!format!("{parts:?}").contains("secret"));
}
