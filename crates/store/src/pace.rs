//! The server's time between two of its answers: what it told last, and how much time has passed here since.
//!
//! Only for the times of writes other than claims; what is decided is decided on the time that came with the record.
//! What does not belong here: reading the server's clock (the SQL stores).

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use counterfoil_core::{Now, Timestamp};

use crate::clock::Clock;

/// Off by no more than this, the older of two estimates stands: it was read with less delay.
const JITTER: Duration = Duration::from_secs(1);

/// An estimate of the server's clock.
pub(super) struct Pace {
    clock: Arc<dyn Clock>,
    told: Mutex<Told>,
}

#[derive(Clone, Copy)]
struct Told {
    at: Timestamp,
    boot: Duration,
}

impl Told {
    fn at(self, boot: Duration) -> Timestamp {
        self.at.plus(boot.saturating_sub(self.boot))
    }
}

impl Pace {
    /// Begins with what the server tells now.
    pub(super) fn new(clock: Arc<dyn Clock>, at: Timestamp) -> Self {
        let boot = clock.reading().boot;
        Self { clock, told: Mutex::new(Told { at, boot }) }
    }

    /// The server told its time just now, or a moment ago.
    pub(super) fn learn(&self, at: Timestamp) {
        let boot = self.clock.reading().boot;
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let expected = told.at(boot);
        if at >= expected || expected.since(at) > JITTER {
            *told = Told { at, boot };
        }
    }

    pub(super) fn now(&self) -> Now {
        let boot = self.clock.reading().boot;
        Now::at(self.told.lock().unwrap_or_else(PoisonError::into_inner).at(boot))
    }
}

#[cfg(test)]
mod tests;
