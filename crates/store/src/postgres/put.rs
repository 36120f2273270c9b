//! Every write but a claim, many in one statement: completions, renewals, releases, and what operators say.
//!
//! What does not belong here: claims (`claim`), and what is written (core).

use std::pin::Pin;
use std::sync::Arc;

use counterfoil_core::{Identity, Now, Record, Timestamp};
use tokio::time::Instant;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::Inner;
use super::fault::{self, Intent};
use super::pool::{Lent, Param};
use super::queue::{Entry, in_time};
use super::rows::{self, Columns, get};
use super::transaction::Cells;
use crate::error::{Applied, ErrorKind, StoreError};
use crate::seam::{Expected, New, Note, Swap, Swapped};

pub(super) const PUT: &str = "SELECT * FROM counterfoil.put($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, \
    $14, $15, $16, $17, $18, $19, $20)";

const DOING: &str = "a record could not be written";

/// Whether a row that somebody else has locked is waited for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Patience {
    /// As long as the lock limit lasts.
    Waits,
    /// It is passed over.
    Skips,
}

/// Writes all of `entries` and answers each. One whose row is locked does not hold up the others: it is sent again
/// alone, and waits.
pub(super) async fn together(inner: &Arc<Inner>, entries: Vec<Entry>) {
    if entries.is_empty() {
        return;
    }
    let deadline = Instant::now() + inner.options.call_timeout;
    let waits = matches!(entries.as_slice(), [entry] if !entry.skips);
    let patience = if waits { Patience::Waits } else { Patience::Skips };
    let mut lent = match inner.lend(deadline).await {
        Ok(lent) => lent,
        Err(error) => return entries.into_iter().for_each(|entry| entry.answer(Err(fault::told(&error)))),
    };
    let swaps: Vec<&Swap> = entries.iter().map(|entry| &entry.swap).collect();
    let sent = send(inner, &mut lent, &swaps, patience, deadline).await;
    drop(lent);
    match sent {
        Ok(rows) => {
            for (entry, row) in entries.into_iter().zip(rows) {
                match outcome(inner, &entry.swap, &row) {
                    Ok(Some(swapped)) => entry.answer(Ok(swapped)),
                    Ok(None) if entry.skips => {
                        let now = inner.pace.now();
                        entry.answer(Ok(Swapped::Held { now }));
                    }
                    // Beside this lane, which others wait for.
                    Ok(None) if patience == Patience::Skips => drop(inner.runtime.spawn(alone(inner.clone(), entry))),
                    Ok(None) => entry.answer(Err(locked())),
                    Err(error) => entry.answer(Err(error)),
                }
            }
        }
        // The server is there, and something is wrong with one of them.
        Err(error) if error.applied == Applied::No && entries.len() > 1 => {
            for entry in entries {
                alone(inner.clone(), entry).await;
            }
        }
        Err(error) => entries.into_iter().for_each(|entry| entry.answer(Err(fault::told(&error)))),
    }
}

fn alone(inner: Arc<Inner>, entry: Entry) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    Box::pin(async move { together(&inner, in_time(vec![entry])).await })
}

fn locked() -> StoreError {
    StoreError::not_applied(ErrorKind::Busy, "an open transaction holds the record: try again")
}

/// What became of one write; `None`: somebody else has its row locked.
pub(super) fn outcome(inner: &Inner, swap: &Swap, row: &impl Cells) -> Result<Option<Swapped>, StoreError> {
    let at = rows::time(row, 2)?;
    inner.pace.learn(at);
    let now = Now::at(at);
    Ok(match get::<&str>(row, 1)? {
        "won" => {
            let record = match &swap.new {
                New::Put(record) => Some(record.clone()),
                New::Delete | New::Claim(_) => None,
            };
            Some(Swapped::Won { record, now })
        }
        "late" => Some(Swapped::TooLate { now }),
        "held" => None,
        _ => {
            let stands = rows::standing(row, 3).map_err(|error| rows::named(error, &swap.identity))?.map(Arc::new);
            Some(Swapped::Lost { stands, now })
        }
    })
}

/// The statement's arrays, one place for each write.
#[derive(Default)]
pub(super) struct Arrays<'e> {
    scopes: Vec<&'e [u8]>,
    operations: Vec<&'e [u8]>,
    keys: Vec<&'e [u8]>,
    expected_versions: Vec<Option<i64>>,
    expected_leases: Vec<Option<Vec<u8>>>,
    versions: Vec<Option<i64>>,
    leases: Vec<Option<Vec<u8>>>,
    states: Vec<Option<i16>>,
    claimed_ats: Vec<Option<i64>>,
    expires_ats: Vec<Option<i64>>,
    records: Vec<Option<Vec<u8>>>,
    limits: Vec<Option<i64>>,
    spans: Vec<Option<i64>>,
    note_ats: Vec<Option<i64>>,
    note_kinds: Vec<Option<&'static str>>,
    note_leases: Vec<Option<&'e [u8]>>,
    note_whos: Vec<Option<&'e str>>,
    note_whys: Vec<Option<&'e str>>,
}

