//! What travels: header names, the key's spelling, and problem documents with their stable types.
//! Which decision becomes which problem belongs to `middleware/reject.rs`.

mod path;
mod problem;

use crate::error::Error;
use crate::identity::Key;

pub use self::path::{PathFault, normalise};
pub use self::problem::{PROBLEM_MEDIA_TYPE, PROBLEM_TYPE_PREFIX, Problem, ProblemType};

/// Carries the key (draft-ietf-httpapi-idempotency-key-header).
pub const IDEMPOTENCY_KEY: &str = "idempotency-key";
/// Names the action in the second carrier (OASIS Repeatable Requests 1.0).
pub const REPEATABILITY_REQUEST_ID: &str = "repeatability-request-id";
/// When the client first sent it, as an HTTP date; the same in every attempt.
pub const REPEATABILITY_FIRST_SENT: &str = "repeatability-first-sent";
/// Whether the request was taken under the second carrier's terms: `accepted`, `rejected`.
pub const REPEATABILITY_RESULT: &str = "repeatability-result";
/// On every guarded answer: `true` where it was replayed.
pub const IDEMPOTENT_REPLAYED: &str = "idempotent-replayed";
/// On answers with a receipt: until when it is promised, as an HTTP date.
pub const IDEMPOTENCY_EXPIRES: &str = "idempotency-expires";
/// Says where protection is not as asked: `ignored`, `unrecorded`.
pub const IDEMPOTENCY_STATUS: &str = "idempotency-status";
/// From the handler or upstream: whether its answer is the result (`yes`) or says "not processed" (`no`).
pub const IDEMPOTENCY_REMEMBER: &str = "idempotency-remember";

/// To the application behind the proxy: what it shows to `counterfoil.hold` and `counterfoil.settle`. Never from outside, and
/// never to it.
pub const IDEMPOTENCY_PERMIT: &str = "idempotency-permit";

/// The longest header line that is looked at: a quoted key with each character escaped, and parameters.
const LINE_BYTES_MAX: usize = 4096;

/// Reads the key from the values of all its header lines; `None` where there is none.
///
/// A value that opens with a quote is a string of RFC 9651, whose parameters are ignored; any other is the bare text
/// that real clients send, whole, even where RFC 9651 would read a token, a number or bytes. Both name the same key.
///
/// # Errors
/// [`Error::KeyRepeated`] for more than one line, [`Error::KeyQuoting`] for a broken quoted string, and what
/// [`Key::new`] refuses.
pub fn parse_key<'a>(lines: impl IntoIterator<Item = &'a [u8]>) -> Result<Option<Key>, Error> {
    let mut lines = lines.into_iter();
    let Some(line) = lines.next() else { return Ok(None) };
    let more = lines.count();
    if more > 0 {
        return Err(Error::KeyRepeated { lines: more + 1 });
    }
    if line.len() > LINE_BYTES_MAX {
        return Err(Error::KeyTooLong { bytes: line.len() });
    }
    let line = trimmed(line);
    if let Some(at) = line.iter().position(|byte| !(0x20..=0x7e).contains(byte)) {
        return Err(Error::KeyCharacter { at });
    }
    if line.first() != Some(&b'"') {
        return Key::new(String::from_utf8_lossy(line)).map(Some);
    }
    let item: sfv::Item = sfv::Parser::new(line).parse().map_err(|_| Error::KeyQuoting)?;
    match item.bare_item {
        sfv::BareItem::String(text) => Key::new(text.as_str()).map(Some),
        _ => Err(Error::KeyQuoting),
    }
}

/// The items of a list header, from the values of all its lines (RFC 9110 section 5.6.1): without white space around
/// them, empty ones passed over. A comma inside a quoted string is not seen as such.
pub fn list_items<'a>(lines: impl IntoIterator<Item = &'a [u8]>) -> impl Iterator<Item = &'a [u8]> {
    let items = lines.into_iter().flat_map(|line| line.split(|byte| *byte == b','));
    items.map(<[u8]>::trim_ascii).filter(|item| !item.is_empty())
}

/// Without the white space that HTTP allows around a value: spaces and tabs, no other control (RFC 9110 section 5.5).
fn trimmed(line: &[u8]) -> &[u8] {
    let outer = |byte: &u8| matches!(byte, b' ' | b'\t');
    let from = line.iter().position(|byte| !outer(byte)).unwrap_or(line.len());
    let to = line.iter().rposition(|byte| !outer(byte)).map_or(from, |at| at + 1);
    line.get(from..to).unwrap_or_default()
}

#[cfg(test)]
mod tests;
