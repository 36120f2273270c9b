//! The SQLite store: one file, one writer that commits many callers' writes at once, a few connections that read.
//!
//! PROTOCOL section 7 says what it must keep; each part has a file of its own. No rule of records belongs here (core).

mod batch;
mod caller;
mod connect;
mod coupled;
mod fault;
mod finished;
mod guard;
mod handle;
mod instance;
mod intents;
mod job;
mod list;
mod log;
mod meta;
mod options;
mod outbox;
mod queue;
mod raw;
mod readers;
mod recovery;
mod rows;
mod schema;
mod swap;
mod sweep;

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use counterfoil_core::{Claim, Holder, Identity, Now, Policy, Receipt, Timestamp};

use self::connect::Place;
use self::instance::Instance;
use self::job::Rank;
use self::log::Log;
use self::queue::Queue;
use self::readers::Readers;
use self::recovery::Writer;
use self::schema::Standing;
use crate::clock::{ClockDoubt, HighWater, SystemClock};
use crate::error::{ErrorKind, StoreError};
use crate::seam::{About, Answer, Expected, Listed, Note, Page, Query, RecordStore, Seen, Swap, Swapped, Swept};

pub use self::coupled::{Executed, Origin};
pub use self::handle::Handle;
pub use self::options::{ForeignKeys, Missing, Options};
pub use rusqlite;

/// How long closing waits for what is under way.
const DRAIN_MAX: Duration = Duration::from_secs(10);

/// A store in one SQLite file, which several processes and the application's own tables may share.
pub struct SqliteStore {
    inner: Arc<Inner>,
}

/// What the store and whoever leads its writer share.
struct Inner {
    place: Place,
    options: Options,
    time: HighWater,
    /// The text of the mark that was last taken over.
    mark_seen: Mutex<String>,
    queue: Queue,
    writer: Mutex<Writer>,
    log: Arc<Log>,
    readers: Readers,
    holder: Holder,
    instance: Mutex<Option<Instance>>,
    opened: Instant,
    /// When the batch under way was begun, in milliseconds of this process; 0: none is.
    batch_begun: AtomicU64,
    /// How many were committed.
    batches: AtomicU64,
    /// A commit failed, and the file was not read back since.
    distrusted: AtomicBool,
    /// The file was found replaced or deleted.
    gone: AtomicBool,
    closed: AtomicBool,
}

/// What a migration found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Migrated {
    /// No store; it was made.
    Made,
    /// An older schema; it was updated.
    Updated,
    /// This version's schema; nothing was changed.
    Current,
}

impl SqliteStore {
    /// Opens the store at `path`, and ends the leases of processes that were on it and are gone. Blocks for some
    /// milliseconds.
    ///
    /// # Errors
    /// [`ErrorKind::StoreNewer`] where a newer version made its schema, [`ErrorKind::Busy`] where another process
    /// holds the file for longer than `busy_timeout`, else [`ErrorKind::Unavailable`] or [`ErrorKind::Corrupt`];
    /// each says what to do.
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Arc<Self>, StoreError> {
        connect::check_version()?;
        let path = path.as_ref();
        if options.missing == Missing::Create {
            made(path, &options)?;
        }
        let place = Place::of(path)?;
        let log = Log::new(place.clone(), options.clone());
        let writer = Writer::open(&place, &options, &log)?;
        let conn = writer.conn.as_ref().ok_or_else(recovery::closed)?;
        match schema::standing(conn)? {
            Standing::Current => {}
            Standing::None | Standing::Older(_) => {
                return Err(StoreError::not_applied(
                    ErrorKind::Unavailable,
                    format!("{} holds no store of this version: run `counterfoil migrate`", place.path.display()),
                ));
            }
        }
        let stands = meta::read(conn)?;
        let time = HighWater::new(Arc::clone(&options.clock), Some(meta::parse(&stands.mark)?));
        let instance = Instance::take(&place)?;
        let gone = instance::gone(&place)?;
        let inner = Arc::new(Inner {
            place,
            options,
            time,
            mark_seen: Mutex::new(stands.mark),
            queue: Queue::default(),
            writer: Mutex::new(writer),
            log,
            readers: Readers::new(),
            holder: instance.holder,
            instance: Mutex::new(Some(instance)),
            opened: Instant::now(),
            batch_begun: AtomicU64::new(0),
            batches: AtomicU64::new(0),
            distrusted: AtomicBool::new(false),
            gone: AtomicBool::new(false),
            closed: AtomicBool::new(false),
        });
        let store = Arc::new(Self { inner });
        store.inner.end_leases(gone)?;
        Ok(store)
    }

