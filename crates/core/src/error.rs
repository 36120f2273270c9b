//! The one error of the crate: input that cannot become a value of the domain.
//! Decisions are no errors and are not here; neither are status codes.

/// Why a text or bytes could not become a value of the domain.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A key is empty.
    #[error("the key is empty: send 1 to {limit} printable ASCII characters", limit = crate::identity::KEY_BYTES_MAX)]
    KeyEmpty,
    /// A key is longer than allowed.
    #[error("the key has {bytes} bytes: at most {limit} are allowed", limit = crate::identity::KEY_BYTES_MAX)]
    KeyTooLong {
        /// Its length in bytes.
        bytes: usize,
    },
    /// A key holds a character outside printable ASCII.
    #[error("the key holds a character outside printable ASCII at byte {at}")]
    KeyCharacter {
        /// Offset of the character in bytes.
        at: usize,
    },
    /// A key is neither a quoted string of RFC 9651 nor bare text.
    #[error(
        "the key opens with a quote but is no string of RFC 9651: close the quote, escape only \\\" and \\\\, or send bare text"
    )]
    KeyQuoting,
    /// The key's header came twice.
    #[error("the key was sent in {lines} header lines: send one")]
    KeyRepeated {
        /// How many lines came.
        lines: usize,
    },
    /// An operation's name is empty or too long.
    #[error("the operation's name has {bytes} bytes: 1 to {limit} are allowed", limit = crate::identity::OPERATION_BYTES_MAX)]
    OperationLength {
        /// Its length in bytes.
        bytes: usize,
    },
    /// A scope is unusable: no part, a repeated or malformed name, too many or too long parts.
    #[error("the scope cannot be used: {0}")]
    Scope(&'static str),
    /// An intent's name is empty, too long or not printable ASCII.
    #[error("the intent's name cannot be used: give 1 to {limit} printable ASCII characters", limit = crate::intent::NAME_BYTES_MAX)]
    IntentName,
    /// A request cannot be frozen as an intent.
    #[error("the request cannot be kept as an intent: {0}")]
    Request(&'static str),
    /// A header of a request cannot be frozen.
    #[error("the header `{name}` cannot be kept as an intent: {why}")]
    RequestHeader {
        /// Its name.
        name: String,
        /// What is wrong, and what to do instead.
        why: &'static str,
    },
    /// A stored intent cannot be read; it is refused and never treated as absent.
    #[error(
        "the stored intent cannot be decoded ({0}): it may have been sent, so restore the journal from a backup before \
         anything is sent again"
    )]
    IntentCorrupt(&'static str),
    /// A stored intent was written by a newer version.
    #[error("the stored intent has format {found}, this version reads up to {known}: run the newer version again")]
    IntentNewer {
        /// The format found.
        found: u8,
        /// The newest format that this version reads.
        known: u8,
    },
    /// Stored bytes cannot be read; they are refused and never treated as absent.
    #[error(
        "the stored record cannot be decoded ({0}): export it with `counterfoil receipts export` and restore the row from a backup"
    )]
    Corrupt(&'static str),
    /// Stored bytes were written by a newer version.
    #[error("the stored record has format {found}, this version reads up to {known}: run the newer version again")]
    Newer {
        /// The format found.
        found: u8,
        /// The newest format that this version reads.
        known: u8,
    },
}
