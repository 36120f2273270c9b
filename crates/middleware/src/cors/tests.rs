//! Which answers a page may read, and which headers of them.

use super::*;

const PAGE: HeaderValue = HeaderValue::from_static("https://shop.example");

fn opened(lines: &[(&'static str, &'static str)], origin: Option<&HeaderValue>, cors: &Cors) -> Vec<(String, String)> {
    let mut answer = HeaderMap::new();
    for (name, value) in lines {
        answer.append(*name, HeaderValue::from_static(value));
    }
    open(&mut answer, origin, cors);
    let wanted = |name: &str| name.starts_with("access-control") || name == "vary";
    answer
        .iter()
        .filter(|(name, _)| wanted(name.as_str()))
        .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()))
        .collect()
}

#[test]
fn pages_read_what_they_may() {
    let check = |lines: &[(&'static str, &'static str)],
                 origin: Option<HeaderValue>,
                 cors: &Cors,
                 expected: &[(&str, &str)]| {
        let found = opened(lines, origin.as_ref(), cors);
        let found: Vec<(&str, &str)> = found.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(found, expected, "{lines:?} to {origin:?} under {cors:?}");
    };
    let none = Cors::default();
    let named = Cors { origins: vec![PAGE], credentials: false };
    let trusted = Cors { credentials: true, ..named.clone() };
    let ours = [("idempotent-replayed", "true")];
    // Nothing was asked by a page, or the page is not named.
    check(&ours, None, &named, &[]);
    check(&ours, Some(PAGE), &none, &[]);
    check(&ours, Some(HeaderValue::from_static("https://other.example")), &named, &[]);
    let opened = [
        ("access-control-allow-origin", "https://shop.example"),
        ("vary", "origin"),
        ("access-control-expose-headers", "idempotent-replayed"),
    ];
    check(&ours, Some(PAGE), &named, &opened);
    let with_credentials = [opened[0], opened[1], ("access-control-allow-credentials", "true"), opened[2]];
    check(&ours, Some(PAGE), &trusted, &with_credentials);
    // The application has decided: only our headers are added to what it exposes.
    let theirs = [
        ("access-control-allow-origin", "*"),
        ("access-control-expose-headers", "x-total"),
        ("idempotent-replayed", "false"),
        ("idempotency-expires", "Sun, 06 Nov 1994 08:49:37 GMT"),
    ];
    let added = [
        ("access-control-allow-origin", "*"),
        ("access-control-expose-headers", "x-total"),
        ("access-control-expose-headers", "idempotent-replayed, idempotency-expires"),
    ];
    check(&theirs, Some(PAGE), &named, &added);
    // Nothing of ours to expose.
    check(&[("access-control-allow-origin", "*")], Some(PAGE), &none, &[("access-control-allow-origin", "*")]);
}
