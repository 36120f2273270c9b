//! One transaction for all who wait: begun, worked through, committed, and only then answered.
//!
//! What does not belong here: who waits and who leads (`queue`), and what the jobs do.

use std::cell::Cell;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use counterfoil_core::{Now, Timestamp};
use rusqlite::Connection;

use super::Inner;
use super::fault::failed;
use super::guard::Guard;
use super::job::{Fate, Job};
use super::meta;
use super::recovery::Writer;
use crate::error::{ErrorKind, StoreError};
use crate::points;

/// A batch takes nothing in any more after so long.
const WORK_MAX: Duration = Duration::from_millis(5);

/// How many jobs are taken from the queue at once, so that what is urgent is never far behind.
const CHUNK: usize = 16;

/// How often the clock's mark is written, where writes happen at all.
const MARK_EVERY: Duration = Duration::from_secs(1);

// Each text holds our prefix, by which `handle` knows what an effect must not take from the cache of statements.
const BEGIN: &str = "BEGIN IMMEDIATE /* counterfoil_ */";
const COMMIT: &str = "COMMIT /* counterfoil_ */";
const SAVEPOINT: &str = "SAVEPOINT counterfoil_job";
const UNDO: &str = "ROLLBACK TO counterfoil_job";
const RELEASE: &str = "RELEASE counterfoil_job";

/// The open transaction, as a job sees it.
pub(super) struct Batch<'b> {
    pub(super) conn: &'b Connection,
    pub(super) guard: &'b Guard,
    pub(super) inner: &'b Inner,
    /// The quarantine that stands in this transaction.
    pub(super) quarantine: Cell<Option<Timestamp>>,
    /// The longest span that was ever promised, in milliseconds.
    pub(super) longest_ms: Cell<i64>,
    /// The transaction cannot go on, although SQLite would let it.
    pub(super) spoilt: Cell<bool>,
}

impl Batch<'_> {
    /// The time, read when the writer decides.
    pub(super) fn now(&self) -> Now {
        self.inner.time.now()
    }

    /// Whether the transaction is over before its end: an error ended it, and everything in it is undone.
    pub(super) fn ended(&self) -> bool {
        self.spoilt.get() || self.conn.is_autocommit()
    }

    /// Does `work` so that it alone is undone where it fails.
    pub(super) fn alone<T>(&self, work: impl FnOnce() -> Result<T, StoreError>) -> Result<T, StoreError> {
        self.savepoint()?;
        let outcome = work();
        if self.ended() {
            return outcome.and(Err(undone()));
        }
        match outcome {
            Ok(value) => self.release().map(|()| value),
            Err(error) => self.undo().and(Err(error)),
        }
    }

    /// Opens a savepoint.
    pub(super) fn savepoint(&self) -> Result<(), StoreError> {
        run(self.conn, SAVEPOINT, "cannot begin a write")
    }

    /// Keeps what was done since the savepoint.
    pub(super) fn release(&self) -> Result<(), StoreError> {
        run(self.conn, RELEASE, "cannot keep a write")
    }

    /// Undoes what was done since the savepoint. Where that fails, nothing of the transaction can be kept.
    pub(super) fn undo(&self) -> Result<(), StoreError> {
        let undone = run(self.conn, UNDO, "cannot undo a write").and_then(|()| self.release());
        if undone.is_err() {
            self.spoilt.set(true);
        }
        undone
    }
}

fn run(conn: &Connection, statement: &str, doing: &'static str) -> Result<(), StoreError> {
    let doing = failed(doing);
    conn.prepare_cached(statement).and_then(|mut statement| statement.execute([])).map_err(doing)?;
    Ok(())
}

fn undone() -> StoreError {
    StoreError::not_applied(
        ErrorKind::Unavailable,
        "an error in the same transaction undid this write: make room or mend the disk if need be, and try again",
    )
}

/// What a batch has taken from the queue.
#[derive(Default)]
struct Taken {
    /// Run, in this order.
    begun: Vec<Box<dyn Job>>,
    /// Not yet run.
    next: VecDeque<Box<dyn Job>>,
}

