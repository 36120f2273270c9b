//! Intents in the store's file: statements, and the end of what a dead process was sending.
//!
//! The truth is `intent`; the other columns are its guard, its index and its end, and must agree with it. What does not
//! belong here: what an intent becomes (core), and who waits for the writer (`queue`).

use std::sync::Arc;

use counterfoil_core::intent::{self, Event, Intent, Name};
use counterfoil_core::{Holder, Timestamp};
use rusqlite::{Connection, OptionalExtension as _};

use super::batch::Batch;
use super::fault::failed;
use super::job::Rank;
use super::{Inner, SqliteStore, rows};
use crate::error::StoreError;
use crate::intents::{Due, INTENTS_MAX, IntentPage, IntentStore, Put, Turn, believed, named};
use crate::seam::Answer;

/// Intents of one job that ends a dead process's sends.
const SLICE: usize = 100;

pub(super) const SELECT: &str = "SELECT version, intent FROM main.counterfoil_intent WHERE name = ?1";
const INSERT: &str = "INSERT INTO main.counterfoil_intent (name, version, holder, due_at, intent)
  VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (name) DO NOTHING";
pub(super) const UPDATE: &str = "UPDATE main.counterfoil_intent
  SET version = ?2, holder = ?3, due_at = ?4, intent = ?5 WHERE name = ?1 AND version = ?6";
pub(super) const DELETE: &str = "DELETE FROM main.counterfoil_intent WHERE name = ?1 AND version = ?2";
pub(super) const DUE: &str = "SELECT version, intent, due_at, id FROM main.counterfoil_intent
  WHERE due_at <= ?1 AND (due_at, id) > (?2, ?3) ORDER BY due_at, id LIMIT ?4";
pub(super) const NEXT: &str = "SELECT min(due_at) FROM main.counterfoil_intent WHERE due_at > ?1";
const PAGE: &str = "SELECT id, version, intent FROM main.counterfoil_intent WHERE id > ?1 ORDER BY id LIMIT ?2";
pub(super) const HELD: &str =
    "SELECT version, intent FROM main.counterfoil_intent WHERE holder = ?1 AND holder IS NOT NULL LIMIT ?2";

impl IntentStore for SqliteStore {
    fn intent<'a>(&'a self, name: &'a Name) -> Answer<'a, Option<Intent>> {
        let name = name.clone();
        Box::pin(self.inner.short(move |conn| select(conn, &name)))
    }

    fn put(&self, before: Option<u64>, intent: Intent) -> Answer<'_, Put> {
        // What keeps a promise that was made goes first, as for records.
        let rank = if before.is_some() { Rank::Urgent } else { Rank::Claim };
        Box::pin(self.inner.ask(rank, move |batch| put(batch.conn, before, &intent)))
    }

    fn due(&self, after: Option<Turn>, limit: usize) -> Answer<'_, Due> {
        let after = after.unwrap_or(Turn::FIRST);
        Box::pin(self.inner.long(move |inner, conn| due(conn, inner.time.now().at, after, limit)))
    }

    fn intents(&self, after: u64, limit: usize) -> Answer<'_, IntentPage> {
        Box::pin(self.inner.long(move |_, conn| page(conn, after, limit)))
    }

    fn forget<'a>(&'a self, name: &'a Name, version: u64) -> Answer<'a, bool> {
        let name = name.clone();
        Box::pin(self.inner.ask(Rank::Low, move |batch| {
            let doing = failed("cannot remove an intent");
            let mut statement = batch.conn.prepare_cached(DELETE).map_err(&doing)?;
            let removed = statement.execute((name.as_str(), rows::version(version)?)).map_err(&doing)?;
            Ok(removed == 1)
        }))
    }
}

/// What stands under `name`.
fn select(conn: &Connection, name: &Name) -> Result<Option<Intent>, StoreError> {
    let doing = failed("cannot read an intent");
    let mut statement = conn.prepare_cached(SELECT).map_err(&doing)?;
    let found = statement.query_row([name.as_str()], stored).optional().map_err(&doing)?;
    found.map(|(version, bytes)| believed(version, &bytes).map_err(|error| named(error, name))).transpose()
}

fn stored(row: &rusqlite::Row<'_>) -> rusqlite::Result<(i64, Vec<u8>)> {
    Ok((row.get(0)?, row.get(1)?))
}

