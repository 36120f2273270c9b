//! A few connections, each lent to one call at a time.
//!
//! A connection goes back only when its last statement was answered to the end outside a transaction: whatever is cut
//! off in between is closed, never lent again. What does not belong here: what is sent.

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{AsyncMessage, Client, Connection, Row};

use super::fault::{self, Intent};
use super::place::Place;
use super::tls::Tls;
use crate::error::{ErrorKind, StoreError};

/// One parameter of a statement, with its type: nothing is ever prepared, so that a pooler may stand between.
pub(super) type Param<'p> = (&'p (dyn ToSql + Sync), Type);

/// The connections of one store.
pub(super) struct Pool {
    place: Place,
    tls: Tls,
    runtime: Handle,
    connect_timeout: Duration,
    idle: Mutex<Vec<Link>>,
    room: Arc<Semaphore>,
    size: u32,
}

/// A connection and the task that drives it.
struct Link {
    client: Client,
    driver: AbortHandle,
    /// The server warned while the last statement ran.
    warned: Arc<AtomicBool>,
}

impl Drop for Link {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Pool {
    pub(super) fn new(place: Place, tls: Tls, runtime: Handle, size: usize, connect_timeout: Duration) -> Arc<Self> {
        let size = u32::try_from(size.clamp(1, 10_000)).unwrap_or(1);
        Arc::new(Self {
            place,
            tls,
            runtime,
            connect_timeout,
            idle: Mutex::default(),
            room: Arc::new(Semaphore::new(size as usize)),
            size,
        })
    }

    /// Lends a connection; nothing was sent where this fails.
    pub(super) async fn lend(self: &Arc<Self>, deadline: Instant) -> Result<Lent, StoreError> {
        let place = match timeout_at(deadline, self.room.clone().acquire_owned()).await {
            Ok(Ok(place)) => place,
            Ok(Err(_)) => return Err(closed()),
            Err(_) => return Err(fault::no_room()),
        };
        let (link, rested) = match self.take_idle() {
            Some(link) => (link, true),
            None => (self.connect(deadline).await?, false),
        };
        Ok(Lent { link: Some(link), pool: self.clone(), rested, in_transaction: false, is_whole: true, _place: place })
    }

    fn take_idle(&self) -> Option<Link> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(link) = idle.pop() {
            if !link.client.is_closed() {
                return Some(link);
            }
        }
        None
    }

    /// Tries each host in turn; one that is silent does not take the time of the others.
    async fn connect(&self, deadline: Instant) -> Result<Link, StoreError> {
        let hosts = &self.place.hosts;
        let share = self.connect_timeout / u32::try_from(hosts.len()).unwrap_or(u32::MAX).max(1);
        let mut failed = fault::slow_to_connect();
        for host in hosts {
            match timeout_at(deadline, timeout(share, host.connect(self.tls.clone()))).await {
                Ok(Ok(Ok((client, connection)))) => return Ok(self.link(client, connection)),
                Ok(Ok(Err(error))) => failed = fault::unreachable(error),
                Ok(Err(_)) | Err(_) => {}
            }
        }
        Err(failed)
    }

