//! The high-water mark: how the time moves from one reading to the next, as a pure function of the two.
//! Reading a clock belongs to the parent; where a mark is persisted, to the stores.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use counterfoil_core::{Now, Timestamp};

use super::Reading;

/// How far the wall clock may be from the boot-time clock's pace and still be believed.
pub const TRUSTED_STEP: Duration = Duration::from_mins(10);

const TRUSTED_MILLIS: i64 = 600_000;

/// The time at one reading, and what is needed to go on from it. Its text form is what stores persist.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mark {
    /// The time.
    pub now: Timestamp,
    /// The boot-time clock at `now`.
    pub boot: Duration,
    /// Whose boot.
    pub boot_id: Arc<str>,
    /// What an operator accepted: the time is this much later than the wall clock, in milliseconds; never negative.
    pub skew_millis: i64,
    /// While the wall clock is not believed: the last time at which it was. Nothing expires after it.
    pub doubted_at: Option<Timestamp>,
    /// How often an operator accepted the wall clock: of two marks, the one with more of them is believed.
    pub accepts: u32,
}

impl Mark {
    /// The first mark of a new store: the wall clock is believed.
    #[must_use]
    pub fn first(reading: &Reading) -> Self {
        Self {
            now: reading.wall,
            boot: reading.boot,
            boot_id: reading.boot_id.clone(),
            skew_millis: 0,
            doubted_at: None,
            accepts: 0,
        }
    }

    /// The time for decisions.
    #[must_use]
    pub fn time(&self) -> Now {
        Now { at: self.now, expiry_at: self.doubted_at.unwrap_or(self.now) }
    }

    /// The mark at a later reading. Its time is never before this one's, and neither is its time of expiry.
    #[must_use]
    pub fn advance(&self, reading: &Reading) -> Self {
        if reading.boot_id == self.boot_id { self.in_this_boot(reading) } else { self.in_another_boot(reading) }
    }

    /// Boot-time progress is certain; the wall clock is followed forward as far as it is believed.
    fn in_this_boot(&self, reading: &Reading) -> Self {
        // Only whole milliseconds are taken, so that many readings within one do not stop the time.
        let passed = u64::try_from(reading.boot.saturating_sub(self.boot).as_millis()).unwrap_or(u64::MAX);
        let passed = Duration::from_millis(passed);
        let paced = self.now.plus(passed);
        let off = off(self.wall(reading), paced);
        let own = Self { now: paced, boot: self.boot.saturating_add(passed), ..self.clone() };
        if off.abs() > TRUSTED_MILLIS {
            return Self { doubted_at: Some(self.doubted_at.unwrap_or(self.now)), ..own };
        }
        if off <= 0 {
            return Self { doubted_at: None, ..own };
        }
        let boot = reading.boot.max(self.boot);
        Self { now: self.wall(reading), boot, doubted_at: None, ..self.clone() }
    }

    /// Nothing says how long the machine was off but the wall clock. It is believed forward, unless it was in doubt
    /// already before: a reboot settles no doubt.
    fn in_another_boot(&self, reading: &Reading) -> Self {
        let here = Self { boot: reading.boot, boot_id: reading.boot_id.clone(), ..self.clone() };
        let ahead = off(self.wall(reading), self.now);
        if ahead < -TRUSTED_MILLIS || (self.doubted_at.is_some() && ahead > TRUSTED_MILLIS) {
            return Self { doubted_at: Some(self.doubted_at.unwrap_or(self.now)), ..here };
        }
        if reading.wall >= self.now {
            // Past the mark by itself: an accepted difference has gone with the gap.
            return Self { now: reading.wall, skew_millis: 0, doubted_at: None, ..here };
        }
        Self { now: self.now.max(self.wall(reading)), doubted_at: None, ..here }
    }

    /// The mark once an operator has said that the wall clock is right.
    #[must_use]
    pub fn accept(&self, reading: &Reading) -> Self {
        let here = self.advance(reading);
        let skew_millis = off(here.now, reading.wall).max(0);
        Self {
            now: here.now.max(reading.wall),
            boot: here.boot.max(reading.boot),
            skew_millis,
            doubted_at: None,
            accepts: here.accepts.saturating_add(1),
            ..here
        }
    }

