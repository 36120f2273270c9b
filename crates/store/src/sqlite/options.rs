//! How a SQLite store is opened, each setting with its bounds.
//!
//! What does not belong here: how a configuration file spells it (`server`).

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::clock::{Clock, SystemClock};

/// What happens where the file, or our tables in it, do not stand yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Missing {
    /// They are made, and an older schema is migrated.
    Create,
    /// The store is refused: a wrong directory must not become an empty memory.
    Refuse,
}

/// Whether the writer's connection enforces foreign keys of the tables that effects write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ForeignKeys {
    /// It does.
    Enforced,
    /// It does not.
    Ignored,
}

/// How a store is opened.
#[derive(Clone)]
#[non_exhaustive]
pub struct Options {
    /// What happens where the file does not stand yet. Default: it is made.
    pub missing: Missing,
    /// The machine's clocks. Default: the system's.
    pub clock: Arc<dyn Clock>,
    /// The most writes that one transaction carries. Default 256; at least 1.
    pub batch_max: usize,
    /// The most writes that wait; beyond it a call is [`Busy`](crate::ErrorKind::Busy). Default 10,000.
    pub queue_max: usize,
    /// Connections that read. Default: twice the processors, at most 4; at least 1.
    pub readers: usize,
    /// How long a call waits for another process's transaction. Default 2 s.
    pub busy_timeout: Duration,
    /// How long one batch may take before the store counts as stalled. Default 5 s.
    pub stall_after: Duration,
    /// Whether foreign keys are enforced in effects. Default: they are.
    pub foreign_keys: ForeignKeys,
    /// The most pages of 4 KiB that the file may grow to; `None`: no limit but the disk's.
    pub pages_max: Option<u32>,
}

impl Default for Options {
    fn default() -> Self {
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self {
            missing: Missing::Create,
            clock: Arc::new(SystemClock::new()),
            batch_max: 256,
            queue_max: 10_000,
            readers: processors.saturating_mul(2).min(4),
            busy_timeout: Duration::from_secs(2),
            stall_after: Duration::from_secs(5),
            foreign_keys: ForeignKeys::Enforced,
            pages_max: None,
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("missing", &self.missing)
            .field("batch_max", &self.batch_max)
            .field("queue_max", &self.queue_max)
            .field("readers", &self.readers)
            .field("busy_timeout", &self.busy_timeout)
            .field("stall_after", &self.stall_after)
            .field("foreign_keys", &self.foreign_keys)
            .field("pages_max", &self.pages_max)
            .finish_non_exhaustive()
    }
}
