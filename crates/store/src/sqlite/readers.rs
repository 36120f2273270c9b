//! The connections that read: a replay takes one of them and never enters the writer.
//!
//! What does not belong here: what is read (`rows`, `list`).

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use counterfoil_core::Identity;
use rusqlite::Connection;
use tokio::runtime::Handle;

use super::Inner;
use super::connect;
use super::finished::Finished;
use super::job::lost;
use super::meta;
use super::rows;
use crate::error::{ErrorKind, StoreError};
use crate::seam::Seen;

/// How long a read waits for a connection.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// How often reads look whether another process accepted the clock, in milliseconds.
const REFRESH_MILLIS: u64 = 1000;

/// Connections that read, opened as they are needed.
pub(super) struct Readers {
    pool: Mutex<Pool>,
    back: Condvar,
    /// Rises when all are closed: what is given back later is closed too.
    generation: AtomicU64,
    /// When the store's own row was last read, in milliseconds of this process.
    refreshed: AtomicU64,
    pub(super) finished: Finished,
    /// Long reads use one connection, one after the other, so that they never take one from a replay.
    long: Mutex<Option<Connection>>,
}

#[derive(Default)]
struct Pool {
    free: Vec<Connection>,
    open: usize,
}

impl Readers {
    pub(super) fn new() -> Self {
        Self {
            pool: Mutex::default(),
            back: Condvar::new(),
            generation: AtomicU64::new(0),
            refreshed: AtomicU64::new(0),
            finished: Finished::new(),
            long: Mutex::new(None),
        }
    }

    fn locked(&self) -> MutexGuard<'_, Pool> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes all, and those in use when they come back.
    pub(super) fn clear(&self) {
        self.generation.fetch_add(1, Ordering::Relaxed);
        self.finished.clear();
        let mut pool = self.locked();
        pool.open -= pool.free.len();
        pool.free.clear();
        if let Ok(mut long) = self.long.try_lock() {
            *long = None;
        }
    }
}

/// A connection on loan.
struct Loan<'r> {
    readers: &'r Readers,
    conn: Option<Connection>,
    generation: u64,
}

impl Drop for Loan<'_> {
    fn drop(&mut self) {
        let mut pool = self.readers.locked();
        let current = self.readers.generation.load(Ordering::Relaxed) == self.generation;
        match self.conn.take() {
            Some(conn) if current => pool.free.push(conn),
            Some(_) | None => pool.open = pool.open.saturating_sub(1),
        }
        drop(pool);
        self.readers.back.notify_one();
    }
}

/// Whether a read may wait for a connection.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Patience {
    None,
    Bounded,
}

