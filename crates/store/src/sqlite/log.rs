//! Moving the write-ahead log into the file beside the writer, so that no claim waits for it: SQLite's own way has the
//! writer do it inside a commit.
//!
//! A pass copies what was committed so far and blocks nobody. The log begins anew only at a moment when all of it is in
//! the file, which under load never comes by itself: once the log is long and little of it is left, the writer moves
//! that little between two batches. What does not belong here: winning back trust after a failed commit (`recovery`).

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::ffi::SQLITE_IOERR_FSYNC;
use rusqlite::hooks::Wal;
use rusqlite::wal::CheckpointMode;
use rusqlite::{Connection, ErrorCode};

use super::connect::{self, Place};
use super::fault::failed;
use super::{Inner, Options, raw};
use crate::error::{ErrorKind, StoreError};

/// A pass begins when so many frames of 4 KiB were written since the last one began.
const PASS_AFTER: u32 = 1_000;
/// A log of so many frames should begin anew,
const LONG: u32 = 4_000;
/// which the writer sees to when no more than so many are left to move,
const LITTLE: u32 = 200;
/// or when the log is this long, whatever is left: passes cannot keep up.
const TOO_LONG: u32 = 16_000;

/// The log, and how much of it is in the file.
pub(super) struct Log {
    place: Place,
    options: Options,
    /// How many frames it had after the writer's last commit.
    frames: AtomicU32,
    progress: Mutex<Progress>,
    idle: Condvar,
    /// The connection of passes; locked during one.
    conn: Mutex<Option<Connection>>,
    /// The disk did not keep what was moved: what the file says is not believed any more.
    failed: AtomicBool,
    /// The next sync fails.
    #[cfg(test)]
    pub(super) fail_sync: AtomicBool,
}

#[derive(Debug, Default)]
struct Progress {
    /// How many frames of the log are in the file.
    moved: u32,
    /// How many frames the log had when the last pass began.
    begun_at: u32,
    running: bool,
    closed: bool,
}

/// What the log needs after a commit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Need {
    Nothing,
    /// A pass on a thread of its own.
    Beside,
    /// A pass by the writer.
    Here,
}

impl Progress {
    /// What a log of `frames` needs. Where that is a pass, it has begun.
    fn need(&mut self, frames: u32) -> Need {
        if frames < self.begun_at {
            // The log has begun anew.
            (self.moved, self.begun_at) = (0, 0);
        }
        if self.running || self.closed {
            return Need::Nothing;
        }
        let (left, grown) = (frames.saturating_sub(self.moved), frames - self.begun_at);
        let need = if frames >= LONG && (1..=LITTLE).contains(&left) && grown > 0 {
            Need::Here
        } else if grown < PASS_AFTER {
            return Need::Nothing;
        } else if frames < TOO_LONG {
            Need::Beside
        } else {
            Need::Here
        };
        (self.running, self.begun_at) = (true, frames);
        need
    }

    /// A pass is over, with so many frames in the file. Whether another should follow at once: the log is long, and it
    /// helped.
    fn passed(&mut self, moved: u32, frames: u32) -> bool {
        let helped = moved > self.moved;
        self.moved = moved;
        let again = helped && !self.closed && frames >= LONG && frames.saturating_sub(moved) > LITTLE;
        if again {
            self.begun_at = frames;
        }
        again
    }
}

impl Log {
    pub(super) fn new(place: Place, options: Options) -> Arc<Self> {
        Arc::new(Self {
            place,
            options,
            frames: AtomicU32::new(0),
            progress: Mutex::default(),
            idle: Condvar::new(),
            conn: Mutex::new(None),
            failed: AtomicBool::new(false),
            #[cfg(test)]
            fail_sync: AtomicBool::new(false),
        })
    }

    /// Learns of every commit of `conn`, in the place of SQLite's own checkpoints.
    pub(super) fn watch(self: &Arc<Self>, conn: &mut Connection) -> Result<(), StoreError> {
        let log = Arc::clone(self);
        let committed = move |_: &mut Wal, frames| {
            log.frames.store(u32::try_from(frames).unwrap_or(0), Ordering::Relaxed);
            Ok(())
        };
        conn.wal_hook(Some(committed)).map_err(failed("cannot watch the store's log"))
    }

