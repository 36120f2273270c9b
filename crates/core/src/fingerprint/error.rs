//! Why a body cannot be read under a named rule.
//!
//! What does not belong here: the status code and problem document it becomes (`wire`, the middleware's table), and
//! complaints about a rule's own text (`rule`).

use thiserror::Error;

/// Why a body does not parse under a named rule: the problem `malformed-body`, or, under a record's rule, a mismatch.
///
/// Offsets are in bytes from the start of the body.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BodyError {
    /// The body has a `Content-Encoding`, which named rules do not decode.
    #[error("the body is coded and its rule reads plain bodies; send it without content-encoding")]
    Coded,
    /// Not JSON as RFC 8259 has it: no byte order mark, no trailing bytes, no NaN, no lone surrogates.
    #[error("the body is not json at byte {offset}: {reason}")]
    NotJson {
        /// Where reading stopped.
        offset: usize,
        /// What was wrong there.
        reason: String,
    },
    /// An object names a member twice, also when only equal after unescaping.
    #[error("the member {pointer:?} appears twice; send every member once")]
    DuplicateMember {
        /// RFC 6901 pointer to the member; names over 64 characters are cut.
        pointer: String,
    },
    /// Arrays and objects nest deeper than 128.
    #[error("the json at byte {offset} nests deeper than 128; send a flatter body")]
    TooDeep {
        /// Where the first too deep value starts.
        offset: usize,
    },
    /// A number's exponent has more than 18 digits.
    #[error("the exponent of the number at byte {offset} has more than 18 digits; send a smaller one")]
    Exponent {
        /// Where the number starts.
        offset: usize,
    },
    /// A broken percent escape, or a byte that must be escaped.
    #[error("the form is malformed at byte {offset}; percent-encode names and values")]
    Form {
        /// Where reading stopped.
        offset: usize,
    },
    /// A multipart rule, and no single `multipart/form-data` content type with a valid boundary.
    #[error("the content type is not multipart/form-data with a boundary; send both")]
    NoBoundary,
    /// Not `multipart/form-data` as RFC 7578 has it.
    #[error("the multipart body is malformed at byte {offset}: {reason}")]
    Multipart {
        /// Where reading stopped.
        offset: usize,
        /// What was wrong there.
        reason: &'static str,
    },
    /// More than 1,000 parts.
    #[error("the multipart body has more than 1000 parts; send fewer")]
    TooManyParts,
}

impl BodyError {
    /// A duplicate member, by its name alone; [`BodyError::under`] adds the way to it.
    pub(super) fn duplicate(name: &[u8]) -> Self {
        Self::DuplicateMember { pointer: token(name) }
    }

    /// The same complaint, seen from the value that holds it under `name`.
    pub(super) fn under(self, name: &[u8]) -> Self {
        match self {
            Self::DuplicateMember { pointer } => Self::DuplicateMember { pointer: token(name) + &pointer },
            Self::Coded
            | Self::NotJson { .. }
            | Self::TooDeep { .. }
            | Self::Exponent { .. }
            | Self::Form { .. }
            | Self::NoBoundary
            | Self::Multipart { .. }
            | Self::TooManyParts => self,
        }
    }
}

/// A pointer token for a message; cut, so that a message stays short whatever was sent.
fn token(name: &[u8]) -> String {
    let name = String::from_utf8_lossy(name);
    let mut shown: String = name.chars().take(64).collect();
    if shown.len() < name.len() {
        shown.push('…');
    }
    let shown = shown.replace('~', "~0").replace('/', "~1");
    format!("/{shown}")
}
