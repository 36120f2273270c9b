//! A provider's contract as data: how the key travels, how long it is remembered, what each answer means.
//!
//! What a provider does not say is absent here, and absent means *unknown*: it is never filled in from another
//! provider. Reading the files belongs to the client; what follows for an intent to `intent`.

pub mod key;
mod matching;
mod read;
mod recipe;

use std::ops::RangeInclusive;
use std::time::Duration;

pub use self::key::{Carrier, Encoding, Format, Generator, KeyFault, KeyRule};
pub use self::read::{Executed, Proof, Reading, Reason, Verdict, read, reading};
pub use self::recipe::Question;
pub(crate) use self::recipe::encoded;

/// What a provider promises to one group of its operations.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Profile {
    /// Its stable name: `stripe-v1`.
    pub id: String,
    /// Rises whenever a promise in it changes; an intent freezes it.
    pub version: u32,
    /// What it covers, for a person.
    pub title: String,
    /// Where its facts are from, at least one.
    pub sources: Vec<Source>,
    /// What is worth knowing and no rule says.
    pub notes: Vec<String>,
    /// How the key travels and what it may be.
    pub key: KeyRule,
    /// Methods that are said to honour a key; empty: not said.
    pub methods: Vec<String>,
    /// What a key is unique within; empty: not said.
    pub scope: Vec<String>,
    /// How long a key is remembered at the least; `None`: not said.
    pub window: Option<Window>,
    /// What the provider asks to wait before anything is sent again; zero: not said.
    pub wait_min: Duration,
    /// What marks an answer as coming from the record.
    pub marker: Option<Marker>,
    /// The header by which the provider itself says whether to try again.
    pub advice: Option<Advice>,
    /// What is said to be remembered, for a person; absent classes are not said.
    pub remembers: Vec<(String, Remembers)>,
    /// What answers mean; the first that fits holds. Where none fits, HTTP's own meaning does, which proves nothing.
    pub answers: Vec<AnswerRule>,
    /// How to ask what became of an action.
    pub lookup: Option<Recipe>,
    /// How to see to it that an action does not happen any more.
    pub cancel: Option<Recipe>,
}

/// Where a fact is from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Source {
    /// A page, or a file of a provider's own repository.
    pub at: String,
    /// When it was checked last: `2026-10-31`.
    pub checked: String,
    /// How sure it is.
    pub confidence: Confidence,
}

/// How sure a fact is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Confidence {
    /// Read in the owner's own page, description or code.
    Read,
    /// Seen in part, or told by a good second source.
    Partly,
    /// Not confirmed.
    Recalled,
}

/// How long a key is remembered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Window {
    /// At the least so long; `None`: for ever.
    pub span: Option<Duration>,
    /// What it is counted from. The deadline is counted from the first send, which is never later.
    pub from: Basis,
    /// What a key does after it.
    pub after: AfterWindow,
}

/// What a window is counted from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Basis {
    /// The client's own word, sent along.
    FirstSent,
    /// The first request that the provider saw.
    FirstSeen,
    /// The completion of the action.
    Completed,
    /// The last request that it saw.
    LastSeen,
    /// Not said.
    Unknown,
}

/// What a key does after its window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AfterWindow {
    /// It names a new action.
    NewAction,
    /// It is refused, and nothing is done.
    Refused,
    /// Not said.
    Unknown,
}

/// Whether a class of answers is remembered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Remembers {
    /// It is, and comes back.
    Stored,
    /// It is not: the same key is processed again.
    NotStored,
    /// It depends on what the answer says.
    Depends,
}

/// A header that marks answers from the record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Marker {
    /// Its name, in lower case.
    pub header: String,
    /// The value that says so; `None`: any.
    pub value: Option<String>,
}

/// A header by which the provider says whether to try again. It overrules the meaning of the answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Advice {
    /// Its name, in lower case.
    pub header: String,
    /// The value that asks for another attempt with the same key.
    pub again: Option<String>,
    /// The value that says that none will help.
    pub stop: Option<String>,
}

/// One rule: which answers, and what they mean.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AnswerRule {
    /// Its name, for histories and tables.
    pub name: String,
    /// Statuses, both ends included.
    pub status: Vec<RangeInclusive<u16>>,
    /// A header that must be there: its name in lower case, and its value or, with `None`, any.
    pub header: Option<(String, Option<String>)>,
    /// What the body must say, all of it.
    pub body: Vec<BodyMatch>,
    /// What it means.
    pub means: Meaning,
    /// Whether only the provider's record of this key can have given it.
    pub record: bool,
    /// Where the body names what was made: a JSON pointer, in which `*` stands for any item.
    pub resource: Option<String>,
}

/// What a body must say.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BodyMatch {
    /// A JSON value at a pointer, in which `*` stands for any item, is one of these texts.
    Json {
        /// The pointer.
        at: String,
        /// The texts.
        is: Vec<String>,
    },
    /// The body holds this text somewhere, for bodies that are no JSON.
    Holds(String),
}

/// What an answer means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Meaning {
    /// The action is done, even where the status tells an error.
    Success,
    /// It is being done.
    InProgress,
    /// This request was certainly not processed, and the key can be used again.
    NotProcessed,
    /// It may have been processed: only the same key can tell.
    Unclear,
    /// The action was refused for good.
    Refused,
    /// A failure that the provider keeps, behind which the effect may stand.
    StoredFailure,
    /// The key is known with other parameters.
    Mismatch,
    /// The key is too old to be told from a new one.
    WindowClosed,
    /// The provider does not guard this request.
    Unguarded,
    /// Only a person can tell.
    Operator,
}

/// A question to the provider about an action whose outcome is not known.
///
/// In `url` and `body` stand `{url}` (the intent's own, without its query), `{origin}` (its scheme, host and port), `{key}`, and
/// `{resource}` (what an answer named).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Recipe {
    /// The method.
    pub method: String,
    /// The URL.
    pub url: String,
    /// The body, JSON.
    pub body: Option<String>,
    /// Which answers say that the action is done; empty: a person reads the answer.
    pub found: Vec<AnswerRule>,
    /// Which answers say that it is not, and for a cancellation that it no longer will be.
    pub absent: Vec<AnswerRule>,
    /// What a person should know before using it.
    pub note: String,
}

#[cfg(test)]
pub(crate) mod tests;
