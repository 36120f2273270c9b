//! Reads for operators: pages, looking up, the history, figures.
//!
//! What does not belong here: the read that every claim begins with (`reads`), writes, and what a record means (core).

use std::time::Duration;

use counterfoil_core::record::Standing;
use counterfoil_core::{Digest, Identity, LeaseId, Now, Record, State, Timestamp};
use tokio::time::Instant;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::Inner;
use super::fault::Intent;
use super::pool::{Lent, Param};
use super::put::parts;
use super::rows::{self, columns, get};
use crate::error::{ErrorKind, StoreError};
use crate::seam::{About, Listed, Note, NoteKind, Page, Query};

/// Rows of a page.
const PAGE_ROWS_MAX: usize = 1000;

/// Rows that are fetched at a time, so that large bodies are never all in memory.
const FETCH_ROWS: usize = 100;

/// Notes of a history.
const NOTES_MAX: i64 = 100;

/// Identities that a look-up reads at a time.
const LOOK_ROWS: i64 = 10_000;

macro_rules! listed {
    ($where:literal) => {
        concat!(
            "SELECT r.id, r.scope, r.operation, r.key, ",
            columns!(),
            " FROM counterfoil.record AS r WHERE ",
            $where
        )
    };
}

pub(super) const ALL: &str = listed!("r.id > $1 ORDER BY r.id LIMIT $2");
pub(super) const UNSETTLED: &str = listed!("r.expires_at IS NULL AND r.id > $1 ORDER BY r.id LIMIT $2");
pub(super) const BY_ID: &str = listed!("r.id = $1");
pub(super) const LAST: &str = listed!(
    "r.expires_at IS NOT NULL AND r.expires_at < 9223372036854775807 ORDER BY r.expires_at DESC, r.id DESC LIMIT 1"
);

/// Identities in the order of their own index, after one.
pub(super) const NEXT: &str = "SELECT id, scope, operation, key FROM counterfoil.record
  WHERE (scope, operation, key) > ($1, $2, $3) ORDER BY scope, operation, key LIMIT $4";

pub(super) const HISTORY: &str = "SELECT at, kind, lease, who, why FROM counterfoil.history
  WHERE scope = $1 AND operation = $2 AND key = $3 ORDER BY id DESC LIMIT $4";

const ABOUT: &str = "SELECT s.id, s.born_at, s.quarantine_before, s.longest_ms, counterfoil.clock(),
  (SELECT count(*) FROM counterfoil.record) FROM counterfoil.store AS s";

const CLOCK: &str = "SELECT counterfoil.clock()";

fn nothing() -> StoreError {
    StoreError::not_applied(ErrorKind::Unavailable, "the database gave no answer to a read: try again")
}

/// The server's time.
pub(super) async fn clock(inner: &Inner, lent: &mut Lent, deadline: Instant) -> Result<Timestamp, StoreError> {
    let rows = lent.query(Intent::Reads, "the server's clock could not be read", CLOCK, &[], deadline).await?;
    let at = rows::time(rows.first().ok_or_else(nothing)?, 0)?;
    inner.pace.learn(at);
    Ok(at)
}

/// Reads a page.
pub(super) async fn page(inner: &Inner, query: &Query) -> Result<Page, StoreError> {
    let deadline = Instant::now() + inner.options.list_timeout;
    let mut lent = inner.lend(deadline).await?;
    let now = Now::at(clock(inner, &mut lent, deadline).await?);
    let limit = query.limit.min(PAGE_ROWS_MAX);
    let statement = if query.unsettled_only { UNSETTLED } else { ALL };
    let mut page = Page { rows: Vec::new(), more: false, now };
    let mut after = i64::try_from(query.after).unwrap_or(i64::MAX);
    loop {
        let most = FETCH_ROWS.min(limit.saturating_sub(page.rows.len()) + 1);
        let fetched = fetch(&mut lent, statement, after, most, deadline).await?;
        for row in &fetched {
            if page.rows.len() == limit {
                page.more = true;
                return Ok(page);
            }
            after = get(row, 0)?;
            page.rows.extend(listed(row));
        }
        if fetched.len() < most {
            return Ok(page);
        }
    }
}

