//! What a store keeps under an identity. How it changes belongs to `action`, how it is stored to `store`.

mod bytes;

use std::fmt;
use std::time::Duration;

use crate::fingerprint::Fingerprint;
use crate::policy::Effect;
use crate::receipt::Receipt;
use crate::time::{Now, Timestamp};

pub use self::bytes::{FORMAT_NEWEST, decode, encode};

/// A random 128-bit name of one right to run, never used again, also not after *absent*.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseId([u8; 16]);

impl LeaseId {
    /// From 16 bytes that the caller drew from the operating system's randomness.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Its bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl fmt::Display for LeaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for LeaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The process that holds leases: a random name made when it opened its store.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Holder([u8; 16]);

impl Holder {
    /// From 16 random bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Its bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The right to run, until a time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lease {
    /// Its name, which guards every later write.
    pub id: LeaseId,
    /// The process that holds it; `None` where the store cannot tell processes apart, or this one is known to be gone.
    pub holder: Option<Holder>,
    /// When it was claimed or last renewed.
    pub renewed_at: Timestamp,
    /// How long a claim or renewal lasts; zero once the process that held it is known to be gone.
    pub span: Duration,
    /// Until when it is live: `renewed_at + span`, or earlier where it was ended.
    pub until: Timestamp,
    /// After this nothing of this run can still be sent.
    pub attempt_until: Timestamp,
}

impl Lease {
    /// Whether the process that held it is known to be gone, so that nobody runs under it any more.
    #[must_use]
    pub const fn is_ended(&self) -> bool {
        self.holder.is_none() && self.span.is_zero()
    }
}

/// Why an outcome is unknown.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Why {
    /// The lease ran out without an end.
    Lapsed,
    /// The owner said so: time-out, truncated answer, panic, shutdown.
    Doubted,
    /// An operation declared as coupled answered without committing its receipt.
    AnsweredWithoutSettle,
    /// The upstream's window for the child key has closed.
    WindowClosed,
    /// The store was restored from a backup, and the key may have been used after it was taken.
    Quarantined,
}

impl Why {
    /// The word that lists, metrics and problem documents show.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Lapsed => "lapsed",
            Self::Doubted => "doubted",
            Self::AnsweredWithoutSettle => "answered-without-settle",
            Self::WindowClosed => "window-closed",
            Self::Quarantined => "quarantined",
        }
    }
}

/// Who wrote a receipt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Author {
    /// The lease's owner.
    Owner,
    /// An operator, by `resolve`.
    Operator,
}

/// Where a record is in its life.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum State {
    /// Somebody runs it, or ran it and left.
    Running,
    /// Nobody knows whether the effect happened.
    Unknown {
        /// Since when.
        since: Timestamp,
        /// And why.
        why: Why,
    },
    /// It happened, and this is the result.
    Done {
        /// The result.
        receipt: Receipt,
        /// Who wrote it.
        author: Author,
        /// When.
        completed_at: Timestamp,
        /// Live before this instant, gone at it.
        expires_at: Timestamp,
        /// Where the expired key is refused: until when. `None`: the expired key names a new action.
        refuse_until: Option<Timestamp>,
    },
    /// The receipt has expired, and the key is refused until `until`.
    ///
    /// An action that runs by child keys is never absent once it was claimed: this row stays for ever, also after a
    /// release or an operator's word, and tells the next claim its generation.
    Spent {
        /// Refused before this instant, absent at it.
        until: Timestamp,
    },
}

/// How much earlier than the upstream's window ends the last run must be over, at least; one run's limit where that is
/// longer. It covers what is still under way when a connection is dropped, and clocks that differ.
const MARGIN_LEAST: Duration = Duration::from_mins(5);

/// What is kept of an action whose upstream has its effect once for each child key (PROTOCOL section 6, row 3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Keyed {
    /// Which child key its runs send, from 0; in [`State::Spent`] which one the next run will. Unchanged by retries,
    /// take-overs, releases and doubts.
    pub generation: u32,
    /// How long the upstream remembers a child key, from its first send.
    pub window: Duration,
    /// How long one run may send.
    pub attempt_limit: Duration,
    /// Whether a run of this generation may have reached the upstream, and what came of it was not heard.
    pub doubt: bool,
}

impl Keyed {
    /// What a version that kept nothing of it is read as: no window is known, so nothing is sent again.
    pub(crate) const UNWRITTEN: Self =
        Self { generation: 0, window: Duration::ZERO, attempt_limit: Duration::ZERO, doubt: true };

    /// How long after a child key's first send a run with it may begin, so that everything of that run has arrived while
    /// the upstream still remembers: window - margin - one run's limit.
    #[must_use]
    pub fn sends_for(&self) -> Duration {
        let margin = MARGIN_LEAST.max(self.attempt_limit);
        self.window.saturating_sub(margin).saturating_sub(self.attempt_limit)
    }

    /// The next generation, of which nothing is known.
    #[must_use]
    pub const fn next(self) -> Self {
        Self { generation: self.generation.saturating_add(1), doubt: false, ..self }
    }
}

