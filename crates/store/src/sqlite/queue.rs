//! What waits for the writer, and who leads: the caller that finds no leader works off the queue itself, batch by
//! batch, for all who wait. There is no thread that a lone caller would have to wake.
//!
//! What does not belong here: what happens inside a batch (`batch`).

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::Inner;
use super::job::{Job, Rank};
use crate::error::{ErrorKind, StoreError};

/// After so many batches low work goes into the next one, however much else waits.
const PATIENCE: usize = 8;

thread_local! {
    /// The store whose batch this thread works off, by address; 0: none.
    static LEADS: Cell<usize> = const { Cell::new(0) };
}

/// Jobs by rank.
#[derive(Default)]
pub(super) struct Queue {
    jobs: Mutex<Jobs>,
    idle: Condvar,
}

#[derive(Default)]
struct Jobs {
    urgent: VecDeque<Box<dyn Job>>,
    claims: VecDeque<Box<dyn Job>>,
    low: VecDeque<Box<dyn Job>>,
    led: bool,
    closed: bool,
    /// Batches since low work was last taken.
    passed_over: usize,
}

impl Jobs {
    fn waiting(&self) -> usize {
        self.urgent.len() + self.claims.len() + self.low.len()
    }

    fn next(&self) -> Option<&dyn Job> {
        self.urgent.front().or_else(|| self.claims.front()).or_else(|| self.low.front()).map(|job| &**job)
    }
}

impl Queue {
    fn locked(&self) -> MutexGuard<'_, Jobs> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// At most `most` jobs in their order. `opens`: they begin a batch, and at most one low job is among them.
    pub(super) fn take(&self, most: usize, opens: bool) -> Vec<Box<dyn Job>> {
        let mut jobs = self.locked();
        let jobs = &mut *jobs;
        let mut taken = Vec::with_capacity(most.min(jobs.waiting()));
        let overdue = opens && jobs.passed_over >= PATIENCE;
        if overdue && let Some(job) = jobs.low.pop_front() {
            jobs.passed_over = 0;
            taken.push(job);
        }
        while taken.len() < most {
            let Some(job) = jobs.urgent.pop_front().or_else(|| jobs.claims.pop_front()) else { break };
            taken.push(job);
        }
        if opens
            && taken.is_empty()
            && let Some(job) = jobs.low.pop_front()
        {
            jobs.passed_over = 0;
            taken.push(job);
        }
        if opens && !jobs.low.is_empty() {
            jobs.passed_over += 1;
        }
        taken
    }

    /// Everything that waits.
    pub(super) fn take_all(&self) -> Vec<Box<dyn Job>> {
        let mut jobs = self.locked();
        let jobs = &mut *jobs;
        jobs.urgent.drain(..).chain(jobs.claims.drain(..)).chain(jobs.low.drain(..)).collect()
    }

    /// Puts back what was taken and not begun, before everything else.
    pub(super) fn put_back(&self, taken: impl DoubleEndedIterator<Item = Box<dyn Job>>) {
        let mut jobs = self.locked();
        for job in taken.rev() {
            jobs.urgent.push_front(job);
        }
    }

    /// How much waits.
    pub(super) fn waiting(&self) -> usize {
        self.locked().waiting()
    }

    /// Lets nothing in any more, and waits until all that is inside is worked off, at most `limit`; whether it is.
    pub(super) fn close(&self, limit: Duration) -> bool {
        let mut jobs = self.locked();
        jobs.closed = true;
        let worked_off = |jobs: &mut Jobs| jobs.led || jobs.waiting() > 0;
        let (_jobs, wait) =
            self.idle.wait_timeout_while(jobs, limit, worked_off).unwrap_or_else(PoisonError::into_inner);
        !wait.timed_out()
    }
}

