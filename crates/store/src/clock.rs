//! The clock of stores that have none of their own: the wall clock, held to the pace of the boot-time clock.
//!
//! A step of the wall clock must not forget receipts early, and must not keep leases alive for ever. Stores that are
//! servers have their own clock and do not use this. No rule of leases or retention belongs here.

mod mark;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use counterfoil_core::{Now, Timestamp};

pub use self::mark::{ClockDoubt, Mark, MarkError, TRUSTED_STEP};

/// What the machine's clocks say at one instant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reading {
    /// The wall clock, which may be stepped.
    pub wall: Timestamp,
    /// Time since the boot, sleep included, which is never stepped.
    pub boot: Duration,
    /// Which boot.
    pub boot_id: Arc<str>,
}

/// Something that reads the machine's clocks.
pub trait Clock: Send + Sync + 'static {
    /// Reads them.
    fn reading(&self) -> Reading;
}

/// The machine's own clocks.
#[derive(Clone, Debug)]
pub struct SystemClock {
    boot_id: Arc<str>,
}

impl SystemClock {
    /// Reads which boot this is, once.
    ///
    /// Where the system does not tell, this process counts as a boot of its own: a restart is then believed like a
    /// reboot.
    #[must_use]
    pub fn new() -> Self {
        let boot_id = match std::fs::read_to_string("/proc/sys/kernel/random/boot_id") {
            Ok(text) if !text.trim().is_empty() => text.trim().into(),
            Ok(_) | Err(_) => {
                let id = own_boot_id();
                tracing::warn!(boot_id = %id, "the system names no boot: each start of this process counts as one");
                id
            }
        };
        Self { boot_id }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

fn own_boot_id() -> Arc<str> {
    let drawn = getrandom::u64().unwrap_or_else(|_| u64::from(std::process::id()));
    format!("process-{drawn:016x}").into()
}

impl Clock for SystemClock {
    fn reading(&self) -> Reading {
        use rustix::time::{ClockId, clock_gettime};
        #[cfg(target_os = "linux")]
        let since_boot = ClockId::Boottime;
        #[cfg(not(target_os = "linux"))]
        let since_boot = ClockId::Monotonic;
        let wall = clock_gettime(ClockId::Realtime);
        let boot = clock_gettime(since_boot);
        Reading {
            wall: Timestamp::from_millis(wall.tv_sec.saturating_mul(1000).saturating_add(wall.tv_nsec / 1_000_000)),
            boot: Duration::new(u64::try_from(boot.tv_sec).unwrap_or(0), u32::try_from(boot.tv_nsec).unwrap_or(0)),
            boot_id: self.boot_id.clone(),
        }
    }
}

/// A clock that moves only when told. Clones share it.
#[derive(Clone, Debug)]
pub struct TestClock {
    shared: Arc<Mutex<Reading>>,
}

impl TestClock {
    /// A machine that has just booted at `wall`.
    #[must_use]
    pub fn new(wall: Timestamp) -> Self {
        let boot_id = "test-boot-0".into();
        Self { shared: Arc::new(Mutex::new(Reading { wall, boot: Duration::ZERO, boot_id })) }
    }

    /// Time passes on all clocks.
    pub fn advance(&self, by: Duration) {
        let mut reading = locked(&self.shared);
        reading.wall = reading.wall.plus(by);
        reading.boot = reading.boot.saturating_add(by);
    }

    /// The wall clock is stepped by so many milliseconds, and nothing else happens.
    pub fn step_wall(&self, millis: i64) {
        let mut reading = locked(&self.shared);
        reading.wall = Timestamp::from_millis(reading.wall.as_millis().saturating_add(millis));
    }

    /// The machine was off for `gap` and is booted again.
    pub fn reboot(&self, gap: Duration) {
        let mut reading = locked(&self.shared);
        let boots: u64 = reading.boot_id.rsplit('-').next().and_then(|count| count.parse().ok()).unwrap_or(0);
        reading.wall = reading.wall.plus(gap);
        reading.boot = Duration::ZERO;
        reading.boot_id = format!("test-boot-{}", boots + 1).into();
    }
}

impl Clock for TestClock {
    fn reading(&self) -> Reading {
        locked(&self.shared).clone()
    }
}

/// The store's time: it never goes back, and says when the wall clock cannot be believed.
///
/// Whoever keeps records on disk persists [`HighWater::mark`] with them and begins with the persisted mark.
pub struct HighWater {
    clock: Arc<dyn Clock>,
    mark: Mutex<Mark>,
}

impl HighWater {
    /// Begins at a persisted mark, or at the wall clock where there is none.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>, mark: Option<Mark>) -> Self {
        let mark = mark.unwrap_or_else(|| Mark::first(&clock.reading()));
        Self { clock, mark: Mutex::new(mark) }
    }

    /// The time, for one decision.
    pub fn now(&self) -> Now {
        self.read().0.time()
    }

    /// Why nothing expires at this time; `None`: the clock is believed.
    pub fn doubt(&self) -> Option<ClockDoubt> {
        let (mark, reading) = self.read();
        mark.doubt(&reading)
    }

    /// An operator says that the wall clock is right: it is believed from now on. Persist the mark at once.
    ///
    /// Where the wall clock is behind, the time does not go back; the difference is remembered instead.
    pub fn accept(&self) -> Mark {
        let mut mark = locked(&self.mark);
        *mark = mark.accept(&self.clock.reading());
        tracing::warn!(now = %mark.now, skew_millis = mark.skew_millis, "the wall clock was accepted by an operator");
        mark.clone()
    }

    /// Takes over what another process persisted; what it accepted is accepted here too. The time does not go back,
    /// and an older mark changes nothing.
    pub fn adopt(&self, other: &Mark) {
        let mut mark = locked(&self.mark);
        *mark = mark.adopt(other, &self.clock.reading());
    }

    /// The mark of this instant, to be persisted.
    pub fn mark(&self) -> Mark {
        self.read().0.clone()
    }

    /// The mark moved to the clock's reading, which is taken under the lock so that readings stay in order.
    fn read(&self) -> (MutexGuard<'_, Mark>, Reading) {
        let mut mark = locked(&self.mark);
        let reading = self.clock.reading();
        let next = mark.advance(&reading);
        tell(&mark, &next, &reading);
        *mark = next;
        (mark, reading)
    }
}

impl std::fmt::Debug for HighWater {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HighWater").field("mark", &*locked(&self.mark)).finish_non_exhaustive()
    }
}

fn tell(before: &Mark, after: &Mark, reading: &Reading) {
    if before.boot_id != after.boot_id {
        let gap = after.now.since(before.now);
        tracing::info!(?gap, now = %after.now, wall = %reading.wall, "the machine was booted since the last mark: the gap is believed");
    }
    match (before.doubted_at, after.doubt(reading)) {
        (None, Some(doubt)) => tracing::warn!("{doubt}"),
        (Some(_), None) => tracing::info!(now = %after.now, "the wall clock is believed again"),
        (None, None) | (Some(_), Some(_)) => {}
    }
}

/// A panic elsewhere leaves a clock's plain values whole.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
