//! What an error of the driver or the server says of the write, and which kind it is.
//!
//! Only errors that are known to undo their statement count as "not applied"; everything else after a statement was
//! sent (a lost connection, a time-out, a server that goes down) leaves the write unknown. The server's own words never
//! get into a message: they may hold a key.

use mysql_async::{DriverError, Error, ServerError};

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

/// A call that has no rows.
#[derive(Debug)]
pub(super) enum Failed {
    /// Somebody's open transaction holds a lock that is needed; nothing was written.
    Locked,
    /// The server undid the transaction for another's sake; nothing was written.
    Deadlock,
    /// Anything else.
    Other(StoreError),
}

impl Failed {
    /// As an error, where nobody tries again.
    pub(super) fn told(self, doing: &str) -> StoreError {
        match self {
            Self::Locked => busy(doing, "an open transaction holds the record"),
            Self::Deadlock => busy(doing, "the server undid it for another transaction's sake"),
            Self::Other(error) => error,
        }
    }
}

fn busy(doing: &str, why: &str) -> StoreError {
    StoreError::not_applied(ErrorKind::Busy, format!("{doing}: {why}: try again"))
}

/// Nothing was sent, because no connection could be had.
pub(super) fn unreachable(error: Error) -> StoreError {
    if let Error::Server(told) = &error {
        let (kind, next) = judged(told).unwrap_or((ErrorKind::Unavailable, "see its log"));
        let detail = format!("the database server refuses the connection ({}): {next}", told.code);
        return StoreError::not_applied(kind, detail);
    }
    let detail = "the database server cannot be reached: see that it runs and where it listens";
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

/// What is known after a statement was sent and failed.
pub(super) fn failed(error: Error, intent: Intent, doing: &str) -> Failed {
    let (applied, kind) = intent.lost();
    let (detail, source): (String, Option<Box<dyn std::error::Error + Send + Sync>>) = match error {
        Error::Server(told) => match told.code {
            1205 => return Failed::Locked,
            1213 => return Failed::Deadlock,
            code => {
                if let Some((kind, next)) = judged(&told) {
                    let detail = format!("{doing}: {next} ({code})");
                    return Failed::Other(StoreError::not_applied(kind, detail));
                }
                (format!("{doing}: the database server failed ({code}): see its log"), None)
            }
        },
        Error::Io(error) => (format!("{doing}: the connection to the database server was lost"), Some(Box::new(error))),
        // What these hold may be a value.
        Error::Driver(_) | Error::Other(_) | Error::Url(_) => {
            (format!("{doing}: the database server's answer is not understood"), None)
        }
    };
    Failed::Other(StoreError { applied, kind, detail, source })
}

/// What is known of a statement in somebody's open transaction: nothing of it is applied before its COMMIT.
pub(super) fn within(error: Error, doing: &str) -> Failed {
    match failed(error, Intent::Reads, doing) {
        Failed::Other(error) => Failed::Other(StoreError { applied: Applied::No, ..error }),
        Failed::Locked => Failed::Locked,
        Failed::Deadlock => Failed::Deadlock,
    }
}

/// Whether the server is still there to say that the statement was undone.
pub(super) fn is_undone(error: &Error) -> bool {
    match error {
        Error::Server(told) => matches!(told.code, 1205 | 1213) || judged(told).is_some(),
        Error::Io(_) | Error::Driver(_) | Error::Other(_) | Error::Url(_) => false,
    }
}

/// Whether the connection ended: by itself, or with the server's word that it goes down, or ended it for idleness or at
/// somebody's command (1053, 1927, 4031).
pub(super) fn is_gone(error: &Error) -> bool {
    match error {
        Error::Io(_) => true,
        Error::Server(told) => matches!(told.code, 1053 | 1927 | 4031),
        Error::Driver(told) => matches!(told, DriverError::ConnectionClosed | DriverError::PoolDisconnected),
        Error::Other(_) | Error::Url(_) => false,
    }
}

/// The kind and the next step, for errors after which nothing was written.
fn judged(told: &ServerError) -> Option<(ErrorKind, &'static str)> {
    Some(match told.code {
        1020 => (ErrorKind::Busy, "somebody changed the record after the transaction had begun to read: try again"),
        1040 | 1203 | 1226 | 1041 => (ErrorKind::Busy, "the database server has no connection to spare: try again"),
        1290 | 1792 | 1836 => {
            (ErrorKind::Unavailable, "the database takes no writes: connect to the primary, with a user that may write")
        }
        1044 | 1045 | 1142 | 1143 | 1227 | 1370 | 1410 | 1698 => {
            (ErrorKind::Unavailable, "the user lacks a right on the store: grant it as the documentation says")
        }
        1049 | 1046 => (ErrorKind::Unavailable, "there is no such database: create it, then run `counterfoil migrate`"),
        1054 | 1146 | 1305 | 1318 | 1356 => {
            (ErrorKind::Unavailable, "the database holds no store of this version: run `counterfoil migrate`")
        }
        1153 | 1301 => (ErrorKind::Misuse, "the record is larger than the server accepts: raise max_allowed_packet"),
        1114 => (ErrorKind::Unavailable, "the database server's storage is full: make room"),
        1665 => (ErrorKind::Unavailable, "the server logs statements: set binlog_format to MIXED or ROW"),
        1048 | 1264 | 1366 | 1406 => (ErrorKind::Misuse, "the database does not take such a value"),
        _ => return None,
    })
}
