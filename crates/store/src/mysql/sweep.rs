//! Expired receipts, swept in small batches: rows are chosen and locked, changed under the guard that they were chosen
//! by, and what another instance is at already is passed over.
//!
//! What does not belong here: when to sweep (the server), and what a record becomes (core).

use std::sync::Arc;

use counterfoil_core::action::{Write, sweep};
use counterfoil_core::{Now, Record, State};
use mysql_async::{Row, Value};
use tokio::time::Instant;

use super::Inner;
use super::fault::Intent;
use super::list::{clock, decoded};
use super::pool::Lent;
use super::rows::{self, Columns, columns, get};
use crate::error::{ErrorKind, StoreError};
use crate::seam::Swept;

/// Rows of one transaction, so that nobody waits long for one of them.
const SLICE: usize = 100;

const DOING: &str = "expired records could not be swept";

/// What is due, chosen without a lock.
const DUE: &str = "SELECT id, expires_at FROM counterfoil_record
  WHERE expires_at <= ? AND expires_at >= ? AND (expires_at > ? OR id > ?) ORDER BY expires_at, id LIMIT ?";

/// What of it is still due and free. By the primary key, whose lock every writer takes before it changes an index: a
/// lock on the index first would meet theirs.
const LOCKED: &str = concat!(
    "SELECT r.id, r.scope, r.operation, r.action_key, ",
    columns!(),
    " FROM counterfoil_record AS r FORCE INDEX (PRIMARY) WHERE r.expires_at <= ? AND r.id IN ("
);

const SKIPPING: &str = ") FOR UPDATE SKIP LOCKED";

const PATIENCE: &str = "SET SESSION innodb_lock_wait_timeout = ?";

/// How often a batch is begun again that others were in the way of.
const BUSY_MAX: usize = 3;

const DELETE: &str = "DELETE FROM counterfoil_record WHERE id = ? AND version = ? AND lease = ? AND expires_at <= ?";

const PUT: &str = "UPDATE counterfoil_record
  SET version = ?, lease = ?, state = ?, claimed_at = ?, counted_from = NULL, expires_at = ?, record = ?
  WHERE id = ? AND version = ? AND lease = ? AND expires_at <= ?";

/// Where a sweep goes on.
#[derive(Clone, Copy)]
struct Cursor {
    expires_at: i64,
    id: i64,
}

/// Sweeps at most `rows_max` rows.
pub(super) async fn all(inner: Arc<Inner>, rows_max: usize) -> Result<Swept, StoreError> {
    let mut total = Swept::default();
    let mut cursor = Cursor { expires_at: i64::MIN, id: 0 };
    let mut busy = 0;
    loop {
        let left = rows_max.saturating_sub(total.expired + total.spent);
        let (slice, next) = match slice(&inner, left.min(SLICE), cursor).await {
            Ok(swept) => swept,
            // Undone as a whole.
            Err(error) if error.kind == ErrorKind::Busy && busy < BUSY_MAX => {
                busy += 1;
                continue;
            }
            Err(error) => return Err(error),
        };
        cursor = next;
        total.expired += slice.expired;
        total.spent += slice.spent;
        total.more = slice.more;
        if !slice.more || left <= slice.expired + slice.spent {
            return Ok(total);
        }
    }
}

async fn slice(inner: &Inner, most: usize, mut cursor: Cursor) -> Result<(Swept, Cursor), StoreError> {
    let deadline = Instant::now() + inner.options.call_timeout;
    let mut lent = inner.lend(deadline).await?;
    lent.query(Intent::Reads, DOING, PATIENCE, vec![inner.lock_s().into()], deadline).await?;
    let now = Now::at(clock(inner, &mut lent, deadline).await?);
    let (at, look) = (now.expiry_at.as_millis(), i64::try_from(most + 1).unwrap_or(i64::MAX));
    let values = [at, cursor.expires_at, cursor.expires_at, cursor.id, look].map(Value::from).to_vec();
    let due = lent.query(Intent::Reads, DOING, DUE, values, deadline).await?;
    let mut slice = Swept { more: due.len() > most, ..Swept::default() };
    let mut values = vec![Value::from(at)];
    for row in due.iter().take(most) {
        cursor = Cursor { id: get(row, 0)?, expires_at: get(row, 1)? };
        values.push(cursor.id.into());
    }
    if values.len() == 1 {
        return Ok((slice, cursor));
    }
    // Always the same statement, which is prepared once.
    values.resize(SLICE + 1, Value::NULL);
    let statement = format!("{LOCKED}{}{SKIPPING}", vec!["?"; SLICE].join(", "));
    lent.begin(DOING, deadline).await?;
    for row in lent.query(Intent::Reads, DOING, &statement, values, deadline).await? {
        let id = get(&row, 0)?;
        let Some((record, write)) = change(&row, id, now) else { continue };
        if !write_one(&mut lent, id, &record, write, at, deadline).await? {
            continue;
        }
        if matches!(record.state, State::Done { .. }) {
            slice.expired += 1;
        } else {
            slice.spent += 1;
        }
    }
    lent.commit(DOING, deadline).await?;
    Ok((slice, cursor))
}

/// What a row is and what becomes of it; `None` where it stays.
fn change(row: &Row, id: i64, now: Now) -> Option<(Record, Write)> {
    let read = rows::identity(row, 1).and_then(|_| Ok(decoded(row)?));
    match read {
        Ok(record) => sweep(&record, now).map(|write| (record, write)),
        Err(error) => {
            tracing::error!(row = id, %error, "a record is not swept");
            None
        }
    }
}

/// Under the guard that the row was chosen by; whether it held.
async fn write_one(
    lent: &mut Lent,
    id: i64,
    record: &Record,
    write: Write,
    at: i64,
    deadline: Instant,
) -> Result<bool, StoreError> {
    let (statement, mut values) = match write {
        Write::Delete => (DELETE, Vec::new()),
        Write::Put(next) => {
            let columns = Columns::of(&next)?;
            let values = vec![
                columns.version.into(),
                Value::Bytes(columns.lease),
                columns.state.into(),
                columns.claimed_at.into(),
                columns.expires_at.into(),
                Value::Bytes(columns.bytes),
            ];
            (PUT, values)
        }
        // No sweep claims.
        Write::Claim { .. } => return Ok(false),
    };
    let guard = [id.into(), rows::version(record.version)?.into(), rows::bytes(record.lease.id.as_bytes()), at.into()];
    values.extend(guard);
    let sent = lent.send(Intent::Writes, DOING, statement, values, deadline).await;
    sent.map(|answered| answered.affected == 1).map_err(|failed| failed.told(DOING))
}
