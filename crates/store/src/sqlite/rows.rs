//! Statements on single records: read, insert, replace, delete, each under the guard of version and lease id.
//!
//! What does not belong here: pages of records (`list`), and any rule of what a record becomes (core).

use counterfoil_core::record::{decode, encode};
use counterfoil_core::{Identity, LeaseId, Record, Scope, State};
use rusqlite::{Connection, OptionalExtension as _, Row};

use super::fault::failed;
use crate::error::{ErrorKind, StoreError};

/// The columns that [`stored`] reads, in its order.
macro_rules! columns {
    () => {
        "id, scope, operation, key, version, lease, expires_at, record"
    };
}
pub(super) use columns;

pub(super) const SELECT: &str = "SELECT version, lease, expires_at, record FROM main.counterfoil_record
  WHERE scope = ?1 AND operation = ?2 AND key = ?3";
const INSERT: &str = "INSERT INTO main.counterfoil_record
  (scope, operation, key, version, lease, holder, expires_at, record) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
  ON CONFLICT (scope, operation, key) DO NOTHING";
pub(super) const UPDATE: &str = "UPDATE main.counterfoil_record
  SET version = ?4, lease = ?5, holder = ?6, expires_at = ?7, record = ?8
  WHERE scope = ?1 AND operation = ?2 AND key = ?3 AND version = ?9 AND lease = ?10";
pub(super) const DELETE: &str = "DELETE FROM main.counterfoil_record
  WHERE scope = ?1 AND operation = ?2 AND key = ?3 AND version = ?4 AND lease = ?5";

/// What a write is conditional on: the version together with the lease id.
#[derive(Clone, Copy, Debug)]
pub(super) struct Guarded {
    pub(super) version: u64,
    pub(super) lease: LeaseId,
}

impl Guarded {
    pub(super) const fn of(record: &Record) -> Self {
        Self { version: record.version, lease: record.lease.id }
    }
}

/// Columns of a row as they stand, not yet believed.
pub(super) struct Stored {
    pub(super) id: i64,
    scope: Vec<u8>,
    operation: String,
    key: String,
    version: i64,
    lease: Vec<u8>,
    expires_at: Option<i64>,
    pub(super) bytes: Vec<u8>,
}

/// Reads the columns of [`columns!`].
pub(super) fn stored(row: &Row<'_>) -> rusqlite::Result<Stored> {
    Ok(Stored {
        id: row.get(0)?,
        scope: row.get(1)?,
        operation: row.get(2)?,
        key: row.get(3)?,
        version: row.get(4)?,
        lease: row.get(5)?,
        expires_at: row.get(6)?,
        bytes: row.get(7)?,
    })
}

impl Stored {
    /// The record, if its bytes can be read and agree with the columns that guard it.
    pub(super) fn record(&self) -> Result<Record, counterfoil_core::Error> {
        believed(self.version, &self.lease, self.expires_at, &self.bytes)
    }

    /// Whose it is.
    pub(super) fn identity(&self) -> Result<Identity, counterfoil_core::Error> {
        Ok(Identity::new(
            Scope::from_bytes(&self.scope)?,
            counterfoil_core::Operation::new(self.operation.clone())?,
            counterfoil_core::Key::new(self.key.clone())?,
        ))
    }
}

/// The record in `bytes`, if they can be read and agree with the columns that guard it.
fn believed(
    version: i64,
    lease: &[u8],
    expires_at: Option<i64>,
    bytes: &[u8],
) -> Result<Record, counterfoil_core::Error> {
    let record = decode(bytes)?;
    let agrees = i64::try_from(record.version) == Ok(version)
        && record.lease.id.as_bytes().as_slice() == lease
        && record.sweep_at().map(|at| at.as_millis()) == expires_at;
    if agrees { Ok(record) } else { Err(counterfoil_core::Error::Corrupt("its guard disagrees with it")) }
}

/// What stands under `identity`.
pub(super) fn select(conn: &Connection, identity: &Identity) -> Result<Option<Record>, StoreError> {
    let doing = failed("cannot read a record");
    let mut statement = conn.prepare_cached(SELECT).map_err(&doing)?;
    let mut found = statement.query(parts(identity)).map_err(&doing)?;
    let Some(row) = found.next().map_err(&doing)? else { return Ok(None) };
    // Decoded from SQLite's own memory: nothing but the record is copied.
    let (version, expires_at) = (row.get(0).map_err(&doing)?, row.get(2).map_err(&doing)?);
    let blob = |column| row.get_ref(column)?.as_blob().map_err(rusqlite::Error::from);
    let (lease, bytes) = (blob(1).map_err(&doing)?, blob(3).map_err(&doing)?);
    believed(version, lease, expires_at, bytes).map(Some).map_err(|error| named(error, identity))
}

