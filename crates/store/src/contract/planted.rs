//! Stores with one planted fault each, to show that the suite refuses them, and by which case.
//!
//! Each is a memory store whose calls are bent on the way. None is of any use otherwise.

mod bend;

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use counterfoil_core::{Holder, Identity, Now, Record, State, Timestamp};

use self::bend::MILLISECOND;
use super::subject::BEGIN;
use crate::clock::{Clock as _, TestClock};
use crate::contract::{Maker, Subject};
use crate::error::{ErrorKind, StoreError};
use crate::memory::MemoryStore;
use crate::seam::{About, Answer, Expected, Listed, New, Note, Page, Query, RecordStore, Seen, Swap, Swapped, Swept};

/// What is wrong with a store.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Fault {
    /// Nothing: the control, which is put through every case.
    None,
    /// Guards by the version alone.
    IgnoresLease,
    /// Guards by the lease alone.
    IgnoresVersion,
    /// Inserts over what stands.
    IgnoresAbsence,
    /// Judges the guard in one step and writes in another.
    GuardsTooSoon,
    /// Does not tell a loser what stands.
    TellsNothing,
    /// Lets readers see a write that then loses.
    ShowsLosers,
    /// Writes after the limit.
    IgnoresNotAfter,
    /// Says "too late", and has written.
    WritesTooLate,
    /// Takes a claim's times from somewhere else than its own clock at the write.
    TimesFromElsewhere,
    /// Answers a write before it is applied.
    AnswersEarly,
    /// Leaves the last page out.
    ListsShort,
    /// Lists newest first.
    ListsBackwards,
    /// Finds keys by their beginning.
    FindsByBeginning,
    /// Counts in doubt only what is stored so.
    CountsStored,
    /// Loses the note of a write that won.
    LosesNotes,
    /// Keeps the note of a write that lost.
    NotesLosers,
    /// Tells the history newest first.
    TellsBackwards,
    /// Sweeps runs that have lapsed.
    SweepsRunning,
    /// Sweeps what it chose, whatever stands there by now.
    SweepsBlindly,
    /// Sweeps more than it was allowed.
    SweepsWithoutBound,
    /// Sweeps one millisecond early.
    SweepsEarly,
    /// Sweeps while the clock is in doubt.
    SweepsInDoubt,
    /// Lets receipts live one millisecond too long.
    ExpiresLate,
    /// Deletes the rows that refuse expired keys.
    DeletesSpent,
    /// Deletes what a release of a child key leaves.
    ForgetsGenerations,
    /// Forgets that a child key may have been sent.
    ForgetsDoubts,
    /// Lets every claim run, whatever quarantine stands.
    IgnoresQuarantine,
    /// Forgets that quarantine also holds for take-overs.
    QuarantinesInsertsOnly,
    /// Keeps an identity as one joined text.
    JoinsIdentity,
    /// Keeps bodies as text.
    KeepsText,
    /// Cuts bodies at 64 KiB.
    CutsBodies,
    /// Forgets that a body was not kept.
    ForgetsNotKept,
    /// Keeps one header of a name.
    FoldsHeaders,
    /// Keeps no holder.
    ForgetsHolders,
    /// Begins empty after a restart.
    ForgetsAtRestart,
    /// Treats what it cannot decode as absent.
    ErrorAsAbsent,
}

