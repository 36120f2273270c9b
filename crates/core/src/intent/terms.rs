//! What an intent holds itself to, frozen with it: how long it may be sent again, and how long one attempt may last.
//! What follows for the intent is in `machine`.

use std::time::Duration;

use crate::profile::Profile;
use crate::schedule::Backoff;
use crate::time::Timestamp;

/// The least margin between the last thing that may be sent and the end of the window.
pub const MARGIN_MIN: Duration = Duration::from_mins(5);
/// How long one attempt may take unless told otherwise.
pub const ATTEMPT_LIMIT: Duration = Duration::from_secs(30);
/// How long an intent is sent again where nobody says how long the provider remembers.
pub const ASSUMED_WINDOW: Duration = Duration::from_mins(10);

/// What an intent holds itself to, frozen with it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Terms {
    /// How long the provider remembers the key, counted from the first send.
    pub window: Promise,
    /// How long one attempt may last, from the commit of `Sending`.
    pub attempt_limit: Duration,
    /// How pauses grow.
    pub backoff: Backoff,
}

/// How long a provider remembers a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Promise {
    /// At least so long, as the provider documents.
    Documented(Duration),
    /// For ever, as the provider documents.
    ForEver,
    /// At least so long, as whoever made the intent said (`--window`).
    Given(Duration),
    /// Nobody says: [`ASSUMED_WINDOW`], and the intent says so.
    Assumed,
}

impl Terms {
    /// The terms under `profile`. What was `given` counts where the provider documents nothing, or where it is shorter.
    #[must_use]
    pub fn new(profile: &Profile, given: Option<Duration>, attempt_limit: Duration) -> Self {
        let documented = profile.window.map(|window| window.span);
        let window = match (documented, given) {
            (None, None) => Promise::Assumed,
            (None | Some(None), Some(given)) => Promise::Given(given),
            (Some(Some(span)), Some(given)) if given < span => Promise::Given(given),
            (Some(Some(span)), Some(_) | None) => Promise::Documented(span),
            (Some(None), None) => Promise::ForEver,
        };
        let backoff = Backoff { least: profile.wait_min, ..Backoff::default() };
        Self { window, attempt_limit, backoff }
    }

    /// The larger of 5 minutes and one attempt's time limit: what was sent before the deadline has arrived by then.
    #[must_use]
    pub fn margin(&self) -> Duration {
        self.attempt_limit.max(MARGIN_MIN)
    }

    /// The deadline that a first send at `from` sets.
    pub(super) fn deadline(&self, from: Timestamp) -> Deadline {
        let until = match self.window {
            Promise::Documented(span) | Promise::Given(span) => from.plus(span.saturating_sub(self.margin())),
            Promise::ForEver => Timestamp::MAX,
            Promise::Assumed => from.plus(ASSUMED_WINDOW),
        };
        Deadline { from, until }
    }
}

/// When nothing may be sent any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Deadline {
    /// The first send that may have reached the provider.
    pub from: Timestamp,
    /// An attempt starts only if it ends by then.
    pub until: Timestamp,
}
