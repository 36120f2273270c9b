//! What an effect is given: statements inside the writer's transaction, and nothing that could end it.
//!
//! What does not belong here: which statements SQLite refuses (`guard`), and what becomes of the effect (`coupled`).

use counterfoil_core::intent::{Outbound, Recorded};
use counterfoil_core::profile::Profile;
use counterfoil_core::{Identity, Timestamp};
use rusqlite::{CachedStatement, Connection, Error, Params, Result, Row, Statement, ffi};

use super::guard::Guard;
use super::outbox;
use super::schema::PREFIX;
use crate::error::{ErrorKind, StoreError};

/// The transaction that an effect shares with its receipt.
///
/// Statements may read and write any table but the store's own; [`Handle::record`] leaves intents behind. Transactions, savepoints, ATTACH, DETACH and PRAGMA
/// are refused. An effect must be short and must not wait for anything: everybody in its batch waits with it.
#[derive(Debug)]
pub struct Handle<'a> {
    conn: &'a Connection,
    guard: &'a Guard,
    /// Whose effect it is.
    action: &'a Identity,
    now: Timestamp,
}

impl<'a> Handle<'a> {
    pub(super) const fn new(conn: &'a Connection, guard: &'a Guard, action: &'a Identity, now: Timestamp) -> Self {
        Self { conn, guard, action, now }
    }

    /// Leaves an intent behind: effect, receipt and intent are committed together, or none of them is. A relay sends it
    /// then. Its parent is the action at hand, whatever it names.
    ///
    /// # Errors
    /// [`ErrorKind::Misuse`] for a request that cannot be kept; it says what to change. Else what SQLite says. Nothing
    /// of the intent was written.
    pub fn record(&self, outbound: &Outbound, profile: &Profile) -> std::result::Result<Recorded, StoreError> {
        let conn = self.inside().map_err(|error| {
            StoreError::not_applied(ErrorKind::Unavailable, "the intent cannot be kept").caused_by(error)
        })?;
        let outbound = Outbound { parent: Some(self.action.clone()), ..outbound.clone() };
        let aside = self.guard.aside();
        let recorded = outbox::record(conn, &outbound, profile, self.now);
        drop(aside);
        recorded
    }

    /// Runs one statement and answers how many rows it changed.
    ///
    /// # Errors
    /// What SQLite says; every method refuses once an error has ended the transaction.
    pub fn execute(&self, sql: &str, params: impl Params) -> Result<usize> {
        self.inside()?.execute(sql, params)
    }

    /// Runs one statement and reads its first row.
    ///
    /// # Errors
    /// [`Error::QueryReturnedNoRows`] where there is none, and what SQLite and `read` say.
    pub fn query_row<T>(&self, sql: &str, params: impl Params, read: impl FnOnce(&Row<'_>) -> Result<T>) -> Result<T> {
        self.inside()?.query_row(sql, params, read)
    }

    /// Prepares a statement.
    ///
    /// # Errors
    /// What SQLite says.
    pub fn prepare(&self, sql: &str) -> Result<Statement<'a>> {
        self.inside()?.prepare(sql)
    }

    /// Prepares a statement once for all effects that use the same text.
    ///
    /// # Errors
    /// What SQLite says.
    pub fn prepare_cached(&self, sql: &str) -> Result<CachedStatement<'a>> {
        let conn = self.inside()?;
        // The store's own statements share the cache and are allowed there. Each names the store, so whatever does is
        // prepared anew first, which asks whether an effect may.
        if sql.to_ascii_lowercase().contains(PREFIX) {
            drop(conn.prepare(sql)?);
        }
        conn.prepare_cached(sql)
    }

    /// The row id of the last insertion.
    #[must_use]
    pub fn last_insert_rowid(&self) -> i64 {
        self.conn.last_insert_rowid()
    }

    /// How many rows the last statement changed.
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.conn.changes()
    }

    fn inside(&self) -> Result<&'a Connection> {
        if self.conn.is_autocommit() {
            return Err(Error::SqliteFailure(
                ffi::Error::new(ffi::SQLITE_ABORT),
                Some("an error has ended the transaction: return from the effect".to_owned()),
            ));
        }
        Ok(self.conn)
    }
}
