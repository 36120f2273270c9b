//! The writer's connection, and how trust in it is won back after a COMMIT failed: closed, opened, and the log read
//! back into the file before anybody reads again.
//!
//! What does not belong here: what the writer does (`batch`).

use std::sync::atomic::Ordering;
use std::sync::{Arc, TryLockError};

use rusqlite::Connection;
use rusqlite::wal::CheckpointMode;

use super::Inner;
use super::connect;
use super::fault::failed;
use super::guard::Guard;
use super::log::Log;
use super::meta;
use crate::error::{ErrorKind, StoreError};

/// The writer's connection.
pub(super) struct Writer {
    /// `None`: not trusted, or closed.
    pub(super) conn: Option<Connection>,
    pub(super) guard: Arc<Guard>,
    /// The mark that was written last.
    pub(super) mark: meta::Written,
}

impl Writer {
    /// A connection to a file that is trusted.
    pub(super) fn open(place: &connect::Place, options: &super::Options, log: &Arc<Log>) -> Result<Self, StoreError> {
        let guard = Arc::new(Guard::default());
        let conn = connected(place, options, &guard, log)?;
        Ok(Self { conn: Some(conn), guard, mark: meta::Written::none() })
    }
}

fn connected(
    place: &connect::Place,
    options: &super::Options,
    guard: &Arc<Guard>,
    log: &Arc<Log>,
) -> Result<Connection, StoreError> {
    let mut conn = connect::writer(place, options)?;
    guard.watch(&mut conn)?;
    log.watch(&mut conn)?;
    Ok(conn)
}

impl Inner {
    /// The writer's connection, if the store can be used: its file is the one that was opened, and what a failed
    /// commit left is read back.
    pub(super) fn usable<'w>(&self, writer: &'w mut Writer) -> Result<&'w Connection, StoreError> {
        self.place.same().inspect_err(|_| self.gone.store(true, Ordering::Relaxed))?;
        self.gone.store(false, Ordering::Relaxed);
        self.log.check()?;
        if self.distrusted.load(Ordering::Acquire) {
            writer.conn = Some(self.read_back(&writer.guard)?);
            self.distrusted.store(false, Ordering::Release);
            tracing::warn!("the store was read back after a failed commit and is used again");
        }
        writer.conn.as_ref().ok_or_else(closed)
    }

    /// Closes a connection whose state is not known, its readers too. Nothing is read until `usable` succeeds.
    pub(super) fn distrust(&self, writer: &mut Writer) {
        self.distrusted.store(true, Ordering::Release);
        writer.conn = None;
        self.readers.clear();
    }

    fn read_back(&self, guard: &Arc<Guard>) -> Result<Connection, StoreError> {
        let _still = self.log.still();
        let conn = connected(&self.place, &self.options, guard, &self.log)?;
        let (blocked, _, _) = truncate(&conn)?;
        if blocked {
            return Err(StoreError::not_applied(
                ErrorKind::Unavailable,
                "a commit failed, and another connection keeps its log from being read back: end whoever reads the \
                 file; the store tries again with every call",
            ));
        }
        Ok(conn)
    }

    /// That reads can be trusted. Tries to win the trust back where nobody else does.
    pub(super) fn trusted(&self) -> Result<(), StoreError> {
        if self.closed.load(Ordering::Relaxed) {
            return Err(closed());
        }
        if self.gone.load(Ordering::Relaxed) {
            self.place.same()?;
        }
        self.log.check()?;
        if !self.distrusted.load(Ordering::Acquire) {
            return Ok(());
        }
        let mut writer = match self.writer.try_lock() {
            Ok(writer) => writer,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return Err(not_trusted()),
        };
        self.usable(&mut writer).map(|_| ())
    }
}

/// Moves the whole log into the file and empties it: whether somebody was in the way, then its frames.
fn truncate(conn: &Connection) -> Result<(bool, i32, i32), StoreError> {
    let doing = failed("cannot read the log back after a failed commit");
    match conn.wal_checkpoint_v2(Some("main"), CheckpointMode::TRUNCATE) {
        Ok((log, done)) => Ok((log != done, log, done)),
        Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy) => Ok((true, 0, 0)),
        Err(error) => Err(doing(error)),
    }
}

fn not_trusted() -> StoreError {
    StoreError::not_applied(
        ErrorKind::Unavailable,
        "a commit failed and the store is being read back: try again, and look at the disk if that goes on",
    )
}

pub(super) fn closed() -> StoreError {
    StoreError::not_applied(ErrorKind::Unavailable, "the store is closed: open it again")
}
