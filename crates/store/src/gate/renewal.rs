//! Renewal of leases, on a thread of its own: a handler that blocks its thread does not lose its lease.
//! When a lease may be renewed belongs to `core::action`.

use std::future::Future;
use std::time::Duration;

use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

use crate::error::{ErrorKind, StoreError};
use crate::gate::{Gate, Permit};

/// The thread that renews every lease of a gate.
pub(crate) struct Thread {
    handle: tokio::runtime::Handle,
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
        std::thread::Builder::new()
            .name("counterfoil-renewals".to_owned())
            .spawn(move || {
                // The sender is never used: it is dropped, and that ends the wait.
                let _ = runtime.block_on(stopped);
            })
            .map_err(failed)?;
        Ok(Self { handle, _stop: stop })
    }

    pub(crate) fn spawn<T: Send + 'static>(&self, task: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
        self.handle.spawn(task)
    }
}

/// A permit whose lease is being renewed.
#[must_use = "stop the renewal and end the permit"]
pub struct Renewal {
    stop: oneshot::Sender<()>,
    task: JoinHandle<Permit>,
    lost: watch::Receiver<bool>,
}

impl Renewal {
    /// Stops the renewal, waits until its last write is over, and gives the permit back.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`] where the renewal's thread is gone: the lease then lapses.
    pub async fn stop(self) -> Result<Permit, StoreError> {
        // A task that has ended already has its receiver dropped; its permit is still there.
        let _ = self.stop.send(());
        self.task.await.map_err(|error| {
            StoreError::not_applied(ErrorKind::Unavailable, "the renewal of a lease was stopped").caused_by(error)
        })
    }

    /// Whether the store said that the lease is lost: whoever runs should stop if it can.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        *self.lost.borrow()
    }
}

impl Gate {
    /// Renews the permit's lease three times a span, until [`Renewal::stop`].
    pub fn keep(&self, permit: Permit) -> Renewal {
        let (stop, stopped) = oneshot::channel();
        let (lose, lost) = watch::channel(false);
        let gate = self.clone();
        let task = self.renewals.spawn(async move { gate.renew_until(permit, stopped, lose).await });
        Renewal { stop, task, lost }
    }

    async fn renew_until(
        &self,
        mut permit: Permit,
        mut stopped: oneshot::Receiver<()>,
        lose: watch::Sender<bool>,
    ) -> Permit {
        let every = (permit.policy().lease / 3).max(Duration::from_millis(10));
        let mut pause = every;
        loop {
            tokio::select! {
                biased;
                _ = &mut stopped => return permit,
                () = tokio::time::sleep(pause) => {}
            }
            pause = match self.renew(&mut permit).await {
                Ok(Ok(())) => every,
                Ok(Err(refused)) => {
                    tracing::error!(digest = %permit.digest(), why = refused.as_str(), "a lease was lost while its run went on");
                    // Nobody may listen any more.
                    let _ = lose.send(true);
                    return permit;
                }
                Err(error) => {
                    tracing::warn!(digest = %permit.digest(), %error, "a lease could not be renewed");
                    every / 3
                }
            };
        }
    }
}