/// The row at a position.
pub(super) fn by_id(conn: &Connection, id: i64) -> Result<Option<Stored>, StoreError> {
    let doing = failed("cannot read a record");
    let mut statement = conn
        .prepare_cached(concat!("SELECT ", columns!(), " FROM main.counterfoil_record WHERE id = ?1"))
        .map_err(&doing)?;
    statement.query_row([id], stored).optional().map_err(&doing)
}

fn parts(identity: &Identity) -> (&[u8], &str, &str) {
    (identity.scope.as_bytes(), identity.operation.as_str(), identity.key.as_str())
}

/// The core's error with the digest of whom it is about.
pub(super) fn named(error: counterfoil_core::Error, identity: &Identity) -> StoreError {
    let error = StoreError::from(error);
    StoreError { detail: format!("record {}: {}", identity.digest(), error.detail), ..error }
}

/// Writes `record` where nothing stands; whether it did.
pub(super) fn insert(conn: &Connection, identity: &Identity, record: &Record) -> Result<bool, StoreError> {
    let doing = failed("cannot write a record");
    let (scope, operation, key) = parts(identity);
    let columns = Columns::of(record)?;
    let mut statement = conn.prepare_cached(INSERT).map_err(&doing)?;
    let written = statement
        .execute((
            scope,
            operation,
            key,
            columns.version,
            columns.lease,
            columns.holder,
            columns.expires_at,
            columns.bytes,
        ))
        .map_err(&doing)?;
    Ok(written == 1)
}

/// Writes `record` in the place of exactly the one that `guard` names; whether it did.
pub(super) fn replace(
    conn: &Connection,
    identity: &Identity,
    guard: Guarded,
    record: &Record,
) -> Result<bool, StoreError> {
    let doing = failed("cannot write a record");
    let (scope, operation, key) = parts(identity);
    let columns = Columns::of(record)?;
    let mut statement = conn.prepare_cached(UPDATE).map_err(&doing)?;
    let written = statement
        .execute((
            scope,
            operation,
            key,
            columns.version,
            columns.lease,
            columns.holder,
            columns.expires_at,
            columns.bytes,
            version(guard.version)?,
            guard.lease.as_bytes(),
        ))
        .map_err(&doing)?;
    Ok(written == 1)
}

/// Writes `record` in the place of what `before` names, or where nothing stands; whether it did.
pub(super) fn put(
    conn: &Connection,
    identity: &Identity,
    before: Option<Guarded>,
    record: &Record,
) -> Result<bool, StoreError> {
    match before {
        None => insert(conn, identity, record),
        Some(guard) => replace(conn, identity, guard, record),
    }
}

/// Removes exactly the record that `guard` names; whether it did.
pub(super) fn delete(conn: &Connection, identity: &Identity, guard: Guarded) -> Result<bool, StoreError> {
    let doing = failed("cannot remove a record");
    let (scope, operation, key) = parts(identity);
    let mut statement = conn.prepare_cached(DELETE).map_err(&doing)?;
    let removed =
        statement.execute((scope, operation, key, version(guard.version)?, guard.lease.as_bytes())).map_err(&doing)?;
    Ok(removed == 1)
}

/// A record as columns.
struct Columns<'r> {
    version: i64,
    lease: &'r [u8; 16],
    holder: Option<&'r [u8; 16]>,
    expires_at: Option<i64>,
    bytes: Vec<u8>,
}

impl<'r> Columns<'r> {
    fn of(record: &'r Record) -> Result<Self, StoreError> {
        // A settled record's holder can hold nothing any more, and the column serves the dead one's unsettled only.
        let holder = match record.state {
            State::Running | State::Unknown { .. } => record.lease.holder.as_ref().map(|holder| holder.as_bytes()),
            State::Done { .. } | State::Spent { .. } => None,
        };
        Ok(Self {
            version: version(record.version)?,
            lease: record.lease.id.as_bytes(),
            holder,
            expires_at: record.sweep_at().map(|at| at.as_millis()),
            bytes: encode(record),
        })
    }
}

pub(super) fn version(version: u64) -> Result<i64, StoreError> {
    i64::try_from(version).map_err(|_| StoreError::not_applied(ErrorKind::Misuse, "a record's version is out of range"))
}