    fn link<S, T>(&self, client: Client, connection: Connection<S, T>) -> Link
    where
        S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
        T: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
    {
        let warned = Arc::new(AtomicBool::new(false));
        let driver = self.runtime.spawn(drive(connection, warned.clone())).abort_handle();
        Link { client, driver, warned }
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

async fn drive<S, T>(mut connection: Connection<S, T>, warned: Arc<AtomicBool>)
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
    T: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    // Notices come before the end of the statement that they are about, so the flag is set when its caller looks.
    while let Some(Ok(message)) = poll_fn(|cx| connection.poll_message(cx)).await {
        if let AsyncMessage::Notice(notice) = message {
            if *notice.code() == SqlState::WARNING {
                warned.store(true, Ordering::Release);
            }
            tracing::debug!(code = notice.code().code(), "notice of the database server: {}", notice.message());
        }
    }
}

/// A connection lent to one call.
pub(super) struct Lent {
    link: Option<Link>,
    pool: Arc<Pool>,
    /// It was made for an earlier call, and nothing was sent for this one: the server may be gone, and another there.
    rested: bool,
    in_transaction: bool,
    /// Its last statement was answered to the end, outside a transaction.
    is_whole: bool,
    _place: OwnedSemaphorePermit,
}

impl Lent {
    /// Sends one statement, and waits for the end of its answer.
    pub(super) async fn query(
        &mut self,
        intent: Intent,
        doing: &str,
        statement: &str,
        parameters: &[Param<'_>],
        deadline: Instant,
    ) -> Result<Vec<Row>, StoreError> {
        self.is_whole = false;
        let (answer, answered) = loop {
            // Only what reads, and is the first on a connection that rested: no effect can be in between.
            let again = std::mem::take(&mut self.rested) && intent == Intent::Reads;
            let link = self.link.as_ref().ok_or_else(closed)?;
            link.warned.store(false, Ordering::Release);
            break match timeout_at(deadline, link.client.query_typed(statement, parameters)).await {
                Err(_) => (Err(fault::timed_out(intent, doing)), false),
                Ok(Ok(_)) if intent == Intent::Writes && link.warned.load(Ordering::Acquire) => {
                    (Err(fault::not_replicated(doing)), true)
                }
                Ok(Ok(rows)) => (Ok(rows), true),
                Ok(Err(error)) if again && fault::is_gone(&error) => {
                    self.link = Some(self.pool.connect(deadline).await?);
                    continue;
                }
                Ok(Err(error)) => {
                    let undone = error.as_db_error().is_some_and(fault::is_undone);
                    (Err(fault::failed(error, intent, doing)), undone)
                }
            };
        };
        self.is_whole = answered && !self.in_transaction;
        answer
    }

    /// Begins a transaction: until [`Lent::commit`] the connection is lent to nobody else, come what may.
    pub(super) async fn begin(&mut self, doing: &str, deadline: Instant) -> Result<(), StoreError> {
        self.in_transaction = true;
        self.query(Intent::Reads, doing, "BEGIN", &[], deadline).await.map(drop)
    }

    /// The client itself, for a transaction of its own kind, and whether the server warned. Until
    /// [`Lent::is_whole_again`] the connection is lent to nobody else, come what may.
    pub(super) fn for_a_transaction(&mut self) -> Result<(&mut Client, Arc<AtomicBool>), StoreError> {
        (self.in_transaction, self.is_whole) = (true, false);
        let link = self.link.as_mut().ok_or_else(closed)?;
        Ok((&mut link.client, link.warned.clone()))
    }

    /// That transaction was committed.
    pub(super) const fn is_whole_again(&mut self) {
        (self.in_transaction, self.is_whole) = (false, true);
    }

    /// Runs the statements of a file inside a transaction.
    pub(super) async fn script(&mut self, doing: &str, statements: &str, deadline: Instant) -> Result<(), StoreError> {
        self.is_whole = false;
        let Some(link) = &self.link else { return Err(closed()) };
        match timeout_at(deadline, link.client.batch_execute(statements)).await {
            Err(_) => Err(fault::timed_out(Intent::Reads, doing)),
            Ok(done) => done.map_err(|error| fault::failed(error, Intent::Reads, doing)),
        }
    }

    /// Ends the transaction. Not after a statement of it has failed.
    pub(super) async fn commit(&mut self, doing: &str, deadline: Instant) -> Result<(), StoreError> {
        let committed = self.query(Intent::Writes, doing, "COMMIT", &[], deadline).await;
        self.in_transaction = committed.is_err();
        self.is_whole = committed.is_ok();
        committed.map(drop)
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let Some(link) = self.link.take() else { return };
        if self.is_whole && !link.client.is_closed() && !self.pool.room.is_closed() {
            self.pool.idle.lock().unwrap_or_else(PoisonError::into_inner).push(link);
        }
    }
}
