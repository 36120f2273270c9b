//! A store that fails on demand: it loses replies, fails, delays, and lets copies of a write arrive late.
//!
//! For tests of whatever stands on a store. Faults are scripted call by call, or drawn from a seed; the same calls in
//! the same order meet the same faults. It never invents an answer, and keeps no record of its own.

mod fault;

use std::collections::VecDeque;
use std::future::Future;
use std::sync::{Mutex, MutexGuard, PoisonError};

use counterfoil_core::{Holder, Identity, Now, Timestamp};

use crate::error::{ErrorKind, StoreError};
use crate::seam::{About, Answer, Listed, Note, Page, Query, RecordStore, Seen, Swap, Swapped, Swept};

use self::fault::Draw;
pub use self::fault::{Fault, Hold, Method, Rates};

/// A store whose calls fail as told.
#[derive(Debug)]
pub struct Faulty<S> {
    inner: S,
    plan: Mutex<Plan>,
}

#[derive(Debug)]
struct Plan {
    scripts: [VecDeque<Fault>; Method::ALL.len()],
    calls: [u64; Method::ALL.len()],
    draw: Draw,
    /// Copies of writes still under way, each with how many calls go before it; `None`: until told.
    delayed: VecDeque<(Swap, Option<u8>)>,
}

impl<S: RecordStore> Faulty<S> {
    /// A store that does all it is asked until a fault is scripted.
    #[must_use]
    pub fn new(inner: S) -> Self {
        Self::seeded(inner, 0, Rates::default())
    }

    /// A store that also draws faults from `seed`, as often as `rates` say.
    #[must_use]
    pub fn seeded(inner: S, seed: u64, rates: Rates) -> Self {
        let plan = Plan {
            scripts: std::array::from_fn(|_| VecDeque::new()),
            calls: [0; Method::ALL.len()],
            draw: Draw::new(seed, rates),
            delayed: VecDeque::new(),
        };
        Self { inner, plan: Mutex::new(plan) }
    }

    /// The store behind it, which never fails on demand.
    #[must_use]
    pub const fn inner(&self) -> &S {
        &self.inner
    }

    /// What the next calls of `method` meet, one each, after what was scripted before; drawn faults wait until then.
    pub fn script(&self, method: Method, faults: impl IntoIterator<Item = Fault>) {
        self.plan().scripts[method as usize].extend(faults);
    }

    /// From now on faults are drawn as often as this.
    pub fn set_rates(&self, rates: Rates) {
        self.plan().draw.set_rates(rates);
    }

    /// How often `method` was called.
    #[must_use]
    pub fn calls(&self, method: Method) -> u64 {
        self.plan().calls[method as usize]
    }

    /// How many copies of writes are still under way.
    #[must_use]
    pub fn delayed(&self) -> usize {
        self.plan().delayed.len()
    }

    /// Lets every copy that is under way arrive, oldest first, and tells what became of each.
    pub async fn land(&self) -> Vec<Result<Swapped, StoreError>> {
        let copies: Vec<Swap> = self.plan().delayed.drain(..).map(|(swap, _)| swap).collect();
        let mut landed = Vec::new();
        for swap in copies {
            landed.push(self.inner.swap(swap).await);
        }
        landed
    }

    fn plan(&self) -> MutexGuard<'_, Plan> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a call, lets copies arrive whose time it is, and says what the call meets.
    async fn meet(&self, method: Method) -> Option<Fault> {
        let (fault, arriving) = self.plan().next(method);
        for swap in arriving {
            // Nobody waits for the answer of a copy.
            drop(self.inner.swap(swap).await);
        }
        fault
    }

    async fn call<T>(
        &self,
        method: Method,
        run: impl Future<Output = Result<T, StoreError>> + Send,
    ) -> Result<T, StoreError> {
        let fault = self.meet(method).await;
        suffer(fault, method, run).await
    }

