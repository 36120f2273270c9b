//! The file of a store: where it is, that it is still the same one, and connections to it.
//!
//! What does not belong here: which tables it has (`schema`), and what is said over a connection.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::fault::failed;
use super::options::{ForeignKeys, Options};
use crate::error::{ErrorKind, StoreError};

/// The first SQLite that does not lose commits when one connection checkpoints while another writes.
const OLDEST_SQLITE: i32 = 3_051_003;

/// The pause between two tries to switch a file to a write-ahead log.
const SWITCH_PAUSE: Duration = Duration::from_millis(5);

/// The writer's page cache, in KiB: inner pages and what is written often. In a file under 1 GiB a commit after a page
/// was split walks the whole cache (a page's number stands in for another while pages are balanced), so a larger one
/// makes every commit slower; what is not in it is in the system's.
const WRITER_CACHE_KIB: u32 = 8 * 1024;

/// A reader's page cache, in KiB. It is emptied whenever somebody else has committed.
const READER_CACHE_KIB: u32 = 4 * 1024;

/// A file by name, and by what the name meant when it was opened.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) path: PathBuf,
    device: u64,
    inode: u64,
}

impl Place {
    /// The file at `path`, which must stand.
    pub(super) fn of(path: &Path) -> Result<Self, StoreError> {
        let missing = |error: io::Error| {
            StoreError::not_applied(
                ErrorKind::Unavailable,
                format!("no store at {}: {error}: run `counterfoil migrate`, or name the right file", path.display()),
            )
            .caused_by(error)
        };
        let path = path.canonicalize().map_err(missing)?;
        let found = fs::metadata(&path).map_err(missing)?;
        if !found.is_file() {
            return Err(StoreError::not_applied(
                ErrorKind::Unavailable,
                format!("{} is no file: name the store's file", path.display()),
            ));
        }
        Ok(Self { path, device: found.dev(), inode: found.ino() })
    }

    /// That the name still means the file that was opened.
    pub(super) fn same(&self) -> Result<(), StoreError> {
        match fs::metadata(&self.path) {
            Ok(found) if (found.dev(), found.ino()) == (self.device, self.inode) => Ok(()),
            Ok(_) => Err(self.gone("was replaced")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(self.gone("was deleted")),
            Err(error) => Err(self.gone("cannot be looked at").caused_by(error)),
        }
    }

    fn gone(&self, what: &str) -> StoreError {
        StoreError::not_applied(
            ErrorKind::Unavailable,
            format!("the store's file {} {what} while it was in use: put it back, or restart", self.path.display()),
        )
    }

    /// Whether `other` is the same file.
    pub(super) fn is(&self, other: &Path) -> bool {
        fs::metadata(other).is_ok_and(|found| (found.dev(), found.ino()) == (self.device, self.inode))
    }

    /// The path with `ending` behind the file's name.
    pub(super) fn beside(&self, ending: &str) -> PathBuf {
        let mut name: OsString = self.path.clone().into_os_string();
        name.push(ending);
        PathBuf::from(name)
    }
}

/// Makes an empty file that only its owner can read, where none stands.
pub(super) fn create(path: &Path) -> Result<(), StoreError> {
    // SQLite gives its log and index the mode of this file.
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(StoreError::not_applied(
            ErrorKind::Unavailable,
            format!("cannot make the store {}: {error}: make its directory, or name another file", path.display()),
        )
        .caused_by(error)),
    }
}

/// That the SQLite that is linked is safe to use.
pub(super) fn check_version() -> Result<(), StoreError> {
    if rusqlite::version_number() >= OLDEST_SQLITE {
        return Ok(());
    }
    Err(StoreError::not_applied(
        ErrorKind::Unavailable,
        format!("SQLite {} may lose commits: build with SQLite 3.51.3 or newer", rusqlite::version()),
    ))
}

/// A connection that may write.
pub(super) fn writer(place: &Place, options: &Options) -> Result<Connection, StoreError> {
    let doing = failed("cannot open the store");
    let conn = open(place, options)?;
    let found = journal(&conn, options.busy_timeout).map_err(&doing)?;
    if found != "wal" {
        return Err(StoreError::not_applied(
            ErrorKind::Unavailable,
            format!("the file system of {} allows no write-ahead log: use a local disk", place.path.display()),
        ));
    }
    let foreign_keys = match options.foreign_keys {
        ForeignKeys::Enforced => "ON",
        ForeignKeys::Ignored => "OFF",
    };
    conn.execute_batch(&format!(
        "PRAGMA synchronous = FULL; PRAGMA foreign_keys = {foreign_keys}; PRAGMA temp_store = MEMORY;
         PRAGMA cache_size = -{WRITER_CACHE_KIB}; PRAGMA journal_size_limit = 67108864;"
    ))
    .map_err(&doing)?;
    if let Some(pages) = options.pages_max {
        conn.query_row(&format!("PRAGMA max_page_count = {pages}"), [], |_| Ok(())).map_err(&doing)?;
    }
    Ok(conn)
}

/// Has the file keep a write-ahead log; answers what it keeps.
///
/// Only a file's first users switch it. SQLite does not wait for the lock of that where several do at once, so the
/// wait is here.
fn journal(conn: &Connection, limit: Duration) -> rusqlite::Result<String> {
    let mode = |ask: &str| conn.query_row(ask, [], |row| row.get::<_, String>(0));
    let begun = Instant::now();
    loop {
        let found = match mode("PRAGMA journal_mode") {
            Ok(found) if found != "wal" => mode("PRAGMA journal_mode = WAL"),
            found => found,
        };
        match found {
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) && begun.elapsed() < limit => {
                std::thread::sleep(SWITCH_PAUSE);
            }
            found => return found,
        }
    }
}

/// A connection that only reads.
pub(super) fn reader(place: &Place, options: &Options) -> Result<Connection, StoreError> {
    let conn = open(place, options)?;
    conn.execute_batch(&format!("PRAGMA query_only = ON; PRAGMA cache_size = -{READER_CACHE_KIB};"))
        .map_err(failed("cannot open the store for reading"))?;
    Ok(conn)
}

fn open(place: &Place, options: &Options) -> Result<Connection, StoreError> {
    let doing = failed("cannot open the store");
    // Without CREATE: a file deleted under us must not come back empty.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(&place.path, flags).map_err(&doing)?;
    conn.busy_timeout(options.busy_timeout.min(Duration::from_mins(1))).map_err(&doing)?;
    conn.set_prepared_statement_cache_capacity(64);
    Ok(conn)
}
