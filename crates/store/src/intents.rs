//! The seam of a journal: what a store must be able to do for intents, which callers keep before they send.
//!
//! An intent in the caller's own file and one in the application's database are the same record in two homes. No rule
//! lives here: what becomes of an intent is decided in `core::intent`, and when to look again in the client.

use counterfoil_core::Timestamp;
use counterfoil_core::intent::{Draft, Intent, Name, Outbound, Recorded, decode};
use counterfoil_core::profile::Profile;
use counterfoil_core::{Error, Identity};

use crate::error::{ErrorKind, StoreError};
use crate::seam::{Answer, RecordStore};

/// The most intents of one page, or of one look for what is due.
pub const INTENTS_MAX: usize = 1_000;

/// A place where intents are kept, beside records and on their clock.
///
/// A future that is dropped before it is ready may or may not have applied its write.
pub trait IntentStore: RecordStore {
    /// What stands under `name`.
    fn intent<'a>(&'a self, name: &'a Name) -> Answer<'a, Option<Intent>>;

    /// The one conditional write: `intent` in the place of the version `before`, or with `None` where nothing has its
    /// name. Durable before it answers.
    ///
    /// Losing is a value. Where an error says that it is unknown whether it was applied, send the same again: what
    /// stands then is `intent` itself.
    fn put(&self, before: Option<u64>, intent: Intent) -> Answer<'_, Put>;

    /// Intents about which somebody has to do something by now, the longest waiting first, at most `limit`; those behind
    /// `after`, where a look before ended.
    fn due(&self, after: Option<Turn>, limit: usize) -> Answer<'_, Due>;

    /// Intents in the order of their making, a page at a time.
    fn intents(&self, after: u64, limit: usize) -> Answer<'_, IntentPage>;

    /// Removes exactly this version; whether it did.
    fn forget<'a>(&'a self, name: &'a Name, version: u64) -> Answer<'a, bool>;

    /// What applications asked for in words that are no intent yet, the oldest first, at most `limit`; `again`: also what
    /// could not become one before, behind this position. Only stores that such applications can reach have any.
    fn letters(&self, again: Option<u64>, limit: usize) -> Answer<'_, Vec<Letter>> {
        let _ = (again, limit);
        Box::pin(async { Ok(Vec::new()) })
    }

    /// Makes an intent of a letter, in one transaction: then the letter is gone, and never before. Where its name is
    /// taken, nothing is changed.
    fn open_letter<'a>(&'a self, id: u64, outbound: &'a Outbound, profile: &'a Profile) -> Answer<'a, Recorded> {
        let _ = (id, outbound, profile);
        Box::pin(async { Err(StoreError::not_applied(ErrorKind::Misuse, "this store has no letters")) })
    }

    /// Notes why a letter cannot become an intent. It is kept.
    fn refuse_letter<'a>(&'a self, id: u64, why: &'a str) -> Answer<'a, ()> {
        let _ = (id, why);
        Box::pin(async { Err(StoreError::not_applied(ErrorKind::Misuse, "this store has no letters")) })
    }
}

/// What an application left behind by a call in its own language.
#[derive(Clone, Debug)]
pub struct Letter {
    /// Its position.
    pub id: u64,
    /// The name that it was given.
    pub name: String,
    /// What it asks for, or what is wrong with it.
    pub asks: Result<(Draft, Option<Identity>), Error>,
    /// Why it could not become an intent before.
    pub refused: Option<String>,
}

/// What became of a write.
#[derive(Clone, PartialEq, Eq, Debug)]
#[expect(clippy::large_enum_variant, reason = "made once for each write, and taken apart at once")]
pub enum Put {
    /// It is durable.
    Won,
    /// This stands instead; `None`: nothing has the name.
    Lost(Option<Intent>),
}

/// The place of an intent among those that are due.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Turn {
    pub(crate) due_at: i64,
    pub(crate) id: i64,
}

impl Turn {
    /// Before all others.
    pub(crate) const FIRST: Self = Self { due_at: i64::MIN, id: 0 };
}

/// What is due.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Due {
    /// The intents.
    pub intents: Vec<Intent>,
    /// Where the next look goes on; `None`: no more were due.
    pub more: Option<Turn>,
    /// When the next one is, behind those.
    pub next: Option<Timestamp>,
}

/// A page of intents.
#[derive(Debug)]
pub struct IntentPage {
    /// Each with its position; what cannot be read is an error in its place.
    pub rows: Vec<(u64, Result<Intent, counterfoil_core::Error>)>,
    /// Whether there are more behind the last position.
    pub more: bool,
}

/// The intent in `bytes`, if they can be read and agree with the column that guards it.
pub(crate) fn believed(version: i64, bytes: &[u8]) -> Result<Intent, Error> {
    let intent = decode(bytes)?;
    let agrees = i64::try_from(intent.version) == Ok(version);
    if agrees { Ok(intent) } else { Err(Error::Corrupt("its guard disagrees with it")) }
}

/// The core's error with the name of what it is about.
pub(crate) fn named(error: Error, name: &Name) -> StoreError {
    let error = StoreError::from(error);
    StoreError { detail: format!("intent {}: {}", name.as_str(), error.detail), ..error }
}
