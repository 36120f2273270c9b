//! The seam: what a store must be able to do, and the values that cross it.
//!
//! No rule lives behind it. A store judges guards (version and lease id, absence, a limit on its own clock) and turns
//! a draft into a record with [`Draft::at`]; everything else was decided in core. `contract` says what every store
//! must guarantee. A record never changes once it is made, so it is shared and not copied.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use counterfoil_core::{Digest, Holder, Identity, LeaseId, Now, Record, Timestamp, claim::Draft};

use crate::error::StoreError;

/// What every call to a store answers.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// A place where records are kept.
///
/// A future that is dropped before it is ready may or may not have applied its write.
pub trait RecordStore: Send + Sync + 'static {
    /// The store's clock, as last known: for writes other than claims, whose times the store itself sets.
    fn now(&self) -> Now;

    /// The name under which this process holds leases; `None` where the store cannot tell that a process is gone.
    fn holder(&self) -> Option<Holder>;

    /// Reads the newest committed record. Writes nothing and waits for no writer.
    fn read<'a>(&'a self, identity: &'a Identity) -> Answer<'a, Seen>;

    /// The one conditional write: all of it or nothing, durable before it answers.
    ///
    /// Losing is a value. An error says whether the write was applied; where that is unknown, the same `swap` may be
    /// sent again.
    fn swap(&self, swap: Swap) -> Answer<'_, Swapped>;

    /// [`RecordStore::swap`], but a record that somebody's open transaction has locked is not waited for: the answer is
    /// [`Swapped::Held`], and nothing was written.
    fn try_swap(&self, swap: Swap) -> Answer<'_, Swapped> {
        self.swap(swap)
    }

    /// Whether an application may settle a coupled run by its permit, in a transaction of its own on this store.
    fn takes_permits(&self) -> bool {
        false
    }

    /// Records in the order of their making, a page at a time.
    fn list(&self, query: Query) -> Answer<'_, Page>;

    /// Finds identities whose digest begins with `prefix` (hexadecimal) or whose key is exactly `prefix`; at most
    /// `limit`.
    fn find<'a>(&'a self, prefix: &'a str, limit: usize) -> Answer<'a, Vec<Listed>>;

    /// Applies `action::sweep` to at most `rows_max` records that are due, each under the condition that it was
    /// selected by.
    fn sweep(&self, rows_max: usize) -> Answer<'_, Swept>;

    /// What operators and alarms wrote about an identity, oldest first, at most 100 newest.
    fn history<'a>(&'a self, identity: &'a Identity) -> Answer<'a, Vec<Note>>;

    /// Appends to the history without touching a record.
    fn note(&self, note: Note) -> Answer<'_, ()>;

    /// From this write on, claims that would execute and cannot be shown to be younger than the instant become
    /// Unknown; `None` lifts it.
    fn set_quarantine(&self, before: Option<Timestamp>) -> Answer<'_, ()>;

    /// What and how much is kept here.
    fn about(&self) -> Answer<'_, About>;

    /// Whether the store can be used now; `Err` says why not, and what to do.
    fn health(&self) -> Result<(), StoreError>;
}

/// A record as read, with the store's time of the reading.
#[derive(Clone, Debug)]
pub struct Seen {
    /// What stands; `None`: nothing does.
    pub record: Option<Arc<Record>>,
    /// The store's time.
    pub now: Now,
}

/// What must stand for a swap to win.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Expected {
    /// Nothing.
    Absent,
    /// A record of this version and this lease; never one of them alone.
    Record {
        /// Its version.
        version: u64,
        /// Its lease.
        lease: LeaseId,
    },
}

impl Expected {
    /// That exactly `record` stands.
    #[must_use]
    pub const fn record(record: &Record) -> Self {
        Self::Record { version: record.version, lease: record.lease.id }
    }

    /// Whether `stands` is what is expected.
    #[must_use]
    pub fn holds(self, stands: Option<&Record>) -> bool {
        self == stands.map_or(Self::Absent, Self::record)
    }
}

/// What a swap puts in the place of what was expected.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum New {
    /// A claim's record, its times set by the store's clock in this very write, its quarantine judged there too.
    Claim(Arc<Draft>),
    /// This record.
    Put(Arc<Record>),
    /// Nothing.
    Delete,
}

impl New {
    /// A claim's record, of a draft that is shared or not yet.
    pub fn claim(draft: impl Into<Arc<Draft>>) -> Self {
        Self::Claim(draft.into())
    }

    /// A record, shared or not yet.
    pub fn put(record: impl Into<Arc<Record>>) -> Self {
        Self::Put(record.into())
    }
}

