//! Stores that hold many receipts before they are measured: two rows that the store wrote, copied on the server under
//! other keys.
//!
//! What is measured on them belongs to `postgres`.

use std::cell::OnceCell;
use std::sync::Arc;
use std::time::Duration;

use counterfoil_core::{LeaseId, Timestamp};
use counterfoil_store::postgres::PostgresStore;
use counterfoil_store::postgres::trial::Database;
use counterfoil_store::seam::{Expected, New, Swap, Swapped};
use counterfoil_store::{Gate, RecordStore as _};

use super::{Shared, claimed_and_completed, open};
use crate::load::{self, Window};
use crate::options::Options;
use crate::ours::Claims;
use crate::sample::Sample;
use crate::{Fault, filling};

/// Rows of one call of the sweeper, as the proxy's.
const SWEPT_AT_ONCE: usize = 1_000;
/// For how long receipts are promised: longer than a run takes.
const RETENTION: Duration = Duration::from_hours(24);

/// A store of a size.
pub(super) struct Filled {
    shared: Shared,
    receipts: u64,
    swept: bool,
    /// For all repetitions, where nothing is swept: it grows by what is claimed, little beside what stands.
    kept: OnceCell<Database>,
}

impl Filled {
    pub(super) const fn new(shared: Shared, receipts: u64, swept: bool) -> Self {
        Self { shared, receipts, swept, kept: OnceCell::new() }
    }

    pub(super) fn measured(&self, options: &Options, callers: usize) -> Result<Sample, Fault> {
        if self.swept {
            let database = self.fill()?;
            let sample = measured(options, &database, callers, true);
            self.shared.server()?.psql("postgres", &[&format!("DROP DATABASE {} WITH (FORCE)", database.name())])?;
            return sample;
        }
        if self.kept.get().is_none() {
            let database = self.fill()?;
            self.kept.get_or_init(|| database);
        }
        let database = self.kept.get().ok_or("no store was filled")?;
        database.psql(&["VACUUM (ANALYZE) counterfoil.record", "CHECKPOINT"])?;
        measured(options, database, callers, false)
    }

    fn fill(&self) -> Result<Database, Fault> {
        let database = self.shared.database()?;
        load::runtime()?.block_on(async {
            let store = open(&database).await?;
            let now = store.now().at;
            write(&store, "live", now, now.plus(RETENTION)).await?;
            write(&store, "expired", now, now).await?;
            store.close().await;
            Ok::<_, Fault>(())
        })?;
        // Mixed, as they would be: the expired do not stand together.
        let copied = format!(
            "INSERT INTO counterfoil.record
               (scope, operation, key, version, lease, state, claimed_at, counted_from, expires_at, record)
             SELECT scope, operation, convert_to(gen_random_uuid()::text, 'UTF8'), version, lease, state, claimed_at,
               counted_from, expires_at, record
             FROM generate_series(1, {}) AS number JOIN counterfoil.record
               ON key = CASE WHEN number % 3 = 0 THEN 'expired'::bytea ELSE 'live'::bytea END",
            self.receipts + self.receipts / 2
        );
        database.psql(&[&copied, "VACUUM (FREEZE, ANALYZE) counterfoil.record", "CHECKPOINT"])?;
        Ok(database)
    }
}

/// Writes a finished record through the store.
async fn write(store: &Arc<PostgresStore>, key: &str, now: Timestamp, expires_at: Timestamp) -> Result<(), Fault> {
    let claims = Claims::new()?;
    let record = filling::done(&claims, key, LeaseId::from_bytes([7; 16]), now, expires_at)?;
    let identity = claims.identity(key)?;
    let swap = Swap { identity, expected: Expected::Absent, new: New::put(record), not_after: None, note: None };
    match store.swap(swap).await? {
        Swapped::Won { .. } => Ok(()),
        other => Err(format!("a receipt was not written: {other:?}").into()),
    }
}

fn measured(options: &Options, database: &Database, callers: usize, swept: bool) -> Result<Sample, Fault> {
    let load = load::runtime()?.block_on(async {
        let store = open(database).await?;
        let gate = Gate::new(store.clone())?;
        let window = Window::begin(options);
        let sweeper = swept.then(|| tokio::spawn(sweep(store.clone(), window)));
        let load = claimed_and_completed(gate, window, callers).await?;
        if let Some(sweeper) = sweeper {
            sweeper.await??;
        }
        Ok::<_, Fault>(load)
    })?;
    if let Some(why) = &load.tally.first_failure {
        eprintln!("\na call failed: {why}");
    }
    Ok(load.into())
}

/// Sweeps until the window closes. A sweeper that ran out of work would prove nothing.
async fn sweep(store: Arc<PostgresStore>, window: Window) -> Result<(), Fault> {
    while window.open() {
        if !store.sweep(SWEPT_AT_ONCE).await?.more && window.open() {
            return Err("the sweeper ran out of expired receipts: measure for a shorter time".into());
        }
    }
    Ok(())
}
