//! The PostgreSQL store: one database that many instances share, in a schema `counterfoil` of its own.
//!
//! Every write is one statement, so that nothing that a pooler breaks is needed, and no connection ever rests inside a
//! transaction. PROTOCOL section 7 says what must be kept; each part has a file of its own. The statements that guard
//! writes are in plain SQL files. No rule of records belongs here (core).

mod apply;
mod caller;
mod claim;
mod coupled;
mod fault;
mod intents;
mod line;
mod list;
mod options;
mod outbox;
mod place;
mod pool;
mod put;
mod queue;
mod reads;
mod rows;
mod schema;
mod settlement;
mod sweep;
#[cfg(feature = "sqlx")]
mod through_sqlx;
mod tls;
mod transaction;
#[cfg(feature = "contract")]
pub mod trial;

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use counterfoil_core::{Holder, Identity, Now, Timestamp};
use tokio::runtime::{Handle, Runtime};
use tokio::time::Instant;
use tokio_postgres::types::Type;

use self::apply::Applying;
use self::fault::Intent;
use self::line::Line;
use self::place::Place;
use self::pool::{Lent, Param, Pool};
use self::queue::Queue;
use self::reads::Asked;
use self::schema::Standing;
use self::tls::Tls;
use crate::error::{ErrorKind, StoreError};
use crate::pace::Pace;
use crate::seam::{About, Answer, Listed, Note, Page, Query, RecordStore, Seen, Swap, Swapped, Swept};
use crate::sqlite::{Migrated, Missing};

pub use self::apply::{Statement, StatementFailed};
pub use self::coupled::Effecting;
pub use self::options::Options;
pub use self::transaction::CallersTransaction;
#[cfg(feature = "sqlx")]
pub use sqlx;
pub use tokio_postgres;

/// Threads that talk to the server: renewals go on while the application's own threads are blocked.
const THREADS: usize = 2;

/// How long closing waits for what is under way.
const DRAIN_MAX: Duration = Duration::from_secs(10);

/// How long a migration may take: it waits for others, and may build indexes.
const MIGRATE_MAX: Duration = Duration::from_mins(10);

