//! The one conditional write of the seam, as a job.
//!
//! What does not belong here: what is written and whether it should be (core, the gate).

use std::sync::Arc;

use counterfoil_core::{Identity, Record};
use rusqlite::Connection;

use super::batch::Batch;
use super::fault::failed;
use super::job::Rank;
use super::rows::{self, Guarded};
use crate::error::StoreError;
use crate::seam::{Expected, New, Note, Swap, Swapped};

/// Everything that ends or keeps what has begun goes before what begins.
pub(super) const fn rank(swap: &Swap) -> Rank {
    match swap.new {
        New::Claim(_) => Rank::Claim,
        New::Put(_) | New::Delete => Rank::Urgent,
    }
}

/// Judges and writes.
pub(super) fn swap(batch: &Batch<'_>, swap: &Swap) -> Result<Swapped, StoreError> {
    let now = batch.now();
    if swap.not_after.is_some_and(|limit| now.at > limit) {
        return Ok(Swapped::TooLate { now });
    }
    let record = match &swap.new {
        New::Claim(draft) => Some(Arc::new(draft.at(now.at, batch.quarantine.get()))),
        New::Put(record) => Some(record.clone()),
        New::Delete => None,
    };
    let won = match &swap.note {
        // One statement is undone by itself where it fails.
        None => write(batch, swap, record.as_deref())?,
        Some(noted) => batch.alone(|| {
            let won = write(batch, swap, record.as_deref())?;
            if won {
                note(batch.conn, noted)?;
            }
            Ok(won)
        })?,
    };
    if won {
        if let Some(record) = &record {
            promised(batch, record);
        }
        return Ok(Swapped::Won { record, now });
    }
    Ok(Swapped::Lost { stands: rows::select(batch.conn, &swap.identity)?.map(Arc::new), now })
}

fn write(batch: &Batch<'_>, swap: &Swap, record: Option<&Record>) -> Result<bool, StoreError> {
    let (conn, identity) = (batch.conn, &swap.identity);
    match (swap.expected, record) {
        (Expected::Absent, Some(record)) => rows::insert(conn, identity, record),
        (Expected::Absent, None) => Ok(rows::select(conn, identity)?.is_none()),
        (Expected::Record { version, lease }, Some(record)) => {
            rows::replace(conn, identity, Guarded { version, lease }, record)
        }
        (Expected::Record { version, lease }, None) => rows::delete(conn, identity, Guarded { version, lease }),
    }
}

/// Remembers how long a receipt was promised at most: a quarantine may not be lifted sooner.
pub(super) fn promised(batch: &Batch<'_>, record: &Record) {
    batch.longest_ms.set(batch.longest_ms.get().max(record.promised_ms().unwrap_or(0)));
}

/// Appends to the history.
pub(super) fn note(conn: &Connection, note: &Note) -> Result<(), StoreError> {
    let doing = failed("cannot write the history");
    let Identity { scope, operation, key } = &note.identity;
    let mut statement = conn
        .prepare_cached(
            "INSERT INTO main.counterfoil_history (scope, operation, key, at, kind, lease, who, why)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        )
        .map_err(&doing)?;
    statement
        .execute((
            scope.as_bytes(),
            operation.as_str(),
            key.as_str(),
            note.at.as_millis(),
            note.kind.as_str(),
            note.lease.as_bytes(),
            &note.who,
            &note.why,
        ))
        .map_err(&doing)?;
    Ok(())
}
