//! The MySQL / MariaDB store: one database that many instances share, in tables `counterfoil_…` of its own.
//!
//! Every write of a record is one call of a procedure that is a transaction of its own, so no connection rests inside a
//! transaction while the network is waited for, a sweep's small batches aside. Many claims at once go on many
//! connections, each committed alone: the server joins their writes to disk. PROTOCOL section 7 says what must be kept.
//! No rule of records belongs here (core).

mod caller;
mod claim;
mod fault;
mod list;
mod options;
mod place;
mod pool;
mod put;
mod rows;
mod schema;
mod sweep;
#[cfg(feature = "contract")]
pub mod trial;

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use counterfoil_core::{Holder, Identity, Now, Timestamp};
use tokio::runtime::{Handle, Runtime};
use tokio::time::Instant;

use self::fault::Intent;
use self::place::Place;
use self::pool::{Lent, Pool};
use self::put::Patience;
use self::schema::Standing;
use crate::error::{ErrorKind, StoreError};
use crate::pace::Pace;
use crate::seam::{About, Answer, Listed, New, Note, Page, Query, RecordStore, Seen, Swap, Swapped, Swept};
use crate::sqlite::{Migrated, Missing};

pub use self::options::Options;
pub use mysql_async;

/// Threads that talk to the server: renewals go on while the application's own threads are blocked.
const THREADS: usize = 2;

/// What a statement holds beside its record: an identity at its longest, and a note.
const STATEMENT_BYTES: usize = 64 << 10;

/// How long closing waits for what is under way.
const DRAIN_MAX: Duration = Duration::from_secs(10);

/// How long a migration may take: it waits for others, and may build indexes.
const MIGRATE_MAX: Duration = Duration::from_mins(10);

/// A store in a MySQL or MariaDB database.
pub struct MysqlStore {
    inner: Arc<Inner>,
    runtime: Option<Runtime>,
}

/// What the calls under way share.
struct Inner {
    place: Place,
    /// Which store it is, wherever it is reached.
    id: String,
    options: Options,
    runtime: Handle,
    pool: Arc<Pool>,
    pace: Pace,
    /// The least time to wait for a lock that the server knows, in seconds.
    no_wait_s: i64,
    /// Whether the server undoes a whole transaction where a statement of it waited too long for a lock.
    undoes_all: bool,
    /// The largest message that the server takes, in bytes.
    packet_max: usize,
    /// The quarantine as the server told it last: claims are decided under it, and written only where it still stands.
    quarantine: Mutex<Option<Timestamp>>,
    /// The longest promise, in milliseconds, that the server was known to know.
    longest_ms: AtomicI64,
    closed: AtomicBool,
    /// Why the last call failed that could not reach or use the server.
    trouble: Mutex<Option<String>>,
    /// Somebody looks whether that is over.
    probing: AtomicBool,
}

impl MysqlStore {
    /// Opens the store in the database at `url` (`mysql://user:password@host:port/database`).
    ///
    /// # Errors
    /// [`ErrorKind::Misuse`] for an address that cannot be read, [`ErrorKind::StoreNewer`] where a newer version made the
    /// schema, else [`ErrorKind::Unavailable`] or [`ErrorKind::Busy`]; each says what to do, and none holds the password.
    pub async fn open(url: &str, options: Options) -> Result<Arc<Self>, StoreError> {
        let place = Place::new(url)?;
        let (runtime, pool) = started(&place, &options)?;
        let opening = Self::opening(place, options, runtime.handle().clone(), pool);
        let inner = match runtime.spawn(opening).await {
            Ok(Ok(inner)) => inner,
            Ok(Err(error)) => {
                runtime.shutdown_background();
                return Err(error);
            }
            Err(error) => {
                runtime.shutdown_background();
                return Err(cut_short(Intent::Reads).caused_by(error));
            }
        };
        Ok(Arc::new(Self { inner: Arc::new(inner), runtime: Some(runtime) }))
    }

    /// How `url` is shown: without its password and its options.
    ///
    /// # Errors
    /// [`ErrorKind::Misuse`] where it cannot be read; the error holds nothing of it.
    pub fn shown(url: &str) -> Result<String, StoreError> {
        Place::new(url).map(|place| place.to_string())
    }