impl Fault {
    /// Every fault, with the cases that must refuse it.
    pub const REFUSED_BY: &[(Self, &[&str])] = &[
        (Self::None, &[]),
        (
            Self::IgnoresLease,
            &["version-or-lease-alone-never-wins", "version-restarts-after-absent", "late-calls-touch-nobody"],
        ),
        (Self::IgnoresVersion, &["version-or-lease-alone-never-wins"]),
        (Self::IgnoresAbsence, &["insert-wins-once"]),
        (Self::GuardsTooSoon, &["insert-wins-once", "take-over-wins-once"]),
        (Self::TellsNothing, &["repeated-write-finds-itself"]),
        (Self::ShowsLosers, &["losing-writes-are-never-seen"]),
        (Self::IgnoresNotAfter, &["too-late-writes-nothing"]),
        (Self::WritesTooLate, &["too-late-writes-nothing"]),
        (Self::TimesFromElsewhere, &["draft-times-are-spans"]),
        (Self::AnswersEarly, &["reads-see-what-was-answered"]),
        (Self::ListsShort, &["list-is-complete-and-stable"]),
        (Self::ListsBackwards, &["list-is-complete-and-stable"]),
        (Self::FindsByBeginning, &["find-by-key-and-digest"]),
        (Self::CountsStored, &["about-counts"]),
        (Self::LosesNotes, &["history-is-in-the-same-write"]),
        (Self::NotesLosers, &["history-is-in-the-same-write"]),
        (Self::TellsBackwards, &["history-is-ordered-and-bounded"]),
        (Self::SweepsRunning, &["sweep-leaves-unsettled"]),
        (Self::SweepsBlindly, &["sweep-repeats-its-condition"]),
        (Self::SweepsWithoutBound, &["sweep-is-bounded"]),
        (Self::SweepsEarly, &["retention-ends-at-its-instant", "sweep-changes-no-decision"]),
        (Self::SweepsInDoubt, &["doubted-clock-forgets-nothing"]),
        (Self::ExpiresLate, &["retention-ends-at-its-instant"]),
        (
            Self::DeletesSpent,
            &["spent-stays-until-its-time", "sweep-changes-no-decision", "generations-are-kept-for-ever"],
        ),
        (Self::ForgetsGenerations, &["generations-survive-their-ends"]),
        (Self::ForgetsDoubts, &["child-keys-survive"]),
        (Self::IgnoresQuarantine, &["quarantine-judges-claims", "quarantine-judges-take-overs"]),
        (Self::QuarantinesInsertsOnly, &["quarantine-judges-take-overs"]),
        (Self::JoinsIdentity, &["identity-parts-are-apart"]),
        (Self::KeepsText, &["bytes-survive"]),
        (Self::CutsBodies, &["large-bodies-survive"]),
        (Self::ForgetsNotKept, &["bytes-survive"]),
        (Self::FoldsHeaders, &["bytes-survive"]),
        (Self::ForgetsHolders, &["states-survive"]),
        (Self::ForgetsAtRestart, &["reopened-store-remembers"]),
        (Self::ErrorAsAbsent, &["damage-is-no-absence"]),
    ];
}

/// Makes stores with a fault.
#[derive(Clone, Copy, Debug)]
pub struct Planted(pub Fault);

impl Maker for Planted {
    fn fresh(&self) -> Answer<'_, Box<dyn Subject>> {
        let clock = TestClock::new(BEGIN);
        let store = Arc::new(PlantedStore::new(self.0, clock.clone()));
        let subject: Box<dyn Subject> = Box::new(PlantedSubject { clock, store });
        Box::pin(std::future::ready(Ok(subject)))
    }
}

struct PlantedSubject {
    clock: TestClock,
    store: Arc<PlantedStore>,
}

impl Subject for PlantedSubject {
    fn store(&self) -> Arc<dyn RecordStore> {
        self.store.clone()
    }

    fn advance(&self, by: Duration) -> Answer<'_, ()> {
        self.clock.advance(by);
        Box::pin(std::future::ready(Ok(())))
    }

    fn step_wall(&self, millis: i64) -> Option<Answer<'_, ()>> {
        self.clock.step_wall(millis);
        Some(Box::pin(std::future::ready(Ok(()))))
    }

    fn reopen(&mut self) -> Option<Answer<'_, ()>> {
        if self.store.fault == Fault::ForgetsAtRestart {
            self.store = Arc::new(PlantedStore::new(self.store.fault, self.clock.clone()));
        }
        Some(Box::pin(std::future::ready(Ok(()))))
    }

    fn damage<'a>(&'a self, identity: &'a Identity) -> Option<Answer<'a, ()>> {
        locked(&self.store.damaged).insert(identity.clone());
        Some(Box::pin(std::future::ready(Ok(()))))
    }
}