/// A store in a PostgreSQL database.
pub struct PostgresStore {
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
    queue: Queue,
    reads: Line<Asked>,
    applying: Line<Applying>,
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

impl PostgresStore {
    /// Opens the store in the database at `url` (`postgres://user:password@host:port/database`).
    ///
    /// # Errors
    /// [`ErrorKind::Misuse`] for an address that cannot be read, [`ErrorKind::StoreNewer`] where a newer version made the
    /// schema, else [`ErrorKind::Unavailable`] or [`ErrorKind::Busy`]; each says what to do, and none holds the password.
    pub async fn open(url: &str, options: Options) -> Result<Arc<Self>, StoreError> {
        let place = Place::new(url, &options)?;
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
        Place::new(url, &Options::default()).map(|place| place.to_string())
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
        let Suitable { id, now, quarantine, longest_ms } = suitable(&mut lent, deadline).await?;
        drop(lent);
        Ok(Inner {
            pace: Pace::new(options.clock.clone(), now),
            place,
            id,
            options,
            runtime,
            pool,
            queue: Queue::default(),
            reads: Line::default(),
            applying: Line::default(),
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
    /// As [`PostgresStore::open`].
    pub async fn migrate(url: &str) -> Result<Migrated, StoreError> {
        let options = Options { connections: 1, ..Options::default() };
        let place = Place::new(url, &options)?;
        let (runtime, pool) = started(&place, &options)?;
        let migrated = runtime.spawn(async move {
            let mut lent = pool.lend(Instant::now() + options.connect_timeout).await?;
            schema::migrate(&mut lent, Instant::now() + MIGRATE_MAX).await
        });
        let migrated = migrated.await;
        runtime.shutdown_background();
        migrated.unwrap_or_else(|error| Err(cut_short(Intent::Writes).caused_by(error)))
    }

    /// The files that [`PostgresStore::migrate`] applies, in their order, to be read or applied by hand.
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

impl Drop for PostgresStore {
    fn drop(&mut self) {
        self.inner.closed.store(true, Ordering::Release);
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl std::fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PostgresStore").field("place", &self.inner.place.to_string()).finish_non_exhaustive()
    }
}

fn started(place: &Place, options: &Options) -> Result<(Runtime, Arc<Pool>), StoreError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(THREADS)
        .thread_name("counterfoil-postgres")
        .enable_all()
        .build()
        .map_err(|error| {
            StoreError::not_applied(ErrorKind::Unavailable, "the operating system gives no threads for the store")
                .caused_by(error)
        })?;
    let tls = Tls::new(place.config.get_ssl_mode())?;
    let handle = runtime.handle().clone();
    let pool = Pool::new(place.clone(), tls, handle, options.connections, options.connect_timeout);
    Ok((runtime, pool))
}

/// What a store begins with.
struct Suitable {
    id: String,
    now: Timestamp,
    quarantine: Option<Timestamp>,
    longest_ms: i64,
}

/// That the server keeps what it commits and is no follower; its time, and the quarantine.
async fn suitable(lent: &mut Lent, deadline: Instant) -> Result<Suitable, StoreError> {
    let statement =
        "SELECT counterfoil.clock(), quarantine_before, current_setting('fsync') = 'on', pg_is_in_recovery(),
      id, longest_ms FROM counterfoil.store";
    let rows = lent.query(Intent::Reads, "the store could not be opened", statement, &[], deadline).await?;
    let unsuitable = |detail: &str| StoreError::not_applied(ErrorKind::Unavailable, detail);
    let row = rows.first().ok_or_else(|| unsuitable("the store has no row of its own: restore it from a backup"))?;
    if rows::get(row, 3)? {
        return Err(unsuitable("this server follows another and may be behind: connect to the primary"));
    }
    if !rows::get::<bool>(row, 2)? {
        return Err(unsuitable("the server runs with fsync = off and may lose what it commits: switch it on"));
    }
    let quarantine = rows::get::<Option<i64>>(row, 1)?.map(Timestamp::from_millis);
    Ok(Suitable { id: rows::get(row, 4)?, now: rows::time(row, 0)?, quarantine, longest_ms: rows::get(row, 5)? })
}

/// A call whose task ended before its answer.
fn cut_short(intent: Intent) -> StoreError {
    fault::timed_out(intent, "a call to the store was cut short")
}

impl Inner {
    /// As [`PostgresStore::run`].
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

    fn lock_ms(&self) -> i64 {
        i64::try_from(self.options.lock_timeout.as_millis()).unwrap_or(i64::MAX).max(1)
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
        let doing = "the history could not be written";
        let deadline = Instant::now() + self.options.call_timeout;
        let mut lent = self.lend(deadline).await?;
        let (scope, operation, key) = put::parts(&note.identity);
        let (at, kind, lease) = (note.at.as_millis(), note.kind.as_str(), note.lease.as_bytes().as_slice());
        let statement = "INSERT INTO counterfoil.history (scope, operation, key, at, kind, lease, who, why)
          SELECT $1, $2, $3, $4, $5, $6, $7, $8 FROM (SELECT counterfoil.be_durable()) AS durable";
        let parameters: [Param<'_>; 8] = [
            (&scope, Type::BYTEA),
            (&operation, Type::BYTEA),
            (&key, Type::BYTEA),
            (&at, Type::INT8),
            (&kind, Type::TEXT),
            (&lease, Type::BYTEA),
            (&note.who, Type::TEXT),
            (&note.why, Type::TEXT),
        ];
        lent.query(Intent::Writes, doing, statement, &parameters, deadline).await.map(drop)
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
        let statement = "UPDATE counterfoil.store SET longest_ms = $1 WHERE longest_ms < $1";
        lent.query(Intent::Writes, doing, statement, &[(&span, Type::INT8)], deadline).await?;
        self.longest_ms.fetch_max(span, Ordering::AcqRel);
        Ok(())
    }

    async fn set_quarantine(&self, before: Option<Timestamp>) -> Result<(), StoreError> {
        let doing = "the quarantine could not be set";
        let deadline = Instant::now() + self.options.call_timeout;
        let mut lent = self.lend(deadline).await?;
        let (millis, lock_ms) = (before.map(Timestamp::as_millis), self.lock_ms());
        let parameters: [Param<'_>; 2] = [(&millis, Type::INT8), (&lock_ms, Type::INT8)];
        let statement = "SELECT counterfoil.quarantine($1, $2)";
        lent.query(Intent::Writes, doing, statement, &parameters, deadline).await?;
        self.set_quarantine_seen(before);
        Ok(())
    }
}

impl RecordStore for PostgresStore {
    fn now(&self) -> Now {
        self.inner.pace.now()
    }

    /// Nobody here can tell that another instance is gone: its leases lapse.
    fn holder(&self) -> Option<Holder> {
        None
    }

    fn read<'a>(&'a self, identity: &'a Identity) -> Answer<'a, Seen> {
        Box::pin(async move { self.inner.read(identity.clone()).await })
    }

    fn swap(&self, swap: Swap) -> Answer<'_, Swapped> {
        Box::pin(self.inner.clone().swap(swap, false))
    }

    fn try_swap(&self, swap: Swap) -> Answer<'_, Swapped> {
        Box::pin(self.inner.clone().swap(swap, true))
    }

    fn takes_permits(&self) -> bool {
        true
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
