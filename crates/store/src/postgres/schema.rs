//! How a database gets our schema: numbered files of plain SQL, each applied once.
//!
//! What does not belong here: the statements on records.

use tokio::time::Instant;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::fault::Intent;
use super::pool::Lent;
use super::rows::get;
use crate::error::{ErrorKind, StoreError};
use crate::sqlite::Migrated;

/// Each makes the schema of its position, counted from 1. Written once and never changed.
pub(super) const MIGRATIONS: [&str; 4] =
    [include_str!("1.sql"), include_str!("2.sql"), include_str!("3.sql"), include_str!("4.sql")];

/// The newest schema that this version knows.
const NEWEST: i32 = 4;

/// Held while the schema is changed, so that processes that start together change it once.
const LOCK: &str = "SELECT pg_advisory_xact_lock(1668247156, 0)";

/// Not `to_regclass`: it would answer from what this session knew before it waited for the lock.
const STANDS: &str = "SELECT EXISTS (SELECT FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
  WHERE n.nspname = 'counterfoil' AND c.relname = 'migration')";
const VERSION: &str = "SELECT max(version) FROM counterfoil.migration";

/// Which schema a database has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Standing {
    /// None of ours.
    None,
    /// An older one.
    Older(i32),
    /// This version's.
    Current,
}

/// Looks which schema stands.
pub(super) async fn standing(lent: &mut Lent, deadline: Instant) -> Result<Standing, StoreError> {
    let doing = "cannot read which schema the store has";
    let stands = lent.query(Intent::Reads, doing, STANDS, &[], deadline).await?;
    if !first::<bool>(&stands)? {
        return Ok(Standing::None);
    }
    let version = lent.query(Intent::Reads, doing, VERSION, &[], deadline).await?;
    match first::<Option<i32>>(&version)? {
        None => Ok(Standing::None),
        Some(found) if found > NEWEST => Err(StoreError::not_applied(
            ErrorKind::StoreNewer,
            format!("the store has schema {found}, this version knows up to {NEWEST}: run the newer version again"),
        )),
        Some(NEWEST) => Ok(Standing::Current),
        Some(found) => Ok(Standing::Older(found)),
    }
}

/// Applies what is missing, all of it or nothing; answers what was done.
pub(super) async fn migrate(lent: &mut Lent, deadline: Instant) -> Result<Migrated, StoreError> {
    if standing(lent, deadline).await? == Standing::Current {
        // Without the lock.
        return Ok(Migrated::Current);
    }
    let doing = "cannot migrate the store";
    lent.begin(doing, deadline).await?;
    lent.query(Intent::Reads, doing, LOCK, &[], deadline).await?;
    // Another process may have been faster.
    let before = standing(lent, deadline).await?;
    let applied = match before {
        Standing::Current => NEWEST,
        Standing::Older(found) => found,
        Standing::None => 0,
    };
    for (version, statements) in (1..).zip(MIGRATIONS).filter(|(version, _)| *version > applied) {
        lent.script(doing, statements, deadline).await?;
        let insert = "INSERT INTO counterfoil.migration (version, applied_at) VALUES ($1, counterfoil.clock())";
        lent.query(Intent::Reads, doing, insert, &[(&version, Type::INT4)], deadline).await?;
    }
    lent.commit(doing, deadline).await?;
    Ok(match before {
        Standing::None => Migrated::Made,
        Standing::Older(_) => Migrated::Updated,
        Standing::Current => Migrated::Current,
    })
}

fn first<'r, T: tokio_postgres::types::FromSql<'r>>(rows: &'r [Row]) -> Result<T, StoreError> {
    let row = rows.first().ok_or_else(|| {
        StoreError::not_applied(ErrorKind::Unavailable, "the database gave no answer about its schema: try again")
    })?;
    get(row, 0)
}