async fn fetch(
    lent: &mut Lent,
    statement: &str,
    after: i64,
    most: usize,
    deadline: Instant,
) -> Result<Vec<Row>, StoreError> {
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let parameters: [Param<'_>; 2] = [(&after, Type::INT8), (&most, Type::INT8)];
    lent.query(Intent::Reads, "records could not be listed", statement, &parameters, deadline).await
}

/// A row of a list; none where not even its identity can be read, which is logged with its position.
fn listed(row: &Row) -> Option<Listed> {
    let id: i64 = row.get(0);
    match rows::identity(row, 1) {
        Ok(identity) => Some(Listed { position: u64::try_from(id).unwrap_or(0), identity, record: decoded(row) }),
        Err(error) => {
            tracing::error!(row = id, %error, "a record is not listed");
            None
        }
    }
}

/// The record of a list's row, or why it cannot be decoded.
pub(super) fn decoded(row: &Row) -> Result<Record, counterfoil_core::Error> {
    match rows::stored(row, 4) {
        Ok(Some(stored)) => stored.record(),
        Ok(None) | Err(_) => Err(counterfoil_core::Error::Corrupt("columns")),
    }
}

/// Finds identities by key or by the beginning of their digest: one pass over the identities' own index, which does
/// not touch the records. Paid by an operator, and not by every claim.
pub(super) async fn find(inner: &Inner, text: &str, limit: usize) -> Result<Vec<Listed>, StoreError> {
    let deadline = Instant::now() + inner.options.list_timeout;
    let mut lent = inner.lend(deadline).await?;
    let digits = text.to_ascii_lowercase();
    let is_prefix = !text.is_empty() && text.len() <= 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let sought = |identity: &Identity| {
        identity.key.as_str() == text || (is_prefix && identity.digest().to_hex().starts_with(&digits))
    };
    let mut found = Vec::new();
    let mut after: [Vec<u8>; 3] = Default::default();
    while found.len() < limit {
        let [scope, operation, key] = &after;
        let parameters: [Param<'_>; 4] =
            [(scope, Type::BYTEA), (operation, Type::BYTEA), (key, Type::BYTEA), (&LOOK_ROWS, Type::INT8)];
        let rows = lent.query(Intent::Reads, "a record could not be looked up", NEXT, &parameters, deadline).await?;
        let Some(last) = rows.last() else { break };
        after = [get(last, 1)?, get(last, 2)?, get(last, 3)?];
        for row in &rows {
            if found.len() < limit && rows::identity(row, 1).is_ok_and(|identity| sought(&identity)) {
                let id: i64 = get(row, 0)?;
                let by_id: [Param<'_>; 1] = [(&id, Type::INT8)];
                let rows = lent.query(Intent::Reads, "a record could not be read", BY_ID, &by_id, deadline).await?;
                found.extend(rows.first().and_then(listed));
            }
        }
    }
    Ok(found)
}

/// The newest notes on an identity, oldest first.
pub(super) async fn history(inner: &Inner, identity: &Identity) -> Result<Vec<Note>, StoreError> {
    let deadline = Instant::now() + inner.options.list_timeout;
    let mut lent = inner.lend(deadline).await?;
    let (scope, operation, key) = parts(identity);
    let parameters: [Param<'_>; 4] =
        [(&scope, Type::BYTEA), (&operation, Type::BYTEA), (&key, Type::BYTEA), (&NOTES_MAX, Type::INT8)];
    let rows = lent.query(Intent::Reads, "the history could not be read", HISTORY, &parameters, deadline).await?;
    rows.iter().rev().map(|row| note(row, identity)).collect()
}

fn note(row: &Row, identity: &Identity) -> Result<Note, StoreError> {
    let corrupt = |what: &str| {
        let detail = format!("the history of {} holds {what}: a newer version wrote it", identity.digest());
        StoreError::not_applied(ErrorKind::Corrupt, detail)
    };
    let lease: [u8; 16] = get::<&[u8]>(row, 2)?.try_into().map_err(|_| corrupt("a lease of another length"))?;
    Ok(Note {
        identity: identity.clone(),
        at: rows::time(row, 0)?,
        kind: NoteKind::from_word(get(row, 1)?).ok_or_else(|| corrupt("an unknown word"))?,
        lease: LeaseId::from_bytes(lease),
        who: get(row, 3)?,
        why: get(row, 4)?,
    })
}

/// What and how much is kept.
pub(super) async fn about(inner: &Inner) -> Result<About, StoreError> {
    let deadline = Instant::now() + inner.options.list_timeout;
    let mut lent = inner.lend(deadline).await?;
    let doing = "records could not be counted";
    let rows = lent.query(Intent::Reads, doing, ABOUT, &[], deadline).await?;
    let row = rows.first().ok_or_else(nothing)?;
    let at = rows::time(row, 4)?;
    inner.pace.learn(at);
    let quarantine_before = get::<Option<i64>>(row, 2)?.map(Timestamp::from_millis);
    let longest = Duration::from_millis(u64::try_from(get::<i64>(row, 3)?).unwrap_or(0));
    let first = fetch(&mut lent, ALL, 0, 1, deadline).await?;
    let last = lent.query(Intent::Reads, doing, LAST, &[], deadline).await?;
    let counted = unsettled(&mut lent, Now::at(at), deadline).await?;
    let promised_until = match quarantine_before {
        // What was lost in the restore was completed before it, and promised for no longer than the longest.
        Some(before) => Some(before.plus(longest)),
        None => last.first().and_then(|row| decoded(row).ok()).as_ref().and_then(promised),
    };
    Ok(About {
        id: get(row, 0)?,
        born_at: rows::time(row, 1)?,
        place: inner.place.to_string(),
        records: u64::try_from(get::<i64>(row, 5)?).unwrap_or(0),
        oldest_at: first.first().and_then(|row| decoded(row).ok()).map(|record| record.claimed_at),
        oldest_unknown: counted.oldest,
        unknown: counted.unknown,
        running: counted.running,
        quarantine_before,
        promised_until,
        now: Now::at(at),
    })
}

fn promised(record: &Record) -> Option<Timestamp> {
    match &record.state {
        State::Done { expires_at, refuse_until, .. } => Some(refuse_until.unwrap_or(*expires_at)),
        State::Spent { until } => Some(*until),
        State::Running | State::Unknown { .. } => None,
    }
}

#[derive(Default)]
struct Unsettled {
    unknown: u64,
    running: u64,
    oldest: Option<(Digest, Timestamp)>,
}

/// What is in doubt or runs, as of `now`.
async fn unsettled(lent: &mut Lent, now: Now, deadline: Instant) -> Result<Unsettled, StoreError> {
    let mut counted = Unsettled::default();
    let mut after = 0;
    loop {
        let fetched = fetch(lent, UNSETTLED, after, PAGE_ROWS_MAX, deadline).await?;
        for row in &fetched {
            after = get(row, 0)?;
            let (Ok(identity), Ok(record)) = (rows::identity(row, 1), decoded(row)) else { continue };
            match record.standing(now) {
                Standing::Running { .. } => counted.running += 1,
                Standing::Unknown { since, .. } => {
                    counted.unknown += 1;
                    if counted.oldest.is_none_or(|(_, oldest)| since < oldest) {
                        counted.oldest = Some((identity.digest(), since));
                    }
                }
                Standing::Lapsed | Standing::Absent | Standing::Done { .. } | Standing::Expired { .. } => {}
            }
        }
        if fetched.len() < PAGE_ROWS_MAX {
            return Ok(counted);
        }
    }
}
