//! A caller's durable note of an action, and its life from the first attempt to its outcome (PROTOCOL section 11).
//!
//! What does not belong here: what an answer means (`profile`), how long to wait (`schedule`), and keeping, sending or
//! waiting (the store and the client).

mod bytes;
mod header;
mod late;
mod machine;
mod outbound;
mod request;
mod terms;

use std::time::Duration;

use crate::error::Error;
use crate::identity::Key;
use crate::profile::{Profile, Proof, Reason, Verdict};
use crate::receipt::Receipt;
use crate::record::{Holder, Lease, LeaseId};
use crate::schedule::Jitter;
use crate::time::Timestamp;

pub use self::bytes::{FORMAT_NEWEST, decode, encode};
pub use self::header::{Header, Secret, SecretSource, Value};
pub use self::machine::{may_send, next};
pub use self::outbound::{Outbound, Recorded};
pub use self::request::{
    BODY_BYTES_MAX, Difference, Draft, HEADERS_MAX, NAME_BYTES_MAX, Name, ProfileRef, Request, URL_BYTES_MAX, origin,
};
pub use self::terms::{ASSUMED_WINDOW, ATTEMPT_LIMIT, Deadline, MARGIN_MIN, Promise, Terms};

/// The most attempts whose history is kept: the first, and the last ones.
pub const ATTEMPTS_KEPT_MAX: usize = 128;

/// A caller's durable note of one action.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Intent {
    /// Rises with every write, from 1.
    pub version: u64,
    /// What is sent, the same in every attempt.
    pub request: Request,
    /// What it holds itself to.
    pub terms: Terms,
    /// When it was written down.
    pub created_at: Timestamp,
    /// Since when the action may have been done without our knowing; cleared only by settling.
    pub doubt: Option<Timestamp>,
    /// When nothing may be sent any more; `None` while nothing can have reached the provider.
    pub deadline: Option<Deadline>,
    /// How many attempts there were.
    pub attempted: u32,
    /// How many of them may have reached the provider.
    pub reached: u32,
    /// The attempts, oldest first: the first and the last [`ATTEMPTS_KEPT_MAX`] less one.
    pub attempts: Vec<Attempt>,
    /// What an answer named as made, if one did.
    pub resource: Option<String>,
    /// An answer contradicts how it was settled: somebody has to look.
    pub alarm: bool,
    /// Where it is in its life.
    pub state: State,
}

/// One transmission.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Attempt {
    /// Its number, from 1.
    pub number: u32,
    /// The right under which it was sent.
    pub lease: LeaseId,
    /// When it was committed.
    pub started_at: Timestamp,
    /// After this nothing of it can still be sent.
    pub until: Timestamp,
    /// How it ended; `None` while it is under way.
    pub end: Option<AttemptEnd>,
}

/// How an attempt ended, as history shows it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AttemptEnd {
    /// Answered at that time with that status, which was read as that word.
    Answered {
        /// When.
        at: Timestamp,
        /// The status.
        status: u16,
        /// The verdict's words.
        verdict: String,
    },
    /// Nothing of it was sent.
    NotSent {
        /// When that was known.
        at: Timestamp,
    },
    /// It may have been sent, and no whole answer came.
    Uncertain {
        /// When.
        at: Timestamp,
    },
    /// Its lease ran out, or its process is gone.
    Lapsed,
}

/// Where an intent is in its life.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum State {
    /// Written down, and nothing was sent.
    Ready,
    /// A worker sends it.
    Sending {
        /// The attempt's number.
        attempt: u32,
        /// The worker's right, which lasts as long as the attempt may.
        lease: Lease,
    },
    /// Nothing was done by what was sent; the next attempt may start then.
    Waiting {
        /// When.
        until: Timestamp,
    },
    /// Something may have been done; the next attempt, with the same key, may start then.
    Uncertain {
        /// When.
        until: Timestamp,
    },
    /// Nothing is sent any more: a look-up or a person has to settle it.
    Overdue {
        /// Since when.
        since: Timestamp,
        /// Why no further attempt can tell.
        why: Reason,
    },
    /// Its outcome is known.
    Settled {
        /// The outcome.
        outcome: Outcome,
        /// Who said so.
        by: Settler,
        /// When.
        at: Timestamp,
    },
}

impl State {
    /// The word that lists and metrics show.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Sending { .. } => "sending",
            Self::Waiting { .. } => "waiting",
            Self::Uncertain { .. } => "uncertain",
            Self::Overdue { .. } => "overdue",
            Self::Settled { outcome, .. } => match outcome {
                Outcome::Succeeded { .. } => "succeeded",
                Outcome::Refused { .. } => "refused",
            },
        }
    }
}

/// How an action ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// It was done.
    Succeeded {
        /// The answer that said so, where there was one.
        answer: Option<Receipt>,
    },
    /// It was not done, and will not be.
    Refused {
        /// The answer that said so, where there was one.
        answer: Option<Receipt>,
    },
}

/// Who settled an intent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Settler {
    /// An answer to attempt `number`.
    Answer {
        /// Its number.
        number: u32,
        /// What it is worth.
        proof: Proof,
    },
    /// A recipe of the profile.
    LookUp,
    /// A person.
    Operator {
        /// Who.
        who: String,
        /// And why.
        why: String,
    },
    /// The window closed, and no attempt had done anything.
    NothingDone,
}

