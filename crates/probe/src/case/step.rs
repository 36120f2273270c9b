//! What a case does, step by step.
//!
//! What does not belong here: how a step is done (`round.rs`).

use serde::Deserialize;

use super::request::Request;

/// One thing that is done.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", rename_all_fields = "kebab-case", deny_unknown_fields)]
pub enum Step {
    /// One request, and its answer awaited.
    Send(Request),
    /// One request; the next step does not wait for its answer.
    Start(Request),
    /// Awaits what `start` began.
    Finish {
        /// The name of the request.
        of: String,
    },
    /// All at once: each request but its last byte is sent, then all last bytes.
    Together {
        /// Each of them.
        sends: Vec<Request>,
        /// How often each of them is sent.
        times: u32,
    },
    /// Awaits what `start` began, no longer than the patience that the settings say; it goes on where no answer came.
    Await {
        /// The name of the request.
        of: String,
    },
    /// A command of the settings.
    Hook(Hook),
    /// The same request again and again, until the answer has another status than these.
    Until {
        /// The request.
        send: Request,
        /// Statuses that mean "not yet".
        not: Vec<u16>,
        /// At most so many requests, spread over the patience that the settings say.
        tries: u32,
    },
    /// Nothing, for so long.
    Wait {
        /// Milliseconds.
        ms: u64,
    },
    /// Effects are counted here, so that a fact can say "since" and "until".
    Mark {
        /// The name of this point.
        r#as: String,
    },
}

/// A command of the settings, with what it is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(tag = "run", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Hook {
    /// Ends the target in order and starts it again.
    Restart,
    /// Ends the target at once and starts it again.
    Kill,
    /// Moves the target's clock forward.
    Clock {
        /// Seconds.
        seconds: Option<u64>,
        /// Hundredths of the window for which keys are kept.
        percent: Option<u64>,
    },
    /// Puts the target into a state.
    State {
        /// The state.
        to: State,
    },
}

/// What a target can be put into.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// As it should be; what was held goes on.
    None,
    /// Requests that run have had their effect, and do not end before the next state.
    Held,
    /// The next requests fail with 500, without an effect.
    FailBefore,
    /// The next requests fail with 500, after their effect.
    FailAfter,
    /// The next requests are refused for the rate.
    Limited,
    /// What keeps the keys is out of reach.
    StoreDown,
    /// Results are thrown away; the keys stay.
    Purged,
    /// Writes that were not synced are lost, and it is started again.
    PowerCut,
    /// A copy of what it keeps is put away.
    BackedUp,
    /// That copy is put back.
    Restored,
}

impl State {
    /// Its name, as the command is told.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Held => "held",
            Self::FailBefore => "fail-before",
            Self::FailAfter => "fail-after",
            Self::Limited => "limited",
            Self::StoreDown => "store-down",
            Self::Purged => "purged",
            Self::PowerCut => "power-cut",
            Self::BackedUp => "backed-up",
            Self::Restored => "restored",
        }
    }
}

impl Step {
    /// The requests that it sends.
    pub(crate) fn sends(&self) -> &[Request] {
        match self {
            Self::Send(send) | Self::Start(send) | Self::Until { send, .. } => std::slice::from_ref(send),
            Self::Together { sends, .. } => sends,
            Self::Finish { .. } | Self::Await { .. } | Self::Hook(_) | Self::Wait { .. } | Self::Mark { .. } => &[],
        }
    }

    /// How many requests it sends at most, and how many effects they have on a target that keeps no promise.
    pub(crate) fn most(&self) -> (u32, u32) {
        let count = u32::try_from(self.sends().len()).unwrap_or(u32::MAX);
        match self {
            Self::Together { times, .. } => (count.saturating_mul(*times), count.saturating_mul(*times)),
            // A loop ends with the first success.
            Self::Until { tries, .. } => (*tries, 1),
            Self::Send(_) | Self::Start(_) => (count, count),
            Self::Finish { .. } | Self::Await { .. } | Self::Hook(_) | Self::Wait { .. } | Self::Mark { .. } => (0, 0),
        }
    }

    pub(crate) fn mark(&self) -> Option<&str> {
        if let Self::Mark { r#as } = self { Some(r#as) } else { None }
    }
}
