//! Stores on a test clock as subjects of the suite, and the memory store among them.
//! What a backend keeps on disk, it makes subjects of itself.

use std::sync::Arc;
use std::time::Duration;

use counterfoil_core::{Identity, Timestamp};

use crate::clock::TestClock;
use crate::contract::{Maker, Subject};
use crate::memory::MemoryStore;
use crate::seam::{Answer, RecordStore};

/// A store on a test clock that neither survives a restart nor keeps bytes.
pub struct OnTestClock {
    /// The clock that the store reads.
    pub clock: TestClock,
    /// The store.
    pub store: Arc<dyn RecordStore>,
}

impl Subject for OnTestClock {
    fn store(&self) -> Arc<dyn RecordStore> {
        self.store.clone()
    }

    fn advance(&self, by: Duration) -> Answer<'_, ()> {
        self.clock.advance(by);
        Box::pin(std::future::ready(Ok(())))
    }

    fn step_wall(&self, millis: i64) -> Option<Answer<'_, ()>> {
        self.clock.step_wall(millis);
        Some(Box::pin(std::future::ready(Ok(()))))
    }

    fn reopen(&mut self) -> Option<Answer<'_, ()>> {
        None
    }

    fn damage<'a>(&'a self, _identity: &'a Identity) -> Option<Answer<'a, ()>> {
        None
    }
}

/// Makes memory stores.
#[derive(Clone, Copy, Debug)]
pub struct InMemory;

/// When the suite's clocks begin.
pub(super) const BEGIN: Timestamp = Timestamp::from_millis(1_750_000_000_000);

impl Maker for InMemory {
    fn fresh(&self) -> Answer<'_, Box<dyn Subject>> {
        let clock = TestClock::new(BEGIN);
        let store = Arc::new(MemoryStore::with_clock(Arc::new(clock.clone())));
        let subject: Box<dyn Subject> = Box::new(OnTestClock { clock, store });
        Box::pin(std::future::ready(Ok(subject)))
    }
}
