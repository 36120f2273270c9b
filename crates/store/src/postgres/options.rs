//! How a PostgreSQL store is opened, each setting with its bounds.
//!
//! What does not belong here: how a configuration file spells it (`server`).

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::clock::{Clock, SystemClock};
use crate::sqlite::Missing;

/// How a store is opened.
#[derive(Clone)]
#[non_exhaustive]
pub struct Options {
    /// What happens where the database holds no store yet, or an older schema. Default: it is refused, because making
    /// one needs rights that serving does not.
    pub missing: Missing,
    /// What tells how much time has passed since the server last told its own. Default: the system's.
    pub clock: Arc<dyn Clock>,
    /// The most connections of this process. Default 10; at least 1.
    pub connections: usize,
    /// The most writes, or reads, that one statement carries. Default 256; at least 1.
    pub batch_max: usize,
    /// The most writes that wait, and the most reads; beyond it a call is [`Busy`](crate::ErrorKind::Busy). Default 10,000.
    pub queue_max: usize,
    /// How long making a connection may take; of several hosts, each gets its share. Default 3 s.
    pub connect_timeout: Duration,
    /// How long one call may take, its waiting for a connection included; the statement of a claim gets half of it at
    /// most, so that one whose answer does not come can be sent again. Default 5 s.
    pub call_timeout: Duration,
    /// The same for lists, searches and figures. Default 60 s.
    pub list_timeout: Duration,
    /// How long a write waits for a row that somebody's open transaction holds. Default 1 s; claims never wait.
    pub lock_timeout: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            missing: Missing::Refuse,
            clock: Arc::new(SystemClock::new()),
            connections: 10,
            batch_max: 256,
            queue_max: 10_000,
            connect_timeout: Duration::from_secs(3),
            call_timeout: Duration::from_secs(5),
            list_timeout: Duration::from_mins(1),
            lock_timeout: Duration::from_secs(1),
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("missing", &self.missing)
            .field("connections", &self.connections)
            .field("batch_max", &self.batch_max)
            .field("queue_max", &self.queue_max)
            .field("connect_timeout", &self.connect_timeout)
            .field("call_timeout", &self.call_timeout)
            .field("list_timeout", &self.list_timeout)
            .field("lock_timeout", &self.lock_timeout)
            .finish_non_exhaustive()
    }
}
