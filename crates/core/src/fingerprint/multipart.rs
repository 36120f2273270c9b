//! `multipart/form-data` (RFC 7578), read strictly and compared part by part; the boundary is not compared.
//!
//! What does not belong here: the content type of the request (`media`), other multipart types.
//!
//! The order of the parts is kept: applications that stream uploads depend on it. A part is its name, its other
//! disposition parameters (`filename`, as spelled), its other headers (`content-type` as spelled), and its bytes. There
//! is no preamble and no epilogue, and a line that merely starts like the delimiter is refused, because readers
//! disagree on it.

use super::Rule;
use super::error::BodyError;
use super::frame::Hasher;
use super::media::{Pairs, is_token, parameters};
use super::rule::Names;

/// How many parts are read.
const MAX_PARTS: usize = 1000;

struct Part<'b> {
    name: &'b [u8],
    /// The disposition's other parameters, in order.
    parameters: Pairs<'b>,
    /// The other headers, sorted by name.
    headers: Pairs<'b>,
    content: &'b [u8],
}

/// Feeds the parts of `body` under `rule` to the hasher.
pub(super) fn hash(body: &[u8], boundary: &[u8], rule: &Rule, hasher: &mut Hasher) -> Result<(), BodyError> {
    let names = Names::of(rule);
    let mut parts = read(body, boundary)?;
    parts.retain(|part| names.compared(part.name));
    hasher.count(parts.len());
    for part in parts {
        hasher.field(part.name);
        for pairs in [&part.parameters, &part.headers] {
            hasher.count(pairs.len());
            for (name, value) in pairs {
                hasher.field(name.as_bytes());
                hasher.field(value);
            }
        }
        hasher.field(part.content);
    }
    Ok(())
}

fn read<'b>(body: &'b [u8], boundary: &[u8]) -> Result<Vec<Part<'b>>, BodyError> {
    let delimiter = [b"\r\n--", boundary].concat();
    let mut reader = Reader { body, at: 0 };
    let mut parts = Vec::new();
    if !reader.take(&delimiter[2..]) {
        return reader.refuse("it does not start with the boundary");
    }
    loop {
        if reader.take(b"--") {
            reader.take(b"\r\n");
            if reader.at < body.len() {
                return reader.refuse("something follows the last boundary");
            }
            return Ok(parts);
        }
        if !reader.take(b"\r\n") {
            return reader.refuse("a boundary is followed by neither a line end nor two dashes");
        }
        if parts.len() == MAX_PARTS {
            return Err(BodyError::TooManyParts);
        }
        parts.push(reader.part(&delimiter)?);
    }
}

struct Reader<'b> {
    body: &'b [u8],
    at: usize,
}

impl<'b> Reader<'b> {
    fn refuse<T>(&self, reason: &'static str) -> Result<T, BodyError> {
        let offset = self.at;
        Err(BodyError::Multipart { offset, reason })
    }

    /// Passes `expected` if it comes next.
    fn take(&mut self, expected: &[u8]) -> bool {
        let comes = self.body[self.at..].starts_with(expected);
        if comes {
            self.at += expected.len();
        }
        comes
    }

    /// Everything before the next `end`, which is passed as well.
    fn until(&mut self, end: &[u8]) -> Option<&'b [u8]> {
        let rest = &self.body[self.at..];
        let mut from = 0;
        loop {
            // Both ends that are looked for start with a carriage return.
            from += rest[from..].iter().position(|byte| *byte == b'\r')?;
            if rest[from..].starts_with(end) {
                self.at += from + end.len();
                return Some(&rest[..from]);
            }
            from += 1;
        }
    }

    fn part(&mut self, delimiter: &[u8]) -> Result<Part<'b>, BodyError> {
        let mut disposition = None;
        let mut headers = Pairs::new();
        loop {
            let start = self.at;
            let Some(line) = self.until(b"\r\n") else {
                return self.refuse("the headers of a part do not end");
            };
            if line.is_empty() {
                break;
            }
            let Some((name, value)) = header(line) else {
                self.at = start;
                return self.refuse("a part has a malformed header");
            };
            match name.as_str() {
                "content-disposition" if disposition.is_none() => disposition = Some(value),
                "content-disposition" => return self.refuse("a part has two dispositions"),
                _ => headers.push((name, value)),
            }
        }
        headers.sort_by(|a, b| a.0.cmp(&b.0));
        let Some((name, parameters)) = disposition.and_then(form_data) else {
            return self.refuse("a part has no form-data disposition with one name");
        };
        let Some(content) = self.until(delimiter) else {
            return self.refuse("the last boundary is missing");
        };
        Ok(Part { name, parameters, headers, content })
    }
}

/// A header line: its name in lower case and its value without outer white space.
fn header(line: &[u8]) -> Option<(String, &[u8])> {
    let colon = line.iter().position(|byte| *byte == b':')?;
    let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
    let clean = |byte: &u8| *byte == b'\t' || !byte.is_ascii_control();
    if !is_token(name) || !value.iter().all(clean) {
        return None;
    }
    Some((String::from_utf8_lossy(name).to_ascii_lowercase(), value))
}

/// The name of a `form-data` disposition, and its other parameters.
fn form_data(disposition: &[u8]) -> Option<(&[u8], Pairs<'_>)> {
    let kind = disposition.get(..9)?;
    if !kind.eq_ignore_ascii_case(b"form-data") {
        return None;
    }
    let mut others = parameters(&disposition[9..])?;
    let mut names: Vec<String> = others.iter().map(|(name, _)| name.clone()).collect();
    names.sort_unstable();
    if names.windows(2).any(|pair| pair[0] == pair[1]) {
        return None;
    }
    let at = others.iter().position(|(name, _)| name == "name")?;
    let (_, name) = others.remove(at);
    Some((name, others))
}
