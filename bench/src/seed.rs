//! What ours is compared with: the published protocol of the seed on plain SQLite, one commit for each call.
//!
//! This package stands outside `crates/`, so it may hold SQL: the baselines must not share a line with what they
//! measure. Durability is as ours: WAL, `synchronous=FULL`.

use std::path::Path;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OptionalExtension as _, TransactionBehavior, params};

use crate::load::Did;

/// The business table, which ours uses too.
pub(crate) const EFFECTS: &str = "CREATE TABLE IF NOT EXISTS effects (
    id INTEGER PRIMARY KEY, tenant TEXT NOT NULL,
    operation TEXT NOT NULL, quantity INTEGER NOT NULL CHECK (quantity > 0))";

/// The effect, which ours uses too.
pub(crate) const EFFECT: &str = "INSERT INTO effects (tenant, operation, quantity) VALUES (?, ?, ?)";

const RECEIPTS: &str = "CREATE TABLE IF NOT EXISTS receipts (
    tenant TEXT NOT NULL, operation TEXT NOT NULL, request_key TEXT NOT NULL,
    fingerprint TEXT NOT NULL, result TEXT NOT NULL, expires_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, operation, request_key))";

/// How long a connection waits for another's lock: the seed's own five seconds.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Who asks, for what: the same everywhere.
pub(crate) const TENANT: &str = "north";
/// What is done.
pub(crate) const OPERATION: &str = "create-order";

/// Makes the tables.
pub(crate) fn create(path: &Path) -> rusqlite::Result<()> {
    let connection = connect(path)?;
    connection.execute_batch(&format!("{EFFECTS};{RECEIPTS};"))
}

/// A connection that is as durable as ours.
pub(crate) fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open(path)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.pragma_update(None, "synchronous", "full")?;
    Ok(connection)
}

/// What the seed answers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    Created(String),
    Replayed(String),
    Conflict,
}

/// The seed's `execute`: lock first, look, then effect and receipt in the same transaction.
pub(crate) fn execute(connection: &mut Connection, key: &str, quantity: i64, now: i64) -> rusqlite::Result<Outcome> {
    let fingerprint = format!("{{\"quantity\":{quantity}}}");
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let previous: Option<(String, String, i64)> = transaction
        .prepare_cached(
            "SELECT fingerprint, result, expires_at FROM receipts WHERE tenant=? AND operation=? AND request_key=?",
        )?
        .query_row(params![TENANT, OPERATION, key], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .optional()?;
    match previous {
        Some((asked, _, expires_at)) if expires_at > now && asked != fingerprint => return Ok(Outcome::Conflict),
        Some((_, result, expires_at)) if expires_at > now => return Ok(Outcome::Replayed(result)),
        Some(_) => {
            transaction
                .prepare_cached("DELETE FROM receipts WHERE tenant=? AND operation=? AND request_key=?")?
                .execute(params![TENANT, OPERATION, key])?;
        }
        None => {}
    }
    let id = transaction.prepare_cached(EFFECT)?.insert(params![TENANT, OPERATION, quantity])?;
    let result = format!("{{\"effect_id\":{id},\"quantity\":{quantity}}}");
    transaction.prepare_cached("INSERT INTO receipts VALUES (?, ?, ?, ?, ?, ?)")?.execute(params![
        TENANT,
        OPERATION,
        key,
        fingerprint,
        result,
        now + 86_400
    ])?;
    transaction.commit()?;
    Ok(Outcome::Created(result))
}

/// What a call came to, where `wanted` was hoped for.
pub(crate) fn did(answer: rusqlite::Result<Outcome>, wanted: fn(&Outcome) -> bool) -> Did {
    match answer {
        Ok(outcome) if wanted(&outcome) => Did::Done,
        Ok(outcome) => Did::Failed(format!("answered {outcome:?}")),
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => Did::Busy,
        Err(error) => Did::Failed(error.to_string()),
    }
}

/// How many effects stand in a database.
pub(crate) fn effects(path: &Path) -> rusqlite::Result<u64> {
    let count: i64 = connect(path)?.query_row("SELECT count(*) FROM effects", [], |row| row.get(0))?;
    Ok(count.unsigned_abs())
}

/// A fixed number of connections, each lent to one caller at a time. Of one connection: a mutex.
pub(crate) struct Pool {
    free: Mutex<Vec<Connection>>,
    returned: Condvar,
}

impl Pool {
    /// Opens `size` connections.
    pub(crate) fn open(path: &Path, size: usize) -> rusqlite::Result<Self> {
        let free = (0..size).map(|_| connect(path)).collect::<rusqlite::Result<_>>()?;
        Ok(Self { free: Mutex::new(free), returned: Condvar::new() })
    }

    /// Waits for a connection.
    pub(crate) fn lend(&self) -> Lent<'_> {
        let mut free = self.free();
        loop {
            match free.pop() {
                Some(connection) => return Lent { pool: self, connection: Some(connection) },
                None => free = self.returned.wait(free).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    fn free(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection that goes back to its pool.
pub(crate) struct Lent<'p> {
    pool: &'p Pool,
    connection: Option<Connection>,
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        self.pool.free().extend(self.connection.take());
        self.pool.returned.notify_one();
    }
}

impl Lent<'_> {
    /// The connection.
    pub(crate) fn with<T>(&mut self, run: impl FnOnce(&mut Connection) -> rusqlite::Result<T>) -> rusqlite::Result<T> {
        match &mut self.connection {
            Some(connection) => run(connection),
            // It is taken only when it is given back.
            None => Err(rusqlite::Error::InvalidQuery),
        }
    }
}