struct PlantedStore {
    inner: MemoryStore,
    fault: Fault,
    clock: TestClock,
    damaged: Mutex<HashSet<Identity>>,
    /// A write that was answered and not yet applied.
    pending: Mutex<Option<Swap>>,
    quarantine_before: Mutex<Option<Timestamp>>,
    /// Reads and swaps that came.
    calls: AtomicU64,
}

impl PlantedStore {
    fn new(fault: Fault, clock: TestClock) -> Self {
        Self {
            inner: MemoryStore::with_clock(Arc::new(clock.clone())),
            fault,
            clock,
            damaged: Mutex::default(),
            pending: Mutex::default(),
            quarantine_before: Mutex::default(),
            calls: AtomicU64::new(0),
        }
    }

    /// Waits for so many calls of others, and not for ever where there are none.
    async fn let_others_go_first(&self, calls: u64) {
        let until = self.calls.load(Ordering::Relaxed) + calls;
        for _ in 0..20_000 {
            if self.calls.load(Ordering::Relaxed) >= until {
                return;
            }
            tokio::task::yield_now().await;
        }
    }

    fn is_damaged(&self, identity: &Identity) -> bool {
        locked(&self.damaged).contains(identity)
    }

    fn now(&self, now: Now) -> Now {
        match self.fault {
            Fault::ExpiresLate => Now { expiry_at: now.expiry_at.minus(MILLISECOND), ..now },
            _ => now,
        }
    }

    async fn read_bent(&self, identity: &Identity) -> Result<Seen, StoreError> {
        let late = locked(&self.pending).take();
        let identity = bend::identity(self.fault, identity);
        if self.is_damaged(&identity) {
            if self.fault != Fault::ErrorAsAbsent {
                return Err(StoreError::from(counterfoil_core::Error::Corrupt("damaged")));
            }
            return Ok(Seen { record: None, now: self.inner.now() });
        }
        let seen = self.inner.read(&identity).await?;
        if let Some(late) = late {
            self.inner.swap(late).await?;
        }
        Ok(Seen { now: self.now(seen.now), ..seen })
    }

    async fn swap_bent(&self, mut swap: Swap) -> Result<Swapped, StoreError> {
        let late = locked(&self.pending).take();
        if let Some(late) = late {
            self.inner.swap(late).await?;
        }
        swap.identity = bend::identity(self.fault, &swap.identity);
        if self.is_damaged(&swap.identity) && self.fault != Fault::ErrorAsAbsent {
            return Err(StoreError::from(counterfoil_core::Error::Corrupt("damaged")));
        }
        let Seen { record: stands, now } = self.inner.read(&swap.identity).await?;
        let stands = stands.as_deref();
        swap.expected = bend::expected(self.fault, swap.expected, stands);
        let quarantine_before = *locked(&self.quarantine_before);
        swap.new = bend::new(self.fault, swap.new, swap.expected, now.at, quarantine_before);
        match self.fault {
            Fault::ErrorAsAbsent if self.is_damaged(&swap.identity) => {
                swap.expected = stands.map_or(Expected::Absent, Expected::record);
            }
            Fault::IgnoresNotAfter => swap.not_after = None,
            Fault::LosesNotes => swap.note = None,
            Fault::AnswersEarly if swap.expected.holds(stands) => return Ok(self.answer_early(swap, now)),
            Fault::GuardsTooSoon if swap.expected.holds(stands) => {
                tokio::task::yield_now().await;
                let stands = self.inner.read(&swap.identity).await?.record;
                swap.expected = stands.as_deref().map_or(Expected::Absent, Expected::record);
            }
            Fault::ShowsLosers if !swap.expected.holds(stands) => self.show(&swap, stands).await?,
            _ => {}
        }
        let swapped = self.inner.swap(swap.clone()).await?;
        self.after(swap, swapped).await
    }

