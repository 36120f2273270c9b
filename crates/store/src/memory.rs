//! Records in the memory of one process: for tests, demonstrations, and work whose duplicates end with the process.
//!
//! Everything is **lost on restart**: after it every key names a new action, so an effect may be repeated. There are
//! no transactions here, and so no function that takes one. No rule belongs here; guards and indexes only.

mod places;
mod rows;

use std::collections::VecDeque;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use counterfoil_core::{Holder, Identity, Now, Record, Timestamp, Write, action, record::Standing};

use self::places::Hashing;
use self::rows::Rows;
use crate::clock::{Clock, HighWater, SystemClock};
use crate::error::{ErrorKind, StoreError};
use crate::seam::{About, Answer, Expected, Listed, New, Note, Page, Query, RecordStore, Seen, Swap, Swapped, Swept};

/// How many records a store keeps unless told otherwise.
pub const RECORDS_MAX: usize = 1_000_000;
/// How many lines of history a store keeps, of all identities together; the oldest go first.
const NOTES_MAX: usize = 10_000;
/// How many lines of one identity's history are shown.
const HISTORY_MAX: usize = 100;
/// The most rows of a list or search.
const LIST_ROWS_MAX: usize = 1_000;
/// How many rows a search looks at before it lets others in.
const SEARCH_CHUNK: usize = 1_024;
/// How many expired rows a full store looks for before it refuses a claim.
const ROOM_SWEEP: usize = 64;

/// A store in this process's memory, lost with it.
///
/// Every call is one short critical section: nothing waits inside, and no future suspends.
#[derive(Debug)]
pub struct MemoryStore {
    clock: HighWater,
    id: String,
    holder: Holder,
    born_at: Timestamp,
    records_max: usize,
    hashing: Hashing,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    rows: Rows,
    notes: VecDeque<Note>,
    quarantine_before: Option<Timestamp>,
}

impl MemoryStore {
    /// An empty store on the machine's clock.
    #[must_use]
    pub fn new() -> Self {
        Self::with_clock(Arc::new(SystemClock::new()))
    }

    /// An empty store on `clock`.
    #[must_use]
    pub fn with_clock(clock: Arc<dyn Clock>) -> Self {
        let clock = HighWater::new(clock, None);
        let born_at = clock.now().at;
        let [id, holder] = [drawn(), drawn()];
        Self {
            clock,
            id: format!("{:032x}", u128::from_be_bytes(id)),
            holder: Holder::from_bytes(holder),
            born_at,
            records_max: RECORDS_MAX,
            hashing: Hashing::default(),
            kept: Mutex::default(),
        }
    }

    /// The same store, keeping at most so many records: a claim beyond them is refused as `Busy`.
    #[must_use]
    pub const fn records_max(mut self, records_max: usize) -> Self {
        self.records_max = records_max;
        self
    }

    /// The store's clock, for `receipts clock accept`.
    #[must_use]
    pub const fn clock(&self) -> &HighWater {
        &self.clock
    }

    /// The one critical section. A panic of another thread cannot leave a half write: nothing in it panics.
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn apply(&self, swap: Swap) -> Result<Swapped, StoreError> {
        let hash = self.hashing.of(&swap.identity);
        let mut kept = self.kept();
        let now = self.clock.now();
        let stands = kept.rows.get(hash, &swap.identity);
        if !swap.expected.holds(stands.map(Arc::as_ref)) {
            return Ok(Swapped::Lost { stands: stands.cloned(), now });
        }
        if swap.not_after.is_some_and(|limit| now.at > limit) {
            return Ok(Swapped::TooLate { now });
        }
        let record = match swap.new {
            New::Claim(draft) => Some(Arc::new(draft.at(now.at, kept.quarantine_before))),
            New::Put(record) => Some(record),
            New::Delete => None,
        };
        match &record {
            Some(record) => {
                if swap.expected == Expected::Absent {
                    kept.make_room(self.records_max, now)?;
                }
                kept.rows.put(hash, swap.identity, record.clone());
            }
            None => kept.rows.remove(hash, &swap.identity),
        }
        if let Some(note) = swap.note {
            kept.append(Note::clone(&note));
        }
        Ok(Swapped::Won { record, now })
    }

    fn page(&self, query: &Query) -> Page {
        let kept = self.kept();
        let now = self.clock.now();
        let limit = query.limit.min(LIST_ROWS_MAX);
        let mut rows: Vec<Listed> = kept.rows.after(query.after, query.unsettled_only).take(limit + 1).collect();
        let more = rows.len() > limit;
        rows.truncate(limit);
        Page { rows, more, now }
    }

    /// Looks at a chunk of identities at a time, and at their digests outside the critical section.
    fn search(&self, text: &str, limit: usize) -> Vec<Listed> {
        let digits = text.to_ascii_lowercase();
        let is_prefix = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        let mut found = Vec::new();
        let mut after = 0;
        loop {
            let chunk = self.kept().rows.identities_after(after, SEARCH_CHUNK);
            let Some((last, ..)) = chunk.last() else { return found };
            after = *last;
            for (position, identity) in chunk {
                if found.len() == limit {
                    return found;
                }
                let by_digest = || is_prefix && identity.digest().to_hex().starts_with(&digits);
                if identity.key.as_str() != text && !by_digest() {
                    continue;
                }
                let record = self.kept().rows.get(self.hashing.of(&identity), &identity).cloned();
                if let Some(record) = record {
                    found.push(Listed {
                        position,
                        identity: Identity::clone(&identity),
                        record: Ok(Record::clone(&record)),
                    });
                }
            }
        }
    }