    /// Makes the store at `path`, readable only by its owner, or brings an older one to this version's schema.
    ///
    /// # Errors
    /// As [`SqliteStore::open`].
    pub fn migrate(path: impl AsRef<Path>) -> Result<Migrated, StoreError> {
        connect::check_version()?;
        made(path.as_ref(), &Options { clock: Arc::new(SystemClock::new()), ..Options::default() })
    }

    /// Runs `effect` at most once for `claim`: claim, effect and receipt are committed together, or nothing is.
    ///
    /// The effect runs inside the writer's transaction, beside other callers' effects: it must be short and must wait
    /// for nothing. An error that it answers, a panic, or a violated foreign key rolls it back alone. The policy's
    /// `effect` is taken to be [coupled](counterfoil_core::Effect::Coupled).
    ///
    /// # Errors
    /// [`ErrorKind::Misuse`] where the effect panicked, left a violated foreign key or an open statement; else the
    /// store could not be used. Nothing is applied unless the error says that it is unknown; repeat the call then.
    pub async fn execute<E, F>(&self, claim: Claim, policy: &Policy, effect: F) -> Result<Executed<E>, StoreError>
    where
        E: Send + 'static,
        F: FnOnce(&Handle<'_>) -> Result<Receipt, E> + Send + 'static,
    {
        self.inner.execute(claim, policy, effect).await
    }

    /// [`SqliteStore::execute`] for threads that may block.
    ///
    /// # Errors
    /// The same.
    pub fn execute_blocking<E, F>(&self, claim: Claim, policy: &Policy, effect: F) -> Result<Executed<E>, StoreError>
    where
        E: Send + 'static,
        F: FnOnce(&Handle<'_>) -> Result<Receipt, E> + Send + 'static,
    {
        self.inner.execute_blocking(claim, policy, effect)
    }

    /// Why nothing expires now; `None`: the clock is believed.
    #[must_use]
    pub fn clock_doubt(&self) -> Option<ClockDoubt> {
        self.inner.time.doubt()
    }

    /// An operator says that the wall clock is right. Other processes on the same file learn it within a second of
    /// their next call. Answers the time from now on.
    ///
    /// # Errors
    /// [`StoreError`] where it could not be written: then nothing but this process believes it.
    pub async fn clock_accept(&self) -> Result<Now, StoreError> {
        let accept = |batch: &batch::Batch<'_>| {
            let mark = batch.inner.time.accept();
            meta::set_mark(batch.conn, &mark)?;
            Ok(mark.time())
        };
        self.inner.ask(Rank::Urgent, accept).await
    }

    /// How many transactions this process has committed.
    #[must_use]
    pub fn batches(&self) -> u64 {
        self.inner.batches.load(Ordering::Relaxed)
    }

    /// How many writes wait now.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.inner.queue.waiting()
    }

    /// Ends what is under way, then lets the file go. Every later call is [`ErrorKind::Unavailable`]. Dropping the
    /// store does the same.
    pub fn close(&self) {
        self.inner.close();
    }
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        self.inner.close();
    }
}

impl std::fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SqliteStore").field("path", &self.inner.place.path).finish_non_exhaustive()
    }
}

fn made(path: &Path, options: &Options) -> Result<Migrated, StoreError> {
    connect::create(path)?;
    let place = Place::of(path)?;
    let mut conn = connect::writer(&place, options)?;
    if schema::standing(&conn)? == Standing::Current {
        // Without the lock that a migration takes.
        return Ok(Migrated::Current);
    }
    Ok(match schema::migrate(&mut conn, options.clock.as_ref())? {
        Standing::None => Migrated::Made,
        Standing::Older(_) => Migrated::Updated,
        Standing::Current => Migrated::Current,
    })
}

