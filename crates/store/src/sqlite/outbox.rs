//! Intents that an application's transaction leaves behind in the store's file, beside its effect.
//!
//! Nothing here is durable before that transaction's COMMIT. What does not belong here: which key an intent has and
//! which other one is the same (core), its rows (`intents`), and sending (the client).

use counterfoil_core::Timestamp;
use counterfoil_core::intent::{Outbound, Recorded};
use counterfoil_core::profile::Profile;
use rusqlite::{Connection, Transaction};

use super::{SqliteStore, intents, meta};
use crate::error::StoreError;
use crate::intents::Put;

impl SqliteStore {
    /// Leaves an intent behind inside `tx`, which commits it together with what else it does, or nothing of it. A relay
    /// sends it then. The same intent again is found and not written twice; a name that stands for another one is told.
    ///
    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) for a request that cannot be kept (it says what to change), and where `tx`
    /// is not on this store's file, not begun IMMEDIATE, or its connection not at `synchronous = FULL`; else the store
    /// could not be read or written. Nothing was written.
    pub fn record_in(
        &self,
        tx: &Transaction<'_>,
        outbound: &Outbound,
        profile: &Profile,
    ) -> Result<Recorded, StoreError> {
        self.check(tx)?;
        self.inner.adopt(&meta::read(tx)?.mark);
        record(tx, outbound, profile, self.inner.time.now().at)
    }
}

/// Writes the intent, or finds what stands under its name, in any transaction that may write.
pub(super) fn record(
    conn: &Connection,
    outbound: &Outbound,
    profile: &Profile,
    now: Timestamp,
) -> Result<Recorded, StoreError> {
    let (store_id, _) = meta::birth(conn)?;
    let intent = outbound.freeze(&store_id, profile, now)?;
    match intents::put(conn, None, &intent)? {
        Put::Won => Ok(Recorded::Written),
        Put::Lost(Some(stands)) => Ok(outbound.compared(&stands, &store_id)?),
        Put::Lost(None) => Err(super::coupled::changed()),
    }
}
