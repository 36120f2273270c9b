//! What an error of the driver or the server says of the write, and which kind it is.
//!
//! The server's ERROR means that its transaction was undone. Everything else after a statement was sent (a lost
//! connection, a time-out, a FATAL end) leaves the write unknown. Values never get into a message: the server's DETAIL
//! may hold a key, and is left out.

use tokio_postgres::error::{DbError, Severity, SqlState};

use crate::error::{Applied, ErrorKind, StoreError};

/// Whether a statement may change something.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Intent {
    Reads,
    Writes,
}

impl Intent {
    const fn lost(self) -> (Applied, ErrorKind) {
        match self {
            Self::Reads => (Applied::No, ErrorKind::Unavailable),
            Self::Writes => (Applied::Unknown, ErrorKind::Unknown),
        }
    }
}

/// The same error for each of those who were in one statement.
pub(super) fn told(error: &StoreError) -> StoreError {
    StoreError { applied: error.applied, kind: error.kind, detail: error.detail.clone(), source: None }
}

/// Nothing was sent, because no connection could be had.
pub(super) fn unreachable(error: tokio_postgres::Error) -> StoreError {
    if let Some(told) = error.as_db_error() {
        let (kind, next) = kind(told.code().code(), told.message());
        return StoreError::not_applied(kind, format!("the database server refuses the connection: {next}"));
    }
    let detail = format!("the database server cannot be reached ({error}): see that it runs and where it listens");
    StoreError::not_applied(ErrorKind::Unavailable, detail).caused_by(error)
}

/// Nothing was sent in time.
pub(super) fn no_room() -> StoreError {
    StoreError::not_applied(
        ErrorKind::Busy,
        "no connection to the database server was free in time: allow more, or try again",
    )
}

/// A connection was not made in time.
pub(super) fn slow_to_connect() -> StoreError {
    StoreError::not_applied(
        ErrorKind::Unavailable,
        "the database server did not accept a connection in time: see that it runs and is not overloaded",
    )
}

/// A statement was sent, and no answer came in time.
pub(super) fn timed_out(intent: Intent, doing: &str) -> StoreError {
    let (applied, kind) = intent.lost();
    StoreError { applied, kind, detail: format!("{doing}: the database server gave no answer in time"), source: None }
}

/// A commit that was told to stop waiting for the standbys.
pub(super) fn not_replicated(doing: &str) -> StoreError {
    let detail = format!("{doing}: the server stopped waiting for its standbys, so a fail-over may forget it");
    StoreError::unknown(ErrorKind::Unknown, detail)
}

/// What is known after a statement was sent and failed.
pub(super) fn failed(error: tokio_postgres::Error, intent: Intent, doing: &str) -> StoreError {
    match error.as_db_error() {
        Some(told) if is_undone(told) => undone(told.code().code(), told.message(), doing),
        Some(told) => ended(told.code().code(), intent, doing),
        None => lost(intent, doing).caused_by(error),
    }
}

/// Whether nobody is there any more to say what became of a statement.
pub(super) fn is_gone(error: &tokio_postgres::Error) -> bool {
    error.as_db_error().is_none_or(|told| !is_undone(told))
}

/// The server says that the transaction was undone.
pub(super) fn undone(code: &str, message: &str, doing: &str) -> StoreError {
    let (kind, next) = kind(code, message);
    StoreError::not_applied(kind, format!("{doing}: {next}"))
}

/// The server says that it ends the connection.
pub(super) fn ended(code: &str, intent: Intent, doing: &str) -> StoreError {
    let (applied, kind) = intent.lost();
    let detail = format!("{doing}: the database server ended the connection ({code})");
    StoreError { applied, kind, detail, source: None }
}

/// Nobody says anything any more.
pub(super) fn lost(intent: Intent, doing: &str) -> StoreError {
    let (applied, kind) = intent.lost();
    let detail = format!("{doing}: the connection to the database server was lost");
    StoreError { applied, kind, detail, source: None }
}

/// Whether the server says that the transaction was undone, and is still there to say so. A pooler between reports a
/// lost server as an error of class 08.
pub(super) fn is_undone(told: &DbError) -> bool {
    let is_error = told.parsed_severity().map_or_else(|| told.severity() == "ERROR", |level| level == Severity::Error);
    is_error && !told.code().code().starts_with("08")
}

/// The kind, and what is wrong with the next step.
fn kind(code: &str, message: &str) -> (ErrorKind, String) {
    let state = SqlState::from_code(code);
    let busy = [
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::T_R_DEADLOCK_DETECTED,
        SqlState::LOCK_NOT_AVAILABLE,
        SqlState::TOO_MANY_CONNECTIONS,
        SqlState::QUERY_CANCELED,
    ];
    let missing = [
        SqlState::UNDEFINED_TABLE,
        SqlState::UNDEFINED_FUNCTION,
        SqlState::UNDEFINED_COLUMN,
        SqlState::INVALID_SCHEMA_NAME,
        SqlState::INVALID_CATALOG_NAME,
    ];
    if busy.contains(&state) {
        (ErrorKind::Busy, format!("the database server is busy ({code}): try again"))
    } else if state == SqlState::READ_ONLY_SQL_TRANSACTION {
        let next = "the database takes no writes: connect to the primary, with a role that may write";
        (ErrorKind::Unavailable, next.to_owned())
    } else if state == SqlState::INSUFFICIENT_PRIVILEGE {
        let next = "the role lacks a right on schema counterfoil: grant it as the documentation says";
        (ErrorKind::Unavailable, next.to_owned())
    } else if missing.contains(&state) {
        let next = "the database holds no store of this version: run `counterfoil migrate`";
        (ErrorKind::Unavailable, next.to_owned())
    } else {
        (ErrorKind::Unavailable, format!("{message} ({code})"))
    }
}