    /// No pass is under way while the answer lives, and no connection of one.
    pub(super) fn still(&self) -> MutexGuard<'_, Option<Connection>> {
        let mut conn = self.conn.lock().unwrap_or_else(PoisonError::into_inner);
        *conn = None;
        conn
    }

    /// Begins nothing any more, and waits for a pass that is under way, at most `limit`.
    pub(super) fn close(&self, limit: Duration) {
        let mut progress = self.progress();
        progress.closed = true;
        let running = |progress: &mut Progress| progress.running;
        let (_progress, wait) =
            self.idle.wait_timeout_while(progress, limit, running).unwrap_or_else(PoisonError::into_inner);
        if !wait.timed_out() {
            drop(self.still());
        }
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn frames(&self) -> u32 {
        self.frames.load(Ordering::Relaxed)
    }

    /// Passes until no other should follow at once.
    fn pass_beside(self: &Arc<Self>) {
        let _running = Running(self);
        loop {
            let moved = self.pass_once();
            let frames = self.frames();
            let again = self.passed(moved, frames);
            if !again {
                return;
            }
        }
    }

    fn pass_once(&self) -> Result<u32, StoreError> {
        let mut slot = self.conn.lock().unwrap_or_else(PoisonError::into_inner);
        self.place.same()?;
        let conn = match slot.take() {
            Some(conn) => conn,
            None => connect::writer(&self.place, &self.options)?,
        };
        let moved = pass(&conn)?;
        // SQLite syncs the file only after the last frame. Done here before, the writer's own pass has little to wait
        // for; and not sooner, as a page that is written often is then synced once.
        if self.frames() >= LONG {
            self.sync(&conn)?;
        }
        *slot = Some(conn);
        Ok(moved)
    }

    fn sync(&self, conn: &Connection) -> Result<(), StoreError> {
        #[cfg(test)]
        if self.fail_sync.swap(false, Ordering::Relaxed) {
            return Err(failed("cannot sync the store's file")(raw::error(SQLITE_IOERR_FSYNC)));
        }
        raw::sync(conn).map_err(failed("cannot sync the store's file"))
    }

    /// Learns what a pass came to. Whether another should follow at once.
    fn passed(&self, moved: Result<u32, StoreError>, frames: u32) -> bool {
        match moved {
            Ok(moved) => self.progress().passed(moved, frames),
            Err(error) if is_lost(&error) => {
                // Linux says so once and takes the pages for written then; SQLite would read them from the file.
                self.failed.store(true, Ordering::Release);
                self.progress().closed = true;
                tracing::error!(%error, "the disk lost what was moved into the store's file: nothing more is decided");
                false
            }
            Err(error) => {
                tracing::warn!(%error, "the store's log could not be moved into its file; it is tried again");
                false
            }
        }
    }

    /// That the disk has kept everything that was moved.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        if !self.failed.load(Ordering::Acquire) {
            return Ok(());
        }
        Err(StoreError::not_applied(
            ErrorKind::Unavailable,
            "the disk failed while the log was moved into the store's file: look at the disk, then restart",
        ))
    }
}

/// A pass that is under way, until this is dropped, by a panic too.
struct Running<'l>(&'l Log);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.progress().running = false;
        self.0.idle.notify_all();
    }
}

/// Copies into the file what no reader stands in the way of; answers how many frames of the log are there.
fn pass(conn: &Connection) -> Result<u32, StoreError> {
    match conn.wal_checkpoint_v2(Some("main"), CheckpointMode::PASSIVE) {
        Ok((_, moved)) => Ok(u32::try_from(moved).unwrap_or(0)),
        // Another process is at it.
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => Ok(0),
        Err(error) => Err(failed("cannot move the log into the file")(error)),
    }
}

/// Whether a sync failed, after which nobody can say what is on the disk.
fn is_lost(error: &StoreError) -> bool {
    let source = error.source.as_ref().and_then(|source| source.downcast_ref::<rusqlite::Error>());
    source.and_then(rusqlite::Error::sqlite_error).is_some_and(|error| error.extended_code == SQLITE_IOERR_FSYNC)
}

impl Inner {
    /// Sees to the log after a batch, when its callers are answered.
    pub(super) fn tend_log(&self) {
        let frames = self.log.frames();
        let need = self.log.progress().need(frames);
        let spawned = match need {
            Need::Nothing => return,
            Need::Here => false,
            Need::Beside => {
                let log = Arc::clone(&self.log);
                let thread = std::thread::Builder::new().name("counterfoil-log".to_owned());
                thread.spawn(move || log.pass_beside()).is_ok()
            }
        };
        if !spawned {
            self.pass_here();
        }
    }

    fn pass_here(&self) {
        let _running = Running(&self.log);
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(conn) = writer.conn.as_ref() else { return };
        // Another at once would find nothing more.
        self.log.passed(pass(conn), 0);
    }
}

#[cfg(test)]
mod tests;
