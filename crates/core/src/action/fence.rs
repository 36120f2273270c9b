//! Coupling by permit (PROTOCOL section 6, row 2): an application settles a record in a transaction of its own, and
//! whoever forwarded the request concludes from what then stands.
//!
//! A store judges [`hold`] and [`settle`] in the application's language and is tested against these. What does not belong
//! here: transactions and locks (the stores), and what the caller is told (`middleware`).

use std::time::Duration;

use super::transition::{ended, guarded};
use super::{Completed, Refused, Write, complete, doubt, release};
use crate::policy::{Expiry, Hold};
use crate::receipt::Receipt;
use crate::record::{Author, LeaseId, Record, State, Why};
use crate::time::Timestamp;

/// Whether a transaction that shows `lease` may go on: its run is not over, or only its answer came too early.
///
/// # Errors
/// [`Refused`] where the lease is not this one's any more, the run has an end, or it was never let run.
pub fn hold(record: Option<&Record>, lease: LeaseId) -> Result<&Record, Refused> {
    let record = guarded(record, lease)?;
    match &record.state {
        State::Running | State::Unknown { why: Why::AnsweredWithoutSettle, .. } => Ok(record),
        State::Unknown { why: Why::Lapsed | Why::Doubted | Why::WindowClosed | Why::Quarantined, .. } => {
            Err(Refused::Unknown)
        }
        State::Done { author: Author::Owner, .. } => Err(Refused::Done),
        State::Done { author: Author::Operator, .. } => Err(Refused::SettledByOperator),
        State::Spent { .. } => Err(Refused::Expired),
    }
}

/// The record with its result, written with the effect in one transaction. A second one in another transaction is no
/// repeat but a second effect, and is refused.
///
/// # Errors
/// As [`hold`].
pub fn settle(
    record: Option<&Record>,
    lease: LeaseId,
    receipt: Receipt,
    retention: Duration,
    expiry: Expiry,
    now: Timestamp,
) -> Result<Record, Refused> {
    let record = hold(record, lease)?;
    match complete(Some(record), lease, receipt, retention, expiry, now)? {
        Completed::Write(done) => Ok(done),
        Completed::Already => Err(Refused::Done),
    }
}

/// What was heard of a run that was forwarded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Heard {
    /// An answer of 2xx or 3xx.
    Success,
    /// An answer of 4xx or 5xx.
    Failure,
    /// No answer: time-out, reset, an answer that broke off, a stop of ours.
    Nothing,
    /// It was certainly not sent.
    NotSent,
}

/// What a run came to, whatever was answered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Concluded {
    /// Effect and receipt are committed: the record answers.
    Done {
        /// The result.
        receipt: Receipt,
        /// Live before this instant.
        expires_at: Timestamp,
    },
    /// Another lease stands: this run can no longer commit.
    Superseded,
    /// Nobody knows: the record is gone or in doubt already.
    InDoubt,
    /// It answered success and committed no receipt.
    WithoutSettle,
    /// The key is free: what this run may still try to commit is refused.
    Released,
    /// Its lease is over, and the next claim takes over; until then it may still commit.
    Ended,
}

/// Concludes a run under `lease` from what stands and what was `heard`. The write, where there is one, must win before
/// the conclusion holds.
#[must_use]
pub fn conclude(
    record: Option<&Record>,
    lease: LeaseId,
    heard: Heard,
    hold: Hold,
    now: Timestamp,
) -> (Concluded, Option<Write>) {
    let Some(record) = record else { return (Concluded::InDoubt, None) };
    if record.lease.id != lease {
        return (Concluded::Superseded, None);
    }
    match &record.state {
        State::Running => {}
        State::Done { receipt, expires_at, .. } => {
            return (Concluded::Done { receipt: receipt.clone(), expires_at: *expires_at }, None);
        }
        State::Unknown { .. } | State::Spent { .. } => return (Concluded::InDoubt, None),
    }
    match (heard, hold) {
        // Nothing was committed without a receipt, so a take-over heals it.
        // An end is written also where it is over already: the write shows that nobody's transaction has the record locked.
        (Heard::Success, Hold::Always) => (Concluded::WithoutSettle, Some(Write::Put(ended(record, now)))),
        (Heard::Success, Hold::Optional) => {
            let doubted = doubt(Some(record), lease, Why::AnsweredWithoutSettle, now);
            (Concluded::WithoutSettle, doubted.ok().flatten().map(Write::Put))
        }
        (Heard::Failure | Heard::NotSent, _) => (Concluded::Released, release(Some(record), lease, now).ok()),
        (Heard::Nothing, _) => (Concluded::Ended, Some(Write::Put(ended(record, now)))),
    }
}