    async fn opening(place: Place, options: Options, runtime: Handle, pool: Arc<Pool>) -> Result<Inner, StoreError> {
        let deadline = Instant::now() + options.connect_timeout + options.call_timeout;
        let mut lent = pool.lend(deadline).await?;
        match schema::standing(&mut lent, deadline).await? {
            Standing::Current => {}
            Standing::None | Standing::Older(_) if options.missing == Missing::Create => {
                schema::migrate(&mut lent, Instant::now() + MIGRATE_MAX).await?;
            }
            Standing::None | Standing::Older(_) => {
                let detail = format!("{place} holds no store of this version: run `counterfoil migrate`");
                return Err(StoreError::not_applied(ErrorKind::Unavailable, detail));
            }
        }
        let Suitable { id, now, quarantine, no_wait_s, undoes_all, packet_max, longest_ms } =
            suitable(&mut lent, deadline).await?;
        drop(lent);
        Ok(Inner {
            pace: Pace::new(options.clock.clone(), now),
            place,
            id,
            options,
            runtime,
            pool,
            no_wait_s,
            undoes_all,
            packet_max,
            quarantine: Mutex::new(quarantine),
            longest_ms: AtomicI64::new(longest_ms),
            closed: AtomicBool::new(false),
            trouble: Mutex::new(None),
            probing: AtomicBool::new(false),
        })
    }

    /// Makes the store in the database at `url`, or brings an older one to this version's schema. Needs a role that may
    /// create in the database.
    ///
    /// # Errors
    /// As [`MysqlStore::open`].
    pub async fn migrate(url: &str) -> Result<Migrated, StoreError> {
        let options = Options { connections: 1, ..Options::default() };
        let place = Place::new(url)?;
        let (runtime, pool) = started(&place, &options)?;
        let migrated = runtime.spawn(async move {
            let mut lent = pool.lend(Instant::now() + options.connect_timeout).await?;
            schema::migrate(&mut lent, Instant::now() + MIGRATE_MAX).await
        });
        let migrated = migrated.await;
        runtime.shutdown_background();
        migrated.unwrap_or_else(|error| Err(cut_short(Intent::Writes).caused_by(error)))
    }

    /// The files that [`MysqlStore::migrate`] applies, in their order, to be read or applied by hand.
    #[must_use]
    pub const fn migrations() -> &'static [&'static str] {
        &schema::MIGRATIONS
    }

    /// Ends what is under way, then lets the connections go. Every later call is [`ErrorKind::Unavailable`].
    pub async fn close(&self) {
        if !self.inner.closed.swap(true, Ordering::AcqRel) {
            self.inner.pool.close(DRAIN_MAX).await;
        }
    }

    /// Does `work` in a task of its own that goes on where the caller is dropped.
    async fn run<T: Send + 'static>(
        &self,
        intent: Intent,
        work: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.inner.run(intent, work).await
    }
}

impl Drop for MysqlStore {
    fn drop(&mut self) {
        self.inner.closed.store(true, Ordering::Release);
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl std::fmt::Debug for MysqlStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MysqlStore").field("place", &self.inner.place.to_string()).finish_non_exhaustive()
    }
}

fn started(place: &Place, options: &Options) -> Result<(Runtime, Arc<Pool>), StoreError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(THREADS)
        .thread_name("counterfoil-mysql")
        .enable_all()
        .build()
        .map_err(|error| {
            StoreError::not_applied(ErrorKind::Unavailable, "the operating system gives no threads for the store")
                .caused_by(error)
        })?;
    let pool = Pool::new(place.clone(), options.connections, options.connect_timeout);
    Ok((runtime, pool))
}

/// What a store begins with.
struct Suitable {
    id: String,
    now: Timestamp,
    quarantine: Option<Timestamp>,
    no_wait_s: i64,
    undoes_all: bool,
    packet_max: usize,
    longest_ms: i64,
}

const SUITABLE: &str = "SELECT s.one, c.now_ms, q.before_ms, @@GLOBAL.innodb_flush_log_at_trx_commit,
    @@GLOBAL.log_bin, @@GLOBAL.sync_binlog, @@GLOBAL.read_only, @@GLOBAL.max_allowed_packet, VERSION(),
    (SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE()
        AND table_name LIKE 'counterfoil\\_%' AND table_type = 'BASE TABLE' AND engine <> 'InnoDB'),
    s.id, @@GLOBAL.innodb_rollback_on_timeout, p.longest_ms
  FROM counterfoil_store AS s, counterfoil_clock AS c, counterfoil_quarantine AS q, counterfoil_promise AS p";

