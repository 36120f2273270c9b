//! Who waits for a lane: a statement that carries all that waits when it begins, a few of them at once.
//!
//! Nobody waits on purpose: what finds a lane free goes alone and at once. What does not belong here: what is sent.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use super::options::Options;
use super::pool::closed;
use crate::error::{ErrorKind, StoreError};

/// Those who wait, and the lanes that are open.
pub(super) struct Line<E>(Mutex<Waiting<E>>);

struct Waiting<E> {
    entries: VecDeque<E>,
    lanes: usize,
}

impl<E> Default for Line<E> {
    fn default() -> Self {
        Self(Mutex::new(Waiting { entries: VecDeque::new(), lanes: 0 }))
    }
}

impl<E> Line<E> {
    fn waiting(&self) -> MutexGuard<'_, Waiting<E>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts `entry` in line; true: open a lane for it.
    pub(super) fn enter(
        &self,
        entry: E,
        options: &Options,
        is_closed: bool,
        lanes_max: usize,
    ) -> Result<bool, StoreError> {
        if is_closed {
            return Err(closed());
        }
        let mut waiting = self.waiting();
        if waiting.entries.len() >= options.queue_max {
            let full = "too many calls wait for the database server: try again";
            return Err(StoreError::not_applied(ErrorKind::Busy, full));
        }
        waiting.entries.push_back(entry);
        let opens = waiting.lanes < lanes_max;
        waiting.lanes += usize::from(opens);
        Ok(opens)
    }

    /// Puts those back in line, before all others, that a lane took and did not try.
    pub(super) fn return_first(&self, entries: Vec<E>) {
        let mut waiting = self.waiting();
        entries.into_iter().rev().for_each(|entry| waiting.entries.push_front(entry));
    }

    /// What a lane carries next, as `take` chooses; `None` ends the lane.
    pub(super) fn next(&self, take: impl FnOnce(&mut VecDeque<E>) -> Vec<E>) -> Option<Vec<E>> {
        let mut waiting = self.waiting();
        let taken = take(&mut waiting.entries);
        if taken.is_empty() {
            waiting.lanes -= 1;
            return None;
        }
        Some(taken)
    }
}

/// Carries one batch to its end. A panic ends that batch, whose callers get no answer, and not the lane: else the line would
/// stand still once each lane had met one.
pub(super) async fn carried(batch: impl Future<Output = ()>) {
    let mut batch = pin!(batch);
    let is_whole = poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| batch.as_mut().poll(context))) {
        Ok(Poll::Pending) => Poll::Pending,
        Ok(Poll::Ready(())) => Poll::Ready(true),
        Err(_) => Poll::Ready(false),
    });
    if !is_whole.await {
        tracing::error!("what was sent together ended in a panic; its callers are told that there is no answer");
    }
}

/// The first of those who wait, at most so many.
pub(super) fn first<E>(waiting: &mut VecDeque<E>, most: usize) -> Vec<E> {
    let most = most.max(1).min(waiting.len());
    waiting.drain(..most).collect()
}

#[cfg(test)]
mod tests;