/// What a store keeps under an identity.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Record {
    /// Rises with every write, from 1; guards writes only together with the lease's id, because it restarts after
    /// *absent*.
    pub version: u64,
    /// What was asked.
    pub fingerprint: Fingerprint,
    /// Where the effect lives, as the claim declared it.
    pub effect: Effect,
    /// What is kept beside it for child keys: with [`Effect::KeyedUpstream`], and never without.
    pub keyed: Option<Keyed>,
    /// When the action was first claimed.
    pub claimed_at: Timestamp,
    /// The last right to run; kept in every state, so that late calls can be told apart.
    pub lease: Lease,
    /// Where it is in its life.
    pub state: State,
}

/// What a record is at a given time: what lists and metrics show, and what every decision starts from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Standing<'r> {
    /// Expired: as if nothing were there.
    Absent,
    /// Its lease is live.
    Running {
        /// Until when.
        until: Timestamp,
    },
    /// Its lease is over, and the next claim may take it over, because the effect cannot be half done.
    Lapsed,
    /// Nobody knows.
    Unknown {
        /// Since when.
        since: Timestamp,
        /// And why.
        why: Why,
    },
    /// The result stands.
    Done {
        /// The result.
        receipt: &'r Receipt,
        /// Live before this instant.
        expires_at: Timestamp,
    },
    /// Expired, and the key is refused.
    Expired {
        /// Until when.
        until: Timestamp,
    },
}

impl Standing<'_> {
    /// The word that lists and metrics show.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Absent => "absent",
            Self::Running { .. } => "running",
            Self::Lapsed => "lapsed",
            Self::Unknown { .. } => "unknown",
            Self::Done { .. } => "done",
            Self::Expired { .. } => "expired",
        }
    }
}

impl Record {
    /// What this record is at `now`.
    #[must_use]
    pub fn standing(&self, now: Now) -> Standing<'_> {
        match &self.state {
            State::Running if now.at < self.lease.until => Standing::Running { until: self.lease.until },
            State::Running => match (self.effect, self.closed_at(now.at)) {
                // It may have been sent, and the upstream may have forgotten it.
                (Effect::KeyedUpstream, Some(closed)) => {
                    Standing::Unknown { since: closed.max(self.lease.until), why: Why::WindowClosed }
                }
                (Effect::Coupled | Effect::KeyedUpstream, _) => Standing::Lapsed,
                (Effect::Other, _) => Standing::Unknown { since: self.lease.until, why: Why::Lapsed },
            },
            State::Unknown { since, why } => Standing::Unknown { since: *since, why: *why },
            State::Done { receipt, expires_at, .. } if now.expiry_at < *expires_at => {
                Standing::Done { receipt, expires_at: *expires_at }
            }
            State::Done { refuse_until: Some(until), .. } | State::Spent { until } if now.expiry_at < *until => {
                Standing::Expired { until: *until }
            }
            State::Spent { .. } if self.keyed.is_some_and(|keyed| keyed.doubt) => match self.closed_at(now.at) {
                Some(since) => Standing::Unknown { since, why: Why::WindowClosed },
                None => Standing::Absent,
            },
            State::Done { .. } | State::Spent { .. } => Standing::Absent,
        }
    }

    /// When this generation's child key was sent first, or an instant before it: its first claim. `None` where there are no
    /// child keys, or the next one was not sent yet.
    #[must_use]
    pub const fn first_run(&self) -> Option<Timestamp> {
        match (self.keyed, &self.state) {
            (None, _) | (Some(Keyed { doubt: false, .. }), State::Spent { .. }) => None,
            (Some(_), State::Running | State::Unknown { .. } | State::Done { .. } | State::Spent { .. }) => {
                Some(self.claimed_at)
            }
        }
    }

    /// The first instant at which its child key is not sent any more; `None` where [`Self::first_run`] is.
    #[must_use]
    pub fn sends_until(&self) -> Option<Timestamp> {
        Some(self.first_run()?.plus(self.keyed?.sends_for()))
    }

    /// [`Self::sends_until`], where that is over.
    #[must_use]
    pub fn closed_at(&self, now: Timestamp) -> Option<Timestamp> {
        self.sends_until().filter(|until| *until <= now)
    }

    /// From its completion to the end of all that it promises, a refusal of the expired key included, in milliseconds;
    /// `None` where nothing is promised. A quarantine may not be lifted sooner than the longest of these.
    #[must_use]
    pub fn promised_ms(&self) -> Option<i64> {
        match &self.state {
            State::Done { completed_at, expires_at, refuse_until, .. } => {
                let span = refuse_until.unwrap_or(*expires_at).since(*completed_at).as_millis();
                Some(i64::try_from(span).unwrap_or(i64::MAX))
            }
            State::Running | State::Unknown { .. } | State::Spent { .. } => None,
        }
    }

    /// The instant from which a sweep may change this record; `None` for Running and Unknown, which it never does, and the
    /// end of time for what is spent and kept for ever.
    #[must_use]
    pub const fn sweep_at(&self) -> Option<Timestamp> {
        match &self.state {
            State::Running | State::Unknown { .. } => None,
            State::Done { expires_at, .. } => Some(*expires_at),
            State::Spent { .. } if self.keyed.is_some() => Some(Timestamp::MAX),
            State::Spent { until } => Some(*until),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
