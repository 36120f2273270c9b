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

impl Step {
    pub(crate) fn mark(&self) -> Option<&str> {
        if let Self::Mark { r#as } = self { Some(r#as) } else { None }
    }
}
