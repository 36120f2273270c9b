//! Whether a transaction has deferred constraints that its COMMIT would refuse. SQLite tells it through a call that
//! `rusqlite` does not wrap; no other foreign call belongs here.
#![expect(unsafe_code, reason = "sqlite3_db_status has no safe wrapper in rusqlite")]

use rusqlite::{Connection, ffi};

/// Whether a foreign key is violated now, deferred ones included. What cannot be told counts as violated.
pub(super) fn outstanding(conn: &Connection) -> bool {
    let (mut now, mut highest) = (0, 0);
    // SAFETY: the handle is open for as long as the connection is borrowed, this thread is the only one that uses
    // it, and both out-pointers are valid for the call, which keeps neither.
    let code = unsafe {
        ffi::sqlite3_db_status(conn.handle(), ffi::SQLITE_DBSTATUS_DEFERRED_FKS, &raw mut now, &raw mut highest, 0)
    };
    code != ffi::SQLITE_OK || now != 0
}