impl Inner {
    const fn holder(&self) -> Option<Holder> {
        Some(self.holder)
    }

    fn close(&self) {
        if self.closed.swap(true, Ordering::AcqRel) {
            return;
        }
        // An effect that drops the last handle would wait for itself.
        let wait = if self.is_led_here() { Duration::ZERO } else { DRAIN_MAX };
        if !self.queue.close(wait) {
            // Its instance file stays locked for as long as the effect runs: its lease is not ended under it.
            tracing::error!("the store is closed while a batch is under way: an effect that blocks must end");
            return;
        }
        self.log.close(DRAIN_MAX);
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        self.readers.clear();
        let mut holds = true;
        if let Some(conn) = writer.conn.take() {
            // Where that cannot be told, the next process finds out.
            holds = sweep::holds(&conn, self.holder)
                .and_then(|holds| Ok(holds || intents::holds(&conn, self.holder)?))
                .unwrap_or(true);
            let speaking = writer.guard.commit();
            if let Err(error) = meta::set_mark(&conn, &self.time.mark()) {
                tracing::warn!(%error, "the clock's mark could not be written at the end");
            }
            drop(speaking);
        }
        let instance = self.instance.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(instance) = instance.filter(|_| holds) {
            instance.leave();
        }
    }
}

impl RecordStore for SqliteStore {
    fn now(&self) -> Now {
        self.inner.time.now()
    }

    fn holder(&self) -> Option<Holder> {
        self.inner.holder()
    }

    fn read<'a>(&'a self, identity: &'a Identity) -> Answer<'a, Seen> {
        Box::pin(self.inner.read(identity))
    }

    fn swap(&self, swap: Swap) -> Answer<'_, Swapped> {
        let replaces = (swap.expected != Expected::Absent).then(|| swap.identity.clone());
        Box::pin(async move {
            let swapped = self.inner.ask(swap::rank(&swap), move |batch| swap::swap(batch, &swap)).await;
            if let Some(identity) = replaces {
                self.inner.readers.finished.forget(&identity);
            }
            swapped
        })
    }

    fn list(&self, query: Query) -> Answer<'_, Page> {
        Box::pin(self.inner.long(move |inner, conn| list::page(inner, conn, &query)))
    }

    fn find<'a>(&'a self, prefix: &'a str, limit: usize) -> Answer<'a, Vec<Listed>> {
        let prefix = prefix.to_owned();
        Box::pin(self.inner.long(move |_, conn| list::find(conn, &prefix, limit)))
    }

    fn sweep(&self, rows_max: usize) -> Answer<'_, Swept> {
        Box::pin(self.inner.sweep(rows_max))
    }

    fn history<'a>(&'a self, identity: &'a Identity) -> Answer<'a, Vec<Note>> {
        let identity = identity.clone();
        Box::pin(self.inner.long(move |_, conn| list::history(conn, &identity)))
    }

    fn note(&self, note: Note) -> Answer<'_, ()> {
        Box::pin(self.inner.ask(Rank::Urgent, move |batch| swap::note(batch.conn, &note)))
    }

    fn set_quarantine(&self, before: Option<Timestamp>) -> Answer<'_, ()> {
        Box::pin(self.inner.ask(Rank::Urgent, move |batch| {
            meta::set_quarantine(batch.conn, before)?;
            batch.quarantine.set(before);
            Ok(())
        }))
    }

    fn about(&self) -> Answer<'_, About> {
        Box::pin(self.inner.long(list::about))
    }

    fn health(&self) -> Result<(), StoreError> {
        if self.inner.closed.load(Ordering::Acquire) {
            return Err(recovery::closed());
        }
        self.inner.check_stall()?;
        self.inner.place.same()?;
        self.inner.look()?;
        match self.inner.time.doubt() {
            None => Ok(()),
            Some(doubt) => Err(StoreError::not_applied(ErrorKind::Unavailable, doubt.to_string())),
        }
    }
}

#[cfg(test)]
mod tests;
