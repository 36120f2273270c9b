//! What SQLite's errors mean to a caller of the store, with the next step.
//!
//! What does not belong here: what becomes of a batch in which one happened (`batch`).

use rusqlite::ErrorCode;

use crate::error::{ErrorKind, StoreError};
use crate::gate::random;

/// Turns an error of SQLite into one that certainly applied nothing, told with what was being done.
pub(super) fn failed(doing: &'static str) -> impl Fn(rusqlite::Error) -> StoreError {
    move |error| {
        let (kind, next) = judge(&error);
        StoreError::not_applied(kind, format!("{doing}: {error}: {next}")).caused_by(error)
    }
}

fn judge(error: &rusqlite::Error) -> (ErrorKind, &'static str) {
    let Some(code) = error.sqlite_error_code() else {
        return (ErrorKind::Corrupt, "a stored value has an unexpected form: restore the file from a backup");
    };
    match code {
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => {
            (ErrorKind::Busy, "another process holds the file: try again, or end whoever holds it")
        }
        ErrorCode::DiskFull => (ErrorKind::Unavailable, "make room on the disk"),
        ErrorCode::ReadOnly | ErrorCode::PermissionDenied => {
            (ErrorKind::Unavailable, "make the file and its directory writable")
        }
        ErrorCode::CannotOpen => (ErrorKind::Unavailable, "look whether the file and its directory stand"),
        ErrorCode::DatabaseCorrupt => (ErrorKind::Corrupt, "restore the file from a backup"),
        ErrorCode::NotADatabase => (ErrorKind::Unavailable, "the file is no SQLite database: name another one"),
        _ => (ErrorKind::Unavailable, "look at the disk and the system's log"),
    }
}

/// 16 bytes of the operating system's randomness, as text.
pub(super) fn random_hex() -> Result<String, StoreError> {
    Ok(format!("{:032x}", u128::from_be_bytes(random()?)))
}