    /// This mark together with one that another process persisted, both at `reading`.
    #[must_use]
    pub fn adopt(&self, other: &Self, reading: &Reading) -> Self {
        let (mine, theirs) = (self.advance(reading), other.advance(reading));
        if (theirs.accepts, theirs.now) < (mine.accepts, mine.now) {
            return mine;
        }
        // Whatever this process has already used for expiry was believed when it did.
        let doubted_at = theirs.doubted_at.map(|at| at.max(self.time().expiry_at));
        Self { now: mine.now.max(theirs.now), doubted_at, ..theirs }
    }

    /// What is wrong at the reading that this mark was advanced to; `None`: nothing is.
    #[must_use]
    pub fn doubt(&self, reading: &Reading) -> Option<ClockDoubt> {
        let since = self.doubted_at?;
        Some(ClockDoubt { since, now: self.now, off_millis: off(self.wall(reading), self.now) })
    }

    /// The wall clock with what was accepted.
    fn wall(&self, reading: &Reading) -> Timestamp {
        Timestamp::from_millis(reading.wall.as_millis().saturating_add(self.skew_millis))
    }
}

/// How many milliseconds `wall` is ahead of `own`.
fn off(wall: Timestamp, own: Timestamp) -> i64 {
    wall.as_millis().saturating_sub(own.as_millis())
}

/// The wall clock is not believed: leases still lapse at the boot-time clock's pace, and nothing expires.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClockDoubt {
    /// The last time at which the wall clock was believed: where expiry stands still.
    pub since: Timestamp,
    /// The time that leases are judged by.
    pub now: Timestamp,
    /// How far the wall clock is ahead of that, in milliseconds; negative: behind.
    pub off_millis: i64,
}

impl fmt::Display for ClockDoubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.off_millis.unsigned_abs() / 1000;
        let side = if self.off_millis < 0 { "behind" } else { "ahead of" };
        write!(
            f,
            "the wall clock was stepped and is {seconds} s {side} the store's time: nothing expires until it is \
             corrected, or accepted with `counterfoil receipts clock accept`"
        )
    }
}

/// A text that is no mark.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the stored clock mark cannot be read: restore the store from a backup")]
pub struct MarkError;

/// The first word of a mark's text form.
const FORM: &str = "mark1";

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{FORM} {} ", self.now.as_millis())?;
        write!(f, "{} {} {} ", self.boot.as_nanos(), self.boot_id, self.skew_millis)?;
        match self.doubted_at {
            Some(at) => write!(f, "{} ", at.as_millis())?,
            None => f.write_str("- ")?,
        }
        write!(f, "{}", self.accepts)
    }
}

impl FromStr for Mark {
    type Err = MarkError;

    fn from_str(text: &str) -> Result<Self, MarkError> {
        let words: Vec<&str> = text.split(' ').collect();
        let [FORM, now, boot, boot_id, skew, doubted_at, accepts] = words[..] else { return Err(MarkError) };
        let millis = |word: &str| word.parse::<i64>().map_err(|_| MarkError);
        let nanos: u128 = boot.parse().map_err(|_| MarkError)?;
        let seconds = u64::try_from(nanos / 1_000_000_000).map_err(|_| MarkError)?;
        let rest = u32::try_from(nanos % 1_000_000_000).map_err(|_| MarkError)?;
        if boot_id.is_empty() {
            return Err(MarkError);
        }
        let mark = Self {
            now: Timestamp::from_millis(millis(now)?),
            boot: Duration::new(seconds, rest),
            boot_id: boot_id.into(),
            skew_millis: millis(skew)?,
            doubted_at: if doubted_at == "-" { None } else { Some(Timestamp::from_millis(millis(doubted_at)?)) },
            accepts: accepts.parse().map_err(|_| MarkError)?,
        };
        let sound = mark.skew_millis >= 0 && mark.doubted_at.is_none_or(|at| at <= mark.now);
        if sound { Ok(mark) } else { Err(MarkError) }
    }
}
