//! Reads for operators: pages of records, looking one up, its history, and what is kept in all.
//!
//! What does not belong here: the read that every claim begins with (`readers`).

use counterfoil_core::record::Standing;
use counterfoil_core::{Digest, Identity, LeaseId, Now, Record, State, Timestamp};
use rusqlite::{Connection, Params};

use super::Inner;
use super::fault::failed;
use super::meta;
use super::rows::{self, Stored};
use crate::error::{ErrorKind, StoreError};
use crate::seam::{About, Listed, Note, NoteKind, Page, Query};

/// Rows of a page.
const PAGE_ROWS_MAX: usize = 1000;

/// Bytes of a page's records; a page ends behind the one that passes it.
const PAGE_BYTES_MAX: usize = 32 << 20;

/// Notes of a history.
const NOTES_MAX: i64 = 100;

/// Identities that a look-up reads at a time.
const LOOK_ROWS: i64 = 10_000;

pub(super) const ALL: &str =
    concat!("SELECT ", rows::columns!(), " FROM main.counterfoil_record WHERE id > ?1 ORDER BY id LIMIT ?2");

pub(super) const UNSETTLED: &str = concat!(
    "SELECT ",
    rows::columns!(),
    " FROM main.counterfoil_record INDEXED BY counterfoil_record_unsettled
      WHERE expires_at IS NULL AND id > ?1 ORDER BY id LIMIT ?2"
);

/// The first identities in the order of their own index.
const FIRST: &str = "SELECT id, scope, operation, key FROM main.counterfoil_record
  ORDER BY scope, operation, key LIMIT ?1";

/// Those after one.
pub(super) const NEXT: &str = "SELECT id, scope, operation, key FROM main.counterfoil_record
  WHERE (scope, operation, key) > (?2, ?3, ?4) ORDER BY scope, operation, key LIMIT ?1";

/// Reads a page.
pub(super) fn page(inner: &Inner, conn: &Connection, query: &Query) -> Result<Page, StoreError> {
    let limit = query.limit.min(PAGE_ROWS_MAX);
    let doing = failed("cannot list records");
    let statement = if query.unsettled_only { UNSETTLED } else { ALL };
    let mut statement = conn.prepare_cached(statement).map_err(&doing)?;
    let after = i64::try_from(query.after).unwrap_or(i64::MAX);
    let mut found = statement.query((after, i64::try_from(limit + 1).unwrap_or(i64::MAX))).map_err(&doing)?;
    let mut page = Page { rows: Vec::new(), more: false, now: inner.time.now() };
    let mut bytes = 0;
    while let Some(row) = found.next().map_err(&doing)? {
        if page.rows.len() == limit || bytes > PAGE_BYTES_MAX {
            page.more = true;
            break;
        }
        let stored = rows::stored(row).map_err(&doing)?;
        bytes += stored.bytes.len();
        page.rows.extend(listed(&stored));
    }
    Ok(page)
}

/// A row of a list; none where not even its identity can be read, which is logged with its position.
fn listed(stored: &Stored) -> Option<Listed> {
    match stored.identity() {
        Ok(identity) => {
            let position = u64::try_from(stored.id).unwrap_or(0);
            Some(Listed { position, identity, record: stored.record() })
        }
        Err(error) => {
            tracing::error!(row = stored.id, %error, "a record is not listed");
            None
        }
    }
}

/// What is looked for: a key, or the beginning of a digest.
struct Sought {
    text: String,
    /// The text as hexadecimal digits of a digest, in lower case.
    digits: Option<String>,
}

impl Sought {
    fn is(&self, identity: &Identity) -> bool {
        identity.key.as_str() == self.text
            || self.digits.as_ref().is_some_and(|digits| identity.digest().to_hex().starts_with(digits.as_str()))
    }
}

/// Finds identities by key or by the beginning of their digest.
///
/// One pass over the identities' own index, which does not touch the records: about a second for a million, paid by
/// an operator and not by every claim.
pub(super) fn find(conn: &Connection, text: &str, limit: usize) -> Result<Vec<Listed>, StoreError> {
    let hexadecimal = !text.is_empty() && text.len() <= 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let sought = Sought { text: text.to_owned(), digits: hexadecimal.then(|| text.to_ascii_lowercase()) };
    let mut found = Vec::new();
    let mut after: Option<(Vec<u8>, String, String)> = None;
    while found.len() < limit {
        let rows = identities(conn, after.as_ref())?;
        let Some(last) = rows.last() else { break };
        after = Some((last.scope.clone(), last.operation.clone(), last.key.clone()));
        for row in &rows {
            if found.len() < limit && row.identity().is_some_and(|identity| sought.is(&identity)) {
                found.extend(rows::by_id(conn, row.id)?.as_ref().and_then(listed));
            }
        }
    }
    Ok(found)
}

/// An identity's columns.
struct Named {
    id: i64,
    scope: Vec<u8>,
    operation: String,
    key: String,
}

impl Named {
    fn identity(&self) -> Option<Identity> {
        let scope = counterfoil_core::Scope::from_bytes(&self.scope).ok()?;
        let operation = counterfoil_core::Operation::new(self.operation.clone()).ok()?;
        Some(Identity::new(scope, operation, counterfoil_core::Key::new(self.key.clone()).ok()?))
    }
}

