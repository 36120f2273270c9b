//! Time as a value: milliseconds that somebody else read from a clock.
//! No clock belongs here; `store::clock` reads them.

use std::fmt;
use std::time::Duration;

/// Milliseconds since the Unix epoch, on the store's clock.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The earliest instant that can be named.
    pub const MIN: Self = Self(i64::MIN);
    /// The latest instant that can be named.
    pub const MAX: Self = Self(i64::MAX);

    /// From milliseconds since the Unix epoch.
    #[must_use]
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// Milliseconds since the Unix epoch.
    #[must_use]
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// This instant and `span` later; stops at the ends of the range.
    #[must_use]
    pub fn plus(self, span: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(span.as_millis()).unwrap_or(i64::MAX)))
    }

    /// This instant and `span` earlier; stops at the ends of the range.
    #[must_use]
    pub fn minus(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(i64::try_from(span.as_millis()).unwrap_or(i64::MAX)))
    }

    /// How long after `earlier` this is; zero where it is not after it.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ms", self.0)
    }
}

/// One reading of the store's clock, for one decision.
///
/// Leases are judged by `at`, retention by `expiry_at`. The two differ only while the clock is in doubt (it was
/// stepped): then leases still lapse, and nothing expires (PROTOCOL section 7, *Time*).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Now {
    /// The time that leases are judged by.
    pub at: Timestamp,
    /// The time that retention is judged by; never after `at`.
    pub expiry_at: Timestamp,
}

impl Now {
    /// A reading of a clock that is not in doubt.
    #[must_use]
    pub const fn at(at: Timestamp) -> Self {
        Self { at, expiry_at: at }
    }
}

impl From<Timestamp> for Now {
    fn from(at: Timestamp) -> Self {
        Self::at(at)
    }
}
