//! Fingerprints: every rule answers every body, the same way each time, and `auto` never refuses one.
//!
//! An input is a rule (an unknown one is ignored), the value of `Content-Type`, and the body, with a line feed between
//! them. A rule of the input is tried beside the plain ones.

use counterfoil_core::{Fingerprint, Parts, Rule};

use super::shown;

pub(super) fn check(input: &[u8]) {
    let mut lines = input.splitn(3, |byte| *byte == b'\n');
    let mut next = || lines.next().unwrap_or_default();
    let (rule, media, body) = (next(), next(), next());
    let rules = [Rule::auto(), Rule::bytes(), Rule::json(), Rule::form(), Rule::multipart()];
    let given = std::str::from_utf8(rule).ok().and_then(|text| text.parse::<Rule>().ok());
    for rule in rules.iter().chain(&given) {
        assert_eq!(reread(rule).as_ref(), Some(rule), "a rule comes back from its text");
        answered(rule, media, body);
    }
    let json: Vec<&Rule> =
        [&rules[2]].into_iter().chain(given.iter().filter(|rule| rule.as_text().starts_with("json"))).collect();
    for rule in json {
        respelled(rule, media, body);
    }
    if let Some(form) = fingerprint(&rules[3], media, body) {
        let spaces = shown(body);
        let body = body.iter().flat_map(|byte| if *byte == b'+' { &b"%20"[..] } else { std::slice::from_ref(byte) });
        let body: Vec<u8> = body.copied().collect();
        assert_eq!(fingerprint(&rules[3], media, &body), Some(form), "a form's spaces are one: {spaces}");
    }
}

fn reread(rule: &Rule) -> Option<Rule> {
    rule.as_text().parse().ok()
}

fn parts<'a>(headers: &'a [(&'a str, &'a [u8])], body: &'a [u8]) -> Parts<'a> {
    Parts { method: "POST", operation: "create-order", path: "/orders", query: "", headers, body }
}

fn fingerprint(rule: &Rule, media: &[u8], body: &[u8]) -> Option<Fingerprint> {
    rule.fingerprint(&parts(&[("content-type", media)], body)).ok()
}

/// One rule on one body.
fn answered(rule: &Rule, media: &[u8], body: &[u8]) {
    let headers = [("content-type", media)];
    let found = rule.fingerprint(&parts(&headers, body));
    assert_eq!(found, rule.fingerprint(&parts(&headers, body)), "{rule}: the same twice");
    let text = rule.as_text();
    let never_refuses = text.starts_with("auto") || text.starts_with("bytes");
    match found {
        Ok(found) => {
            assert!(!found.rule().as_text().starts_with("auto"), "{rule}: what was compared is not told");
            let stored = reread(found.rule()).and_then(|rule| rule.fingerprint(&parts(&headers, body)).ok());
            assert_eq!(stored, Some(found), "{rule}: an honest retry is compared under the stored rule, and equal");
        }
        Err(error) => {
            assert!(!never_refuses, "{rule} refused a body: {error}");
            assert!(error.to_string().chars().count() < 1000, "{rule}: an error is short");
        }
    }
    if text == "bytes" {
        let longer = [body, b"\n"].concat();
        assert_ne!(fingerprint(rule, media, &longer), fingerprint(rule, media, body), "another body is another");
    }
}

/// White space between the tokens of JSON changes nothing, and a body that is no JSON does not become it.
fn respelled(rule: &Rule, media: &[u8], body: &[u8]) {
    let found = fingerprint(rule, media, body);
    for space in [&b""[..], b" ", b"\r\n\t "] {
        let other = spaced(body, space);
        // Taking away what stood between two tokens may join them, which is only harmless where they were JSON.
        if found.is_some() || !space.is_empty() {
            assert_eq!(fingerprint(rule, media, &other).is_some(), found.is_some(), "{rule}: {}", shown(&other));
        }
        if found.is_some() {
            assert_eq!(fingerprint(rule, media, &other), found, "{rule}: {} for {}", shown(&other), shown(body));
        }
    }
}

/// `body` with `space` instead of the white space around structural characters; strings stay as they are.
fn spaced(body: &[u8], space: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(body.len());
    let (mut quoted, mut backslash) = (false, false);
    for (at, byte) in body.iter().enumerate() {
        if quoted {
            out.push(*byte);
            quoted = backslash || *byte != b'"';
            backslash = !backslash && *byte == b'\\';
            continue;
        }
        match byte {
            b'[' | b']' | b'{' | b'}' | b',' | b':' => {
                out.extend_from_slice(space);
                out.push(*byte);
                out.extend_from_slice(space);
            }
            b' ' | b'\t' | b'\n' | b'\r' => {
                // Between two scalars it is what keeps them apart.
                let solid = |byte: &&u8| !b" \t\n\r".contains(byte);
                let structural = |byte: Option<&u8>| byte.is_none_or(|byte| b"[]{},:".contains(byte));
                let (before, after) = (body[..at].iter().rev().find(solid), body[at..].iter().find(solid));
                if !structural(before) && !structural(after) {
                    out.push(*byte);
                }
            }
            byte => {
                quoted = *byte == b'"';
                out.push(*byte);
            }
        }
    }
    out
}
