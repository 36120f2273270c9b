//! The one row about the store itself: its id and birth, the clock's mark, the quarantine, the longest promise.
//!
//! What does not belong here: what a mark means (`clock`), and what a quarantine does (core).

use std::str::FromStr as _;
use std::time::Duration;

use counterfoil_core::Timestamp;
use rusqlite::Connection;

use super::Inner;
use super::fault::failed;
use crate::clock::Mark;
use crate::error::{ErrorKind, StoreError};

/// What a batch needs to know of the store.
pub(super) struct Standing {
    pub(super) mark: String,
    pub(super) quarantine_before: Option<Timestamp>,
    /// The longest span from a completion to the end of what it promises, in milliseconds.
    pub(super) longest_ms: i64,
}

pub(super) fn read(conn: &Connection) -> Result<Standing, StoreError> {
    let doing = failed("cannot read the store's own row");
    let mut statement = conn
        .prepare_cached("SELECT mark, quarantine_before, longest_ms FROM main.counterfoil_store WHERE one = 1")
        .map_err(&doing)?;
    let standing = statement.query_row([], |row| {
        Ok(Standing {
            mark: row.get(0)?,
            quarantine_before: row.get::<_, Option<i64>>(1)?.map(Timestamp::from_millis),
            longest_ms: row.get(2)?,
        })
    });
    standing.map_err(&doing)
}

/// The store's id and its time of birth.
pub(super) fn birth(conn: &Connection) -> Result<(String, Timestamp), StoreError> {
    conn.query_row("SELECT id, born_at FROM main.counterfoil_store WHERE one = 1", [], |row| {
        Ok((row.get(0)?, Timestamp::from_millis(row.get(1)?)))
    })
    .map_err(failed("cannot read the store's own row"))
}

pub(super) fn set_mark(conn: &Connection, mark: &Mark) -> Result<(), StoreError> {
    let doing = failed("cannot write the clock's mark");
    let mut statement =
        conn.prepare_cached("UPDATE main.counterfoil_store SET mark = ?1 WHERE one = 1").map_err(&doing)?;
    statement.execute([mark.to_string()]).map_err(&doing)?;
    Ok(())
}

pub(super) fn set_longest(conn: &Connection, millis: i64) -> Result<(), StoreError> {
    conn.execute("UPDATE main.counterfoil_store SET longest_ms = ?1 WHERE one = 1", [millis])
        .map_err(failed("cannot write the longest promise"))?;
    Ok(())
}

pub(super) fn set_quarantine(conn: &Connection, before: Option<Timestamp>) -> Result<(), StoreError> {
    let before = before.map(Timestamp::as_millis);
    conn.execute("UPDATE main.counterfoil_store SET quarantine_before = ?1 WHERE one = 1", [before])
        .map_err(failed("cannot write the quarantine"))?;
    Ok(())
}

/// Reads a mark's text.
pub(super) fn parse(mark: &str) -> Result<Mark, StoreError> {
    Mark::from_str(mark)
        .map_err(|error| StoreError::not_applied(ErrorKind::Corrupt, error.to_string()).caused_by(error))
}

/// The mark that this process wrote last.
pub(super) struct Written(Option<Mark>);

impl Written {
    /// None yet.
    pub(super) const fn none() -> Self {
        Self(None)
    }

    pub(super) const fn of(mark: Mark) -> Self {
        Self(Some(mark))
    }

    /// Whether `mark` is to be written: it says something new, or `every` has passed.
    pub(super) fn is_due(&self, mark: &Mark, every: Duration) -> bool {
        let Some(last) = &self.0 else { return true };
        (&last.boot_id, last.accepts, last.skew_millis) != (&mark.boot_id, mark.accepts, mark.skew_millis)
            || last.doubted_at.is_some() != mark.doubted_at.is_some()
            || mark.now.since(last.now) >= every
    }
}

impl Inner {
    /// Takes over what another process persisted, an accepted clock above all.
    pub(super) fn adopt(&self, text: &str) {
        let mut last = self.mark_seen.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if *last == text {
            return;
        }
        text.clone_into(&mut last);
        match parse(text) {
            Ok(mark) => self.time.adopt(&mark),
            // Our own mark stands, and is written over it.
            Err(error) => tracing::error!(%error, "the stored clock mark is ignored"),
        }
    }
}