impl Inner {
    /// Lets `job` wait for the writer. Whoever gets a leader must let it lead.
    pub(super) fn enqueue(self: &Arc<Self>, rank: Rank, job: Box<dyn Job>) -> Result<Option<Leader>, StoreError> {
        if self.is_led_here() {
            return Err(StoreError::not_applied(
                ErrorKind::Misuse,
                "an effect may not write to its own store: it would wait for itself",
            ));
        }
        self.check_stall()?;
        let mut jobs = self.queue.locked();
        if jobs.closed {
            return Err(StoreError::not_applied(ErrorKind::Unavailable, "the store is closed: open it again"));
        }
        if jobs.waiting() >= self.options.queue_max {
            return Err(StoreError::not_applied(
                ErrorKind::Busy,
                format!("{} writes wait already: try again, or send less at once", jobs.waiting()),
            ));
        }
        match rank {
            Rank::Urgent => jobs.urgent.push_back(job),
            Rank::Claim => jobs.claims.push_back(job),
            Rank::Low => jobs.low.push_back(job),
        }
        if std::mem::replace(&mut jobs.led, true) {
            return Ok(None);
        }
        drop(jobs);
        Ok(Some(Leader { inner: Some(Arc::clone(self)) }))
    }

    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// Whether this thread works a batch of this store off: an effect of it asks.
    pub(super) fn is_led_here(&self) -> bool {
        LEADS.get() == self.address()
    }

    /// That the writer has not been at one batch for too long.
    pub(super) fn check_stall(&self) -> Result<(), StoreError> {
        let begun = self.batch_begun.load(Ordering::Relaxed);
        if begun == 0 {
            return Ok(());
        }
        let taken = Duration::from_millis(self.millis().saturating_sub(begun));
        if taken < self.options.stall_after {
            return Ok(());
        }
        Err(StoreError::not_applied(
            ErrorKind::Busy,
            format!("the writer has been at one batch for {} ms: an effect that blocks must end", taken.as_millis()),
        ))
    }

    /// Milliseconds since this store was opened, and one: for what this process waits, never for what it decides.
    pub(super) fn millis(&self) -> u64 {
        u64::try_from(Instant::now().saturating_duration_since(self.opened).as_millis()).unwrap_or(u64::MAX).max(1)
    }
}

/// The right and the duty to work off the queue. Dropped unused (a runtime that shuts down), it is used in place.
pub(super) struct Leader {
    inner: Option<Arc<Inner>>,
}

impl Leader {
    /// Works until nothing waits.
    pub(super) fn lead(mut self) {
        if let Some(inner) = self.inner.take() {
            lead(&inner, None);
        }
    }

    /// Works until `done`, then hands on what still waits.
    pub(super) fn lead_until(mut self, done: &dyn Fn() -> bool) {
        if let Some(inner) = self.inner.take() {
            lead(&inner, Some(done));
        }
    }
}

impl Drop for Leader {
    fn drop(&mut self) {
        if let Some(inner) = self.inner.take() {
            lead(&inner, None);
        }
    }
}

fn lead(inner: &Arc<Inner>, done: Option<&dyn Fn() -> bool>) {
    let before = LEADS.replace(inner.address());
    loop {
        if !resign(inner) {
            break;
        }
        inner.work_batch();
        if done.is_some_and(|done| done()) && hand_on(inner) {
            break;
        }
    }
    LEADS.set(before);
}

/// Gives the leadership up where nothing waits; whether something does.
fn resign(inner: &Arc<Inner>) -> bool {
    let mut jobs = inner.queue.locked();
    if jobs.waiting() > 0 {
        return true;
    }
    jobs.led = false;
    inner.queue.idle.notify_all();
    false
}

/// Hands the leadership to whoever is next; whether that was possible.
fn hand_on(inner: &Arc<Inner>) -> bool {
    let mut jobs = inner.queue.locked();
    let Some(next) = jobs.next() else {
        jobs.led = false;
        inner.queue.idle.notify_all();
        return true;
    };
    let promoter = next.promoter();
    // Unlocked first: a runtime that shuts down drops the leader, which then leads in place.
    drop(jobs);
    let Some(promote) = promoter else { return false };
    promote(Leader { inner: Some(Arc::clone(inner)) });
    true
}
