//! Intents in the database: statements, each a guard and nothing more. Who sends is decided by the conditional write; any
//! number of instances may look for what is due.
//!
//! The truth is `intent`; the other columns are its guard and its index, and must agree with it. What does not belong here:
//! what an intent becomes (core), and what applications leave behind (`outbox`).

use counterfoil_core::Timestamp;
use counterfoil_core::intent::{self, Intent, Name, Outbound, Recorded};
use counterfoil_core::profile::Profile;
use tokio::time::Instant;
use tokio_postgres::types::Type;

use super::fault::Intent as Access;
use super::list::clock;
use super::pool::{Lent, Param};
use super::rows::{self, get};
use super::transaction::Cells;
use super::{Inner, PostgresStore};
use crate::error::StoreError;
use crate::intents::{Due, INTENTS_MAX, IntentPage, IntentStore, Letter, Put, Turn, believed, named};
use crate::seam::Answer;

const SELECT: &str = "SELECT version, intent FROM counterfoil.intent WHERE name = $1";
/// Whoever waits for the row's lock does so only as long as it is told to.
macro_rules! durable {
    ($lock:literal) => {
        concat!(
            "(SELECT counterfoil.be_durable(), pg_catalog.set_config('lock_timeout', ",
            $lock,
            "::text, true)) AS durable"
        )
    };
}
const INSERT: &str = concat!(
    "INSERT INTO counterfoil.intent (name, version, due_at, intent) SELECT $1, $2, $3, $4 FROM ",
    durable!("$5"),
    " ON CONFLICT (name) DO NOTHING RETURNING version"
);
const UPDATE: &str = concat!(
    "UPDATE counterfoil.intent AS i SET version = $2, due_at = $3, intent = $4 FROM ",
    durable!("$5"),
    " WHERE i.name = $1 AND i.version = $6 RETURNING i.version"
);
const DELETE: &str = concat!(
    "DELETE FROM counterfoil.intent AS i USING ",
    durable!("$3"),
    " WHERE i.name = $1 AND i.version = $2 RETURNING i.version"
);
const DUE: &str = "SELECT version, intent, due_at, id FROM counterfoil.intent
  WHERE due_at <= $1 AND (due_at, id) > ($2, $3) ORDER BY due_at, id LIMIT $4";
const NEXT: &str = "SELECT min(due_at) FROM counterfoil.intent WHERE due_at > $1";
const PAGE: &str = "SELECT id, version, intent FROM counterfoil.intent WHERE id > $1 ORDER BY id LIMIT $2";

const WRITING: &str = "an intent could not be written";

impl IntentStore for PostgresStore {
    fn intent<'a>(&'a self, name: &'a Name) -> Answer<'a, Option<Intent>> {
        let (inner, name) = (self.inner.clone(), name.clone());
        Box::pin(self.run(Access::Reads, async move {
            let deadline = Instant::now() + inner.options.call_timeout;
            let mut lent = inner.lend(deadline).await?;
            select(&mut lent, &name, deadline).await
        }))
    }

    fn put(&self, before: Option<u64>, intent: Intent) -> Answer<'_, Put> {
        let inner = self.inner.clone();
        Box::pin(self.run(Access::Writes, async move { put(&inner, before, &intent).await }))
    }

    fn due(&self, after: Option<Turn>, limit: usize) -> Answer<'_, Due> {
        let inner = self.inner.clone();
        Box::pin(self.run(Access::Reads, async move { due(&inner, after.unwrap_or(Turn::FIRST), limit).await }))
    }

    fn intents(&self, after: u64, limit: usize) -> Answer<'_, IntentPage> {
        let inner = self.inner.clone();
        Box::pin(self.run(Access::Reads, async move { page(&inner, after, limit).await }))
    }

    fn forget<'a>(&'a self, name: &'a Name, version: u64) -> Answer<'a, bool> {
        let (inner, name) = (self.inner.clone(), name.clone());
        Box::pin(self.run(Access::Writes, async move {
            let deadline = Instant::now() + inner.options.call_timeout;
            let mut lent = inner.lend(deadline).await?;
            let (name, version, lock) = (name.as_str(), rows::version(version)?, inner.lock_ms());
            let parameters: [Param<'_>; 3] = [(&name, Type::TEXT), (&version, Type::INT8), (&lock, Type::INT8)];
            let doing = "an intent could not be removed";
            Ok(!lent.query(Access::Writes, doing, DELETE, &parameters, deadline).await?.is_empty())
        }))
    }

    fn letters(&self, again: Option<u64>, limit: usize) -> Answer<'_, Vec<Letter>> {
        let inner = self.inner.clone();
        Box::pin(self.run(Access::Reads, async move { inner.letters(again, limit).await }))
    }

    fn open_letter<'a>(&'a self, id: u64, outbound: &'a Outbound, profile: &'a Profile) -> Answer<'a, Recorded> {
        let (inner, outbound, profile) = (self.inner.clone(), outbound.clone(), profile.clone());
        Box::pin(self.run(Access::Writes, async move { inner.open_letter(id, &outbound, &profile).await }))
    }

    fn refuse_letter<'a>(&'a self, id: u64, why: &'a str) -> Answer<'a, ()> {
        let (inner, why) = (self.inner.clone(), why.to_owned());
        Box::pin(self.run(Access::Writes, async move { inner.refuse_letter(id, &why).await }))
    }
}

