//! What became of an action, for whoever asked for it. An uncertain outcome is a value like the others and no error, so
//! that no `?` passes over it.

use counterfoil_core::intent::{Difference, Intent, Outcome as Settled, Settler, State};
use counterfoil_core::profile::Reason;
use counterfoil_core::{Receipt, Timestamp};

/// What became of an action.
#[derive(Clone, PartialEq, Eq, Debug)]
#[must_use = "an action whose outcome is uncertain must not be forgotten"]
pub enum Outcome {
    /// It is done.
    Succeeded {
        /// The answer that said so; `None` where a person or a look-up did without one.
        answer: Option<Receipt>,
    },
    /// It was refused for good, and is not done.
    Refused {
        /// The answer that said so.
        answer: Option<Receipt>,
    },
    /// It may have been done, and the same key will tell: deliver the same intent again.
    Uncertain {
        /// From when the next attempt may start.
        again_at: Timestamp,
        /// The last instant at which one may; `None`: there is no such end.
        last_start: Option<Timestamp>,
    },
    /// It may have been done, and no further attempt can tell: recover it, or resolve it.
    Overdue {
        /// Why.
        why: Reason,
    },
    /// It is not done so far: deliver the same intent again.
    NotDone {
        /// From when the next attempt may start.
        again_at: Timestamp,
    },
    /// It is not done, and the window in which it could be sent is over: a new action needs a new name.
    WindowClosed,
    /// Another worker sends it.
    InProgress {
        /// Until when at most.
        until: Timestamp,
    },
    /// The name stands for another request; nothing was sent.
    Mismatch(Vec<Difference>),
    /// A second action, or another key, was asked for while the first is not settled; nothing was sent.
    Blocked,
}

impl Outcome {
    /// What an intent has come to.
    pub fn of(intent: &Intent) -> Self {
        match &intent.state {
            State::Settled { by: Settler::NothingDone, .. } => Self::WindowClosed,
            State::Settled { outcome: Settled::Succeeded { answer }, .. } => Self::Succeeded { answer: answer.clone() },
            State::Settled { outcome: Settled::Refused { answer }, .. } => Self::Refused { answer: answer.clone() },
            State::Overdue { why, .. } => Self::Overdue { why: *why },
            State::Uncertain { until } => Self::Uncertain { again_at: *until, last_start: intent.last_start() },
            State::Waiting { until } => Self::NotDone { again_at: *until },
            State::Ready => Self::NotDone { again_at: intent.created_at },
            State::Sending { lease, .. } => Self::InProgress { until: lease.until },
        }
    }
}
