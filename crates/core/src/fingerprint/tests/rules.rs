//! The text of a rule: what is accepted, how it is written again, what is refused and why.

use super::rule;
use crate::fingerprint::{Rule, RuleError};

#[test]
fn texts_become_canonical() {
    let table: &[(&str, &str)] = &[
        ("auto", "auto"),
        ("bytes", "bytes"),
        ("json;ignore=/sent_at", "json;ignore=/sent_at"),
        ("json;headers=X-B,x-a,x-b;ignore=/b,/a,/b", "json;ignore=/a,/b;headers=x-a,x-b"),
        ("json;ignore=/a/b,/a-b,/a,/a/c/d", "json;ignore=/a,/a-b"),
        ("json;choose=/a%2cb,/c%3Bd,/e%25f", "json;choose=/a%2Cb,/c%3Bd,/e%25f"),
        ("json;ignore=/gr\u{f6}\u{df}e,/a b", "json;ignore=/a%20b,/gr%C3%B6%C3%9Fe"),
        ("json;ignore=/%61", "json;ignore=/a"),
        ("json;ignore=/", "json;ignore=/"),
        ("json;ignore=/a=b", "json;ignore=/a=b"),
        ("form;choose=/a~1b", "form;choose=/a~1b"),
        ("multipart;ignore=/a;headers=x", "multipart;ignore=/a;headers=x"),
    ];
    for (text, canonical) in table {
        assert_eq!(rule(text).as_text(), *canonical);
        assert_eq!(rule(canonical), rule(text));
        assert_eq!(rule(canonical).to_string(), *canonical);
    }
}

#[test]
fn builders_and_texts_agree() {
    let none: [&str; 0] = [];
    let built = Rule::json()
        .ignoring(["/b", "/a"])
        .and_then(|rule| rule.ignoring(none))
        .and_then(|rule| rule.choosing(none))
        .and_then(|rule| rule.with_headers(["X-Mode"]));
    assert_eq!(built, Ok(rule("json;ignore=/a,/b;headers=x-mode")));
    assert_eq!(Rule::form().choosing(["/a"]), Ok(rule("form;choose=/a")));
    for (built, text) in [
        (Rule::auto(), "auto"),
        (Rule::bytes(), "bytes"),
        (Rule::json(), "json"),
        (Rule::form(), "form"),
        (Rule::multipart(), "multipart"),
    ] {
        assert_eq!(built.as_text(), text);
        assert_eq!(built, rule(text));
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    let table: &[(&str, &str)] = &[
        ("", "unknown fingerprint rule"),
        ("JSON", "unknown fingerprint rule"),
        ("json ", "unknown fingerprint rule"),
        ("json;", "unknown setting"),
        ("json;ignored=/a", "unknown setting"),
        ("json; ignore=/a", "unknown setting"),
        ("json;ignore", "setting ignore"),
        ("json;ignore=", "setting ignore"),
        ("json;headers=", "setting headers"),
        ("json;ignore=/a;ignore=/b", "setting ignore"),
        ("json;ignore=a", "not a json pointer"),
        ("json;ignore=/a,", "not a json pointer"),
        ("json;ignore=/~2", "not a json pointer"),
        ("json;ignore=/%4", "percent escape"),
        ("json;ignore=/%FF", "percent escape"),
        ("json;headers=x a", "not a header name"),
        ("json;headers=x,", "not a header name"),
        ("bytes;ignore=/a", "bytes takes no ignore"),
        ("bytes;choose=/a", "bytes takes no choose"),
        ("auto;choose=/a", "auto takes no choose"),
        ("form;ignore=/a/b", "leads into a field"),
        ("multipart;choose=/a/b", "leads into a field"),
        ("json;ignore=/a;choose=/b", "either ignores or chooses"),
    ];
    for (text, expected) in table {
        let error = text.parse::<Rule>().unwrap_err().to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }
    assert!(Rule::json().ignoring([""]).is_err());
    assert!(Rule::bytes().ignoring(["/a"]).is_err());
}

#[test]
fn a_text_has_at_most_1024_bytes() {
    let pointer = |length: usize| format!("/{}", "a".repeat(length - 1));
    let fits = 1024 - "json;ignore=".len();
    let text = Rule::json().ignoring([pointer(fits)]).unwrap().as_text();
    assert_eq!(text.len(), 1024);
    assert_eq!(rule(&text).as_text(), text);
    let refused = Err(RuleError::TooLong { length: 1025 });
    assert_eq!(Rule::json().ignoring([pointer(fits + 1)]), refused);
    assert_eq!(format!("json;ignore={}", pointer(fits + 1)).parse::<Rule>(), refused);
    // Escapes count as well.
    let umlauts = format!("/{}", "\u{fc}".repeat(200));
    assert_eq!(Rule::json().ignoring([umlauts]), Err(RuleError::TooLong { length: 1213 }));
}
