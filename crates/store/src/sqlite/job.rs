//! One piece of work for the writer, and how its caller waits for the answer.
//!
//! What does not belong here: who waits for what in which order (`queue`), and what the work does.

use std::sync::{Arc, Condvar, Mutex, PoisonError};

use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::Inner;
use super::batch::Batch;
use super::queue::Leader;
use crate::error::{Applied, ErrorKind, StoreError};

/// What is written first where several wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Rank {
    /// Completions, renewals and all else that ends or keeps what has begun.
    Urgent,
    /// What begins something new.
    Claim,
    /// What can wait.
    Low,
}

/// What became of the transaction that a job was in.
#[derive(Clone, Debug)]
pub(super) enum Fate {
    /// It is on disk.
    Committed,
    /// It is not: this is what every job in it is told that has no error of its own.
    Failed { applied: Applied, kind: ErrorKind, detail: Arc<str> },
}

impl Fate {
    /// Nothing of it was applied.
    pub(super) fn not_applied(error: &StoreError) -> Self {
        Self::Failed { applied: Applied::No, kind: error.kind, detail: error.detail.as_str().into() }
    }

    /// Nobody knows.
    pub(super) fn unknown(error: &StoreError) -> Self {
        Self::Failed { applied: Applied::Unknown, kind: ErrorKind::Unknown, detail: error.detail.as_str().into() }
    }
}

/// Work for the writer.
pub(super) trait Job: Send {
    /// Does it inside the open transaction, and keeps its outcome.
    fn run(&mut self, batch: &Batch<'_>);

    /// Tells its caller, after the transaction's fate is known and never before.
    fn answer(self: Box<Self>, fate: &Fate);

    /// How its caller, or a thread for it, is made the leader; `None` where that is impossible.
    fn promoter(&self) -> Option<Promoter>;
}

/// Makes somebody the leader.
pub(super) type Promoter = Box<dyn FnOnce(Leader)>;

/// Work with its caller.
pub(super) struct Task<T, W> {
    work: Option<W>,
    outcome: Option<Result<T, StoreError>>,
    reply: Reply<T>,
}

impl<T, W> Task<T, W>
where
    W: FnOnce(&Batch<'_>) -> Result<T, StoreError> + Send,
{
    pub(super) const fn new(work: W, reply: Reply<T>) -> Self {
        Self { work: Some(work), outcome: None, reply }
    }
}

impl<T, W> Job for Task<T, W>
where
    T: Send + 'static,
    W: FnOnce(&Batch<'_>) -> Result<T, StoreError> + Send,
{
    fn run(&mut self, batch: &Batch<'_>) {
        self.outcome = self.work.take().map(|work| work(batch));
    }

    fn answer(self: Box<Self>, fate: &Fate) {
        let failed = match fate {
            Fate::Committed => None,
            Fate::Failed { applied, kind, detail } => {
                Some(StoreError { applied: *applied, kind: *kind, detail: detail.to_string(), source: None })
            }
        };
        let answer = match (self.outcome, failed) {
            // Work that failed has undone itself, whatever became of the others.
            (Some(Err(own)), _) => Err(own),
            (Some(Ok(_)) | None, Some(failed)) => Err(failed),
            (Some(Ok(outcome)), None) => Ok(outcome),
            (None, None) => Err(lost()),
        };
        self.reply.send(answer);
    }

    fn promoter(&self) -> Option<Promoter> {
        match &self.reply {
            Reply::Waiting { runtime, .. } => {
                let runtime = runtime.clone()?;
                Some(Box::new(move |leader: Leader| drop(runtime.spawn_blocking(move || leader.lead()))))
            }
            Reply::Blocked(slot) => {
                let slot = Arc::clone(slot);
                Some(Box::new(move |leader| slot.set(Slot::Lead(leader))))
            }
        }
    }
}

/// How a caller waits.
pub(super) enum Reply<T> {
    /// As a future, on a runtime where there is one.
    Waiting { sender: oneshot::Sender<Result<T, StoreError>>, runtime: Option<Handle> },
    /// As a thread.
    Blocked(Arc<Blocked<T>>),
}

impl<T> Reply<T> {
    fn send(self, answer: Result<T, StoreError>) {
        match self {
            // Nobody listens any more where the future was dropped.
            Self::Waiting { sender, .. } => drop(sender.send(answer)),
            Self::Blocked(slot) => slot.set(Slot::Answer(answer)),
        }
    }
}

/// Where a blocked thread waits.
pub(super) struct Blocked<T> {
    slot: Mutex<Slot<T>>,
    changed: Condvar,
}

enum Slot<T> {
    Empty,
    Lead(Leader),
    Answer(Result<T, StoreError>),
    Taken,
}

impl<T> Blocked<T> {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self { slot: Mutex::new(Slot::Empty), changed: Condvar::new() })
    }

    fn set(&self, next: Slot<T>) {
        *self.slot.lock().unwrap_or_else(PoisonError::into_inner) = next;
        self.changed.notify_one();
    }

    fn answered(&self) -> bool {
        matches!(*self.slot.lock().unwrap_or_else(PoisonError::into_inner), Slot::Answer(_))
    }

    /// Waits for the answer, and leads in between where it is asked to.
    pub(super) fn wait(&self) -> Result<T, StoreError> {
        loop {
            let mut slot = self.slot.lock().unwrap_or_else(PoisonError::into_inner);
            while matches!(*slot, Slot::Empty) {
                slot = self.changed.wait(slot).unwrap_or_else(PoisonError::into_inner);
            }
            let found = std::mem::replace(&mut *slot, Slot::Empty);
            drop(slot);
            match found {
                Slot::Lead(leader) => leader.lead_until(&|| self.answered()),
                Slot::Answer(answer) => {
                    self.set(Slot::Taken);
                    return answer;
                }
                Slot::Empty | Slot::Taken => return Err(lost()),
            }
        }
    }
}

/// An answer that never came: the work may have been done.
pub(super) fn lost() -> StoreError {
    StoreError::unknown(ErrorKind::Unknown, "the store's writer gave no answer: send the same write again")
}

impl Inner {
    /// Has `work` done in the writer's next transaction, and waits for its commit.
    pub(super) async fn ask<T, W>(self: &Arc<Self>, rank: Rank, work: W) -> Result<T, StoreError>
    where
        T: Send + 'static,
        W: FnOnce(&Batch<'_>) -> Result<T, StoreError> + Send + 'static,
    {
        let (sender, receiver) = oneshot::channel();
        let runtime = Handle::try_current().ok();
        let reply = Reply::Waiting { sender, runtime: runtime.clone() };
        if let Some(leader) = self.enqueue(rank, Box::new(Task::new(work, reply)))? {
            match runtime {
                // On a thread of its own, so that a batch is never cancelled with the caller whose future is dropped.
                Some(runtime) => drop(runtime.spawn_blocking(move || leader.lead())),
                None => leader.lead(),
            }
        }
        receiver.await.unwrap_or_else(|_| Err(lost()))
    }

    /// The same for a thread that may block; it leads in place where nobody else does.
    pub(super) fn ask_blocking<T, W>(self: &Arc<Self>, rank: Rank, work: W) -> Result<T, StoreError>
    where
        T: Send + 'static,
        W: FnOnce(&Batch<'_>) -> Result<T, StoreError> + Send + 'static,
    {
        let slot = Blocked::new();
        let reply = Reply::Blocked(Arc::clone(&slot));
        if let Some(leader) = self.enqueue(rank, Box::new(Task::new(work, reply)))? {
            leader.lead_until(&|| slot.answered());
        }
        slot.wait()
    }
}