impl<'e> Arrays<'e> {
    pub(super) fn push(&mut self, swap: &'e Swap) -> Result<(), StoreError> {
        let (scope, operation, key) = parts(&swap.identity);
        let expected = match swap.expected {
            Expected::Absent => None,
            Expected::Record { version, lease } => Some((rows::version(version)?, lease.as_bytes().to_vec())),
        };
        let record = match &swap.new {
            New::Put(record) => Some(record.as_ref()),
            New::Delete | New::Claim(_) => None,
        };
        let columns = record.map(Columns::of).transpose()?;
        self.scopes.push(scope);
        self.operations.push(operation);
        self.keys.push(key);
        self.expected_versions.push(expected.as_ref().map(|(version, _)| *version));
        self.expected_leases.push(expected.map(|(_, lease)| lease));
        self.versions.push(columns.as_ref().map(|columns| columns.version));
        self.states.push(columns.as_ref().map(|columns| columns.state));
        self.claimed_ats.push(columns.as_ref().map(|columns| columns.claimed_at));
        self.expires_ats.push(columns.as_ref().and_then(|columns| columns.expires_at));
        let (lease, bytes) = columns.map(|columns| (columns.lease, columns.bytes)).unzip();
        self.leases.push(lease);
        self.records.push(bytes);
        self.limits.push(swap.not_after.map(Timestamp::as_millis));
        self.spans.push(record.and_then(Record::promised_ms));
        self.push_note(swap.note.as_deref());
        Ok(())
    }

    fn push_note(&mut self, note: Option<&'e Note>) {
        self.note_ats.push(note.map(|note| note.at.as_millis()));
        self.note_kinds.push(note.map(|note| note.kind.as_str()));
        self.note_leases.push(note.map(|note| note.lease.as_bytes().as_slice()));
        self.note_whos.push(note.map(|note| note.who.as_str()));
        self.note_whys.push(note.map(|note| note.why.as_str()));
    }

    /// What the statement takes. Without `lock_ms` the transaction's own limit for locks stands.
    pub(super) fn parameters<'p>(&'p self, waits: &'p bool, lock_ms: &'p Option<i64>) -> [Param<'p>; 20] {
        [
            (&self.scopes, Type::BYTEA_ARRAY),
            (&self.operations, Type::BYTEA_ARRAY),
            (&self.keys, Type::BYTEA_ARRAY),
            (&self.expected_versions, Type::INT8_ARRAY),
            (&self.expected_leases, Type::BYTEA_ARRAY),
            (&self.versions, Type::INT8_ARRAY),
            (&self.leases, Type::BYTEA_ARRAY),
            (&self.states, Type::INT2_ARRAY),
            (&self.claimed_ats, Type::INT8_ARRAY),
            (&self.expires_ats, Type::INT8_ARRAY),
            (&self.records, Type::BYTEA_ARRAY),
            (&self.limits, Type::INT8_ARRAY),
            (&self.spans, Type::INT8_ARRAY),
            (&self.note_ats, Type::INT8_ARRAY),
            (&self.note_kinds, Type::TEXT_ARRAY),
            (&self.note_leases, Type::BYTEA_ARRAY),
            (&self.note_whos, Type::TEXT_ARRAY),
            (&self.note_whys, Type::TEXT_ARRAY),
            (waits, Type::BOOL),
            (lock_ms, Type::INT8),
        ]
    }
}

/// An identity as its columns.
pub(super) fn parts(identity: &Identity) -> (&[u8], &[u8], &[u8]) {
    (identity.scope.as_bytes(), identity.operation.as_str().as_bytes(), identity.key.as_str().as_bytes())
}

/// Sends `swaps`, none of which is a claim; one row for each comes back, in their order.
pub(super) async fn send(
    inner: &Inner,
    lent: &mut Lent,
    swaps: &[&Swap],
    patience: Patience,
    deadline: Instant,
) -> Result<Vec<Row>, StoreError> {
    let mut arrays = Arrays::default();
    for swap in swaps {
        arrays.push(swap)?;
    }
    let (waits, lock_ms) = (patience == Patience::Waits, Some(inner.lock_ms()));
    lent.query(Intent::Writes, DOING, PUT, &arrays.parameters(&waits, &lock_ms), deadline).await
}
