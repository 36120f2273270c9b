//! Renewal of leases, on a thread of its own: a handler that blocks its thread does not lose its lease.
//! When a lease may be renewed belongs to `core::action`.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::error::{ErrorKind, StoreError};
use crate::gate::{Changed, Gate, Permit};

/// The thread that renews every lease of a gate.
pub(crate) struct Thread {
    handle: tokio::runtime::Handle,
    agenda: Arc<Agenda>,
    /// Dropped with the gate, which ends the thread.
    _stop: oneshot::Sender<()>,
}

impl Thread {
    pub(crate) fn start() -> Result<Self, StoreError> {
        let failed = |error: std::io::Error| {
            StoreError::not_applied(ErrorKind::Unavailable, "the thread for renewals could not be started")
                .caused_by(error)
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel::<()>();
        let agenda = Arc::new(Agenda::default());
        let kept = agenda.clone();
        std::thread::Builder::new()
            .name("counterfoil-renewals".to_owned())
            .spawn(move || {
                runtime.block_on(async {
                    tokio::select! {
                        // The sender is never used: it is dropped, and that ends the work.
                        _ = stopped => {}
                        () = kept.work() => {}
                    }
                });
            })
            .map_err(failed)?;
        Ok(Self { handle, agenda, _stop: stop })
    }

    pub(crate) fn spawn<T: Send + 'static>(&self, task: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
        self.handle.spawn(task)
    }
}

/// Which permit is due when. A run that ends before its first renewal costs two entries in a map, and wakes nobody.
#[derive(Default)]
struct Agenda {
    due: Mutex<Due>,
    earlier: Notify,
}

#[derive(Default)]
struct Due {
    permits: BTreeMap<(Instant, u64), Arc<Kept>>,
    next: u64,
    /// When the thread looks next; `None`: only when it is woken.
    looks_at: Option<Instant>,
}

struct Kept {
    gate: Gate,
    every: Duration,
    permit: tokio::sync::Mutex<Option<Permit>>,
    place: Mutex<Option<(Instant, u64)>>,
    lost: AtomicBool,
    /// Nobody keeps it any more.
    ended: AtomicBool,
}

impl Agenda {
    fn locked(&self) -> MutexGuard<'_, Due> {
        self.due.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts `kept` in for `at`, and wakes the thread only where it would look too late.
    fn enter(&self, kept: &Arc<Kept>, at: Instant) {
        let mut due = self.locked();
        due.next += 1;
        let place = (at, due.next);
        *kept.place.lock().unwrap_or_else(PoisonError::into_inner) = Some(place);
        due.permits.insert(place, kept.clone());
        if due.looks_at.is_none_or(|looks_at| at < looks_at) {
            due.looks_at = Some(at);
            drop(due);
            self.earlier.notify_one();
        }
    }

    /// Takes `kept` out.
    fn leave(&self, kept: &Kept) {
        let mut due = self.locked();
        if let Some(place) = kept.place.lock().unwrap_or_else(PoisonError::into_inner).take() {
            due.permits.remove(&place);
        }
    }

    async fn work(self: Arc<Self>) {
        loop {
            let looks_at = self.locked().looks_at;
            match looks_at {
                None => self.earlier.notified().await,
                Some(at) => tokio::select! {
                    () = tokio::time::sleep_until(at) => {}
                    () = self.earlier.notified() => {}
                },
            }
            let now = Instant::now();
            let mut due = self.locked();
            let later = due.permits.split_off(&(now, u64::MAX));
            let ready = std::mem::replace(&mut due.permits, later);
            due.looks_at = due.permits.keys().next().map(|(at, _)| *at);
            drop(due);
            for kept in ready.into_values() {
                tokio::spawn(kept.renew(self.clone()));
            }
        }
    }
}

impl Kept {
    async fn renew(self: Arc<Self>, agenda: Arc<Agenda>) {
        let mut place = self.permit.lock().await;
        let Some(permit) = place.as_mut() else { return };
        let pause = match self.gate.renew_or_pass(permit).await {
            Ok(Changed::Written(_) | Changed::Held) => self.every,
            Ok(Changed::Refused(refused)) => {
                tracing::error!(digest = %permit.digest(), why = refused.as_str(), "a lease was lost while its run went on");
                self.lost.store(true, Ordering::Release);
                return;
            }
            Err(error) => {
                tracing::warn!(digest = %permit.digest(), %error, "a lease could not be renewed");
                self.every / 3
            }
        };
        agenda.enter(&self, Instant::now() + pause);
        if self.ended.load(Ordering::SeqCst) {
            agenda.leave(&self);
        }
    }
}

/// A permit whose lease is being renewed.
#[must_use = "stop the renewal and end the permit"]
pub struct Renewal {
    agenda: Arc<Agenda>,
    kept: Arc<Kept>,
}

impl Renewal {
    /// Stops the renewal, waits until its last write is over, and gives the permit back.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`] where the renewal's thread is gone: the lease then lapses.
    pub async fn stop(self) -> Result<Permit, StoreError> {
        // Held while a renewal is under way; after it, the dropping of this takes its next place out.
        let permit = self.kept.permit.lock().await.take();
        permit.ok_or_else(|| StoreError::not_applied(ErrorKind::Unavailable, "the renewal of a lease was stopped"))
    }

    /// Whether the store said that the lease is lost: whoever runs should stop if it can.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.kept.lost.load(Ordering::Acquire)
    }
}

impl Drop for Renewal {
    fn drop(&mut self) {
        self.kept.ended.store(true, Ordering::SeqCst);
        self.agenda.leave(&self.kept);
        // One under way finds nothing to renew again.
        if let Ok(mut permit) = self.kept.permit.try_lock() {
            drop(permit.take());
        }
    }
}

impl Gate {
    /// Renews the permit's lease three times a span, until [`Renewal::stop`].
    pub fn keep(&self, permit: Permit) -> Renewal {
        let every = (permit.policy().lease / 3).max(Duration::from_millis(10));
        let kept = Arc::new(Kept {
            gate: self.clone(),
            every,
            permit: tokio::sync::Mutex::new(Some(permit)),
            place: Mutex::new(None),
            lost: AtomicBool::new(false),
            ended: AtomicBool::new(false),
        });
        let agenda = self.renewals.agenda.clone();
        agenda.enter(&kept, Instant::now() + every);
        Renewal { agenda, kept }
    }
}

#[cfg(test)]
mod tests;
