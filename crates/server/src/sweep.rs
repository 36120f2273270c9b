//! Sweeps the store on a timer, and at once again while more is due. What a sweep may change belongs to core.

use std::sync::Arc;
use std::time::Duration;

use counterfoil_store::RecordStore;
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;

use crate::listener::stopped;

/// Rows that sweeps changed (counter; label `kind`: `expired`, `spent`).
pub(crate) const SWEPT: &str = "counterfoil_swept_total";
/// Sweeps that failed (counter).
pub(crate) const SWEEPS_FAILED: &str = "counterfoil_sweeps_failed_total";

/// Sweeps every `every`, at most `rows_max` rows at a time, until `stop` is true.
pub(crate) async fn run(
    store: Arc<dyn RecordStore>,
    rows_max: usize,
    every: Duration,
    mut stop: watch::Receiver<bool>,
) {
    let mut timer = tokio::time::interval(every);
    timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut told_stopped = false;
    loop {
        tokio::select! {
            biased;
            () = stopped(&mut stop) => return,
            _ = timer.tick() => {}
        }
        while !*stop.borrow() {
            match store.sweep(rows_max).await {
                Ok(swept) => {
                    metrics::counter!(SWEPT, "kind" => "expired").increment(swept.expired as u64);
                    metrics::counter!(SWEPT, "kind" => "spent").increment(swept.spent as u64);
                    if swept.stopped && !told_stopped {
                        tracing::warn!(
                            "nothing is swept while the clock is in doubt: see `counterfoil receipts clock accept`"
                        );
                    }
                    told_stopped = swept.stopped;
                    if !swept.more {
                        break;
                    }
                }
                Err(error) => {
                    metrics::counter!(SWEEPS_FAILED).increment(1);
                    tracing::warn!(%error, "a sweep failed");
                    break;
                }
            }
        }
    }
}
