//! When an action may run, and how its record changes: each transition of PROTOCOL section 5 as one total function.
//!
//! Nothing is written here: a function answers what the record becomes, and `store::gate` writes it under the guard
//! of version and lease id. How stores write belongs to `store`; status codes to `middleware`.

mod fence;
mod sending;
mod transition;

use crate::claim::Claim;
use crate::fingerprint::Rule;
use crate::receipt::Receipt;
use crate::record::{Keyed, Record, Standing, State, Why};
use crate::time::{Now, Timestamp};

use self::transition::moved;

pub use self::fence::{Concluded, Heard, conclude, hold, settle};
pub use self::sending::{Sending, leaves_upstream, may_send};
pub use self::transition::{
    Completed, Confirmation, Refused, Verdict, complete, doubt, end_lease, release, renew, resolve, sweep,
};

/// The answer to a claim.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Decision {
    /// Run it; the write must succeed first.
    Execute,
    /// It is done: this is the result.
    Replay {
        /// The result.
        receipt: Receipt,
        /// Live before this instant.
        expires_at: Timestamp,
    },
    /// The key names an action with other parameters.
    Mismatch,
    /// Somebody runs it.
    InProgress {
        /// Until when their lease lasts.
        until: Timestamp,
    },
    /// Nobody knows whether it happened. It is not run again.
    Unknown {
        /// Since when.
        since: Timestamp,
        /// And why.
        why: Why,
    },
    /// The key was used, its receipt has expired, and the operation refuses old keys.
    Expired {
        /// Until when.
        until: Timestamp,
    },
    /// The record was made under another rule: call [`Claim::learn`] and decide again.
    NeedsFingerprint(Rule),
}

/// What must be written for a decision to hold.
#[derive(Clone, PartialEq, Eq, Debug)]
#[expect(clippy::large_enum_variant, reason = "made once for a decision and moved into the store's write")]
pub enum Write {
    /// The claim's [draft](crate::claim::Draft), in the place of what was read.
    Claim {
        /// The version it gets.
        version: u64,
        /// When the action was first claimed, where this continues one.
        claimed_at: Option<Timestamp>,
        /// What is kept for child keys of the record in whose place it comes, where there are any: of the run that is
        /// claimed.
        keyed: Option<Keyed>,
    },
    /// This record in the place of what was read.
    Put(Record),
    /// Nothing in the place of what was read.
    Delete,
}

/// Decides a claim on what a store holds. Order of judgement: expired, then fingerprint, then state.
///
/// The write, where there is one, belongs to the decision: an [`Decision::Execute`] holds only once its write won. A
/// lapsed run elsewhere is answered [`Decision::Unknown`], and its write only makes that visible in the store.
#[must_use]
pub fn decide(record: Option<&Record>, claim: &Claim, now: Now) -> (Decision, Option<Write>) {
    let Some(record) = record else {
        return (Decision::Execute, Some(Write::Claim { version: 1, claimed_at: None, keyed: None }));
    };
    let standing = record.standing(now);
    match standing {
        Standing::Absent => return (Decision::Execute, Some(claimed_after(record))),
        Standing::Expired { until } => return (Decision::Expired { until }, None),
        Standing::Running { .. } | Standing::Lapsed | Standing::Unknown { .. } | Standing::Done { .. } => {}
    }
    match claim.matches(&record.fingerprint) {
        None => return (Decision::NeedsFingerprint(record.fingerprint.rule().clone()), None),
        Some(false) => return (Decision::Mismatch, None),
        Some(true) => {}
    }
    match standing {
        Standing::Absent => (Decision::Execute, Some(claimed_after(record))),
        Standing::Expired { until } => (Decision::Expired { until }, None),
        Standing::Running { until } => (Decision::InProgress { until }, None),
        Standing::Lapsed => (Decision::Execute, Some(claimed_after(record))),
        Standing::Unknown { since, why } => {
            let seen = match record.state {
                State::Running | State::Spent { .. } => {
                    Some(Write::Put(moved(record, record.lease.clone(), State::Unknown { since, why })))
                }
                State::Unknown { .. } | State::Done { .. } => None,
            };
            (Decision::Unknown { since, why }, seen)
        }
        Standing::Done { receipt, expires_at } => (Decision::Replay { receipt: receipt.clone(), expires_at }, None),
    }
}

/// The claim that comes in the place of `record`, which is lapsed or as good as absent. A take-over goes on with the same
/// action, and so does a claim with a child key that may have been sent before: its window counts from then.
fn claimed_after(record: &Record) -> Write {
    let version = record.version.saturating_add(1);
    let (goes_on, keyed) = match (&record.state, record.keyed) {
        // Whoever lapsed may have sent.
        (State::Running | State::Unknown { .. }, keyed) => (true, keyed.map(|keyed| Keyed { doubt: true, ..keyed })),
        (State::Done { .. }, keyed) => (false, keyed.map(Keyed::next)),
        (State::Spent { .. }, keyed) => (keyed.is_some_and(|keyed| keyed.doubt), keyed),
    };
    Write::Claim { version, claimed_at: goes_on.then_some(record.claimed_at), keyed }
}

#[cfg(test)]
mod tests;