/// That the server keeps what it commits and is no follower; its time, and the quarantine.
async fn suitable(lent: &mut Lent, deadline: Instant) -> Result<Suitable, StoreError> {
    let rows = lent.query(Intent::Reads, "the store could not be opened", SUITABLE, Vec::new(), deadline).await?;
    let unsuitable = |detail: &str| Err(StoreError::not_applied(ErrorKind::Unavailable, detail));
    let Some(row) = rows.first() else {
        return unsuitable("the store lacks the rows that say what it is: restore it from a backup");
    };
    let number = |column| rows::get::<i64>(row, column);
    if number(6)? != 0 {
        return unsuitable("this server is read-only and may be behind another: connect to the primary");
    }
    if number(3)? != 1 {
        return Err(volatile());
    }
    if number(4)? != 0 && number(5)? != 1 {
        return unsuitable("the server keeps a binary log and may lose what it commits: set sync_binlog = 1");
    }
    if number(9)? != 0 {
        return unsuitable("tables of the store are not kept by InnoDB: ALTER TABLE … ENGINE = InnoDB");
    }
    Ok(Suitable {
        id: rows::get(row, 10)?,
        undoes_all: number(11)? != 0,
        longest_ms: number(12)?,
        now: rows::time(row, 1)?,
        quarantine: rows::get::<Option<i64>>(row, 2)?.map(Timestamp::from_millis),
        // MySQL knows no less than a second.
        no_wait_s: i64::from(!rows::get::<String>(row, 8)?.contains("MariaDB")),
        packet_max: usize::try_from(number(7)?).unwrap_or(usize::MAX),
    })
}

/// A server that was told not to write each commit to disk.
fn volatile() -> StoreError {
    let detail = "the server may lose what it commits: set innodb_flush_log_at_trx_commit = 1";
    StoreError::not_applied(ErrorKind::Unavailable, detail)
}

/// A call whose task ended before its answer.
fn cut_short(intent: Intent) -> StoreError {
    fault::timed_out(intent, "a call to the store was cut short")
}

impl Inner {
    /// As [`MysqlStore::run`].
    async fn run<T: Send + 'static>(
        &self,
        intent: Intent,
        work: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> Result<T, StoreError> {
        let done = self.runtime.spawn(work).await;
        let done = done.unwrap_or_else(|error| Err(cut_short(intent).caused_by(error)));
        self.tell(done.as_ref().err());
        done
    }

    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    async fn lend(&self, deadline: Instant) -> Result<Lent, StoreError> {
        if self.is_closed() {
            return Err(pool::closed());
        }
        self.pool.lend(deadline).await
    }

    fn quarantine(&self) -> Option<Timestamp> {
        *self.quarantine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_quarantine_seen(&self, before: Option<Timestamp>) {
        *self.quarantine.lock().unwrap_or_else(PoisonError::into_inner) = before;
    }

    /// How long a write waits for a lock, in the whole seconds that the server knows.
    fn lock_s(&self) -> i64 {
        i64::try_from(self.options.lock_timeout.as_secs()).unwrap_or(i64::MAX).clamp(1, 3600)
    }

    /// Whether the server takes a statement with `record` in it.
    fn must_fit(&self, record: &[u8]) -> Result<(), StoreError> {
        if record.len().saturating_add(STATEMENT_BYTES) <= self.packet_max {
            return Ok(());
        }
        let detail = "the record is larger than the server accepts: raise max_allowed_packet";
        Err(StoreError::not_applied(ErrorKind::Misuse, detail))
    }

    async fn swap(self: Arc<Self>, swap: Swap, skips: bool) -> Result<Swapped, StoreError> {
        let patience = if skips { Patience::Skips } else { Patience::Waits };
        match &swap.new {
            New::Claim(draft) => claim::swap(&self, &swap, draft).await,
            New::Put(_) | New::Delete => put::swap(&self, &swap, patience).await,
        }
    }

    /// Remembers whether the server could be used.
    fn tell(&self, error: Option<&StoreError>) {
        let trouble = match error.map(|error| error.kind) {
            None => None,
            Some(ErrorKind::Unavailable | ErrorKind::Unknown) => error.map(|error| error.detail.clone()),
            // These say nothing of the server.
            Some(ErrorKind::Busy | ErrorKind::Corrupt | ErrorKind::StoreNewer | ErrorKind::Misuse) => return,
        };
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = trouble;
    }

    /// Looks, at most once at a time, whether the server can be used again.
    fn probe(self: &Arc<Self>) {
        if self.probing.swap(true, Ordering::AcqRel) {
            return;
        }
        let inner = self.clone();
        self.runtime.spawn(async move {
            let deadline = Instant::now() + inner.options.call_timeout;
            let looked = async {
                let mut lent = inner.lend(deadline).await?;
                list::clock(&inner, &mut lent, deadline).await
            };
            inner.tell(looked.await.err().as_ref());
            inner.probing.store(false, Ordering::Release);
        });
    }

    async fn note(&self, note: &Note) -> Result<(), StoreError> {
        let statement = "INSERT INTO counterfoil_history (digest, at, kind, lease, who, why) VALUES (?, ?, ?, ?, ?, ?)";
        let deadline = Instant::now() + self.options.call_timeout;
        let mut lent = self.lend(deadline).await?;
        let mut values = vec![rows::digest(&note.identity)];
        values.extend(put::note(note));
        lent.query(Intent::Writes, "the history could not be written", statement, values, deadline).await.map(drop)
    }

    /// Makes the server know that a receipt may be promised for so long, in milliseconds.
    async fn know(self: &Arc<Self>, span: i64) -> Result<(), StoreError> {
        if self.longest_ms.load(Ordering::Acquire) >= span {
            return Ok(());
        }
        let inner = self.clone();
        self.run(Intent::Writes, async move { inner.promise(span).await }).await
    }

    async fn promise(&self, span: i64) -> Result<(), StoreError> {
        let doing = "how long receipts are promised could not be written";
        let deadline = Instant::now() + self.options.call_timeout;
        let mut lent = self.lend(deadline).await?;
        let statement = "UPDATE counterfoil_promise SET longest_ms = ? WHERE one = 1 AND longest_ms < ?";
        lent.query(Intent::Writes, doing, statement, vec![span.into(), span.into()], deadline).await?;
        self.longest_ms.fetch_max(span, Ordering::AcqRel);
        Ok(())
    }

    async fn set_quarantine(&self, before: Option<Timestamp>) -> Result<(), StoreError> {
        let doing = "the quarantine could not be set";
        let deadline = Instant::now() + self.options.call_timeout;
        let mut lent = self.lend(deadline).await?;
        let patience = "SET SESSION innodb_lock_wait_timeout = ?";
        lent.query(Intent::Reads, doing, patience, vec![self.lock_s().into()], deadline).await?;
        let statement = "UPDATE counterfoil_quarantine SET before_ms = ? WHERE one = 1";
        let millis = before.map(Timestamp::as_millis);
        lent.query(Intent::Writes, doing, statement, vec![millis.into()], deadline).await?;
        self.set_quarantine_seen(before);
        Ok(())
    }
}

impl RecordStore for MysqlStore {
    fn now(&self) -> Now {
        self.inner.pace.now()
    }

