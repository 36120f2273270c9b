//! An operator's result as a file: JSON with a status, headers and a body. What a receipt is belongs to core.

use std::io::Read as _;
use std::path::Path;

use bytes::Bytes;
use counterfoil_core::{Body, Receipt};
use http::{HeaderName, HeaderValue};
use serde_json::{Map, Value};

use crate::error::CliError;

/// The largest file, in bytes: a body of 16 MiB in base64, and room around it.
const FILE_BYTES_MAX: u64 = 24 << 20;
const HEADERS_MAX: usize = 100;
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Reads a result from a file, or from standard input where the path is `-`.
///
/// # Errors
/// [`CliError::Usage`], with all that is wrong.
pub(crate) fn read(path: &Path) -> Result<Receipt, CliError> {
    let wrong = |why: String| CliError::Usage(format!("--happened {}: {why}", path.display()));
    let mut text = String::new();
    let read = if path == Path::new("-") {
        std::io::stdin().lock().take(FILE_BYTES_MAX + 1).read_to_string(&mut text)
    } else {
        std::fs::File::open(path).and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text))
    };
    read.map_err(|error| wrong(error.to_string()))?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(wrong(format!("it has more than {FILE_BYTES_MAX} bytes")));
    }
    parse(&text).map_err(wrong)
}

/// Reads a result from its JSON.
fn parse(text: &str) -> Result<Receipt, String> {
    let value: Value = serde_json::from_str(text).map_err(|error| format!("it is not JSON: {error}"))?;
    let Value::Object(members) = value else { return Err("it is no JSON object".to_owned()) };
    let mut faults = Vec::new();
    for name in members.keys() {
        if !matches!(name.as_str(), "status" | "headers" | "body" | "body_base64") {
            faults.push(format!("{name}: unknown; accepted: status, headers, body, body_base64"));
        }
    }
    let mut keep = |read: Result<_, String>| read.map_err(|fault| faults.push(fault)).ok();
    let status = keep(status(&members));
    let headers = headers(&members).map_err(|mut more| faults.append(&mut more)).ok();
    let body = body(&members).map_err(|fault| faults.push(fault)).ok();
    match (status, headers, body) {
        (Some(status), Some(headers), Some(body)) if faults.is_empty() => {
            Ok(Receipt { status, headers: headers.into(), body })
        }
        _ => Err(faults.join("; ")),
    }
}

fn status(members: &Map<String, Value>) -> Result<u16, String> {
    let status = members.get("status").and_then(Value::as_u64).and_then(|status| u16::try_from(status).ok());
    status
        .filter(|status| (200..=599).contains(status))
        .ok_or_else(|| "status: accepted: a number from 200 to 599".to_owned())
}

fn headers(members: &Map<String, Value>) -> Result<Vec<(String, Bytes)>, Vec<String>> {
    let Some(value) = members.get("headers") else { return Ok(Vec::new()) };
    let items = value.as_array().filter(|items| items.len() <= HEADERS_MAX);
    let Some(items) = items else {
        return Err(vec![format!("headers: accepted: a list of at most {HEADERS_MAX} pairs [name, value]")]);
    };
    let (mut lines, mut faults) = (Vec::new(), Vec::new());
    for (index, item) in items.iter().enumerate() {
        let pair = item.as_array().map(Vec::as_slice);
        let line = match pair {
            Some([Value::String(name), Value::String(value)]) => {
                let name = HeaderName::try_from(name.as_str()).ok();
                name.zip(HeaderValue::try_from(value.as_str()).ok())
            }
            Some(_) | None => None,
        };
        match line {
            Some((name, value)) => lines.push((name.as_str().to_owned(), Bytes::copy_from_slice(value.as_bytes()))),
            None => faults.push(format!("headers[{index}]: accepted: a pair like [\"location\", \"/orders/1\"]")),
        }
    }
    if faults.is_empty() { Ok(lines) } else { Err(faults) }
}

fn body(members: &Map<String, Value>) -> Result<Body, String> {
    match (members.get("body"), members.get("body_base64")) {
        (None, None) => Ok(Body::NotKept),
        (Some(Value::String(text)), None) => Ok(Body::Kept(Bytes::from(text.clone()))),
        (None, Some(Value::String(text))) => from_base64(text)
            .map(|bytes| Body::Kept(bytes.into()))
            .ok_or_else(|| "body_base64: accepted: base64 with padding (RFC 4648 section 4)".to_owned()),
        (Some(_), None) => Err("body: accepted: a text, such as the JSON that was answered, in quotes".to_owned()),
        (None, Some(_)) => Err("body_base64: accepted: a text".to_owned()),
        (Some(_), Some(_)) => Err("body: accepted: body or body_base64, not both".to_owned()),
    }
}

/// What a body is, in words.
pub(super) fn sized(body: &Body) -> String {
    match body {
        Body::Kept(bytes) => format!("{} bytes", bytes.len()),
        Body::NotKept => "body not kept".to_owned(),
    }
}

/// Base64 with padding (RFC 4648 section 4).
pub(crate) fn to_base64(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let bits = chunk.iter().enumerate().fold(0_u32, |bits, (at, byte)| bits | (u32::from(*byte) << (16 - 8 * at)));
        for at in 0..4 {
            let letter = ALPHABET.get((bits >> (18 - 6 * at)) as usize & 63).copied().unwrap_or(b'=');
            text.push(char::from(if at > chunk.len() { b'=' } else { letter }));
        }
    }
    text
}

fn from_base64(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(4) {
        return None;
    }
    let padding = text.bytes().rev().take_while(|byte| *byte == b'=').count();
    let digits = text.len().checked_sub(padding)?;
    if padding > 2 {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    for chunk in text.as_bytes().get(..digits)?.chunks(4) {
        let mut bits = 0_u32;
        for (at, letter) in chunk.iter().enumerate() {
            let digit = ALPHABET.iter().position(|known| known == letter)?;
            bits |= u32::try_from(digit).ok()? << (18 - 6 * at);
        }
        let whole = bits.to_be_bytes();
        let (kept, rest) = whole.get(1..)?.split_at(chunk.len().checked_sub(1)?);
        // Bits behind the last byte must be zero, or two texts would be one body.
        if rest.iter().any(|byte| *byte != 0) {
            return None;
        }
        bytes.extend_from_slice(kept);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests;
