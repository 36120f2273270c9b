//! A few connections, each lent to one call at a time.
//!
//! A connection goes back only when its last statement was answered to the end outside a transaction: whatever is cut
//! off in between is closed, never lent again. What does not belong here: what is sent.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, Error, Params, Row, Value};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout, timeout_at};

use super::fault::{self, Failed, Intent};
use super::place::Place;
use crate::error::{ErrorKind, StoreError};

/// What every connection begins with, whatever the server or the user says by default.
const SETTINGS: [&str; 2] = [
    "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
    "SET SESSION autocommit = 1, time_zone = '+00:00', completion_type = 'NO_CHAIN', \
     sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION'",
];

/// A connection that rested for longer is asked whether it still stands, before anything depends on it.
const REST_MAX: Duration = Duration::from_millis(200);

/// The connections of one store.
pub(super) struct Pool {
    place: Place,
    connect_timeout: Duration,
    idle: Mutex<Vec<(Conn, Instant)>>,
    room: Arc<Semaphore>,
    size: u32,
}

impl Pool {
    pub(super) fn new(place: Place, size: usize, connect_timeout: Duration) -> Arc<Self> {
        let size = u32::try_from(size.clamp(1, 10_000)).unwrap_or(1);
        let room = Arc::new(Semaphore::new(size as usize));
        Arc::new(Self { place, connect_timeout, idle: Mutex::default(), room, size })
    }

    /// Lends a connection; nothing was sent where this fails.
    pub(super) async fn lend(self: &Arc<Self>, deadline: Instant) -> Result<Lent, StoreError> {
        let room = match timeout_at(deadline, self.room.clone().acquire_owned()).await {
            Ok(Ok(room)) => room,
            Ok(Err(_)) => return Err(closed()),
            Err(_) => return Err(fault::no_room()),
        };
        let (conn, rested) = match self.take_idle(deadline).await {
            Some(conn) => (conn, true),
            None => (self.connect(deadline).await?, false),
        };
        Ok(Lent { conn: Some(conn), pool: self.clone(), rested, in_transaction: false, is_whole: true, _room: room })
    }

    async fn take_idle(&self, deadline: Instant) -> Option<Conn> {
        loop {
            let (mut conn, since) = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop()?;
            if conn.is_disconnected() {
                continue;
            }
            if since.elapsed() < REST_MAX || matches!(timeout_at(deadline, conn.ping()).await, Ok(Ok(()))) {
                return Some(conn);
            }
        }
    }

    async fn connect(&self, deadline: Instant) -> Result<Conn, StoreError> {
        let connecting = async {
            let mut conn = Conn::new(self.place.opts.clone()).await?;
            for setting in SETTINGS {
                conn.query_drop(setting).await?;
            }
            Ok::<Conn, Error>(conn)
        };
        match timeout_at(deadline, timeout(self.connect_timeout, connecting)).await {
            Ok(Ok(connected)) => connected.map_err(fault::unreachable),
            Ok(Err(_)) | Err(_) => Err(fault::slow_to_connect()),
        }
    }

