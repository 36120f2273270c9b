//! Forms and parts, read by the orders service without any code of the probe.
//!
//! What does not belong here: what the service makes of the fields.

use serde_json::{Map, Value};

/// The fields by name, a number where one stands; nothing where the body is neither a form nor parts.
pub(super) fn read(kind: &str, body: &[u8]) -> Option<Value> {
    let text = String::from_utf8_lossy(body);
    let fields = if kind.starts_with("application/x-www-form-urlencoded") {
        text.split('&')
            .filter_map(|pair| pair.split_once('='))
            .map(|(name, value)| (plain(name), plain(value)))
            .collect()
    } else if kind.starts_with("multipart/form-data") {
        let boundary = kind.split(';').find_map(|parameter| parameter.trim().strip_prefix("boundary="))?;
        text.split(&format!("--{boundary}")).filter_map(part).collect::<Vec<_>>()
    } else {
        return None;
    };
    let value = |text: String| text.parse::<u64>().map_or_else(|_| Value::from(text), Value::from);
    Some(Value::Object(fields.into_iter().map(|(name, text)| (name, value(text))).collect::<Map<_, _>>()))
}

fn part(text: &str) -> Option<(String, String)> {
    let (head, value) = text.strip_prefix("\r\n")?.strip_suffix("\r\n")?.split_once("\r\n\r\n")?;
    let name = head.split_once("name=\"")?.1.split_once('"')?.0;
    Some((name.to_owned(), value.to_owned()))
}

fn plain(raw: &str) -> String {
    let mut pieces = raw.split('%');
    let mut bytes = pieces.next().unwrap_or_default().replace('+', " ").into_bytes();
    for piece in pieces {
        let (hex, rest) = piece.split_at(2);
        bytes.push(u8::from_str_radix(hex, 16).unwrap());
        bytes.extend(rest.replace('+', " ").into_bytes());
    }
    String::from_utf8(bytes).unwrap()
}