/// What happens to an intent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// Time has passed.
    Look,
    /// A worker wants to send, under a fresh random lease.
    Begin {
        /// The lease's name, never used before.
        lease: LeaseId,
        /// The worker's process.
        holder: Option<Holder>,
    },
    /// An attempt ended.
    Ended {
        /// Under which lease it was sent.
        lease: LeaseId,
        /// How.
        end: End,
        /// How long the provider asked to wait.
        told: Option<Duration>,
        /// A drawn number for the pause.
        jitter: Jitter,
    },
    /// A process is known to be gone.
    Gone(Holder),
    /// The provider was asked by a recipe.
    LookedUp {
        /// When the question was sent.
        asked_at: Timestamp,
        /// What it said.
        found: Found,
    },
    /// A person says what became of it.
    Resolved {
        /// The version that they saw.
        version: u64,
        /// What became of it.
        verdict: Resolution,
        /// Who.
        who: String,
        /// And why.
        why: String,
    },
}

/// How an attempt ended, as its worker knows it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum End {
    /// A whole answer came, and was read as `verdict` with the intent's doubt.
    Answered {
        /// The answer.
        answer: Receipt,
        /// What it means.
        verdict: Verdict,
        /// What it names as made.
        resource: Option<String>,
    },
    /// Certainly nothing was sent.
    NotSent,
    /// It may have been sent: time-out, reset, truncated answer.
    Uncertain,
}

/// What a look-up or a cancellation found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Found {
    /// The action is done.
    Done(Receipt),
    /// It is not, or a cancellation was taken.
    Absent,
    /// The provider did not say.
    Unclear,
}

/// A person's word.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Resolution {
    /// It happened, with this answer where there is one.
    Happened(Option<Receipt>),
    /// It did not happen and can no longer.
    DidNotHappen,
}

/// What follows from an event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    /// The intent as it must be written for this to hold; `None`: nothing changed.
    pub write: Option<Intent>,
    /// What to do.
    pub said: Said,
}

/// What whoever told an event has to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Said {
    /// Send it, once the write has won; nothing of it after `until`.
    Send {
        /// The attempt's number.
        attempt: u32,
        /// The end of its time limit.
        until: Timestamp,
    },
    /// The next attempt may start then.
    Wait {
        /// When.
        until: Timestamp,
    },
    /// Another worker sends it.
    InProgress {
        /// Until when its lease lasts.
        until: Timestamp,
    },
    /// Nothing is sent any more.
    Overdue {
        /// Why.
        why: Reason,
    },
    /// Its outcome is known.
    Settled,
    /// Nothing was sent yet.
    Ready,
    /// Kept as history; the intent stands as it stood.
    Noted,
    /// Kept as history, and it contradicts the outcome that was recorded.
    Alarm,
    /// Something of an attempt may still arrive until then, so *not done* cannot be said yet.
    TooEarly {
        /// Until when.
        until: Timestamp,
    },
    /// The word is about another version of the intent, or about an attempt that it does not know.
    Stale,
}

impl Draft {
    /// The intent that it is under `profile` with that key. It must be durable before anything is sent.
    ///
    /// # Errors
    /// As [`Draft::freeze`].
    pub fn intent(
        &self,
        key: &Key,
        profile: &Profile,
        window: Option<Duration>,
        attempt_limit: Duration,
        now: Timestamp,
    ) -> Result<Intent, Error> {
        let mut request = self.freeze(key, &profile.key.carrier)?;
        request.profile.version = profile.version;
        Ok(Intent::new(request, Terms::new(profile, window, attempt_limit), now))
    }
}

impl Intent {
    /// A new note. It must be durable before anything is sent.
    #[must_use]
    pub const fn new(request: Request, terms: Terms, now: Timestamp) -> Self {
        Self {
            version: 1,
            request,
            terms,
            created_at: now,
            doubt: None,
            deadline: None,
            attempted: 0,
            reached: 0,
            attempts: Vec::new(),
            resource: None,
            alarm: false,
            state: State::Ready,
        }
    }

    /// The last instant at which an attempt may start; `None` where there is no such end.
    #[must_use]
    pub fn last_start(&self) -> Option<Timestamp> {
        self.deadline.map(|deadline| deadline.until.minus(self.terms.attempt_limit))
    }

    /// From when on nothing that was sent can still arrive; `None` where nothing was.
    #[must_use]
    pub fn quiet_from(&self) -> Option<Timestamp> {
        let last = self.attempts.iter().map(|attempt| attempt.until).max();
        last.filter(|_| self.reached > 0).map(|until| until.plus(self.terms.margin()))
    }

    /// From when on the note may be purged: it is settled, and its window is over. `None`: not yet, or never.
    #[must_use]
    pub fn purge_from(&self) -> Option<Timestamp> {
        match &self.state {
            State::Settled { at, .. } => {
                let window = self.deadline.map_or(*at, |deadline| deadline.until.plus(self.terms.margin()));
                Some(window.max(*at))
            }
            State::Ready
            | State::Sending { .. }
            | State::Waiting { .. }
            | State::Uncertain { .. }
            | State::Overdue { .. } => None,
        }
    }

    /// From when on somebody has to do something about it; `None`: only a person may, or nobody has to.
    #[must_use]
    pub const fn due_at(&self) -> Option<Timestamp> {
        match &self.state {
            State::Ready => Some(self.created_at),
            State::Sending { lease, .. } => Some(lease.until),
            State::Waiting { until } | State::Uncertain { until } => Some(*until),
            State::Overdue { .. } | State::Settled { .. } => None,
        }
    }

    /// The process that sends it, if one does.
    #[must_use]
    pub const fn holder(&self) -> Option<Holder> {
        match &self.state {
            State::Sending { lease, .. } => lease.holder,
            State::Ready
            | State::Waiting { .. }
            | State::Uncertain { .. }
            | State::Overdue { .. }
            | State::Settled { .. } => None,
        }
    }

    /// Whether its window is only assumed, which whoever shows the intent has to say.
    #[must_use]
    pub const fn is_assumed(&self) -> bool {
        matches!(self.terms.window, Promise::Assumed)
    }
}

#[cfg(test)]
pub(crate) mod tests;
