//! Duplicates that wait for the end of a run: woken where the owner is in this process, looking now and then where it
//! is elsewhere. Both are bounded, and no waiter ever touches the owner's claim.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use counterfoil_core::Digest;
use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;
use tokio::time::Instant;

use crate::metrics::{Counted, WAITING};

/// The first and the longest pause between two looks.
const LOOK_FIRST: Duration = Duration::from_millis(50);
const LOOK_LAST: Duration = Duration::from_secs(1);

/// Everybody who waits in this process.
pub(crate) struct Waiters {
    per_key_max: usize,
    max: usize,
    book: Mutex<Book>,
}

#[derive(Default)]
struct Book {
    waiting: usize,
    queues: HashMap<Digest, Queue>,
}

struct Queue {
    waiting: usize,
    ended: Arc<Notify>,
}

impl Waiters {
    pub(crate) fn new(per_key_max: usize, max: usize) -> Arc<Self> {
        Arc::new(Self { per_key_max, max, book: Mutex::default() })
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        // Nothing that holds this lock can leave the book half written.
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place in the queue; `None`: too many wait already.
    pub(crate) fn enter(self: &Arc<Self>, digest: Digest) -> Option<Waiting> {
        let mut book = self.book();
        if book.waiting >= self.max {
            return None;
        }
        let queue = book.queues.entry(digest).or_insert_with(|| Queue { waiting: 0, ended: Arc::default() });
        if queue.waiting >= self.per_key_max {
            return None;
        }
        queue.waiting += 1;
        let ended = queue.ended.clone();
        book.waiting += 1;
        drop(book);
        Some(Waiting { waiters: self.clone(), digest, ended, pause: LOOK_FIRST, _counted: Counted::new(WAITING) })
    }

    /// Wakes everybody who waits for this action.
    pub(crate) fn wake(&self, digest: Digest) {
        if let Some(queue) = self.book().queues.get(&digest) {
            queue.ended.notify_waiters();
        }
    }
}

/// A place in the queue.
pub(crate) struct Waiting {
    waiters: Arc<Waiters>,
    digest: Digest,
    ended: Arc<Notify>,
    pause: Duration,
    _counted: Counted,
}

impl Waiting {
    /// What an end from now on wakes: take it before looking, so that an end in between is not missed.
    pub(crate) fn woken(&self) -> OwnedNotified {
        self.ended.clone().notified_owned()
    }

    /// Waits for the end, the next look, or the deadline.
    pub(crate) async fn pause(&mut self, woken: OwnedNotified, deadline: Instant) {
        let look = (Instant::now() + self.pause).min(deadline);
        self.pause = (self.pause * 2).min(LOOK_LAST);
        tokio::select! {
            () = woken => {}
            () = tokio::time::sleep_until(look) => {}
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let mut book = self.waiters.book();
        book.waiting = book.waiting.saturating_sub(1);
        if let Some(queue) = book.queues.get_mut(&self.digest) {
            queue.waiting = queue.waiting.saturating_sub(1);
            if queue.waiting == 0 {
                book.queues.remove(&self.digest);
            }
        }
    }
}