impl Inner {
    fn loan(&self, patience: Patience) -> Result<Option<Loan<'_>>, StoreError> {
        let readers = &self.readers;
        let most = self.options.readers.max(1);
        let mut pool = readers.locked();
        if patience == Patience::Bounded {
            let none = |pool: &mut Pool| pool.free.is_empty() && pool.open >= most;
            pool = readers.back.wait_timeout_while(pool, WAIT_MAX, none).unwrap_or_else(PoisonError::into_inner).0;
        }
        let generation = readers.generation.load(Ordering::Relaxed);
        if let Some(conn) = pool.free.pop() {
            return Ok(Some(Loan { readers, conn: Some(conn), generation }));
        }
        if pool.open >= most {
            return Ok(None);
        }
        pool.open += 1;
        drop(pool);
        // Given back empty where it cannot be opened.
        let mut loan = Loan { readers, conn: None, generation };
        loan.conn = Some(connect::reader(&self.place, &self.options)?);
        Ok(Some(loan))
    }

    /// What is known without reading. Nothing is where the clock must be looked at first.
    fn known(&self, identity: &Identity) -> Option<Seen> {
        if self.is_refresh_due() {
            return None;
        }
        let now = self.time.now();
        self.readers.finished.get(identity, now).map(|record| Seen { record: Some(record), now })
    }

    /// Reads at once where a connection is free; `None`: none is.
    fn read_now(&self, identity: &Identity) -> Result<Option<Seen>, StoreError> {
        self.trusted()?;
        if let Some(seen) = self.known(identity) {
            return Ok(Some(seen));
        }
        let Some(loan) = self.loan(Patience::None)? else { return Ok(None) };
        self.read_with(&loan, identity).map(Some)
    }

    fn read_with(&self, loan: &Loan<'_>, identity: &Identity) -> Result<Seen, StoreError> {
        let (record, before) = self.lent(loan, |conn| {
            let before = self.readers.finished.before();
            Ok((rows::select(conn, identity)?.map(Arc::new), before))
        })?;
        if let Some(record) = &record {
            self.readers.finished.keep(identity, record, before);
        }
        Ok(Seen { record, now: self.time.now() })
    }

    /// A read on a connection on loan, if it can be trusted.
    fn lent<T>(
        &self,
        loan: &Loan<'_>,
        read: impl FnOnce(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let conn = loan.conn.as_ref().ok_or_else(super::recovery::closed)?;
        self.refresh(conn)?;
        let answer = read(conn)?;
        // A commit that failed meanwhile may have been seen.
        self.trusted()?;
        Ok(answer)
    }

    /// Reads, and waits for a connection where none is free.
    pub(super) fn read_blocking(&self, identity: &Identity) -> Result<Seen, StoreError> {
        self.trusted()?;
        if let Some(seen) = self.known(identity) {
            return Ok(seen);
        }
        self.read_with(&self.patient_loan()?, identity)
    }

    fn patient_loan(&self) -> Result<Loan<'_>, StoreError> {
        self.loan(Patience::Bounded)?.ok_or_else(|| {
            StoreError::not_applied(
                ErrorKind::Busy,
                "all reading connections are in use: try again, or allow more readers",
            )
        })
    }

    /// A read of some microseconds: at once where a connection is free, as for records.
    pub(super) async fn short<T: Send + 'static>(
        self: &Arc<Self>,
        read: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.trusted()?;
        if let Some(loan) = self.loan(Patience::None)? {
            return self.lent(&loan, read);
        }
        let inner = Arc::clone(self);
        blocking(move || inner.lent(&inner.patient_loan()?, read)).await
    }

    pub(super) async fn read(self: &Arc<Self>, identity: &Identity) -> Result<Seen, StoreError> {
        // Inline: a record is one look-up in pages that are mostly cached, some microseconds; a thread's wake-up
        // would cost more than the read.
        if let Some(seen) = self.read_now(identity)? {
            return Ok(seen);
        }
        let (inner, identity) = (Arc::clone(self), identity.clone());
        blocking(move || inner.read_blocking(&identity)).await
    }

    /// Takes over an accepted clock now and then: a process that only reads must learn of it too.
    fn refresh(&self, conn: &Connection) -> Result<(), StoreError> {
        if !self.is_refresh_due() {
            return Ok(());
        }
        let now = self.millis();
        let stands = meta::read(conn)?;
        self.adopt(&stands.mark);
        self.readers.refreshed.store(now, Ordering::Relaxed);
        Ok(())
    }

    fn is_refresh_due(&self) -> bool {
        let last = self.readers.refreshed.load(Ordering::Relaxed);
        last == 0 || self.millis().saturating_sub(last) >= REFRESH_MILLIS
    }

    /// The same for whoever asks for the store's health; nothing where no connection is free.
    pub(super) fn look(&self) -> Result<(), StoreError> {
        self.trusted()?;
        match self.loan(Patience::None)? {
            Some(loan) => loan.conn.as_ref().map_or(Ok(()), |conn| self.refresh(conn)),
            None => Ok(()),
        }
    }

    /// A read that may take long, on a thread of its own.
    pub(super) async fn long<T: Send + 'static>(
        self: &Arc<Self>,
        read: impl FnOnce(&Self, &Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let inner = Arc::clone(self);
        blocking(move || {
            inner.trusted()?;
            let mut long = inner.readers.long.lock().unwrap_or_else(PoisonError::into_inner);
            let conn = match long.take() {
                Some(conn) => conn,
                None => connect::reader(&inner.place, &inner.options)?,
            };
            let answer = inner.refresh(&conn).and_then(|()| read(&inner, &conn));
            inner.trusted()?;
            *long = Some(conn);
            answer
        })
        .await
    }
}

/// Runs what blocks where it may block: on a thread of the runtime, or here where there is none.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    match Handle::try_current() {
        Ok(runtime) => runtime
            .spawn_blocking(work)
            .await
            .unwrap_or_else(|_| Err(StoreError { applied: crate::error::Applied::No, ..lost() })),
        Err(_) => work(),
    }
}
