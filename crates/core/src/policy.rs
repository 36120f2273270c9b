//! What an operation promises: spans, where its effect lives, what is remembered of its answers.
//! How a configuration file spells it belongs to `server::config`; status codes of refusals to `middleware`.

use std::time::Duration;

/// Where the effect lives, which decides what a lapsed or doubtful run becomes (PROTOCOL section 6).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Effect {
    /// In the store's own transaction: nothing or everything, so a lapsed lease is taken over.
    Coupled,
    /// In an upstream that honours a child key: run again with the same child key.
    KeyedUpstream,
    /// Anywhere else: at most once, and *unknown* after a crash.
    Other,
}

/// Whether an application that couples by permit takes `hold` before anything else in its transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, Default)]
pub enum Hold {
    /// Not always: a success without a receipt leaves nobody to say what was committed.
    #[default]
    Optional,
    /// Always, as its operation declares: without a receipt nothing was committed.
    Always,
}

/// What answers a key whose receipt has expired.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Expiry {
    /// The key names a new action.
    NewAction,
    /// The key is refused as expired for this much longer, counted from the receipt's expiry.
    Refuse(Duration),
}

/// What one operation promises.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Policy {
    /// How long a claim may run without a renewal.
    pub lease: Duration,
    /// How long one run may last: after it nothing of that run can still be sent.
    pub attempt_limit: Duration,
    /// How long a receipt is promised, counted from completion.
    pub retention: Duration,
    /// What answers after that.
    pub expiry: Expiry,
    /// Where the effect lives.
    pub effect: Effect,
    /// How long the upstream of [`Effect::KeyedUpstream`] remembers a child key, from its first send; of no meaning
    /// elsewhere.
    pub window: Duration,
}

impl Default for Policy {
    /// Lease 30 s, run 60 s, retention 24 h, then a new action; effect elsewhere.
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(30),
            attempt_limit: Duration::from_mins(1),
            retention: Duration::from_hours(24),
            expiry: Expiry::NewAction,
            effect: Effect::Other,
            window: Duration::ZERO,
        }
    }
}

/// Who gave an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answerer {
    /// The guarded handler itself.
    Handler,
    /// A server behind the proxy, where 502, 503 and 504 may come from something in between.
    Upstream,
}

/// What becomes of an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// It is the result: keep it.
    Keep,
    /// The request was certainly not processed: release the key.
    Release,
    /// Nobody knows whether the effect happened.
    Doubt,
}

/// What an operation remembers (DESIGN section 8): 2xx, 3xx and every 4xx and 5xx except those that say "not
/// processed".
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Remember {
    /// Statuses of this operation that also mean "not processed", such as 503 behind some balancers.
    pub not_processed: Vec<u16>,
    /// How the upstream says that it is still at work on an earlier request with the same key: doubt, and never a result.
    pub in_progress: StillRunning,
}

/// How an upstream says "still running".
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct StillRunning {
    /// By these statuses, whatever else it says.
    pub statuses: Vec<u16>,
    /// By a problem document (RFC 9457) of one of these types, whatever its status.
    pub problems: Vec<String>,
}

impl StillRunning {
    /// Whether nothing says so.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.statuses.is_empty() && self.problems.is_empty()
    }

    fn is_said(&self, status: u16, problem: Option<&str>) -> bool {
        self.statuses.contains(&status) || problem.is_some_and(|problem| self.problems.iter().any(|one| one == problem))
    }
}

/// Statuses by which a server says that it did not process the request (RFC 9110 section 15.5, RFC 6585, RFC 8470).
const NOT_PROCESSED: [u16; 20] =
    [400, 401, 403, 405, 406, 407, 408, 411, 413, 414, 415, 416, 417, 421, 422, 425, 426, 428, 429, 431];

impl Remember {
    /// Judges an answer. `said` is what the answer itself asked for (`Idempotency-Remember`), `problem` the type of the
    /// problem document that it is, if anything.
    ///
    /// A 1xx is no final answer and therefore doubt. So is "still running", whatever else the answer says.
    #[must_use]
    pub fn judge(&self, status: u16, problem: Option<&str>, answerer: Answerer, said: Option<bool>) -> Outcome {
        if self.in_progress.is_said(status, problem) {
            return Outcome::Doubt;
        }
        match said {
            Some(true) => return Outcome::Keep,
            Some(false) => return Outcome::Release,
            None => {}
        }
        if NOT_PROCESSED.contains(&status) || self.not_processed.contains(&status) {
            return Outcome::Release;
        }
        match (status, answerer) {
            (0..=199, _) | (502..=504, Answerer::Upstream) => Outcome::Doubt,
            _ => Outcome::Keep,
        }
    }
}

#[cfg(test)]
mod tests;