/// The intent whose guard and bytes are these columns.
pub(super) fn stored(row: &impl Cells, first: usize, name: &Name) -> Result<Intent, StoreError> {
    believed(get(row, first)?, get(row, first + 1)?).map_err(|error| named(error, name))
}

/// What stands under `name`.
pub(super) async fn select(lent: &mut Lent, name: &Name, deadline: Instant) -> Result<Option<Intent>, StoreError> {
    let text = name.as_str();
    let parameters: [Param<'_>; 1] = [(&text, Type::TEXT)];
    let rows = lent.query(Access::Reads, "an intent could not be read", SELECT, &parameters, deadline).await?;
    rows.first().map(|row| stored(row, 0, name)).transpose()
}

async fn put(inner: &Inner, before: Option<u64>, intent: &Intent) -> Result<Put, StoreError> {
    let deadline = Instant::now() + inner.options.call_timeout;
    let mut lent = inner.lend(deadline).await?;
    if written(inner, &mut lent, before, intent, deadline).await? {
        return Ok(Put::Won);
    }
    let stands = select(&mut lent, &intent.request.name, deadline).await?;
    if stands.as_ref() == Some(intent) {
        // The caller's own write, whose reply was lost. Written anew, so that this commit waits for all that the first one
        // should have waited for.
        written(inner, &mut lent, Some(intent.version), intent, deadline).await?;
    }
    Ok(Put::Lost(stands))
}

async fn written(
    inner: &Inner,
    lent: &mut Lent,
    before: Option<u64>,
    intent: &Intent,
    deadline: Instant,
) -> Result<bool, StoreError> {
    let (name, version) = (intent.request.name.as_str(), rows::version(intent.version)?);
    let (due_at, bytes) = (intent.due_at().map(Timestamp::as_millis), intent::encode(intent));
    let lock = inner.lock_ms();
    let mut parameters: Vec<Param<'_>> = vec![
        (&name, Type::TEXT),
        (&version, Type::INT8),
        (&due_at, Type::INT8),
        (&bytes, Type::BYTEA),
        (&lock, Type::INT8),
    ];
    let before = before.map(rows::version).transpose()?;
    let statement = match &before {
        None => INSERT,
        Some(before) => {
            parameters.push((before, Type::INT8));
            UPDATE
        }
    };
    Ok(!lent.query(Access::Writes, WRITING, statement, &parameters, deadline).await?.is_empty())
}

async fn due(inner: &Inner, after: Turn, limit: usize) -> Result<Due, StoreError> {
    let doing = "what is due could not be read";
    let deadline = Instant::now() + inner.options.call_timeout;
    let mut lent = inner.lend(deadline).await?;
    let now = clock(inner, &mut lent, deadline).await?.as_millis();
    let limit = i64::try_from(limit.min(INTENTS_MAX)).unwrap_or(i64::MAX);
    let Turn { due_at, id } = after;
    let parameters: [Param<'_>; 4] =
        [(&now, Type::INT8), (&due_at, Type::INT8), (&id, Type::INT8), (&limit, Type::INT8)];
    let (mut intents, mut last, mut rows) = (Vec::new(), None, 0);
    for row in lent.query(Access::Reads, doing, DUE, &parameters, deadline).await? {
        (last, rows) = (Some(Turn { due_at: get(&row, 2)?, id: get(&row, 3)? }), rows + 1);
        match believed(get(&row, 0)?, get(&row, 1)?) {
            Ok(intent) => intents.push(intent),
            // One that cannot be read must not stop the others; lists show it.
            Err(error) => tracing::error!(%error, "an intent is not sent"),
        }
    }
    let next = lent.query(Access::Reads, doing, NEXT, &[(&now, Type::INT8)], deadline).await?;
    let next: Option<i64> = next.first().map(|row| get(row, 0)).transpose()?.flatten();
    Ok(Due { intents, more: last.filter(|_| rows == limit), next: next.map(Timestamp::from_millis) })
}

async fn page(inner: &Inner, after: u64, limit: usize) -> Result<IntentPage, StoreError> {
    let deadline = Instant::now() + inner.options.list_timeout;
    let mut lent = inner.lend(deadline).await?;
    let limit = limit.min(INTENTS_MAX);
    let (after, most) = (i64::try_from(after).unwrap_or(i64::MAX), i64::try_from(limit + 1).unwrap_or(i64::MAX));
    let parameters: [Param<'_>; 2] = [(&after, Type::INT8), (&most, Type::INT8)];
    let found = lent.query(Access::Reads, "intents could not be listed", PAGE, &parameters, deadline).await?;
    let mut page = IntentPage { rows: Vec::new(), more: found.len() > limit };
    for row in found.iter().take(limit) {
        let id: i64 = get(row, 0)?;
        page.rows.push((u64::try_from(id).unwrap_or(0), believed(get(row, 1)?, get(row, 2)?)));
    }
    Ok(page)
}