    /// Waits until nothing is lent any more, at most so long, and lends nothing from then on.
    pub(super) async fn close(&self, wait: Duration) {
        if timeout(wait, self.room.acquire_many(self.size)).await.is_err() {
            tracing::warn!("the store is closed while calls are under way");
        }
        self.room.close();
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

pub(super) fn closed() -> StoreError {
    StoreError::not_applied(ErrorKind::Unavailable, "the store is closed: open it again")
}

/// A connection lent to one call.
pub(super) struct Lent {
    conn: Option<Conn>,
    pool: Arc<Pool>,
    /// It was made for an earlier call, and nothing was sent for this one: the server may be gone, and another there.
    rested: bool,
    in_transaction: bool,
    /// Its last statement was answered to the end, outside a transaction.
    is_whole: bool,
    _room: OwnedSemaphorePermit,
}

/// What a statement answered.
pub(super) struct Answered {
    pub(super) rows: Vec<Row>,
    /// How many rows its guard held for.
    pub(super) affected: u64,
}

impl Lent {
    /// Sends one statement, and waits for the end of its answer.
    pub(super) async fn send(
        &mut self,
        intent: Intent,
        doing: &str,
        statement: &str,
        values: Vec<Value>,
        deadline: Instant,
    ) -> Result<Answered, Failed> {
        let mut parameters = if values.is_empty() { Params::Empty } else { Params::Positional(values) };
        self.is_whole = false;
        let (answer, answered) = loop {
            let again = self.may_be_sent_again(intent);
            let conn = self.conn.as_mut().ok_or_else(|| Failed::Other(closed()))?;
            // Copied only where it may be sent again: a record's bytes are among them.
            let values = if again { parameters.clone() } else { std::mem::replace(&mut parameters, Params::Empty) };
            let sent = async {
                let result = conn.exec_iter(statement, values).await?;
                let affected = result.affected_rows();
                Ok::<Answered, Error>(Answered { rows: result.collect_and_drop().await?, affected })
            };
            break match timeout_at(deadline, sent).await {
                Err(_) => (Err(Failed::Other(fault::timed_out(intent, doing))), false),
                Ok(Ok(answer)) => (Ok(answer), true),
                Ok(Err(error)) if again && fault::is_gone(&error) => {
                    self.conn = Some(self.pool.connect(deadline).await.map_err(Failed::Other)?);
                    continue;
                }
                Ok(Err(error)) => {
                    let undone = fault::is_undone(&error);
                    (Err(fault::failed(error, intent, doing)), undone)
                }
            };
        };
        self.is_whole = answered && !self.in_transaction;
        answer
    }

    /// Whether what is sent next is sent once more on a new connection where this one proves to be gone: a statement
    /// that only reads, as the first on a connection that rested.
    fn may_be_sent_again(&mut self, intent: Intent) -> bool {
        std::mem::take(&mut self.rested) && intent == Intent::Reads
    }

    /// The rows that a statement answers, of which nobody tries it again.
    pub(super) async fn query(
        &mut self,
        intent: Intent,
        doing: &str,
        statement: &str,
        values: Vec<Value>,
        deadline: Instant,
    ) -> Result<Vec<Row>, StoreError> {
        let sent = self.send(intent, doing, statement, values, deadline).await;
        sent.map(|answered| answered.rows).map_err(|failed| failed.told(doing))
    }

    /// Sends a statement that cannot be prepared.
    async fn plain(
        &mut self,
        intent: Intent,
        doing: &str,
        statement: &str,
        deadline: Instant,
    ) -> Result<(), StoreError> {
        self.is_whole = false;
        loop {
            let again = self.may_be_sent_again(intent);
            let conn = self.conn.as_mut().ok_or_else(closed)?;
            break match timeout_at(deadline, conn.query_drop(statement)).await {
                Err(_) => Err(fault::timed_out(intent, doing)),
                Ok(Err(error)) if again && fault::is_gone(&error) => {
                    self.conn = Some(self.pool.connect(deadline).await?);
                    continue;
                }
                Ok(Err(error)) => Err(fault::failed(error, intent, doing).told(doing)),
                Ok(Ok(())) => {
                    self.is_whole = !self.in_transaction;
                    Ok(())
                }
            };
        }
    }

    /// Begins a transaction: until [`Lent::commit`] the connection is lent to nobody else, come what may.
    pub(super) async fn begin(&mut self, doing: &str, deadline: Instant) -> Result<(), StoreError> {
        self.in_transaction = true;
        self.plain(Intent::Reads, doing, "START TRANSACTION", deadline).await
    }

    /// Runs one statement of a migration, which commits by itself.
    pub(super) async fn migrate(&mut self, doing: &str, statement: &str, deadline: Instant) -> Result<(), StoreError> {
        self.plain(Intent::Writes, doing, statement, deadline).await
    }

    /// Ends the transaction. Not after a statement of it has failed.
    pub(super) async fn commit(&mut self, doing: &str, deadline: Instant) -> Result<(), StoreError> {
        let committed = self.plain(Intent::Writes, doing, "COMMIT", deadline).await;
        self.in_transaction = committed.is_err();
        self.is_whole = committed.is_ok();
        committed
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let Some(conn) = self.conn.take() else { return };
        if self.is_whole && !conn.is_disconnected() && !self.pool.room.is_closed() {
            self.pool.idle.lock().unwrap_or_else(PoisonError::into_inner).push((conn, Instant::now()));
        }
    }
}