    async fn swap_faulty(&self, swap: Swap) -> Result<Swapped, StoreError> {
        let fault = self.meet(Method::Swap).await;
        if matches!(fault, Some(Fault::ApplyLater | Fault::Twice)) {
            self.plan().delay(swap.clone());
        }
        suffer(fault, Method::Swap, self.inner.swap(swap)).await
    }
}

/// The call itself, under what it meets.
async fn suffer<T>(
    fault: Option<Fault>,
    method: Method,
    run: impl Future<Output = Result<T, StoreError>> + Send,
) -> Result<T, StoreError> {
    match fault {
        None | Some(Fault::Pass | Fault::Twice) => run.await,
        Some(Fault::Fail(kind)) => Err(StoreError::not_applied(kind, "the call failed on demand: try again")),
        Some(Fault::LoseReply) => {
            run.await?;
            Err(lost(method))
        }
        Some(Fault::ApplyLater) => Err(lost(method)),
        Some(Fault::HoldBefore(hold)) => {
            hold.pass().await;
            run.await
        }
        Some(Fault::HoldAfter(hold)) => {
            let answer = run.await;
            hold.pass().await;
            answer
        }
    }
}

fn lost(method: Method) -> StoreError {
    let detail = "the answer was lost on demand: repeat the same call";
    if method.writes() {
        StoreError::unknown(ErrorKind::Unknown, detail)
    } else {
        StoreError::not_applied(ErrorKind::Unavailable, detail)
    }
}

impl Plan {
    fn next(&mut self, method: Method) -> (Option<Fault>, Vec<Swap>) {
        self.calls[method as usize] += 1;
        let fault = match self.scripts[method as usize].pop_front() {
            Some(fault) => Some(fault),
            None => self.draw.fault(method),
        };
        let mut arriving = Vec::new();
        self.delayed.retain_mut(|(swap, left)| match left {
            Some(0) => {
                arriving.push(swap.clone());
                false
            }
            Some(left) => {
                *left -= 1;
                true
            }
            None => true,
        });
        (fault, arriving)
    }

    fn delay(&mut self, swap: Swap) {
        let left = self.draw.delay();
        self.delayed.push_back((swap, left));
    }
}

impl<S: RecordStore> RecordStore for Faulty<S> {
    fn now(&self) -> Now {
        self.inner.now()
    }

    fn holder(&self) -> Option<Holder> {
        self.inner.holder()
    }

    fn read<'a>(&'a self, identity: &'a Identity) -> Answer<'a, Seen> {
        Box::pin(self.call(Method::Read, self.inner.read(identity)))
    }

    fn swap(&self, swap: Swap) -> Answer<'_, Swapped> {
        Box::pin(self.swap_faulty(swap))
    }

    fn list(&self, query: Query) -> Answer<'_, Page> {
        Box::pin(self.call(Method::List, self.inner.list(query)))
    }

    fn find<'a>(&'a self, prefix: &'a str, limit: usize) -> Answer<'a, Vec<Listed>> {
        Box::pin(self.call(Method::Find, self.inner.find(prefix, limit)))
    }

    fn sweep(&self, rows_max: usize) -> Answer<'_, Swept> {
        Box::pin(self.call(Method::Sweep, self.inner.sweep(rows_max)))
    }

    fn history<'a>(&'a self, identity: &'a Identity) -> Answer<'a, Vec<Note>> {
        Box::pin(self.call(Method::History, self.inner.history(identity)))
    }

    fn note(&self, note: Note) -> Answer<'_, ()> {
        Box::pin(self.call(Method::Note, self.inner.note(note)))
    }

    fn set_quarantine(&self, before: Option<Timestamp>) -> Answer<'_, ()> {
        Box::pin(self.call(Method::SetQuarantine, self.inner.set_quarantine(before)))
    }

    fn about(&self) -> Answer<'_, About> {
        Box::pin(self.call(Method::About, self.inner.about()))
    }

    fn health(&self) -> Result<(), StoreError> {
        self.inner.health()
    }
}
