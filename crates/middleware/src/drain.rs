//! Stopping in order: nothing new is claimed, what runs is waited for, and what is left is put in doubt.
//! When to stop (a signal) belongs to whoever owns the process.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::timeout;

/// How long putting what is left in doubt may take, after the span that was waited.
const ENDING_MAX: Duration = Duration::from_secs(10);

/// Stops a layer. Cheap to clone; all clones are the same.
#[derive(Clone)]
pub struct Drain(Arc<Inner>);

struct Inner {
    phase: watch::Sender<Phase>,
    working: AtomicUsize,
    idle: Notify,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Open,
    /// Nothing new begins.
    Closing,
    /// What still runs is put in doubt.
    Ending,
}

/// What stopping came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Drained {
    /// How many actions did not end within the span and were put in doubt.
    pub doubted: usize,
    /// How many of those could not even be told to the store in time; their leases lapse, which says the same later.
    pub abandoned: usize,
}

impl Drain {
    pub(crate) fn new() -> Self {
        let phase = watch::Sender::new(Phase::Open);
        Self(Arc::new(Inner { phase, working: AtomicUsize::new(0), idle: Notify::new() }))
    }

    /// Refuses new claims from now on; replays are still answered. May be called again.
    pub fn close(&self) {
        self.0.phase.send_if_modified(|phase| {
            let opened = *phase == Phase::Open;
            if opened {
                *phase = Phase::Closing;
            }
            opened
        });
    }

    /// How many actions run, wait for their end to be stored, or are being claimed.
    #[must_use]
    pub fn working(&self) -> usize {
        self.0.working.load(Ordering::SeqCst)
    }

    /// [Closes](Self::close), waits at most `span` for what runs, and then puts what is left in doubt, which takes at
    /// most 10 s more. May be called again while it runs, with a shorter span to end it sooner.
    pub async fn drain(&self, span: Duration) -> Drained {
        self.close();
        if timeout(span, self.until_idle()).await.is_ok() {
            return Drained { doubted: 0, abandoned: 0 };
        }
        let doubted = self.working();
        self.0.phase.send_replace(Phase::Ending);
        // What is abandoned here is counted below.
        let _ = timeout(ENDING_MAX, self.until_idle()).await;
        Drained { doubted, abandoned: self.working() }
    }

    async fn until_idle(&self) {
        loop {
            let mut idle = std::pin::pin!(self.0.idle.notified());
            idle.as_mut().enable();
            if self.working() == 0 {
                return;
            }
            idle.await;
        }
    }

    /// Begins a piece of work; `None` once nothing new begins.
    pub(crate) fn enter(&self) -> Option<Work> {
        // Counted before the look, so that a drain that sees nobody at work has refused whoever comes after.
        self.0.working.fetch_add(1, Ordering::SeqCst);
        let work = Work(self.clone());
        (*self.0.phase.borrow() == Phase::Open).then_some(work)
    }

    pub(crate) fn is_ending(&self) -> bool {
        *self.0.phase.borrow() == Phase::Ending
    }

    /// Waits until what still runs has to be put in doubt.
    pub(crate) async fn ending(&self) {
        let mut phase = self.0.phase.subscribe();
        // The sender lives as long as this handle, so the wait cannot fail.
        let _ = phase.wait_for(|phase| *phase == Phase::Ending).await;
    }
}

/// A piece of work that a drain waits for.
pub(crate) struct Work(Drain);

impl Drop for Work {
    fn drop(&mut self) {
        if self.0.0.working.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.0.0.idle.notify_waiters();
        }
    }
}
