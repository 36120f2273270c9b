//! How a database gets our schema: numbered files of plain SQL, each applied once.
//!
//! These servers commit every change of a schema by itself, so each statement can be repeated, and the version is
//! written last. What does not belong here: the statements on records.

use tokio::time::Instant;

use super::fault::Intent;
use super::pool::Lent;
use super::rows::get;
use crate::error::{ErrorKind, StoreError};
use crate::sqlite::Migrated;

/// Each makes the schema of its position, counted from 1. Written once and never changed.
pub(super) const MIGRATIONS: [&str; 1] = [include_str!("1.sql")];

/// The newest schema that this version knows.
const NEWEST: i64 = 1;

/// Ends each statement of a file.
const DELIMITER: &str = "$$";

/// Held while the schema is changed, so that processes that start together change it once. It goes with the connection.
const LOCK: &str = "SELECT GET_LOCK(CONCAT('counterfoil-', MD5(DATABASE())), 60)";
const UNLOCK: &str = "SELECT RELEASE_LOCK(CONCAT('counterfoil-', MD5(DATABASE())))";

const STANDS: &str = "SELECT COUNT(*) FROM information_schema.tables
  WHERE table_schema = DATABASE() AND table_name = 'counterfoil_migration'";
const VERSION: &str = "SELECT MAX(version) FROM counterfoil_migration";
const APPLIED: &str =
    "INSERT IGNORE INTO counterfoil_migration (version, applied_at) SELECT ?, now_ms FROM counterfoil_clock";

/// Which schema a database has.
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
pub(super) async fn standing(lent: &mut Lent, deadline: Instant) -> Result<Standing, StoreError> {
    if number(lent, STANDS, deadline).await? != Some(1) {
        return Ok(Standing::None);
    }
    match number(lent, VERSION, deadline).await? {
        None => Ok(Standing::None),
        Some(found) if found > NEWEST => Err(StoreError::not_applied(
            ErrorKind::StoreNewer,
            format!("the store has schema {found}, this version knows up to {NEWEST}: run the newer version again"),
        )),
        Some(NEWEST) => Ok(Standing::Current),
        Some(found) => Ok(Standing::Older(found)),
    }
}

async fn number(lent: &mut Lent, statement: &str, deadline: Instant) -> Result<Option<i64>, StoreError> {
    let doing = "cannot read which schema the store has";
    let rows = lent.query(Intent::Reads, doing, statement, Vec::new(), deadline).await?;
    let nothing = "the database gave no answer about its schema: try again";
    let row = rows.first().ok_or_else(|| StoreError::not_applied(ErrorKind::Unavailable, nothing))?;
    get(row, 0)
}

/// Applies what is missing; answers what was done. Cut short, it can be begun again.
pub(super) async fn migrate(lent: &mut Lent, deadline: Instant) -> Result<Migrated, StoreError> {
    if standing(lent, deadline).await? == Standing::Current {
        // Without the lock.
        return Ok(Migrated::Current);
    }
    if number(lent, LOCK, deadline).await? != Some(1) {
        let detail = "cannot migrate the store: another process is at it: try again";
        return Err(StoreError::not_applied(ErrorKind::Busy, detail));
    }
    let migrated = locked(lent, deadline).await;
    let unlocked = number(lent, UNLOCK, deadline).await;
    migrated.and_then(|migrated| unlocked.map(|_| migrated))
}

async fn locked(lent: &mut Lent, deadline: Instant) -> Result<Migrated, StoreError> {
    let doing = "cannot migrate the store";
    // Another process may have been faster.
    let before = standing(lent, deadline).await?;
    let applied = match before {
        Standing::Current => NEWEST,
        Standing::Older(found) => found,
        Standing::None => 0,
    };
    for (version, file) in (1_i64..).zip(MIGRATIONS).filter(|(version, _)| *version > applied) {
        for statement in statements(file) {
            lent.migrate(doing, &statement, deadline).await?;
        }
        lent.query(Intent::Writes, doing, APPLIED, vec![version.into()], deadline).await?;
    }
    Ok(match before {
        Standing::None => Migrated::Made,
        Standing::Older(_) => Migrated::Updated,
        Standing::Current => Migrated::Current,
    })
}

/// The statements of a file, without the words to the command-line client between them.
fn statements(file: &str) -> Vec<String> {
    let lines = file.lines().filter(|line| !line.starts_with("DELIMITER") && !line.starts_with("--"));
    let text: Vec<&str> = lines.collect();
    let text = text.join("\n");
    text.split(DELIMITER).map(str::trim).filter(|statement| !statement.is_empty()).map(str::to_owned).collect()
}
