//! `application/x-www-form-urlencoded`, read and written so that what is not changed keeps its spelling.
//!
//! What does not belong here: the changes (`fields.rs`).

use super::fields::{Field, Fields};

/// Whether a text can only be meant as a form: names with values, joined by `&`.
pub(super) fn looks_so(text: &str) -> bool {
    let named =
        |pair: &str| pair.split_once('=').is_some_and(|(name, _)| !name.is_empty() && !name.starts_with(['{', '[']));
    !text.is_empty()
        && !text.contains(|letter: char| letter.is_whitespace() || letter == '"')
        && text.split('&').all(named)
}

pub(super) fn read(bytes: &[u8]) -> Result<Fields, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "the body is not UTF-8".to_owned())?;
    let field = |pair: &str| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let name = String::from_utf8_lossy(&decoded(name)).into_owned();
        Field { name, value: decoded(value), head: None, kept: Some(pair.as_bytes().to_vec()) }
    };
    Ok(Fields(text.split('&').filter(|pair| !pair.is_empty()).map(field).collect()))
}

pub(super) fn written(fields: &Fields) -> Vec<u8> {
    let pair = |field: &Field| match &field.kept {
        Some(kept) => kept.clone(),
        None => format!("{}={}", encoded(field.name.as_bytes()), encoded(&field.value)).into_bytes(),
    };
    fields.0.iter().map(pair).collect::<Vec<_>>().join(&b'&')
}

fn encoded(bytes: &[u8]) -> String {
    let one = |byte: &u8| match byte {
        b' ' => "+".to_owned(),
        byte if byte.is_ascii_alphanumeric() || b"*-._[]".contains(byte) => char::from(*byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    bytes.iter().map(one).collect()
}

fn decoded(text: &str) -> Vec<u8> {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((first, tail)) = rest.split_first() {
        let hex = tail.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        let byte = hex.filter(|_| *first == b'%').and_then(|hex| u8::from_str_radix(hex, 16).ok());
        bytes.push(byte.unwrap_or(if *first == b'+' { b' ' } else { *first }));
        rest = if byte.is_some() { tail.get(2..).unwrap_or_default() } else { tail };
    }
    bytes
}