/// Writes `intent` in the place of `before`, in any transaction that may write.
pub(super) fn put(conn: &Connection, before: Option<u64>, intent: &Intent) -> Result<Put, StoreError> {
    let doing = failed("cannot write an intent");
    let name = &intent.request.name;
    let (version, holder) = (rows::version(intent.version)?, intent.holder());
    let holder = holder.as_ref().map(Holder::as_bytes);
    let (due_at, bytes) = (intent.due_at().map(Timestamp::as_millis), intent::encode(intent));
    let written = match before {
        None => conn
            .prepare_cached(INSERT)
            .and_then(|mut insert| insert.execute((name.as_str(), version, holder, due_at, bytes))),
        Some(before) => {
            let before = rows::version(before)?;
            conn.prepare_cached(UPDATE)
                .and_then(|mut update| update.execute((name.as_str(), version, holder, due_at, bytes, before)))
        }
    };
    if written.map_err(&doing)? == 1 { Ok(Put::Won) } else { Ok(Put::Lost(select(conn, name)?)) }
}

fn due(conn: &Connection, now: Timestamp, after: Turn, limit: usize) -> Result<Due, StoreError> {
    let doing = failed("cannot read which intents are due");
    let mut statement = conn.prepare_cached(DUE).map_err(&doing)?;
    let limit = i64::try_from(limit.min(INTENTS_MAX)).unwrap_or(i64::MAX);
    let mut found = statement.query((now.as_millis(), after.due_at, after.id, limit)).map_err(&doing)?;
    let (mut intents, mut last, mut rows) = (Vec::new(), None, 0);
    while let Some(row) = found.next().map_err(&doing)? {
        let turn = || Ok(Turn { due_at: row.get(2)?, id: row.get(3)? });
        (last, rows) = (Some(turn().map_err(&doing)?), rows + 1);
        let (version, bytes) = stored(row).map_err(&doing)?;
        match believed(version, &bytes) {
            Ok(intent) => intents.push(intent),
            // One that cannot be read must not stop the others; lists show it.
            Err(error) => tracing::error!(%error, "an intent is not sent"),
        }
    }
    let next: Option<i64> = conn
        .prepare_cached(NEXT)
        .and_then(|mut next| next.query_row([now.as_millis()], |row| row.get(0)))
        .map_err(&doing)?;
    Ok(Due { intents, more: last.filter(|_| rows == limit), next: next.map(Timestamp::from_millis) })
}

fn page(conn: &Connection, after: u64, limit: usize) -> Result<IntentPage, StoreError> {
    let doing = failed("cannot list intents");
    let limit = limit.min(INTENTS_MAX);
    let mut statement = conn.prepare_cached(PAGE).map_err(&doing)?;
    let after = i64::try_from(after).unwrap_or(i64::MAX);
    let mut found = statement.query((after, i64::try_from(limit + 1).unwrap_or(i64::MAX))).map_err(&doing)?;
    let mut page = IntentPage { rows: Vec::new(), more: false };
    while let Some(row) = found.next().map_err(&doing)? {
        if page.rows.len() == limit {
            page.more = true;
            break;
        }
        let id: i64 = row.get(0).map_err(&doing)?;
        let (version, bytes): (i64, Vec<u8>) = (row.get(1).map_err(&doing)?, row.get(2).map_err(&doing)?);
        page.rows.push((u64::try_from(id).unwrap_or(0), believed(version, &bytes)));
    }
    Ok(page)
}

/// Whether `holder` still sends anything.
pub(super) fn holds(conn: &Connection, holder: Holder) -> Result<bool, StoreError> {
    let doing = failed("cannot read what this process sends");
    conn.prepare_cached(HELD).and_then(|mut held| held.exists((holder.as_bytes(), 1))).map_err(doing)
}

impl Inner {
    /// Puts in doubt what a process that is gone was sending; how many intents that were.
    pub(super) fn end_sends(self: &Arc<Self>, holder: Holder) -> Result<usize, StoreError> {
        let mut ended = 0;
        loop {
            let slice = self.ask_blocking(Rank::Urgent, move |batch| ended_sends(batch, holder))?;
            ended += slice;
            if slice < SLICE {
                return Ok(ended);
            }
        }
    }
}

fn ended_sends(batch: &Batch<'_>, holder: Holder) -> Result<usize, StoreError> {
    let doing = failed("cannot read what a gone process was sending");
    let held: Vec<(i64, Vec<u8>)> = {
        let mut statement = batch.conn.prepare_cached(HELD).map_err(&doing)?;
        let limit = i64::try_from(SLICE).unwrap_or(i64::MAX);
        let rows = statement.query_map((holder.as_bytes(), limit), stored).map_err(&doing)?;
        rows.collect::<rusqlite::Result<_>>().map_err(&doing)?
    };
    let now = batch.now();
    batch.alone(|| {
        let mut ended = 0;
        for (version, bytes) in &held {
            let before = match believed(*version, bytes) {
                Ok(intent) => intent,
                Err(error) => {
                    tracing::error!(%error, "what a gone process was sending cannot be read");
                    continue;
                }
            };
            if let Some(after) = intent::next(&before, &Event::Gone(holder), now).write
                && put(batch.conn, Some(before.version), &after)? == Put::Won
            {
                ended += 1;
            }
        }
        Ok(ended)
    })
}
