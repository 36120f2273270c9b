//! Two questions to SQLite that `rusqlite` does not wrap: whether a COMMIT would be refused, and whether an effect left
//! statements running. No other foreign call belongs here.
#![expect(unsafe_code, reason = "sqlite3_db_status and sqlite3_next_stmt have no safe wrapper in rusqlite")]

use std::ptr;

use rusqlite::{Connection, ffi};

/// Whether a foreign key is violated now, deferred ones included. What cannot be told counts as violated.
pub(super) fn violated(conn: &Connection) -> bool {
    let (mut now, mut highest) = (0, 0);
    // SAFETY: the handle is open for as long as the connection is borrowed, this thread is the only one that uses
    // it, and both out-pointers are valid for the call, which keeps neither.
    let code = unsafe {
        ffi::sqlite3_db_status(conn.handle(), ffi::SQLITE_DBSTATUS_DEFERRED_FKS, &raw mut now, &raw mut highest, 0)
    };
    code != ffi::SQLITE_OK || now != 0
}

/// Stops every statement that runs, and answers whether any did. A running one would hold up everybody's COMMIT.
///
/// Call it where no statement of the store's own runs: what does then was leaked by an effect.
pub(super) fn stop_running(conn: &Connection) -> bool {
    if !conn.is_busy() {
        return false;
    }
    let mut statement = ptr::null_mut();
    loop {
        // SAFETY: the handle is open and used by this thread alone; the statement is null, which asks for the first
        // one, or one of this connection that nobody has finalized since, because nothing runs between two rounds.
        // A statement is only reset, which its owner, had it one still, may find at any time.
        unsafe {
            statement = ffi::sqlite3_next_stmt(conn.handle(), statement);
            if statement.is_null() {
                return true;
            }
            if ffi::sqlite3_stmt_busy(statement) != 0 {
                ffi::sqlite3_reset(statement);
            }
        }
    }
}
