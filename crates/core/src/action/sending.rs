//! Whether a run with a child key may be sent (PROTOCOL section 6, row 3), asked immediately before each send.
//!
//! What does not belong here: the child key itself (`child`), and what is written where it may not (`release`, `doubt`).

use crate::policy::Effect;
use crate::record::{LeaseId, Record, State};
use crate::time::Timestamp;

/// Whether something may be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sending {
    /// It may.
    Go,
    /// The lease is over, another's, or the run has an end: somebody else may be at it.
    NotOurs,
    /// It would arrive when the upstream may have forgotten the child key. Where an earlier send `may_have_arrived` nobody
    /// knows what came of it; else nothing was sent, and the key is released.
    WindowClosed {
        /// Whether an earlier send may have reached the upstream.
        may_have_arrived: bool,
    },
}

/// Whether the run under `lease` may send at `now`: the lease is its own and live, and whatever it sends is over while the
/// upstream still remembers the child key. An effect without child keys has no window.
#[must_use]
pub fn may_send(record: Option<&Record>, lease: LeaseId, now: Timestamp) -> Sending {
    let Some(record) = record.filter(|record| record.lease.id == lease) else { return Sending::NotOurs };
    match &record.state {
        State::Running if now < record.lease.until => match (record.keyed, record.closed_at(now)) {
            (Some(keyed), Some(_)) => Sending::WindowClosed { may_have_arrived: keyed.doubt },
            (Some(_) | None, None) | (None, Some(_)) => Sending::Go,
        },
        State::Running | State::Unknown { .. } | State::Done { .. } | State::Spent { .. } => Sending::NotOurs,
    }
}

/// Whether a claim with `effect` would forget which child keys `record` has used. Such a claim is refused: without them the
/// same action could be had twice from the upstream.
#[must_use]
pub fn leaves_upstream(record: Option<&Record>, effect: Effect) -> bool {
    effect != Effect::KeyedUpstream && record.is_some_and(|record| record.keyed.is_some())
}
