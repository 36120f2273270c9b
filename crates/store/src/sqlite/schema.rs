//! The tables of a SQLite store, and how a file gets them: numbered migrations, each applied once.
//!
//! What does not belong here: statements on records (`rows`) and how a file in use is opened (`connect`).

use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior};

use super::fault::{failed, random_hex};
use crate::clock::{Clock, Mark};
use crate::error::{ErrorKind, StoreError};

/// The newest schema that this version knows.
pub(super) const NEWEST: i64 = 2;

/// What every table of ours begins with; effects may not touch what begins so.
pub(super) const PREFIX: &str = "counterfoil_";

/// Each migration makes the schema of its position, counted from 1.
///
/// `counterfoil_record`: the truth is `record`; `version` and `lease` are the guard of every write and must agree with
/// it. The parts of the identity stand in plain columns, so that ordered keys stay together. `expires_at` is the
/// instant from which a sweep may change the row and is null while the record is Running or Unknown, which makes one
/// condition serve two partial indexes: what is due, and what is unsettled (by holder, to end a dead one's leases).
/// There is no column for the digest: an index on it would cost every claim a random page, and only operators look
/// records up by it.
const MIGRATIONS: [&str; 2] = [RECORDS, INTENTS];

const RECORDS: &str = "
CREATE TABLE main.counterfoil_record (
  id INTEGER PRIMARY KEY,
  scope BLOB NOT NULL,
  operation TEXT NOT NULL,
  key TEXT NOT NULL,
  version INTEGER NOT NULL,
  lease BLOB NOT NULL,
  holder BLOB,
  expires_at INTEGER,
  record BLOB NOT NULL,
  UNIQUE (scope, operation, key)
) STRICT;
CREATE INDEX main.counterfoil_record_due ON counterfoil_record (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX main.counterfoil_record_unsettled ON counterfoil_record (holder) WHERE expires_at IS NULL;
CREATE TABLE main.counterfoil_history (
  id INTEGER PRIMARY KEY,
  scope BLOB NOT NULL,
  operation TEXT NOT NULL,
  key TEXT NOT NULL,
  at INTEGER NOT NULL,
  kind TEXT NOT NULL,
  lease BLOB NOT NULL,
  who TEXT NOT NULL,
  why TEXT NOT NULL
) STRICT;
CREATE INDEX main.counterfoil_history_of ON counterfoil_history (scope, operation, key);
CREATE TABLE main.counterfoil_store (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  id TEXT NOT NULL,
  born_at INTEGER NOT NULL,
  mark TEXT NOT NULL,
  quarantine_before INTEGER,
  longest_ms INTEGER NOT NULL
) STRICT;
";

/// `counterfoil_intent`: the truth is `intent`, and `version` the guard of every write. `due_at` is the instant from
/// which somebody has to do something and is null where only a person may, or nobody has to; `holder` is the process
/// that sends it, if one does.
const INTENTS: &str = "
CREATE TABLE main.counterfoil_intent (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  version INTEGER NOT NULL,
  holder BLOB,
  due_at INTEGER,
  intent BLOB NOT NULL
) STRICT;
CREATE INDEX main.counterfoil_intent_due ON counterfoil_intent (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX main.counterfoil_intent_held ON counterfoil_intent (holder) WHERE holder IS NOT NULL;
";

/// Which schema a file has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Standing {
    /// None of ours.
    None,
    /// An older one.
    Older(i64),
    /// This version's.
    Current,
}

/// Looks which schema stands.
pub(super) fn standing(conn: &Connection) -> Result<Standing, StoreError> {
    let doing = failed("cannot read which schema the store has");
    let table = "SELECT 1 FROM main.sqlite_schema WHERE type = 'table' AND name = 'counterfoil_migration'";
    if conn.query_row(table, [], |_| Ok(())).optional().map_err(&doing)?.is_none() {
        return Ok(Standing::None);
    }
    let newest = "SELECT max(version) FROM main.counterfoil_migration";
    match conn.query_row(newest, [], |row| row.get::<_, Option<i64>>(0)).map_err(&doing)? {
        None => Ok(Standing::None),
        Some(found) if found > NEWEST => Err(StoreError::not_applied(
            ErrorKind::StoreNewer,
            format!("the store has schema {found}, this version knows up to {NEWEST}: run the newer version again"),
        )),
        Some(NEWEST) => Ok(Standing::Current),
        Some(found) => Ok(Standing::Older(found)),
    }
}

/// Applies what is missing, all of it or nothing; answers the schema that stood before.
pub(super) fn migrate(conn: &mut Connection, clock: &dyn Clock) -> Result<Standing, StoreError> {
    let doing = failed("cannot migrate the store");
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate).map_err(&doing)?;
    let before = standing(&tx)?;
    let applied = match before {
        Standing::Current => return Ok(before),
        Standing::Older(found) => found,
        Standing::None => 0,
    };
    let reading = clock.reading();
    tx.execute_batch(
        "CREATE TABLE IF NOT EXISTS main.counterfoil_migration (
           version INTEGER PRIMARY KEY, applied_at INTEGER NOT NULL) STRICT;",
    )
    .map_err(&doing)?;
    for (version, statements) in (1_i64..).zip(MIGRATIONS).filter(|(version, _)| *version > applied) {
        tx.execute_batch(statements).map_err(&doing)?;
        tx.execute(
            "INSERT INTO main.counterfoil_migration (version, applied_at) VALUES (?1, ?2)",
            (version, reading.wall.as_millis()),
        )
        .map_err(&doing)?;
    }
    tx.execute(
        "INSERT INTO main.counterfoil_store (one, id, born_at, mark, longest_ms) VALUES (1, ?1, ?2, ?3, 0)
         ON CONFLICT (one) DO NOTHING",
        (random_hex()?, reading.wall.as_millis(), Mark::first(&reading).to_string()),
    )
    .map_err(&doing)?;
    tx.commit().map_err(&doing)?;
    Ok(before)
}
