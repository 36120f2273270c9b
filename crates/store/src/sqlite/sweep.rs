//! What ends without being asked for: expired receipts, and the leases of processes that are gone. Both in the
//! writer's loop, in small batches.
//!
//! What does not belong here: when to sweep (the server), and what a record becomes (core).

use std::sync::Arc;

use counterfoil_core::action::{Write, end_lease, sweep};
use counterfoil_core::{Holder, Now, State};
use rusqlite::Connection;

use super::Inner;
use super::batch::Batch;
use super::fault::failed;
use super::instance::Gone;
use super::job::Rank;
use super::rows::{self, Guarded, Stored};
use crate::error::StoreError;
use crate::seam::Swept;

/// Rows of one job, so that no claim in its batch waits long.
const SLICE: usize = 100;

/// Rows that may be looked at in one job: what cannot be decoded is left, and must not stop the rest.
const LOOK_MAX: usize = 2 * SLICE;

pub(super) const DUE: &str = "SELECT expires_at, id FROM main.counterfoil_record
  WHERE expires_at <= ?1 AND (expires_at, id) > (?2, ?3) ORDER BY expires_at, id LIMIT ?4";

pub(super) const HELD: &str = concat!(
    "SELECT ",
    rows::columns!(),
    " FROM main.counterfoil_record WHERE holder = ?1 AND expires_at IS NULL LIMIT ?2"
);

/// Where a sweep goes on.
#[derive(Clone, Copy)]
struct Cursor {
    expires_at: i64,
    id: i64,
}

impl Inner {
    /// Sweeps at most `rows_max` rows.
    pub(super) async fn sweep(self: &Arc<Self>, rows_max: usize) -> Result<Swept, StoreError> {
        let mut total = Swept::default();
        let mut cursor = Cursor { expires_at: i64::MIN, id: 0 };
        loop {
            let left = rows_max.saturating_sub(total.expired + total.spent);
            let most = left.min(SLICE);
            let (slice, next) = self.ask(Rank::Low, move |batch| swept(batch, most, cursor)).await?;
            total.expired += slice.expired;
            total.spent += slice.spent;
            total.more = slice.more;
            total.stopped = slice.stopped;
            cursor = next;
            if !slice.more || left <= slice.expired + slice.spent {
                return Ok(total);
            }
        }
    }

    /// Ends the leases of processes that are gone, then forgets the processes.
    pub(super) fn end_leases(self: &Arc<Self>, gone: Vec<Gone>) -> Result<(), StoreError> {
        for process in gone {
            let holder = process.holder;
            let mut ended = 0;
            loop {
                let slice = self.ask_blocking(Rank::Urgent, move |batch| ended_leases(batch, holder))?;
                ended += slice.ended;
                if slice.found < SLICE || slice.ended == 0 {
                    break;
                }
            }
            let sends = self.end_sends(holder)?;
            if ended + sends > 0 {
                tracing::warn!(%holder, ended, sends, "a process on this store is gone: its leases are ended");
            }
            process.forget();
        }
        Ok(())
    }
}

fn swept(batch: &Batch<'_>, most: usize, from: Cursor) -> Result<(Swept, Cursor), StoreError> {
    if let Some(doubt) = batch.inner.time.doubt() {
        tracing::warn!("nothing is swept: {doubt}");
        return Ok((Swept { stopped: true, ..Swept::default() }, from));
    }
    let now = batch.now();
    let due = due(batch.conn, now, from)?;
    let mut slice = Swept { more: due.len() == LOOK_MAX, ..Swept::default() };
    let mut cursor = from;
    batch.alone(|| {
        for row in due {
            if slice.expired + slice.spent == most {
                slice.more = true;
                break;
            }
            cursor = row;
            if let Some(stored) = rows::by_id(batch.conn, row.id)? {
                one(batch, &stored, now, &mut slice)?;
            }
        }
        Ok(())
    })?;
    Ok((slice, cursor))
}

fn one(batch: &Batch<'_>, stored: &Stored, now: Now, slice: &mut Swept) -> Result<(), StoreError> {
    let (identity, record) = match stored.identity().and_then(|identity| Ok((identity, stored.record()?))) {
        Ok(read) => read,
        Err(error) => {
            tracing::error!(row = stored.id, %error, "a record is not swept");
            return Ok(());
        }
    };
    let guard = Guarded::of(&record);
    // The write repeats what the row was chosen by: its version and lease, of which what is due is a function.
    let written = match sweep(&record, now) {
        None => return Ok(()),
        Some(Write::Delete) => rows::delete(batch.conn, &identity, guard)?,
        Some(Write::Put(next)) => rows::replace(batch.conn, &identity, guard, &next)?,
        // No sweep claims.
        Some(Write::Claim { .. }) => false,
    };
    match record.state {
        State::Done { .. } if written => slice.expired += 1,
        State::Spent { .. } if written => slice.spent += 1,
        State::Done { .. } | State::Spent { .. } | State::Running | State::Unknown { .. } => {}
    }
    Ok(())
}

fn due(conn: &Connection, now: Now, from: Cursor) -> Result<Vec<Cursor>, StoreError> {
    let doing = failed("cannot read what is due");
    let mut statement = conn.prepare_cached(DUE).map_err(&doing)?;
    let limit = i64::try_from(LOOK_MAX).unwrap_or(i64::MAX);
    let rows = statement
        .query_map((now.expiry_at.as_millis(), from.expires_at, from.id, limit), |row| {
            Ok(Cursor { expires_at: row.get(0)?, id: row.get(1)? })
        })
        .map_err(&doing)?;
    rows.collect::<rusqlite::Result<_>>().map_err(&doing)
}

/// What one job made of a gone process's leases.
struct Slice {
    found: usize,
    ended: usize,
}

/// Whether `holder` still holds a lease of anything unsettled.
pub(super) fn holds(conn: &Connection, holder: Holder) -> Result<bool, StoreError> {
    let doing = failed("cannot read this process's leases");
    conn.prepare_cached(HELD).and_then(|mut held| held.exists((holder.as_bytes(), 1))).map_err(doing)
}

fn ended_leases(batch: &Batch<'_>, holder: Holder) -> Result<Slice, StoreError> {
    let doing = failed("cannot read a gone process's leases");
    let held: Vec<Stored> = {
        let mut statement = batch.conn.prepare_cached(HELD).map_err(&doing)?;
        let limit = i64::try_from(SLICE).unwrap_or(i64::MAX);
        let rows = statement.query_map((holder.as_bytes(), limit), rows::stored).map_err(&doing)?;
        rows.collect::<rusqlite::Result<_>>().map_err(&doing)?
    };
    let now = batch.now().at;
    batch.alone(|| {
        let mut slice = Slice { found: held.len(), ended: 0 };
        for stored in &held {
            let read = stored.identity().and_then(|identity| Ok((identity, stored.record()?)));
            let (identity, record) = match read {
                Ok(read) => read,
                Err(error) => {
                    tracing::error!(row = stored.id, %error, "a gone process's lease is not ended");
                    continue;
                }
            };
            if let Some(next) = end_lease(&record, holder, now) {
                rows::replace(batch.conn, &identity, Guarded::of(&record), &next)?;
                slice.ended += 1;
            }
        }
        Ok(slice)
    })
}
