//! Who waits to be written: as many statements at a time as there are lanes, each with all that waits when it begins.
//!
//! Nobody waits on purpose: a write that finds a lane free is sent alone and at once; while all are busy, the others
//! gather and go together. What does not belong here: what is sent (`claim`, `put`).

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use counterfoil_core::Identity;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::Inner;
use super::line::carried;
use super::pool::closed;
use super::{claim, fault, put};
use crate::error::{ErrorKind, StoreError};
use crate::seam::{New, Swap, Swapped};

/// Statements of writes that are under way at once: more would make each carry less, and they only wait for the same disk.
const LANES_MAX: usize = 4;

/// One write and who waits for it.
pub(super) struct Entry {
    pub(super) swap: Swap,
    pub(super) reply: oneshot::Sender<Result<Swapped, StoreError>>,
    /// After this it is not sent any more.
    pub(super) deadline: Instant,
    /// How often its identity was found in somebody's open transaction.
    pub(super) tries: u32,
    /// A row that somebody else has locked is not waited for.
    pub(super) skips: bool,
}

/// What is about one identity.
pub(super) trait Names {
    fn identity(&self) -> &Identity;
}

impl Names for Entry {
    fn identity(&self) -> &Identity {
        &self.swap.identity
    }
}

impl Entry {
    pub(super) fn answer(self, answer: Result<Swapped, StoreError>) {
        // Nobody listens any more where the future was dropped.
        drop(self.reply.send(answer));
    }
}

/// What waits.
#[derive(Default)]
pub(super) struct Queue {
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    /// What ends or keeps what has begun: it goes first.
    puts: VecDeque<Entry>,
    claims: VecDeque<Entry>,
    lanes: usize,
}

/// What goes together.
enum Batch {
    Puts(Vec<Entry>),
    Claims(Vec<Entry>),
}

impl Queue {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next batch for a lane; `None` ends the lane.
    fn next(&self, batch_max: usize) -> Option<Batch> {
        let mut waiting = self.waiting();
        let puts = distinct(&mut waiting.puts, batch_max);
        if !puts.is_empty() {
            return Some(Batch::Puts(puts));
        }
        let claims = distinct(&mut waiting.claims, batch_max);
        if !claims.is_empty() {
            return Some(Batch::Claims(claims));
        }
        waiting.lanes -= 1;
        None
    }
}

/// Takes at most `most`, one of each identity, in the order of identities, so that no two statements can wait for each
/// other.
pub(super) fn distinct<E: Names>(waiting: &mut VecDeque<E>, most: usize) -> Vec<E> {
    let mut taken: Vec<E> = Vec::new();
    let mut seen: HashSet<Identity> = HashSet::new();
    let mut left = VecDeque::new();
    while taken.len() < most
        && let Some(entry) = waiting.pop_front()
    {
        if seen.insert(entry.identity().clone()) {
            taken.push(entry);
        } else {
            left.push_back(entry);
        }
    }
    left.append(waiting);
    *waiting = left;
    taken.sort_by(|one, other| one.identity().cmp(other.identity()));
    taken
}

impl Inner {
    /// Writes, and answers when the commit is known. The write goes on where the caller is dropped.
    pub(super) async fn swap(self: Arc<Self>, swap: Swap, skips: bool) -> Result<Swapped, StoreError> {
        let (reply, answer) = oneshot::channel();
        let deadline = Instant::now() + self.options.call_timeout;
        self.enter(Entry { swap, reply, deadline, tries: 0, skips })?;
        let done = answer.await.unwrap_or_else(|_| {
            let lost = "the store's writer gave no answer: send the same write again";
            Err(StoreError::unknown(ErrorKind::Unknown, lost))
        });
        self.tell(done.as_ref().err());
        done
    }

    /// Puts a write in line, and opens a lane for it where one is free.
    pub(super) fn enter(self: &Arc<Self>, entry: Entry) -> Result<(), StoreError> {
        if self.is_closed() {
            return Err(closed());
        }
        let mut waiting = self.queue.waiting();
        if waiting.puts.len() + waiting.claims.len() >= self.options.queue_max {
            let full = "too many writes wait for the database server: try again";
            return Err(StoreError::not_applied(ErrorKind::Busy, full));
        }
        match entry.swap.new {
            New::Claim(_) => waiting.claims.push_back(entry),
            New::Put(_) | New::Delete => waiting.puts.push_back(entry),
        }
        drop(waiting);
        self.open_lane();
        Ok(())
    }

    /// One connection is left for reads, where there is more than one.
    fn lanes_max(&self) -> usize {
        self.options.connections.saturating_sub(1).clamp(1, LANES_MAX)
    }

    /// Puts a claim in line again whose identity was held.
    pub(super) fn enter_again(self: &Arc<Self>, entry: Entry) {
        self.queue.waiting().claims.push_front(entry);
        self.open_lane();
    }

    fn open_lane(self: &Arc<Self>) {
        let mut waiting = self.queue.waiting();
        if waiting.lanes < self.lanes_max() {
            waiting.lanes += 1;
            drop(waiting);
            self.runtime.spawn(self.clone().lane());
        }
    }

    async fn lane(self: Arc<Self>) {
        while let Some(batch) = self.queue.next(self.options.batch_max.max(1)) {
            match batch {
                Batch::Puts(entries) => carried(put::together(&self, in_time(entries))).await,
                Batch::Claims(entries) => carried(claim::together(&self, in_time(entries))).await,
            }
        }
    }
}

/// Refuses what has waited too long to be sent.
pub(super) fn in_time(entries: Vec<Entry>) -> Vec<Entry> {
    let now = Instant::now();
    let (late, rest): (Vec<Entry>, Vec<Entry>) = entries.into_iter().partition(|entry| entry.deadline < now);
    late.into_iter().for_each(|entry| entry.answer(Err(fault::no_room())));
    rest
}

#[cfg(test)]
mod tests;
