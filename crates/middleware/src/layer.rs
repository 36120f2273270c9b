//! The layer, the service that it makes, and what all its services share.
//! What happens to a request belongs to `service`.

use std::sync::Arc;

use counterfoil_store::{Gate, StoreError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower::Layer;

use crate::contract::Contract;
use crate::drain::{Drain, Work};
use crate::error::Error;
use crate::operation::Operations;
use crate::reject::Rejection;
use crate::settings::Settings;
use crate::wait::Waiters;

/// Guards services: an action runs once, and a retry gets its receipt. Cheap to clone; all services of one layer share
/// their limits and their drain.
///
/// Under a router that strips prefixes (axum's `nest`) apply it outside, or two nested routes with one inner path are
/// one operation.
#[derive(Clone)]
pub struct GuardLayer {
    shared: Arc<Shared>,
}

impl GuardLayer {
    /// A layer over `gate`.
    ///
    /// # Errors
    /// [`Error`] where the settings contradict themselves or ask for what cannot be kept.
    pub fn new(gate: Gate, settings: Settings) -> Result<Self, Error> {
        settings.check()?;
        let operations = Operations::new(&settings)?;
        let contract = Contract::of(&settings, &operations)?;
        let slots = Arc::new(Semaphore::new(settings.running_max.min(Semaphore::MAX_PERMITS)));
        let waiters = Waiters::new(settings.waiters_per_key_max, settings.waiters_max);
        let drain = Drain::new();
        Ok(Self { shared: Arc::new(Shared { gate, settings, operations, contract, slots, waiters, drain }) })
    }

    /// The handle that stops this layer's services in order.
    #[must_use]
    pub fn drain(&self) -> Drain {
        self.shared.drain.clone()
    }

    /// The listed operations and how they are named, for a start-up log: pattern, operation, whether a key is required.
    pub fn operations(&self) -> impl Iterator<Item = (&str, &str, bool)> {
        self.shared.operations.listed()
    }
}

impl<S> Layer<S> for GuardLayer {
    type Service = Guard<S>;

    fn layer(&self, inner: S) -> Guard<S> {
        Guard { inner, shared: self.shared.clone() }
    }
}

/// A guarded service.
#[derive(Clone)]
pub struct Guard<S> {
    pub(crate) inner: S,
    pub(crate) shared: Arc<Shared>,
}

/// What all services of one layer share.
pub(crate) struct Shared {
    pub(crate) gate: Gate,
    pub(crate) settings: Settings,
    pub(crate) operations: Operations,
    pub(crate) contract: Option<Contract>,
    slots: Arc<Semaphore>,
    pub(crate) waiters: Arc<Waiters>,
    pub(crate) drain: Drain,
}

/// Room for one run, and its place in the drain.
pub(crate) struct Slot {
    _room: OwnedSemaphorePermit,
    _work: Work,
}

impl Shared {
    /// Room for one more run, before anything is claimed.
    pub(crate) fn enter(&self) -> Result<Slot, Rejection> {
        let work = self.drain.enter().ok_or(Rejection::Stopping)?;
        let room = self.slots.clone().try_acquire_owned().map_err(|_| Rejection::TooManyRunning)?;
        Ok(Slot { _room: room, _work: work })
    }

    /// The rejection that a store's error becomes, told and counted.
    pub(crate) fn store_failed(&self, error: &StoreError, digest: counterfoil_core::Digest) -> Rejection {
        tracing::warn!(%digest, %error, "a guarded request could not be decided");
        crate::metrics::store_failed(error);
        Rejection::Store(error.kind)
    }
}
