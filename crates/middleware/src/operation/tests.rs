//! Which operation a request is, as a table; and patterns that are refused.

use http::Method;

use super::{Found, Operations, Pattern};
use crate::error::Error;
use crate::principal::SingleTenant;
use crate::settings::{KeyNeed, OperationRule, Settings, Terms, Unlisted};

const LISTED: [(&str, KeyNeed); 7] = [
    ("POST /orders", KeyNeed::Required),
    ("POST /orders/{id}", KeyNeed::Optional),
    ("POST /orders/{id}/cancel", KeyNeed::Required),
    ("POST /orders/all/cancel", KeyNeed::Required),
    ("POST /files/{*path}", KeyNeed::Required),
    ("POST /files/{name}", KeyNeed::Required),
    ("PUT /things/", KeyNeed::Optional),
];

fn operations(unlisted: Unlisted) -> Operations {
    let rule = |(pattern, key): (&str, KeyNeed)| OperationRule {
        name: None,
        pattern: pattern.parse().unwrap(),
        key,
        terms: Terms::default(),
    };
    let operations = LISTED.into_iter().map(rule).collect();
    Operations::new(&Settings { operations, unlisted, ..Settings::new(SingleTenant) }).unwrap()
}

fn found(operations: &Operations, method: &str, path: &str, keyed: bool) -> String {
    match operations.find(&Method::from_bytes(method.as_bytes()).unwrap(), path, keyed) {
        Found::Unguarded => "unguarded".to_owned(),
        Found::Guarded(matched) => format!("{} as {} at {}", matched.operation.as_str(), matched.label, matched.path),
        Found::Malformed { .. } => "malformed".to_owned(),
    }
}

#[test]
fn requests_find_their_operation() {
    let keyed = [
        ("POST", "/orders", "POST /orders as POST /orders at /orders"),
        ("POST", "/%6Frders", "POST /orders as POST /orders at /orders"),
        ("POST", "/x/../orders", "POST /orders as POST /orders at /orders"),
        ("POST", "/orders/", "POST /orders/ as unlisted at /orders/"),
        ("POST", "/orders/7", "POST /orders/{id} as POST /orders/{id} at /orders/7"),
        ("POST", "/orders/7%2F8", "POST /orders/{id} as POST /orders/{id} at /orders/7%2F8"),
        ("POST", "/orders/7/cancel", "POST /orders/{id}/cancel as POST /orders/{id}/cancel at /orders/7/cancel"),
        ("POST", "/orders/all/cancel", "POST /orders/all/cancel as POST /orders/all/cancel at /orders/all/cancel"),
        ("POST", "/files/a", "POST /files/{name} as POST /files/{name} at /files/a"),
        ("POST", "/files/a/b/c", "POST /files/{*path} as POST /files/{*path} at /files/a/b/c"),
        ("POST", "/files/", "POST /files/ as unlisted at /files/"),
        ("POST", "/elsewhere", "POST /elsewhere as unlisted at /elsewhere"),
        ("PATCH", "/orders", "PATCH /orders as unlisted at /orders"),
        ("PUT", "/things/", "PUT /things/ as PUT /things/ at /things/"),
        ("PUT", "/orders", "unguarded"),
        ("GET", "/orders", "unguarded"),
        ("post", "/orders", "unguarded"),
        ("POST", "//orders", "malformed"),
        ("POST", "/../orders", "malformed"),
        ("POST", "/a%zz", "malformed"),
        ("PUT", "//elsewhere", "unguarded"),
        ("PUT", "//things/", "unguarded"),
        ("OPTIONS", "*", "unguarded"),
    ];
    let guarding = operations(Unlisted::GuardKeyed(Box::default()));
    for (method, path, expected) in keyed {
        assert_eq!(found(&guarding, method, path, true), expected, "{method} {path} with a key");
    }
    let long = format!("/{}", "a".repeat(1100));
    assert_eq!(found(&guarding, "POST", &long, true), "malformed");
}

#[test]
fn without_a_key_only_what_requires_one_is_guarded() {
    let unkeyed = [
        ("POST", "/orders", "POST /orders as POST /orders at /orders"),
        ("POST", "/orders/7", "unguarded"),
        ("POST", "/elsewhere", "unguarded"),
        ("PUT", "/things/", "unguarded"),
        // Some servers read these as guarded paths: the guard must not be passed by spelling.
        ("POST", "//orders", "malformed"),
        ("POST", "/x//../orders", "malformed"),
        ("POST", "/../%6frders", "malformed"),
        ("POST", "/%2e%2e/orders", "malformed"),
        ("POST", "/files/%zz", "malformed"),
        ("POST", "//orders/7", "unguarded"),
        ("POST", "//elsewhere", "unguarded"),
    ];
    let guarding = operations(Unlisted::GuardKeyed(Box::default()));
    let passing = operations(Unlisted::PassThrough);
    for (method, path, expected) in unkeyed {
        assert_eq!(found(&guarding, method, path, false), expected, "{method} {path} without a key");
        assert_eq!(found(&passing, method, path, false), expected, "{method} {path} without a key, passing");
    }
    assert_eq!(found(&passing, "POST", "/elsewhere", true), "unguarded");
    assert_eq!(found(&passing, "POST", "//elsewhere", true), "unguarded");
}

#[test]
fn patterns_without_sense_are_refused() {
    let refused = [
        "",
        "POST",
        "POST orders",
        "P(ST /orders",
        "POST /a/../b",
        "POST /%61",
        "POST //a",
        "POST /{}",
        "POST /{*}",
        "POST /a{b}",
        "POST /{a",
        "POST /{*rest}/more",
    ];
    for text in refused {
        assert!(matches!(text.parse::<Pattern>(), Err(Error::Pattern { .. })), "{text}");
    }
}

#[test]
fn operations_that_meet_are_refused() {
    let rule = |name: Option<&str>, pattern: &str| OperationRule {
        name: name.map(|name| counterfoil_core::Operation::new(name).unwrap()),
        pattern: pattern.parse().unwrap(),
        key: KeyNeed::Required,
        terms: Terms::default(),
    };
    let check = |rules: Vec<OperationRule>| {
        let settings = Settings { operations: rules, ..Settings::new(SingleTenant) };
        Operations::new(&settings).err()
    };
    let same = check(vec![rule(Some("a"), "POST /o/{id}"), rule(Some("b"), "POST /o/{number}")]);
    assert!(matches!(same, Some(Error::SamePattern { .. })), "{same:?}");
    let named = check(vec![rule(Some("a"), "POST /o"), rule(Some("a"), "POST /p")]);
    assert!(matches!(named, Some(Error::SameName { .. })), "{named:?}");
    assert_eq!(check(vec![rule(Some("a"), "POST /o/{id}"), rule(Some("b"), "PUT /o/{id}")]), None);
}
