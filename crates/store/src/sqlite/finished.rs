//! Finished records that were read lately, so that a replay need not read the file again.
//!
//! Nothing changes a receipt before it expires (`core::action`), in this process or another, so a copy of one that was
//! committed answers as the file would. Everything else is read anew each time. A bare `swap` may still replace one, as
//! the seam has no rules: it is forgotten then. What does not belong here: whether the file is trusted (`recovery`), and
//! expiry itself (core).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use counterfoil_core::record::Standing;
use counterfoil_core::{Identity, Now, Record, State, receipt};
use quick_cache::Weighter;
use quick_cache::sync::Cache;

/// How much is kept, in bytes.
const BYTES_MAX: u64 = 8 * 1024 * 1024;

/// The longest body that is kept, in bytes: a longer one would displace many.
const BODY_MAX: usize = 16 * 1024;

/// What a record takes beside its texts and body, in bytes, roughly.
const OVERHEAD: usize = 640;

/// The records, the most wanted of them, within a bound.
pub(super) struct Finished {
    records: Cache<Identity, Arc<Record>, Bytes>,
    /// How often one may have been replaced in this process.
    replaced: AtomicU64,
}

/// Weighs what is kept.
#[derive(Clone)]
struct Bytes;

impl Weighter<Identity, Arc<Record>> for Bytes {
    fn weight(&self, identity: &Identity, record: &Arc<Record>) -> u64 {
        let named = identity.scope.as_bytes().len() + identity.operation.as_str().len() + identity.key.as_str().len();
        let (headers, body) = match &record.state {
            State::Done { receipt, .. } => (header_bytes(receipt), body_bytes(receipt)),
            State::Running | State::Unknown { .. } | State::Spent { .. } => (0, 0),
        };
        (OVERHEAD + named + headers + body) as u64
    }
}

fn header_bytes(receipt: &receipt::Receipt) -> usize {
    receipt.headers.iter().map(|(name, value)| name.len() + value.len()).sum()
}

const fn body_bytes(receipt: &receipt::Receipt) -> usize {
    match &receipt.body {
        receipt::Body::Kept(body) => body.len(),
        receipt::Body::NotKept => 0,
    }
}

impl Finished {
    pub(super) fn new() -> Self {
        let records = Cache::with_weighter(BYTES_MAX as usize / (2 * OVERHEAD), BYTES_MAX, Bytes);
        Self { records, replaced: AtomicU64::new(0) }
    }

    /// The record under `identity`, if it is known to be finished and its receipt lives at `now`.
    pub(super) fn get(&self, identity: &Identity, now: Now) -> Option<Arc<Record>> {
        let record = self.records.get(identity)?;
        if matches!(record.standing(now), Standing::Done { .. }) {
            return Some(record);
        }
        self.records.remove(identity);
        None
    }

    /// To be taken before a record is read that may be kept.
    pub(super) fn before(&self) -> u64 {
        self.replaced.load(Ordering::SeqCst)
    }

    /// Keeps a record that was read from the file, if it is finished.
    pub(super) fn keep(&self, identity: &Identity, record: &Arc<Record>, before: u64) {
        match &record.state {
            State::Done { receipt, .. } if body_bytes(receipt) <= BODY_MAX => {
                self.records.insert(identity.clone(), record.clone());
                // Replaced since it was read: whoever did may have looked here before it was kept.
                if self.before() != before {
                    self.records.remove(identity);
                }
            }
            State::Done { .. } | State::Running | State::Unknown { .. } | State::Spent { .. } => {}
        }
    }

    /// The record under `identity` may have been replaced.
    pub(super) fn forget(&self, identity: &Identity) {
        self.replaced.fetch_add(1, Ordering::SeqCst);
        self.records.remove(identity);
    }

    pub(super) fn clear(&self) {
        self.replaced.fetch_add(1, Ordering::SeqCst);
        self.records.clear();
    }
}

#[cfg(test)]
mod tests;