impl Inner {
    /// Works one batch off and answers everybody in it.
    pub(super) fn work_batch(self: &Arc<Self>) {
        self.batch_begun.store(self.millis(), Ordering::Relaxed);
        let mut taken = Taken::default();
        let fate = {
            let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
            let worked = catch_unwind(AssertUnwindSafe(|| self.transact(&mut writer, &mut taken)));
            worked.unwrap_or_else(|_| {
                // A fault of ours: whatever the transaction was at, the connection is not trusted any more.
                self.distrust(&mut writer);
                Fate::unknown(&StoreError::unknown(
                    ErrorKind::Unknown,
                    "the store's writer failed inside a transaction: send the same write again",
                ))
            })
        };
        self.batch_begun.store(0, Ordering::Relaxed);
        self.queue.put_back(taken.next.into_iter());
        for job in taken.begun {
            job.answer(&fate);
        }
        self.tend_log();
    }

    fn transact(&self, writer: &mut Writer, taken: &mut Taken) -> Fate {
        if let Err(error) = self.usable(writer).and_then(|conn| run(conn, BEGIN, "cannot begin a transaction")) {
            // Everybody who waits would meet the same.
            taken.begun.extend(self.queue.take_all());
            return Fate::not_applied(&error);
        }
        points::pass("sqlite.batch.begun");
        let worked = self.work(writer, taken);
        let Some(conn) = writer.conn.as_ref() else { return Fate::not_applied(&undone()) };
        let mark = match worked {
            Ok(mark) => mark,
            Err(error) => {
                if !conn.is_autocommit() && conn.execute_batch("ROLLBACK").is_err() {
                    self.distrust(writer);
                }
                if taken.begun.is_empty() {
                    taken.begun.extend(taken.next.drain(..).chain(self.queue.take_all()));
                }
                return Fate::not_applied(&error);
            }
        };
        points::pass("sqlite.batch.before-commit");
        let committing = writer.guard.commit();
        let committed = run(conn, COMMIT, "cannot commit");
        drop(committing);
        if let Err(error) = committed {
            tracing::error!(%error, "a commit failed: the store is read back before it is used again");
            self.distrust(writer);
            // At once, so that those whose fate is unknown can look; where it fails, every later call tries again.
            if let Err(error) = self.usable(writer) {
                tracing::error!(%error, "the store cannot be read back yet");
            }
            return Fate::unknown(&error);
        }
        self.batches.fetch_add(1, Ordering::Relaxed);
        if let Some(mark) = mark {
            writer.mark = mark;
        }
        points::pass("sqlite.batch.committed");
        Fate::Committed
    }

    /// Runs jobs until none waits, the batch is full, or its time is over. Answers the mark that was written.
    fn work(&self, writer: &Writer, taken: &mut Taken) -> Result<Option<meta::Written>, StoreError> {
        let Some(conn) = writer.conn.as_ref() else { return Err(undone()) };
        let stands = meta::read(conn)?;
        self.adopt(&stands.mark);
        let batch = Batch {
            conn,
            guard: &writer.guard,
            inner: self,
            quarantine: Cell::new(stands.quarantine_before),
            longest_ms: Cell::new(stands.longest_ms),
            spoilt: Cell::new(false),
        };
        let started = Instant::now();
        taken.next = self.queue.take(CHUNK.min(self.options.batch_max), true).into();
        loop {
            while let Some(job) = taken.next.pop_front() {
                taken.begun.push(job);
                if let Some(job) = taken.begun.last_mut() {
                    job.run(&batch);
                }
                if batch.ended() {
                    return Err(undone());
                }
            }
            let room = self.options.batch_max.saturating_sub(taken.begun.len());
            if room == 0 || started.elapsed() >= WORK_MAX {
                break;
            }
            taken.next = self.queue.take(CHUNK.min(room), false).into();
            if taken.next.is_empty() {
                break;
            }
        }
        if batch.longest_ms.get() > stands.longest_ms {
            meta::set_longest(conn, batch.longest_ms.get())?;
        }
        let mark = self.time.mark();
        if !writer.mark.is_due(&mark, MARK_EVERY) {
            return Ok(None);
        }
        meta::set_mark(conn, &mark)?;
        Ok(Some(meta::Written::of(mark)))
    }
}
