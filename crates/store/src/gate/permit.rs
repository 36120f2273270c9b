//! The right to run, in the hands of the one who has it. How it is used belongs to the gate.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use counterfoil_core::{Digest, Identity, LeaseId, Policy, Record, Timestamp};
use tokio::time::Instant;

/// Until when a lease is live, as its owner last knew it; shared with whoever is at the wire.
#[derive(Clone, Debug, Default)]
pub(super) struct LiveUntil(Arc<AtomicI64>);

impl LiveUntil {
    pub(super) fn read(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::Acquire))
    }

    fn set(&self, until: Timestamp) {
        self.0.store(until.as_millis(), Ordering::Release);
    }
}

/// The right to run one action until its lease is over. It cannot be copied; ending it is the gate's.
///
/// A permit that is dropped without an end leaves its lease to lapse.
#[derive(Debug)]
#[must_use = "a permit that is dropped without an end leaves the action in doubt"]
pub struct Permit {
    identity: Identity,
    record: Arc<Record>,
    policy: Policy,
    /// Until when a delayed copy of its claim may still land, and its lease lapse again.
    copies_until: Option<Instant>,
    /// Asked for only where something is sent with a child key.
    live_until: Option<LiveUntil>,
}

impl Permit {
    pub(crate) const fn new(identity: Identity, record: Arc<Record>, policy: Policy) -> Self {
        Self { identity, record, policy, copies_until: None, live_until: None }
    }

    /// Whose action it is.
    #[must_use]
    pub const fn identity(&self) -> &Identity {
        &self.identity
    }

    /// The identity's digest.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.identity.digest()
    }

    /// The text that an application shows to `counterfoil.hold` and `counterfoil.settle`: the lease's id and the identity's
    /// digest. Whoever has it may settle this run, so it is told to the application alone.
    #[must_use]
    pub fn text(&self) -> String {
        format!("cf1-{}-{}", self.lease(), self.digest().to_hex())
    }

    /// The lease's name.
    #[must_use]
    pub fn lease(&self) -> LeaseId {
        self.record.lease.id
    }

    /// What the operation promises.
    #[must_use]
    pub const fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The record as this permit last saw it.
    #[must_use]
    pub const fn record(&self) -> &Arc<Record> {
        &self.record
    }

    pub(crate) const fn copies_until(&mut self, until: Instant) {
        self.copies_until = Some(until);
    }

    /// How long a copy of the claim, were it to land now, would have to be looked for; `None`: there is none.
    pub(crate) fn copies_for(&self) -> Option<Duration> {
        self.copies_until.map(|until| until.saturating_duration_since(Instant::now()))
    }

    pub(crate) fn moved(&mut self, record: Arc<Record>) {
        self.record = record;
        if let Some(live_until) = &self.live_until {
            live_until.set(self.record.lease.until);
        }
    }

    pub(super) fn live_until(&mut self) -> LiveUntil {
        let live_until = self.live_until.get_or_insert_default().clone();
        live_until.set(self.record.lease.until);
        live_until
    }
}
