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
    Spent {
        /// Refused before this instant, absent at it.
        until: Timestamp,
    },
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
            State::Running => match self.effect {
                Effect::Coupled | Effect::KeyedUpstream => Standing::Lapsed,
                Effect::Other => Standing::Unknown { since: self.lease.until, why: Why::Lapsed },
            },
            State::Unknown { since, why } => Standing::Unknown { since: *since, why: *why },
            State::Done { receipt, expires_at, .. } if now.expiry_at < *expires_at => {
                Standing::Done { receipt, expires_at: *expires_at }
            }
            State::Done { refuse_until: Some(until), .. } | State::Spent { until } if now.expiry_at < *until => {
                Standing::Expired { until: *until }
            }
            State::Done { .. } | State::Spent { .. } => Standing::Absent,
        }
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

    /// The instant from which a sweep may change this record; `None` for Running and Unknown, which it never does.
    #[must_use]
    pub const fn sweep_at(&self) -> Option<Timestamp> {
        match &self.state {
            State::Running | State::Unknown { .. } => None,
            State::Done { expires_at, .. } => Some(*expires_at),
            State::Spent { until } => Some(*until),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
