//! When to try again: growing pauses, the provider's own word, and the end of the window.
//! Jitter and `now` are arguments; waiting belongs to whoever delivers.

use std::time::Duration;

use crate::time::Timestamp;

/// A drawn number that spreads callers apart: 0 is the shortest pause that is allowed, [`u32::MAX`] the longest.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Jitter(pub u32);

impl Jitter {
    /// That share of `span`, in whole milliseconds.
    fn of(self, span: Duration) -> Duration {
        let share = span.as_millis().saturating_mul(u128::from(self.0)) / u128::from(u32::MAX);
        Duration::from_millis(u64::try_from(share).unwrap_or(u64::MAX))
    }
}

/// How pauses between attempts grow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Backoff {
    /// The first pause, before jitter; it doubles with every attempt.
    pub base: Duration,
    /// The longest pause of our own, before jitter.
    pub cap: Duration,
    /// What the provider asks to wait at the least before anything is sent again.
    pub least: Duration,
}

impl Default for Backoff {
    /// From 0.5 s, doubled up to 5 min.
    fn default() -> Self {
        Self { base: Duration::from_millis(500), cap: Duration::from_mins(5), least: Duration::ZERO }
    }
}

/// The most that jitter adds to the provider's own word.
const TOLD_JITTER_MAX: Duration = Duration::from_secs(30);

impl Backoff {
    /// The pause after attempt `attempt` (from 1): half of it fixed, half of it jitter. Where the provider `told` how
    /// long to wait, never less than that, and up to a quarter more, at most 30 s.
    #[must_use]
    pub fn pause(&self, attempt: u32, told: Option<Duration>, jitter: Jitter) -> Duration {
        let doublings = attempt.saturating_sub(1).min(31);
        let whole = self.base.saturating_mul(1 << doublings).min(self.cap);
        let half = whole / 2;
        let ours = half + jitter.of(whole - half);
        let theirs =
            told.map_or(Duration::ZERO, |told| told.saturating_add(jitter.of((told / 4).min(TOLD_JITTER_MAX))));
        ours.max(theirs).max(self.least)
    }
}

/// When the next attempt may start: `pause` after `now`, but not after `last_start`, because past it nothing may be
/// sent any more. It is never before `now`.
#[must_use]
pub fn next_start(pause: Duration, last_start: Option<Timestamp>, now: Timestamp) -> Timestamp {
    let wanted = now.plus(pause);
    last_start.map_or(wanted, |last| wanted.min(last)).max(now)
}

#[cfg(test)]
mod tests;
