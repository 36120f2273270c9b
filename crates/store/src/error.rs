//! The one error of the crate: what is known of the write first, then what went wrong.
//! Decisions are no errors: "the key exists" is a value.

use std::fmt;

/// What is known of the write that failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Applied {
    /// Certainly not applied; a failed read counts here too.
    No,
    /// Nobody knows: repeat the same write, never another one.
    Unknown,
}

/// What went wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The store works and has no room now: try again soon.
    Busy,
    /// The store cannot be reached or used.
    Unavailable,
    /// The store's answer was lost.
    Unknown,
    /// A stored record cannot be decoded. It is refused and never treated as absent.
    Corrupt,
    /// The store or a record in it was written by a newer version.
    StoreNewer,
    /// The caller asked for what it may not ask.
    Misuse,
}

/// A call to a store that has no answer.
#[derive(Debug, thiserror::Error)]
#[error("{detail} ({}, {})", self.kind, self.applied)]
pub struct StoreError {
    /// What is known of the write.
    pub applied: Applied,
    /// What went wrong.
    pub kind: ErrorKind,
    /// What failed, in lower case, with the next step; never a key.
    pub detail: String,
    /// The cause, where another library gave one.
    #[source]
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl StoreError {
    /// An error of a call that certainly changed nothing.
    #[must_use]
    pub fn not_applied(kind: ErrorKind, detail: impl Into<String>) -> Self {
        Self { applied: Applied::No, kind, detail: detail.into(), source: None }
    }

    /// An error of a write that may or may not have been applied.
    #[must_use]
    pub fn unknown(kind: ErrorKind, detail: impl Into<String>) -> Self {
        Self { applied: Applied::Unknown, kind, detail: detail.into(), source: None }
    }

    /// The same error with its cause.
    #[must_use]
    pub fn caused_by(mut self, source: impl std::error::Error + Send + Sync + 'static) -> Self {
        self.source = Some(Box::new(source));
        self
    }
}

impl From<counterfoil_core::Error> for StoreError {
    /// What the core says of stored bytes.
    fn from(error: counterfoil_core::Error) -> Self {
        let kind = match error {
            counterfoil_core::Error::Newer { .. } => ErrorKind::StoreNewer,
            counterfoil_core::Error::Corrupt(_) => ErrorKind::Corrupt,
            _ => ErrorKind::Misuse,
        };
        Self { applied: Applied::No, kind, detail: error.to_string(), source: None }
    }
}

impl fmt::Display for Applied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::No => "nothing was written",
            Self::Unknown => "it is not known whether it was written",
        })
    }
}

impl ErrorKind {
    /// The word that metrics and logs show.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Busy => "busy",
            Self::Unavailable => "unavailable",
            Self::Unknown => "unknown",
            Self::Corrupt => "corrupt",
            Self::StoreNewer => "store-newer",
            Self::Misuse => "misuse",
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
