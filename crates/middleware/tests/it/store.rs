//! A store in memory that counts its calls, fails where a test says so, and tells when it was written.
//! What stores must guarantee is not tested here.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use counterfoil_core::{Holder, Identity, Now, Record, Timestamp};
use counterfoil_store::clock::{Clock, Reading};
use counterfoil_store::seam::{About, Answer, Listed, New, Note, Page, Query, Seen, Swap, Swapped, Swept};
use counterfoil_store::{MemoryStore, RecordStore, StoreError};
use tokio::sync::Notify;

/// 2023-11-14, some time in the evening.
pub(crate) const BEGIN: i64 = 1_700_000_000_000;

/// A clock that stands until it is moved.
#[derive(Default)]
pub(crate) struct Hands(Mutex<Duration>);

impl Hands {
    pub(crate) fn advance(&self, by: Duration) {
        *self.0.lock().unwrap() += by;
    }
}

impl Clock for Hands {
    fn reading(&self) -> Reading {
        let boot = *self.0.lock().unwrap();
        Reading { wall: Timestamp::from_millis(BEGIN).plus(boot), boot, boot_id: "one".into() }
    }
}

type ReadFault = Box<dyn Fn() -> Option<StoreError> + Send + Sync>;
type SwapFault = Box<dyn Fn(&Swap) -> Option<StoreError> + Send + Sync>;

pub(crate) struct Scripted {
    inner: MemoryStore,
    pub(crate) clock: Arc<Hands>,
    calls: AtomicUsize,
    on_read: Mutex<Option<ReadFault>>,
    on_swap: Mutex<Option<SwapFault>>,
    waits: AtomicBool,
    written: Notify,
    overdue: AtomicBool,
}

impl Scripted {
    pub(crate) fn new() -> Arc<Self> {
        let clock = Arc::new(Hands::default());
        Arc::new(Self {
            inner: MemoryStore::with_clock(clock.clone()),
            clock,
            calls: AtomicUsize::new(0),
            on_read: Mutex::default(),
            on_swap: Mutex::default(),
            waits: AtomicBool::new(false),
            written: Notify::new(),
            overdue: AtomicBool::new(false),
        })
    }

    /// How often it was asked anything.
    pub(crate) fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }

    /// Reads fail as `fault` says, from now on.
    pub(crate) fn on_read(&self, fault: impl Fn() -> Option<StoreError> + Send + Sync + 'static) {
        *self.on_read.lock().unwrap() = Some(Box::new(fault));
    }

    /// Writes fail as `fault` says, from now on; what fails is not applied.
    pub(crate) fn on_swap(&self, fault: impl Fn(&Swap) -> Option<StoreError> + Send + Sync + 'static) {
        *self.on_swap.lock().unwrap() = Some(Box::new(fault));
    }

    /// Every write lets others go first, from now on, as a store with a disk or a network does.
    pub(crate) fn wait(&self) {
        self.waits.store(true, Ordering::SeqCst);
    }

    /// Nothing fails any more.
    pub(crate) fn mend(&self) {
        *self.on_read.lock().unwrap() = None;
        *self.on_swap.lock().unwrap() = None;
    }

    /// What stands, past all scripts.
    pub(crate) async fn stands(&self, identity: &Identity) -> Option<Record> {
        self.inner.read(identity).await.unwrap().record.map(Arc::unwrap_or_clone)
    }

    /// Puts `record` there, past all scripts.
    pub(crate) async fn put(&self, identity: &Identity, record: Option<Record>) {
        let stands = self.stands(identity).await;
        let expected = stands
            .as_ref()
            .map_or(counterfoil_store::seam::Expected::Absent, counterfoil_store::seam::Expected::record);
        let new = record.map_or(New::Delete, New::put);
        let swap = Swap { identity: identity.clone(), expected, new, not_after: None, note: None };
        assert!(matches!(self.inner.swap(swap).await.unwrap(), Swapped::Won { .. }));
    }

    /// Waits until what stands is as `wanted`; a minute of real time without that is a failure.
    pub(crate) async fn until(self: &Arc<Self>, identity: &Identity, wanted: impl Fn(Option<&Record>) -> bool) {
        let (over, stop) = mpsc::channel::<()>();
        let store = self.clone();
        std::thread::spawn(move || {
            if stop.recv_timeout(Duration::from_mins(1)) == Err(mpsc::RecvTimeoutError::Timeout) {
                store.overdue.store(true, Ordering::SeqCst);
                store.written.notify_waiters();
            }
        });
        loop {
            let mut written = std::pin::pin!(self.written.notified());
            written.as_mut().enable();
            let stands = self.stands(identity).await;
            if wanted(stands.as_ref()) {
                return drop(over);
            }
            assert!(!self.overdue.load(Ordering::SeqCst), "it never stood as wanted: {stands:?}");
            written.await;
        }
    }

    fn count(&self) {
        self.calls.fetch_add(1, Ordering::SeqCst);
    }
}

impl RecordStore for Scripted {
    fn now(&self) -> Now {
        self.inner.now()
    }

    fn holder(&self) -> Option<Holder> {
        self.inner.holder()
    }

    fn read<'a>(&'a self, identity: &'a Identity) -> Answer<'a, Seen> {
        self.count();
        match self.on_read.lock().unwrap().as_ref().and_then(|fault| fault()) {
            Some(error) => Box::pin(std::future::ready(Err(error))),
            None => self.inner.read(identity),
        }
    }

    fn swap(&self, swap: Swap) -> Answer<'_, Swapped> {
        self.count();
        if let Some(error) = self.on_swap.lock().unwrap().as_ref().and_then(|fault| fault(&swap)) {
            return Box::pin(std::future::ready(Err(error)));
        }
        Box::pin(async move {
            if self.waits.load(Ordering::SeqCst) {
                tokio::task::yield_now().await;
            }
            let swapped = self.inner.swap(swap).await;
            self.written.notify_waiters();
            swapped
        })
    }

    fn list(&self, query: Query) -> Answer<'_, Page> {
        self.inner.list(query)
    }

    fn find<'a>(&'a self, prefix: &'a str, limit: usize) -> Answer<'a, Vec<Listed>> {
        self.inner.find(prefix, limit)
    }

    fn sweep(&self, rows_max: usize) -> Answer<'_, Swept> {
        self.inner.sweep(rows_max)
    }

    fn history<'a>(&'a self, identity: &'a Identity) -> Answer<'a, Vec<Note>> {
        self.inner.history(identity)
    }

    fn note(&self, note: Note) -> Answer<'_, ()> {
        self.inner.note(note)
    }

    fn set_quarantine(&self, before: Option<Timestamp>) -> Answer<'_, ()> {
        self.inner.set_quarantine(before)
    }

    fn about(&self) -> Answer<'_, About> {
        self.inner.about()
    }

    fn health(&self) -> Result<(), StoreError> {
        self.inner.health()
    }
}