fn identities(conn: &Connection, after: Option<&(Vec<u8>, String, String)>) -> Result<Vec<Named>, StoreError> {
    match after {
        None => named(conn, FIRST, [LOOK_ROWS]),
        Some((scope, operation, key)) => named(conn, NEXT, (LOOK_ROWS, scope, operation, key)),
    }
}

fn named(conn: &Connection, statement: &str, parameters: impl Params) -> Result<Vec<Named>, StoreError> {
    let doing = failed("cannot look a record up");
    let mut statement = conn.prepare_cached(statement).map_err(&doing)?;
    let rows = statement
        .query_map(parameters, |row| {
            Ok(Named { id: row.get(0)?, scope: row.get(1)?, operation: row.get(2)?, key: row.get(3)? })
        })
        .map_err(&doing)?;
    rows.collect::<rusqlite::Result<_>>().map_err(&doing)
}

/// The newest notes on an identity, oldest first.
pub(super) fn history(conn: &Connection, identity: &Identity) -> Result<Vec<Note>, StoreError> {
    let doing = failed("cannot read the history");
    let mut statement = conn
        .prepare_cached(
            "SELECT at, kind, lease, who, why FROM main.counterfoil_history
             WHERE scope = ?1 AND operation = ?2 AND key = ?3 ORDER BY id DESC LIMIT ?4",
        )
        .map_err(&doing)?;
    let parts = (identity.scope.as_bytes(), identity.operation.as_str(), identity.key.as_str(), NOTES_MAX);
    let mut found = statement.query(parts).map_err(&doing)?;
    let mut notes = Vec::new();
    while let Some(row) = found.next().map_err(&doing)? {
        let word: String = row.get(1).map_err(&doing)?;
        let kind = NoteKind::from_word(&word).ok_or_else(|| {
            StoreError::not_applied(
                ErrorKind::StoreNewer,
                format!("the history of {} holds a note `{word}`: run the newer version again", identity.digest()),
            )
        })?;
        notes.push(Note {
            identity: identity.clone(),
            at: Timestamp::from_millis(row.get(0).map_err(&doing)?),
            kind,
            lease: LeaseId::from_bytes(row.get(2).map_err(&doing)?),
            who: row.get(3).map_err(&doing)?,
            why: row.get(4).map_err(&doing)?,
        });
    }
    notes.reverse();
    Ok(notes)
}

/// What and how much is kept.
pub(super) fn about(inner: &Inner, conn: &Connection) -> Result<About, StoreError> {
    let doing = failed("cannot count records");
    let (id, born_at) = meta::birth(conn)?;
    let stands = meta::read(conn)?;
    let now = inner.time.now();
    let records: i64 =
        conn.query_row("SELECT count(*) FROM main.counterfoil_record", [], |row| row.get(0)).map_err(&doing)?;
    let oldest = one(conn, "ORDER BY id LIMIT 1")?;
    // The partial index answers this with one look. What is kept for ever stands at its end, and promises nothing.
    let last = one(
        conn,
        "WHERE expires_at IS NOT NULL AND expires_at < 9223372036854775807 ORDER BY expires_at DESC LIMIT 1",
    )?;
    let unsettled = unsettled(conn, now)?;
    let longest = std::time::Duration::from_millis(u64::try_from(stands.longest_ms).unwrap_or(0));
    let promised_until = match stands.quarantine_before {
        // What was lost in the restore was completed before it, and promised for no longer than the longest.
        Some(before) => Some(before.plus(longest)),
        None => last.as_ref().and_then(promised),
    };
    Ok(About {
        id,
        born_at,
        place: format!("sqlite:{}", inner.place.path.display()),
        records: u64::try_from(records).unwrap_or(0),
        oldest_at: oldest.map(|record| record.claimed_at),
        oldest_unknown: unsettled.oldest,
        unknown: unsettled.unknown,
        running: unsettled.running,
        quarantine_before: stands.quarantine_before,
        promised_until,
        now,
    })
}

fn promised(record: &Record) -> Option<Timestamp> {
    match &record.state {
        State::Done { expires_at, refuse_until, .. } => Some(refuse_until.unwrap_or(*expires_at)),
        State::Spent { until } => Some(*until),
        State::Running | State::Unknown { .. } => None,
    }
}

/// The first readable record in an order.
fn one(conn: &Connection, order: &str) -> Result<Option<Record>, StoreError> {
    let doing = failed("cannot read a record");
    let statement = format!("SELECT {} FROM main.counterfoil_record {order}", rows::columns!());
    let mut statement = conn.prepare_cached(&statement).map_err(&doing)?;
    let mut found = statement.query([]).map_err(&doing)?;
    let Some(row) = found.next().map_err(&doing)? else { return Ok(None) };
    Ok(rows::stored(row).map_err(&doing)?.record().ok())
}

#[derive(Default)]
struct Unsettled {
    unknown: u64,
    running: u64,
    oldest: Option<(Digest, Timestamp)>,
}

/// What is in doubt or runs, as of `now`.
fn unsettled(conn: &Connection, now: Now) -> Result<Unsettled, StoreError> {
    let doing = failed("cannot count what is in doubt");
    let mut statement = conn.prepare_cached(UNSETTLED).map_err(&doing)?;
    let mut found = statement.query((0, i64::MAX)).map_err(&doing)?;
    let mut counted = Unsettled::default();
    while let Some(row) = found.next().map_err(&doing)? {
        let stored = rows::stored(row).map_err(&doing)?;
        let (Ok(identity), Ok(record)) = (stored.identity(), stored.record()) else { continue };
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
    Ok(counted)
}