    fn describe(&self) -> About {
        let kept = self.kept();
        let now = self.clock.now();
        let (mut running, mut unknown, mut oldest) = (0, 0, None::<(Arc<Identity>, Timestamp)>);
        for (identity, record) in kept.rows.unsettled() {
            match record.standing(now) {
                Standing::Running { .. } => running += 1,
                Standing::Unknown { since, .. } => {
                    unknown += 1;
                    if oldest.as_ref().is_none_or(|(_, at)| since < *at) {
                        oldest = Some((identity.clone(), since));
                    }
                }
                Standing::Absent | Standing::Lapsed | Standing::Done { .. } | Standing::Expired { .. } => {}
            }
        }
        About {
            id: self.id.clone(),
            born_at: self.born_at,
            place: "memory: lost on restart".to_owned(),
            records: u64::try_from(kept.rows.len()).unwrap_or(u64::MAX),
            oldest_at: kept.rows.oldest_at(),
            oldest_unknown: oldest.map(|(identity, since)| (identity.digest(), since)),
            unknown,
            running,
            quarantine_before: kept.quarantine_before,
            promised_until: kept.rows.promised_until(),
            now,
        }
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl Kept {
    fn append(&mut self, note: Note) {
        if self.notes.len() == NOTES_MAX {
            self.notes.pop_front();
        }
        self.notes.push_back(note);
    }

    fn make_room(&mut self, records_max: usize, now: Now) -> Result<(), StoreError> {
        if self.rows.len() >= records_max {
            self.sweep(ROOM_SWEEP, now);
        }
        if self.rows.len() < records_max {
            return Ok(());
        }
        let detail = format!("the memory store keeps {records_max} records and is full: keep receipts for less time");
        Err(StoreError::not_applied(ErrorKind::Busy, detail))
    }

    /// Choosing and changing are one critical section, so nothing can come between them.
    fn sweep(&mut self, rows_max: usize, now: Now) -> Swept {
        let mut swept = Swept::default();
        let mut due = self.rows.due(now.expiry_at, rows_max.saturating_add(1));
        swept.more = due.len() > rows_max;
        due.truncate(rows_max);
        for (hash, identity) in due {
            let Some(record) = self.rows.get(hash, &identity) else { continue };
            let was_done = matches!(record.state, counterfoil_core::State::Done { .. });
            match action::sweep(record, now) {
                Some(Write::Delete) => self.rows.remove(hash, &identity),
                Some(Write::Put(record)) => self.rows.put(hash, Identity::clone(&identity), Arc::new(record)),
                Some(Write::Claim { .. }) | None => continue,
            }
            if was_done { swept.expired += 1 } else { swept.spent += 1 }
        }
        swept
    }
}

impl RecordStore for MemoryStore {
    fn now(&self) -> Now {
        self.clock.now()
    }

    fn holder(&self) -> Option<Holder> {
        Some(self.holder)
    }

    fn read<'a>(&'a self, identity: &'a Identity) -> Answer<'a, Seen> {
        Box::pin(async move {
            let hash = self.hashing.of(identity);
            let kept = self.kept();
            Ok(Seen { record: kept.rows.get(hash, identity).cloned(), now: self.clock.now() })
        })
    }

    fn swap(&self, swap: Swap) -> Answer<'_, Swapped> {
        Box::pin(async move { self.apply(swap) })
    }

    fn list(&self, query: Query) -> Answer<'_, Page> {
        Box::pin(async move { Ok(self.page(&query)) })
    }

    fn find<'a>(&'a self, prefix: &'a str, limit: usize) -> Answer<'a, Vec<Listed>> {
        Box::pin(async move { Ok(self.search(prefix, limit.min(LIST_ROWS_MAX))) })
    }

    fn sweep(&self, rows_max: usize) -> Answer<'_, Swept> {
        Box::pin(async move {
            let mut kept = self.kept();
            if self.clock.doubt().is_some() {
                return Ok(Swept { stopped: true, ..Swept::default() });
            }
            let now = self.clock.now();
            Ok(kept.sweep(rows_max, now))
        })
    }

    fn history<'a>(&'a self, identity: &'a Identity) -> Answer<'a, Vec<Note>> {
        Box::pin(async move {
            let kept = self.kept();
            let newest = kept.notes.iter().rev().filter(|note| note.identity == *identity).take(HISTORY_MAX);
            let mut notes: Vec<Note> = newest.cloned().collect();
            notes.reverse();
            Ok(notes)
        })
    }

    fn note(&self, note: Note) -> Answer<'_, ()> {
        Box::pin(async move {
            self.kept().append(note);
            Ok(())
        })
    }

    fn set_quarantine(&self, before: Option<Timestamp>) -> Answer<'_, ()> {
        Box::pin(async move {
            self.kept().quarantine_before = before;
            Ok(())
        })
    }

    fn about(&self) -> Answer<'_, About> {
        Box::pin(async move { Ok(self.describe()) })
    }

    fn health(&self) -> Result<(), StoreError> {
        match self.clock.doubt() {
            Some(doubt) => Err(StoreError::not_applied(ErrorKind::Unavailable, doubt.to_string())),
            None => Ok(()),
        }
    }
}

/// Random bytes that name a store or a holder; nothing secret, and it cannot fail.
fn drawn() -> [u8; 16] {
    let half = || u128::from(RandomState::new().hash_one(0));
    (half() << 64 | half()).to_be_bytes()
}

#[cfg(test)]
mod tests;
