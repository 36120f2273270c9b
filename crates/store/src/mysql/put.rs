//! Every write other than a claim: completions, renewals, releases, and what operators say.
//!
//! What does not belong here: claims (`claim`), and what is written (core).

use std::sync::Arc;

use counterfoil_core::{Now, Record, Timestamp};
use mysql_async::{Row, Value};
use tokio::time::Instant;

use super::Inner;
use super::claim::{expected, pause};
use super::fault::{Failed, Intent};
use super::rows::{self, Columns, get};
use crate::error::{ErrorKind, StoreError};
use crate::seam::{New, Note, Swap, Swapped};

pub(super) const PUT: &str = "CALL counterfoil_put(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";

const DOING: &str = "a record could not be written";

/// How often a write is sent again that the server undid for another's sake.
const DEADLOCKS_MAX: u32 = 5;

/// Whether a row that somebody else has locked is waited for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Patience {
    /// As long as the lock limit lasts.
    Waits,
    /// It is passed over.
    Skips,
}

/// Writes `swap`, which is no claim.
pub(super) async fn swap(inner: &Inner, swap: &Swap, patience: Patience) -> Result<Swapped, StoreError> {
    let mut look = 0;
    loop {
        match send(inner, swap, patience).await {
            Ok(swapped) => return Ok(swapped),
            Err(Failed::Locked) if patience == Patience::Skips => return Ok(Swapped::Held { now: inner.pace.now() }),
            Err(Failed::Deadlock) if look < DEADLOCKS_MAX => pause(look).await,
            Err(failed) => return Err(failed.told(DOING)),
        }
        look += 1;
    }
}

async fn send(inner: &Inner, swap: &Swap, patience: Patience) -> Result<Swapped, Failed> {
    let deadline = Instant::now() + inner.options.call_timeout;
    let values = values(inner, swap, Some(patience)).map_err(Failed::Other)?;
    let mut lent = inner.lend(deadline).await.map_err(Failed::Other)?;
    let rows = lent.send(Intent::Writes, DOING, PUT, values, deadline).await?.rows;
    // The call was answered, and what it wrote is not known.
    let unknown = || StoreError::unknown(ErrorKind::Unknown, format!("{DOING}: the server answered no row"));
    let row = rows.first().ok_or_else(unknown).map_err(Failed::Other)?;
    outcome(inner, swap, row).map_err(Failed::Other)
}

pub(super) fn outcome(inner: &Inner, swap: &Swap, row: &Row) -> Result<Swapped, StoreError> {
    let at = rows::time(row, 1)?;
    inner.pace.learn(at);
    let now = Now::at(at);
    Ok(match get::<String>(row, 0)?.as_str() {
        "won" => {
            let record = match &swap.new {
                New::Put(record) => Some(record.clone()),
                New::Delete | New::Claim(_) => None,
            };
            Swapped::Won { record, now }
        }
        "late" => Swapped::TooLate { now },
        _ => {
            let stands = rows::standing(row, 3).map_err(|error| rows::named(error, &swap.identity))?.map(Arc::new);
            Swapped::Lost { stands, now }
        }
    })
}

/// With no `patience`, the write is in the caller's transaction.
pub(super) fn values(inner: &Inner, swap: &Swap, patience: Option<Patience>) -> Result<Vec<Value>, StoreError> {
    let record = match &swap.new {
        New::Put(record) => Some(record.as_ref()),
        New::Delete | New::Claim(_) => None,
    };
    let mut values = rows::parts(&swap.identity).to_vec();
    values.extend(expected(swap.expected)?);
    match record.map(Columns::of).transpose()? {
        Some(columns) => {
            inner.must_fit(&columns.bytes)?;
            values.extend([
                columns.version.into(),
                Value::Bytes(columns.lease),
                columns.state.into(),
                columns.claimed_at.into(),
                columns.expires_at.into(),
                Value::Bytes(columns.bytes),
            ]);
        }
        None => values.extend([const { Value::NULL }; 6]),
    }
    values.extend([swap.not_after.map(Timestamp::as_millis).into(), record.and_then(Record::promised_ms).into()]);
    match swap.note.as_deref() {
        Some(note) => values.extend(self::note(note)),
        None => values.extend([const { Value::NULL }; 5]),
    }
    let lock_s = patience.map(|patience| match patience {
        Patience::Waits => inner.lock_s(),
        Patience::Skips => inner.no_wait_s,
    });
    values.extend([lock_s.into(), patience.is_none().into()]);
    Ok(values)
}

/// A note as five parameters.
pub(super) fn note(note: &Note) -> [Value; 5] {
    [
        note.at.as_millis().into(),
        note.kind.as_str().into(),
        rows::bytes(note.lease.as_bytes()),
        note.who.as_str().into(),
        note.why.as_str().into(),
    ]
}