    /// What some faults do once the write is decided.
    async fn after(&self, swap: Swap, swapped: Swapped) -> Result<Swapped, StoreError> {
        match (self.fault, swapped) {
            (Fault::TellsNothing, Swapped::Lost { now, .. }) => Ok(Swapped::Lost { stands: None, now }),
            (Fault::NotesLosers, lost @ Swapped::Lost { .. }) => {
                if let Some(note) = swap.note {
                    self.inner.note(Note::clone(&note)).await?;
                }
                Ok(lost)
            }
            (Fault::WritesTooLate, late @ Swapped::TooLate { .. }) => {
                self.inner.swap(Swap { not_after: None, ..swap }).await?;
                Ok(late)
            }
            (_, swapped) => Ok(swapped),
        }
    }

    /// Writes what loses, lets readers see it, and takes it back.
    async fn show(&self, swap: &Swap, stands: Option<&Record>) -> Result<(), StoreError> {
        let (Some(stands), New::Put(shown)) = (stands, &swap.new) else { return Ok(()) };
        let forced = Swap { expected: Expected::record(stands), note: None, ..swap.clone() };
        self.inner.swap(forced).await?;
        self.let_others_go_first(4).await;
        let back = Swap { expected: Expected::record(shown), new: New::put(stands.clone()), ..swap.clone() };
        self.inner.swap(Swap { note: None, ..back }).await.map(|_| ())
    }

    fn answer_early(&self, swap: Swap, now: Now) -> Swapped {
        let record = match &swap.new {
            New::Claim(draft) => Some(Arc::new(draft.at(now.at, None))),
            New::Put(record) => Some(record.clone()),
            New::Delete => None,
        };
        *locked(&self.pending) = Some(swap);
        Swapped::Won { record, now }
    }

    async fn list_bent(&self, query: Query) -> Result<Page, StoreError> {
        let mut page = self.inner.list(query).await?;
        for row in &mut page.rows {
            if self.is_damaged(&row.identity) {
                row.record = Err(counterfoil_core::Error::Corrupt("damaged"));
            }
        }
        match self.fault {
            Fault::ListsShort if !page.more && page.rows.len() > 1 => drop(page.rows.pop()),
            Fault::ListsBackwards => page.rows.reverse(),
            _ => {}
        }
        Ok(page)
    }

    async fn rows(&self) -> Result<Vec<Listed>, StoreError> {
        Ok(self.inner.list(Query { unsettled_only: false, after: 0, limit: 1_000 }).await?.rows)
    }

    /// Deletes whatever stands where `chosen` says so.
    async fn delete_where(&self, chosen: impl Fn(&State, Timestamp) -> bool) -> Result<(), StoreError> {
        for row in self.rows().await? {
            let Ok(record) = row.record else { continue };
            if chosen(&record.state, record.lease.until) {
                self.delete(row.identity, Expected::record(&record)).await?;
            }
        }
        Ok(())
    }

    async fn delete(&self, identity: Identity, expected: Expected) -> Result<(), StoreError> {
        let swap = Swap { identity, expected, new: New::Delete, not_after: None, note: None };
        self.inner.swap(swap).await.map(|_| ())
    }

    async fn sweep_bent(&self, rows_max: usize) -> Result<Swept, StoreError> {
        let now = self.inner.now();
        let early = now.expiry_at.plus(MILLISECOND);
        match self.fault {
            _ if !locked(&self.damaged).is_empty() => Ok(Swept::default()),
            Fault::SweepsWithoutBound => self.inner.sweep(usize::MAX).await,
            Fault::SweepsBlindly => self.sweep_blindly(now).await,
            Fault::SweepsRunning => {
                self.delete_where(|state, until| *state == State::Running && until <= now.at).await?;
                self.inner.sweep(rows_max).await
            }
            Fault::SweepsEarly => {
                self.delete_where(|state, _| matches!(state, State::Done { expires_at, .. } if *expires_at <= early))
                    .await?;
                self.inner.sweep(rows_max).await
            }
            Fault::DeletesSpent => {
                let swept = self.inner.sweep(rows_max).await?;
                self.delete_where(|state, _| matches!(state, State::Spent { .. })).await?;
                Ok(swept)
            }
            Fault::SweepsInDoubt => {
                let wall = self.clock.reading().wall;
                let swept = self.inner.sweep(rows_max).await?;
                self.delete_where(|state, _| matches!(state, State::Done { expires_at, .. } if *expires_at <= wall))
                    .await?;
                Ok(swept)
            }
            _ => self.inner.sweep(rows_max).await,
        }
    }

