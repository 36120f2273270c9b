//! Whether a run may still send, asked at the wire itself: its lease goes on being renewed while it is under way.
//! The rule is `core::action::may_send`; what is sent belongs to whoever asks.

use std::sync::Arc;

use counterfoil_core::action::{Sending, may_send};
use counterfoil_core::{Digest, Identity, Key, Lease, Record, Timestamp, child_key};

use crate::gate::permit::LiveUntil;
use crate::gate::{Gate, Permit};
use crate::seam::RecordStore;

/// A granted run's way to an upstream: its child keys, and whether one may be sent now. Cheap to clone.
#[derive(Clone)]
pub struct Wire {
    store: Arc<dyn RecordStore>,
    identity: Arc<Identity>,
    record: Arc<Record>,
    until: LiveUntil,
}

impl Gate {
    /// The way to an upstream for the run that `permit` grants.
    #[must_use]
    pub fn wire(&self, permit: &mut Permit) -> Wire {
        Wire {
            store: self.store().clone(),
            identity: Arc::new(permit.identity().clone()),
            record: permit.record().clone(),
            until: permit.live_until(),
        }
    }
}

impl Wire {
    /// The child key of one step of this action: the same in every run of it.
    #[must_use]
    pub fn child_key(&self, step: &str) -> Key {
        child_key(&self.identity, step, self.record.keyed.map_or(0, |keyed| keyed.generation))
    }

    /// Whose action it is.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.identity.digest()
    }

    /// The store's time, as last known.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.store.now().at
    }

    /// Whether something may be sent now. Ask immediately before each send: the answer is of this moment.
    ///
    /// The lease is judged as this process last knew it, which is enough: whoever took it over sends the same child key.
    #[must_use]
    pub fn may_send(&self) -> Sending {
        let lease = Lease { until: self.until.read(), ..self.record.lease.clone() };
        let record = Record { lease, ..Record::clone(&self.record) };
        may_send(Some(&record), self.record.lease.id, self.store.now().at)
    }
}
