//! `multipart/form-data` (RFC 7578), read and written so that what is not changed keeps its bytes.
//!
//! What does not belong here: the changes (`fields.rs`).

use super::fields::{Field, Fields};

/// The boundary that a media type names.
pub(super) fn boundary(media: &str) -> Option<String> {
    let named = |part: &str| part.trim().strip_prefix("boundary=").map(|text| text.trim_matches('"').to_owned());
    media.split(';').find_map(named).filter(|boundary| !boundary.is_empty())
}

/// The boundary that the first line of a body is.
pub(super) fn first_line(text: &str) -> Option<String> {
    let line = text.lines().next()?.strip_prefix("--")?.trim_end();
    Some(line.to_owned()).filter(|line| !line.is_empty())
}

/// A body of fields as curl takes them: `NAME=VALUE`, or `NAME=@FILE`.
pub(super) fn built(form: &[String], boundary: &str) -> Result<Vec<u8>, String> {
    let mut fields = Fields(Vec::new());
    for told in form {
        let (name, value) = told.split_once('=').filter(|(name, _)| !name.is_empty()).ok_or("a field is NAME=VALUE")?;
        let Some(path) = value.strip_prefix('@') else {
            fields = fields.with(name, value);
            continue;
        };
        let bytes = std::fs::read(path).map_err(|error| format!("{path}: {error}"))?;
        let file = std::path::Path::new(path).file_name().unwrap_or_default().to_string_lossy().replace('"', "%22");
        let head = format!("{}; filename=\"{file}\"\r\ncontent-type: application/octet-stream", disposition(name));
        let head = Some(head.into_bytes());
        fields.0.push(Field { name: name.to_owned(), value: bytes, head, kept: None });
    }
    Ok(written(&fields, boundary))
}

pub(super) fn read(bytes: &[u8], boundary: &str) -> Result<Fields, String> {
    let mark = format!("--{boundary}");
    // The first boundary may stand at the very beginning, so one line end is put before all of them.
    let text = [b"\r\n", bytes].concat();
    let line = format!("\r\n{mark}").into_bytes();
    let mut pieces = split(&text, &line).into_iter().skip(1);
    let mut fields = Vec::new();
    loop {
        let piece = pieces.next().ok_or_else(|| format!("the body does not end with {mark}--"))?;
        if piece.starts_with(b"--") {
            return Ok(Fields(fields));
        }
        let part = piece.strip_prefix(b"\r\n".as_slice()).ok_or("a boundary is not a line of its own")?;
        let (head, value) = cut(part, b"\r\n\r\n").ok_or("a part has no head")?;
        let name = name(&String::from_utf8_lossy(head)).ok_or("a part has no name")?;
        let head = Some(head.to_vec()).filter(|head| head.contains(&b'\n') || find(head, b"filename").is_some());
        fields.push(Field { name, value: value.to_vec(), head, kept: Some(part.to_vec()) });
    }
}

pub(super) fn written(fields: &Fields, boundary: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for field in &fields.0 {
        bytes.extend_from_slice(format!("--{boundary}\r\n").as_bytes());
        match (&field.kept, &field.head) {
            (Some(kept), _) => bytes.extend_from_slice(kept),
            (None, head) => {
                let plain = || disposition(&field.name).into_bytes();
                bytes.extend_from_slice(&head.clone().unwrap_or_else(plain));
                bytes.extend_from_slice(b"\r\n\r\n");
                bytes.extend_from_slice(&field.value);
            }
        }
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
    bytes
}

fn disposition(name: &str) -> String {
    format!("content-disposition: form-data; name=\"{}\"", name.replace('"', "%22"))
}

fn name(head: &str) -> Option<String> {
    let line = head.lines().find(|line| line.to_ascii_lowercase().starts_with("content-disposition:"))?;
    let told = line.split(';').find_map(|part| part.trim().strip_prefix("name="))?;
    Some(told.trim().trim_matches('"').replace("%22", "\""))
}

fn find(bytes: &[u8], mark: &[u8]) -> Option<usize> {
    bytes.windows(mark.len()).position(|window| window == mark)
}

fn cut<'a>(bytes: &'a [u8], mark: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let at = find(bytes, mark)?;
    Some((bytes.get(..at)?, bytes.get(at + mark.len()..)?))
}

fn split<'a>(bytes: &'a [u8], mark: &[u8]) -> Vec<&'a [u8]> {
    let (mut pieces, mut rest) = (Vec::new(), bytes);
    while let Some((piece, tail)) = cut(rest, mark) {
        pieces.push(piece);
        rest = tail;
    }
    pieces.push(rest);
    pieces
}