/// One conditional write. A copy of it is cheap: a store that works elsewhere takes one along.
#[derive(Clone, Debug)]
pub struct Swap {
    /// Whose record.
    pub identity: Identity,
    /// What must stand.
    pub expected: Expected,
    /// What takes its place.
    pub new: New,
    /// On the store's clock, judged in the same write: after it, nothing is written. A delayed copy of a claim can so
    /// never land later.
    pub not_after: Option<Timestamp>,
    /// Appended to the history in the same write, where it wins.
    pub note: Option<Arc<Note>>,
}

/// What became of a swap.
#[derive(Clone, Debug)]
pub enum Swapped {
    /// It was written.
    Won {
        /// What stands now: for a claim, the record that the store made of the draft.
        record: Option<Arc<Record>>,
        /// The store's time of the write.
        now: Now,
    },
    /// Something else stands, and nothing was written.
    Lost {
        /// What stands.
        stands: Option<Arc<Record>>,
        /// The store's time.
        now: Now,
    },
    /// The limit has passed, and nothing was written.
    TooLate {
        /// The store's time.
        now: Now,
    },
    /// A claim, or a write that does not wait, met somebody's open transaction on the same identity: nothing was
    /// written, and what will stand is not known yet.
    Held {
        /// The store's time.
        now: Now,
    },
}

/// Which records to list.
#[derive(Clone, Debug, Default)]
pub struct Query {
    /// Only records that are stored as Running or Unknown: what may be in doubt.
    pub unsettled_only: bool,
    /// After this position; 0 begins.
    pub after: u64,
    /// At most so many rows; a store gives at most 1,000.
    pub limit: usize,
}

/// One row of a list.
#[derive(Debug)]
pub struct Listed {
    /// Its position, for [`Query::after`].
    pub position: u64,
    /// Whose record.
    pub identity: Identity,
    /// The record, or why it cannot be decoded.
    pub record: Result<Record, counterfoil_core::Error>,
}

/// A page of a list.
#[derive(Debug)]
pub struct Page {
    /// The rows.
    pub rows: Vec<Listed>,
    /// Whether more may follow the last row's position.
    pub more: bool,
    /// The store's time.
    pub now: Now,
}

/// What a sweep did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Swept {
    /// Expired receipts that became absent or Spent.
    pub expired: usize,
    /// Spent rows that became absent.
    pub spent: usize,
    /// Whether more is due.
    pub more: bool,
    /// Whether nothing was swept because the clock is in doubt.
    pub stopped: bool,
}

/// What kind of thing a note tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoteKind {
    /// An operator said that it happened.
    ResolvedHappened,
    /// An operator said that it did not happen and no longer can.
    ResolvedDidNotHappen,
    /// An operator said so too, and that it is sent anew with another child key.
    ResolvedSendAnew,
    /// A completion came after the record was settled or given to somebody else: an alarm.
    LateCompletion,
}

impl NoteKind {
    /// The word that is stored and shown.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ResolvedHappened => "resolved-happened",
            Self::ResolvedDidNotHappen => "resolved-did-not-happen",
            Self::ResolvedSendAnew => "resolved-send-anew",
            Self::LateCompletion => "late-completion",
        }
    }

    /// Reads [`NoteKind::as_str`].
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::ResolvedHappened, Self::ResolvedDidNotHappen, Self::ResolvedSendAnew, Self::LateCompletion]
            .into_iter()
            .find(|kind| kind.as_str() == word)
    }
}

/// A line of an identity's history.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Note {
    /// Whose.
    pub identity: Identity,
    /// When, on the store's clock.
    pub at: Timestamp,
    /// What kind.
    pub kind: NoteKind,
    /// The lease that it is about.
    pub lease: LeaseId,
    /// Who says so.
    pub who: String,
    /// And why.
    pub why: String,
}

/// What and how much is kept.
#[derive(Clone, Debug)]
pub struct About {
    /// The store's random id, made with it.
    pub id: String,
    /// When it was made.
    pub born_at: Timestamp,
    /// Where it is.
    pub place: String,
    /// How many records it keeps.
    pub records: u64,
    /// When its oldest record was claimed or written.
    pub oldest_at: Option<Timestamp>,
    /// The digest and age of nothing but the oldest record in doubt.
    pub oldest_unknown: Option<(Digest, Timestamp)>,
    /// How many are in doubt at `now`.
    pub unknown: u64,
    /// How many run at `now`.
    pub running: u64,
    /// The quarantine, where one stands.
    pub quarantine_before: Option<Timestamp>,
    /// The latest instant until which any receipt is promised: the least age at which a quarantine may be lifted.
    pub promised_until: Option<Timestamp>,
    /// The store's time.
    pub now: Now,
}
