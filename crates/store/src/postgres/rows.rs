//! A record as columns, and back: what is read is believed only where columns and bytes agree.
//!
//! What does not belong here: statements, and any rule of what a record becomes (core).

use std::time::Duration;

use counterfoil_core::record::{decode, encode};
use counterfoil_core::{Identity, Key, Operation, Record, Scope, State, Timestamp, Why};
use tokio_postgres::types::FromSql;

use super::settlement::settled;
use super::transaction::Cells;
use crate::error::{ErrorKind, StoreError};

/// The columns that [`standing`] reads, in its order.
macro_rules! columns {
    () => {
        "r.version, r.lease, r.claimed_at, r.counted_from, r.expires_at, r.record, r.settlement"
    };
}
pub(super) use columns;

/// The record whose columns begin at `first`; `None` where they are null, which says that nothing stands.
pub(super) fn standing(row: &impl Cells, first: usize) -> Result<Option<Record>, StoreError> {
    Ok(stored(row, first)?.map(|stored| stored.record()).transpose()?)
}

/// The columns that begin at `first`, not yet believed.
pub(super) fn stored(row: &impl Cells, first: usize) -> Result<Option<Stored<'_>>, StoreError> {
    let version: Option<i64> = get(row, first)?;
    let Some(version) = version else { return Ok(None) };
    let (lease, bytes): (&[u8], &[u8]) = (get(row, first + 1)?, get(row, first + 5)?);
    Ok(Some(Stored {
        version,
        lease,
        claimed_at: get(row, first + 2)?,
        counted_from: get(row, first + 3)?,
        expires_at: get(row, first + 4)?,
        bytes,
        settlement: get(row, first + 6)?,
    }))
}

/// Columns as they stand, not yet believed.
pub(super) struct Stored<'r> {
    version: i64,
    lease: &'r [u8],
    claimed_at: i64,
    counted_from: Option<i64>,
    expires_at: Option<i64>,
    bytes: &'r [u8],
    /// What an application settled on that record.
    settlement: Option<&'r [u8]>,
}

impl Stored<'_> {
    /// The record, if its bytes can be read and agree with the columns that guard it.
    pub(super) fn record(&self) -> Result<Record, counterfoil_core::Error> {
        let mut record = decode(self.bytes)?;
        if let Some(from) = self.counted_from {
            let from = Timestamp::from_millis(from);
            for time in [&mut record.lease.renewed_at, &mut record.lease.until, &mut record.lease.attempt_until] {
                *time = from.plus(time.since(ZERO));
            }
            record.claimed_at = Timestamp::from_millis(self.claimed_at);
        }
        let spans_are_due = self.counted_from.is_none() || record.state == State::Running;
        if let Some(bytes) = self.settlement {
            record = settled(&record, bytes)?;
        }
        let agrees = i64::try_from(record.version) == Ok(self.version)
            && record.lease.id.as_bytes().as_slice() == self.lease
            && record.claimed_at.as_millis() == self.claimed_at
            && spans_are_due
            && record.sweep_at().map(|at| at.as_millis()) == self.expires_at;
        if agrees { Ok(record) } else { Err(counterfoil_core::Error::Corrupt("its guard disagrees with it")) }
    }
}

/// Where the times of a draft count from until the server has told its own.
pub(super) const ZERO: Timestamp = Timestamp::from_millis(0);

/// A record as the columns of a write.
pub(super) struct Columns {
    pub(super) version: i64,
    pub(super) lease: Vec<u8>,
    pub(super) state: i16,
    pub(super) claimed_at: i64,
    pub(super) expires_at: Option<i64>,
    pub(super) bytes: Vec<u8>,
}

impl Columns {
    pub(super) fn of(record: &Record) -> Result<Self, StoreError> {
        Ok(Self {
            version: version(record.version)?,
            lease: record.lease.id.as_bytes().to_vec(),
            state: match record.state {
                State::Running => 1,
                State::Unknown { why: Why::AnsweredWithoutSettle, .. } => 5,
                State::Unknown { why: Why::Lapsed | Why::Doubted | Why::WindowClosed | Why::Quarantined, .. } => 2,
                State::Done { .. } => 3,
                State::Spent { .. } => 4,
            },
            claimed_at: record.claimed_at.as_millis(),
            expires_at: record.sweep_at().map(|at| at.as_millis()),
            bytes: encode(record),
        })
    }
}

/// A span in milliseconds.
pub(super) fn span(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}

pub(super) fn version(version: u64) -> Result<i64, StoreError> {
    i64::try_from(version).map_err(|_| StoreError::not_applied(ErrorKind::Misuse, "a record's version is out of range"))
}

/// The identity whose columns begin at `first`.
pub(super) fn identity(row: &impl Cells, first: usize) -> Result<Identity, StoreError> {
    let text = |bytes: &[u8]| {
        String::from_utf8(bytes.to_vec()).map_err(|_| counterfoil_core::Error::Corrupt("an identity is no text"))
    };
    let scope = Scope::from_bytes(get(row, first)?)?;
    let operation = Operation::new(text(get(row, first + 1)?)?)?;
    Ok(Identity::new(scope, operation, Key::new(text(get(row, first + 2)?)?)?))
}

/// The core's error with the digest of whom it is about.
pub(super) fn named(error: StoreError, identity: &Identity) -> StoreError {
    StoreError { detail: format!("record {}: {}", identity.digest(), error.detail), ..error }
}

/// A column; one of another type than expected is damage.
pub(super) fn get<'r, T: FromSql<'r>>(row: &'r impl Cells, column: usize) -> Result<T, StoreError> {
    row.cell(column).map_err(|error| {
        let detail = "the database answers other columns than this version wrote: run `counterfoil migrate`";
        StoreError { source: Some(error), ..StoreError::not_applied(ErrorKind::Corrupt, detail) }
    })
}

pub(super) fn time(row: &impl Cells, column: usize) -> Result<Timestamp, StoreError> {
    get(row, column).map(Timestamp::from_millis)
}
