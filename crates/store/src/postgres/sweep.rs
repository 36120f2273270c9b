//! Expired receipts, swept in small batches: rows are chosen and locked, changed under the guard that they were chosen
//! by, and what another instance is at already is passed over.
//!
//! What does not belong here: when to sweep (the server), and what a record becomes (core).

use std::sync::Arc;

use counterfoil_core::action::{Write, sweep};
use counterfoil_core::{Now, State};
use tokio::time::Instant;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::Inner;
use super::fault::Intent;
use super::list::{clock, decoded};
use super::pool::Param;
use super::put::{self, Patience};
use super::rows::{self, columns, get};
use crate::error::StoreError;
use crate::seam::{Expected, New, Swap, Swapped, Swept};

/// Rows of one transaction, so that nobody waits long for one of them.
const SLICE: usize = 100;

pub(super) const DUE: &str = concat!(
    "SELECT r.id, r.scope, r.operation, r.key, ",
    columns!(),
    " FROM counterfoil.record AS r
      WHERE r.expires_at <= $1 AND (r.expires_at, r.id) > ($2, $3)
      ORDER BY r.expires_at, r.id LIMIT $4 FOR UPDATE SKIP LOCKED"
);

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
    loop {
        let left = rows_max.saturating_sub(total.expired + total.spent);
        let slice = slice(&inner, left.min(SLICE), &mut cursor).await?;
        total.expired += slice.expired;
        total.spent += slice.spent;
        total.more = slice.more;
        if !slice.more || left <= slice.expired + slice.spent {
            return Ok(total);
        }
    }
}

async fn slice(inner: &Inner, most: usize, cursor: &mut Cursor) -> Result<Swept, StoreError> {
    let doing = "expired records could not be swept";
    let deadline = Instant::now() + inner.options.call_timeout;
    let mut lent = inner.lend(deadline).await?;
    lent.begin(doing, deadline).await?;
    let now = Now::at(clock(inner, &mut lent, deadline).await?);
    let (at, look) = (now.expiry_at.as_millis(), i64::try_from(most + 1).unwrap_or(i64::MAX));
    let parameters: [Param<'_>; 4] =
        [(&at, Type::INT8), (&cursor.expires_at, Type::INT8), (&cursor.id, Type::INT8), (&look, Type::INT8)];
    let due = lent.query(Intent::Reads, doing, DUE, &parameters, deadline).await?;
    let mut slice = Swept { more: due.len() > most, ..Swept::default() };
    let (mut swaps, mut were_done) = (Vec::new(), Vec::new());
    for row in due.iter().take(most) {
        *cursor = Cursor { id: get(row, 0)?, expires_at: get::<Option<i64>>(row, 8)?.unwrap_or(i64::MAX) };
        if let Some((swap, was_done)) = change(row, now) {
            swaps.push(swap);
            were_done.push(was_done);
        }
    }
    if !swaps.is_empty() {
        let sent: Vec<&Swap> = swaps.iter().collect();
        let written = put::send(inner, &mut lent, &sent, Patience::Skips, deadline).await?;
        for ((swap, row), was_done) in swaps.iter().zip(&written).zip(were_done) {
            match put::outcome(inner, swap, row)? {
                Some(Swapped::Won { .. }) if was_done => slice.expired += 1,
                Some(Swapped::Won { .. }) => slice.spent += 1,
                Some(Swapped::Lost { .. } | Swapped::TooLate { .. } | Swapped::Held { .. }) | None => {}
            }
        }
    }
    lent.commit(doing, deadline).await?;
    Ok(slice)
}

/// What becomes of one row, and whether it was a receipt; `None` where it stays.
fn change(row: &Row, now: Now) -> Option<(Swap, bool)> {
    let read = rows::identity(row, 1).and_then(|identity| Ok((identity, decoded(row)?)));
    let (identity, record) = match read {
        Ok(read) => read,
        Err(error) => {
            let id: i64 = row.get(0);
            tracing::error!(row = id, %error, "a record is not swept");
            return None;
        }
    };
    let new = match sweep(&record, now)? {
        Write::Delete => New::Delete,
        Write::Put(next) => New::put(next),
        // No sweep claims.
        Write::Claim { .. } => return None,
    };
    let was_done = matches!(record.state, State::Done { .. });
    Some((Swap { identity, expected: Expected::record(&record), new, not_after: None, note: None }, was_done))
}
