//! What `rusqlite` does not wrap: whether a COMMIT would be refused, whether an effect left statements running, and
//! syncing the file through SQLite's own descriptor. No other foreign call belongs here.
#![expect(
    unsafe_code,
    reason = "sqlite3_db_status, sqlite3_next_stmt and sqlite3_file have no safe wrapper in rusqlite"
)]

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

/// Syncs the main file of `conn`. A descriptor of our own would, when it is closed, take SQLite's locks on the file with
/// it (POSIX `fcntl`).
pub(super) fn sync(conn: &Connection) -> rusqlite::Result<()> {
    let mut file: *mut ffi::sqlite3_file = ptr::null_mut();
    // SAFETY: the handle is open for as long as the connection is borrowed, this thread is the only one that uses it,
    // and this file control only writes the pointer to the file that belongs to it.
    let code = unsafe {
        let into = (&raw mut file).cast();
        ffi::sqlite3_file_control(conn.handle(), c"main".as_ptr(), ffi::SQLITE_FCNTL_FILE_POINTER, into)
    };
    if code != ffi::SQLITE_OK || file.is_null() {
        return Err(error(code));
    }
    // SAFETY: the file is open for as long as its connection is, and its methods are a constant of SQLite's; where the
    // file is none, they are null.
    let code = unsafe {
        match (*file).pMethods.as_ref().and_then(|methods| methods.xSync) {
            Some(sync) => sync(file, ffi::SQLITE_SYNC_NORMAL),
            None => ffi::SQLITE_MISUSE,
        }
    };
    if code == ffi::SQLITE_OK { Ok(()) } else { Err(error(code)) }
}

/// What SQLite's `code` says.
pub(super) fn error(code: i32) -> rusqlite::Error {
    rusqlite::Error::SqliteFailure(ffi::Error::new(code), None)
}
