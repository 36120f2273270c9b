//! A claim whose fate stayed unknown: nobody runs it, so it is released in the background until it can no longer
//! appear. What the caller is told meanwhile belongs to the middleware.

use std::time::Duration;

use counterfoil_core::{Identity, LeaseId, action};
use tokio::time::Instant;

use crate::gate::Gate;
use crate::seam::{Expected, New, RecordStore, Swap};

/// The pause between two looks.
const PAUSE: Duration = Duration::from_millis(500);

impl Gate {
    /// Releases whatever stands under one of `leases`, again and again for `lasting`: the time in which a delayed copy
    /// of the claim may land, and one lease.
    pub(crate) fn abandon(&self, identity: Identity, leases: Vec<LeaseId>, lasting: Duration) {
        let store = self.store().clone();
        self.renewals.spawn(async move {
            let until = Instant::now() + lasting;
            while Instant::now() < until {
                match release_once(store.as_ref(), &identity, &leases).await {
                    Ok(true) => return,
                    Ok(false) => {}
                    Err(error) => tracing::warn!(digest = %identity.digest(), %error, "an abandoned claim stands"),
                }
                tokio::time::sleep(PAUSE).await;
            }
        });
    }
}

/// Whether one of ours stood and is released.
async fn release_once(
    store: &dyn RecordStore,
    identity: &Identity,
    leases: &[LeaseId],
) -> Result<bool, crate::error::StoreError> {
    let seen = store.read(identity).await?;
    let Some(record) = seen.record.filter(|record| leases.contains(&record.lease.id)) else { return Ok(false) };
    if action::release(Some(&record), record.lease.id).is_err() {
        return Ok(false);
    }
    let expected = Expected::record(&record);
    let swap = Swap { identity: identity.clone(), expected, new: New::Delete, not_after: None, note: None };
    Ok(matches!(store.swap(swap).await?, crate::seam::Swapped::Won { .. }))
}