    /// Nobody here can tell that another instance is gone: its leases lapse.
    fn holder(&self) -> Option<Holder> {
        None
    }

    fn read<'a>(&'a self, identity: &'a Identity) -> Answer<'a, Seen> {
        let (inner, identity) = (self.inner.clone(), identity.clone());
        Box::pin(self.run(Intent::Reads, async move { list::read(&inner, &identity).await }))
    }

    fn swap(&self, swap: Swap) -> Answer<'_, Swapped> {
        Box::pin(self.run(Intent::Writes, self.inner.clone().swap(swap, false)))
    }

    fn try_swap(&self, swap: Swap) -> Answer<'_, Swapped> {
        Box::pin(self.run(Intent::Writes, self.inner.clone().swap(swap, true)))
    }

    fn list(&self, query: Query) -> Answer<'_, Page> {
        let inner = self.inner.clone();
        Box::pin(self.run(Intent::Reads, async move { list::page(&inner, &query).await }))
    }

    fn find<'a>(&'a self, prefix: &'a str, limit: usize) -> Answer<'a, Vec<Listed>> {
        let (inner, prefix) = (self.inner.clone(), prefix.to_owned());
        Box::pin(self.run(Intent::Reads, async move { list::find(&inner, &prefix, limit).await }))
    }

    fn sweep(&self, rows_max: usize) -> Answer<'_, Swept> {
        Box::pin(self.run(Intent::Writes, sweep::all(self.inner.clone(), rows_max)))
    }

    fn history<'a>(&'a self, identity: &'a Identity) -> Answer<'a, Vec<Note>> {
        let (inner, identity) = (self.inner.clone(), identity.clone());
        Box::pin(self.run(Intent::Reads, async move { list::history(&inner, &identity).await }))
    }

    fn note(&self, note: Note) -> Answer<'_, ()> {
        let inner = self.inner.clone();
        Box::pin(self.run(Intent::Writes, async move { inner.note(&note).await }))
    }

    fn set_quarantine(&self, before: Option<Timestamp>) -> Answer<'_, ()> {
        let inner = self.inner.clone();
        Box::pin(self.run(Intent::Writes, async move { inner.set_quarantine(before).await }))
    }

    fn about(&self) -> Answer<'_, About> {
        let inner = self.inner.clone();
        Box::pin(self.run(Intent::Reads, async move { list::about(&inner).await }))
    }

    fn health(&self) -> Result<(), StoreError> {
        if self.inner.is_closed() {
            return Err(pool::closed());
        }
        let trouble = self.inner.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match trouble {
            None => Ok(()),
            Some(detail) => {
                self.inner.probe();
                Err(StoreError::not_applied(ErrorKind::Unavailable, detail))
            }
        }
    }
}
