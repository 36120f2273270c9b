//! The canonical text of an `application/x-www-form-urlencoded` body.
//!
//! What does not belong here: what an application makes of names such as `items[0][price]`.
//!
//! Pairs are split and decoded as the WHATWG URL standard says (`+` is a space, empty pairs are skipped), but strictly:
//! a broken escape or a byte that should have been escaped is an error. `a` and `a=` differ. Decoded bytes are
//! compared as they are, whatever their charset.
//!
//! Order: pairs of one stem (the name up to its first `[`) keep theirs, because frameworks build lists and maps from
//! it (`a[]=1&a[]=2`); the order between different stems is ignored, as between the members of a JSON object.

use std::ops::Range;

use super::Rule;
use super::error::BodyError;
use super::frame::push_field;
use super::rule::Names;

struct Pair {
    name: Range<usize>,
    value: Option<Range<usize>>,
}

/// The canonical text of `body` under `rule`.
pub(super) fn canonical(body: &[u8], rule: &Rule) -> Result<Vec<u8>, BodyError> {
    let mut decoded = Vec::with_capacity(body.len());
    let mut pairs = Vec::new();
    let mut offset = 0;
    for piece in body.split(|byte| *byte == b'&') {
        if !piece.is_empty() {
            let equals = piece.iter().position(|byte| *byte == b'=');
            let name = decode(&piece[..equals.unwrap_or(piece.len())], offset, &mut decoded)?;
            let value = match equals {
                Some(at) => Some(decode(&piece[at + 1..], offset + at + 1, &mut decoded)?),
                None => None,
            };
            pairs.push(Pair { name, value });
        }
        offset += piece.len() + 1;
    }
    let names = Names::of(rule);
    pairs.retain(|pair| names.compared(&decoded[pair.name.clone()]));
    pairs.sort_by(|a, b| stem(&decoded[a.name.clone()]).cmp(stem(&decoded[b.name.clone()])));
    let mut out = Vec::with_capacity(decoded.len());
    for pair in pairs {
        push_field(&mut out, &decoded[pair.name]);
        match pair.value {
            None => out.push(b'-'),
            Some(value) => {
                out.push(b'+');
                push_field(&mut out, &decoded[value]);
            }
        }
    }
    Ok(out)
}

/// The name up to its first opening bracket.
fn stem(name: &[u8]) -> &[u8] {
    let end = name.iter().position(|byte| *byte == b'[');
    &name[..end.unwrap_or(name.len())]
}

/// Appends the decoded text and says where it went. `offset` is where `text` starts in the body.
fn decode(text: &[u8], offset: usize, out: &mut Vec<u8>) -> Result<Range<usize>, BodyError> {
    let start = out.len();
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        match byte {
            b'%' => {
                let escaped = text.get(at + 1..at + 3).and_then(hex);
                out.push(escaped.ok_or(BodyError::Form { offset: offset + at })?);
                at += 2;
            }
            b'+' => out.push(b' '),
            0x21..=0x7e => out.push(*byte),
            _ => {
                return Err(BodyError::Form { offset: offset + at });
            }
        }
        at += 1;
    }
    Ok(start..out.len())
}

/// The byte that two hexadecimal digits name.
pub(super) fn hex(digits: &[u8]) -> Option<u8> {
    let value = |digit: u8| char::from(digit).to_digit(16);
    match digits {
        [high, low] => u8::try_from(value(*high)? * 16 + value(*low)?).ok(),
        _ => None,
    }
}
