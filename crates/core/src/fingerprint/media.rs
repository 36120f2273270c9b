//! What the content headers say: media type, its boundary, and the codings.
//!
//! What does not belong here: reading the body.

use super::Parts;
use crate::wire::list_items;

/// The media type as it is compared: one essence in lower case, or, if the header is malformed or repeated, its raw lines.
pub(super) fn types(parts: &Parts<'_>) -> Vec<Vec<u8>> {
    match essence(parts) {
        Some(essence) => vec![essence.into_bytes()],
        None => parts.lines("content-type").map(<[u8]>::to_vec).collect(),
    }
}

/// `type/subtype` in lower case, if there is exactly one well-formed content type.
pub(super) fn essence(parts: &Parts<'_>) -> Option<String> {
    let line = only_line(parts)?;
    let end = line.iter().position(|byte| *byte == b';');
    let text = std::str::from_utf8(&line[..end.unwrap_or(line.len())]).ok()?;
    let text = text.trim_matches([' ', '\t']);
    let (kind, subtype) = text.split_once('/')?;
    let well_formed = is_token(kind.as_bytes()) && is_token(subtype.as_bytes());
    well_formed.then(|| text.to_ascii_lowercase())
}

fn only_line<'a>(parts: &Parts<'a>) -> Option<&'a [u8]> {
    let mut lines = parts.lines("content-type");
    match (lines.next(), lines.next()) {
        (Some(line), None) => Some(line),
        (_, Some(_)) | (None, None) => None,
    }
}

/// The content codings in order and in lower case, without `identity`.
pub(super) fn codings(parts: &Parts<'_>) -> Vec<Vec<u8>> {
    list_items(parts.lines("content-encoding"))
        .map(<[u8]>::to_ascii_lowercase)
        .filter(|coding| coding != b"identity")
        .collect()
}

/// The boundary of a `multipart/form-data` content type: 1 to 70 characters (RFC 2046 section 5.1.1).
pub(super) fn boundary(parts: &Parts<'_>) -> Option<Vec<u8>> {
    if essence(parts)? != "multipart/form-data" {
        return None;
    }
    let line = only_line(parts)?;
    let start = line.iter().position(|byte| *byte == b';')?;
    let mut found = parameters(&line[start..])?.into_iter().filter(|(name, _)| name == "boundary");
    let (Some((_, boundary)), None) = (found.next(), found.next()) else {
        return None;
    };
    let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b"'()+_,-./:=? ".contains(byte);
    let valid = (1..=70).contains(&boundary.len()) && boundary.iter().all(allowed) && !boundary.ends_with(b" ");
    valid.then(|| boundary.to_vec())
}

/// Parameters or headers, in order: name in lower case, value.
pub(super) type Pairs<'a> = Vec<(String, &'a [u8])>;

/// `; name=value` again and again: names in lower case, values as spelled, without their quotes.
///
/// A quoted value ends at the first quote that no backslash precedes, and its backslashes stay: agents disagree on what
/// they mean, and a fingerprint need not know.
pub(super) fn parameters(mut text: &[u8]) -> Option<Pairs<'_>> {
    let mut found = Vec::new();
    loop {
        text = text.trim_ascii_start();
        if text.is_empty() {
            return Some(found);
        }
        text = text.strip_prefix(b";")?.trim_ascii_start();
        let equals = text.iter().position(|byte| *byte == b'=')?;
        let name = &text[..equals];
        if !is_token(name) {
            return None;
        }
        let (value, rest) = parameter_value(&text[equals + 1..])?;
        let name = String::from_utf8_lossy(name).to_ascii_lowercase();
        found.push((name, value));
        text = rest;
    }
}

/// A parameter's value, and what follows it.
fn parameter_value(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let Some(quoted) = text.strip_prefix(b"\"") else {
        let end = text.iter().position(|byte| !is_token_byte(*byte));
        let (value, rest) = text.split_at(end.unwrap_or(text.len()));
        return (!value.is_empty()).then_some((value, rest));
    };
    let mut at = 0;
    loop {
        match quoted.get(at)? {
            b'"' => return Some((&quoted[..at], &quoted[at + 1..])),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

/// Whether this is a token of RFC 9110 section 5.6.2.
pub(super) fn is_token(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(|byte| is_token_byte(*byte))
}

fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}