    /// Chooses, lets everybody else go first, and deletes what stands there by then.
    async fn sweep_blindly(&self, now: Now) -> Result<Swept, StoreError> {
        let mut swept = Swept::default();
        let rows = self.rows().await?;
        self.let_others_go_first(8).await;
        for row in rows {
            let Ok(record) = row.record else { continue };
            if record.sweep_at().is_none_or(|at| at > now.expiry_at) {
                continue;
            }
            if let Some(stands) = self.inner.read(&row.identity).await?.record {
                self.delete(row.identity, Expected::record(&stands)).await?;
                swept.expired += 1;
            }
        }
        Ok(swept)
    }

    async fn find_bent(&self, text: &str, limit: usize) -> Result<Vec<Listed>, StoreError> {
        if self.fault != Fault::FindsByBeginning {
            return self.inner.find(text, limit).await;
        }
        let mut rows = self.rows().await?;
        rows.retain(|row| {
            row.identity.key.as_str().starts_with(text) || row.identity.digest().to_hex().starts_with(text)
        });
        rows.truncate(limit);
        Ok(rows)
    }
}

impl RecordStore for PlantedStore {
    fn now(&self) -> Now {
        self.now(self.inner.now())
    }

    fn holder(&self) -> Option<Holder> {
        self.inner.holder()
    }

    fn read<'a>(&'a self, identity: &'a Identity) -> Answer<'a, Seen> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        Box::pin(self.read_bent(identity))
    }

    fn swap(&self, swap: Swap) -> Answer<'_, Swapped> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        Box::pin(self.swap_bent(swap))
    }

    fn list(&self, query: Query) -> Answer<'_, Page> {
        Box::pin(self.list_bent(query))
    }

    fn find<'a>(&'a self, prefix: &'a str, limit: usize) -> Answer<'a, Vec<Listed>> {
        Box::pin(self.find_bent(prefix, limit))
    }

    fn sweep(&self, rows_max: usize) -> Answer<'_, Swept> {
        Box::pin(self.sweep_bent(rows_max))
    }

    fn history<'a>(&'a self, identity: &'a Identity) -> Answer<'a, Vec<Note>> {
        Box::pin(async move {
            let mut notes = self.inner.history(identity).await?;
            if self.fault == Fault::TellsBackwards {
                notes.reverse();
            }
            Ok(notes)
        })
    }

    fn note(&self, note: Note) -> Answer<'_, ()> {
        self.inner.note(note)
    }

    fn set_quarantine(&self, before: Option<Timestamp>) -> Answer<'_, ()> {
        *locked(&self.quarantine_before) = before;
        self.inner.set_quarantine(before)
    }

    fn about(&self) -> Answer<'_, About> {
        Box::pin(async move {
            let mut about = self.inner.about().await?;
            if self.fault == Fault::CountsStored {
                let rows = self.rows().await?;
                let stored = |row: &&Listed| matches!(&row.record, Ok(Record { state: State::Unknown { .. }, .. }));
                about.unknown = rows.iter().filter(stored).count() as u64;
            }
            Ok(about)
        })
    }

    fn health(&self) -> Result<(), StoreError> {
        match locked(&self.damaged).len() {
            0 => self.inner.health(),
            _ => Err(StoreError::not_applied(ErrorKind::Corrupt, "a record is damaged")),
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
