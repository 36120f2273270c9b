//! A claim whose fate stayed unknown: nobody runs it, so it is released in the background until it can no longer
//! appear. What the caller is told meanwhile belongs to the middleware.

use std::time::Duration;

use counterfoil_core::{Identity, LeaseId, Write, action};
use tokio::time::Instant;

use crate::error::StoreError;
use crate::gate::Gate;
use crate::seam::{Expected, New, RecordStore, Swap, Swapped};

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
async fn release_once(store: &dyn RecordStore, identity: &Identity, leases: &[LeaseId]) -> Result<bool, StoreError> {
    let seen = store.read(identity).await?;
    let Some(record) = seen.record.filter(|record| leases.contains(&record.lease.id)) else { return Ok(false) };
    // A duplicate may have marked it as lapsed meanwhile: then it is taken back first.
    let renewed = action::renew(Some(&record), record.lease.id, record.lease.span, seen.now.at);
    let (new, released) = match (action::release(Some(&record), record.lease.id, seen.now.at), renewed) {
        (Ok(Write::Put(next)), _) => (New::put(next), true),
        (Ok(Write::Delete | Write::Claim { .. }), _) => (New::Delete, true),
        (Err(_), Ok(running)) => (New::put(running), false),
        (Err(_), Err(_)) => return Ok(false),
    };
    let expected = Expected::record(&record);
    let swap = Swap { identity: identity.clone(), expected, new, not_after: None, note: None };
    Ok(released && matches!(store.swap(swap).await?, Swapped::Won { .. }))
}
