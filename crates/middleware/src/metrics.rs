//! What is counted: the names of all metrics of this crate, and the one place that writes them.
//! No label ever holds a key, a digest, a path or a caller; exporting them belongs to the server.

use std::sync::Arc;
use std::time::Duration;

use counterfoil_store::{Begun, StoreError};

/// Decisions on claims (counter; labels `operation`, `decision`).
pub const DECISIONS: &str = "counterfoil_decisions_total";
/// How runs ended (counter; labels `operation`, `end`: `completed`, `released`, `doubted`).
pub const ENDS: &str = "counterfoil_ends_total";
/// Ends that came too late and were refused (counter; labels `operation`, `end`, `why`).
pub const REFUSED_ENDS: &str = "counterfoil_refused_ends_total";
/// Answers that went out before their end could be stored (counter; label `operation`).
pub const UNRECORDED: &str = "counterfoil_unrecorded_total";
/// Answers of coupled operations that committed no receipt (counter; label `operation`).
pub const ANSWERED_WITHOUT_SETTLE: &str = "counterfoil_answered_without_settle_total";
/// Problem documents (counter; labels `operation`, `problem`).
pub const PROBLEMS: &str = "counterfoil_problems_total";
/// Calls that a store did not answer (counter; label `kind`).
pub const STORE_ERRORS: &str = "counterfoil_store_errors_total";
/// Handlers that run now (gauge).
pub const RUNNING: &str = "counterfoil_running";
/// Callers that wait now for the end of somebody else's run (gauge).
pub const WAITING: &str = "counterfoil_waiting";
/// How long handlers ran (histogram, seconds; label `operation`).
pub const HANDLER_SECONDS: &str = "counterfoil_handler_seconds";

/// The label `operation` of all operations that are not listed, so that paths cannot multiply the series.
pub const UNLISTED: &str = "unlisted";

/// How a run ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    Completed,
    Released,
    Doubted,
}

impl End {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Released => "released",
            Self::Doubted => "doubted",
        }
    }
}

pub(crate) fn executed(operation: &Arc<str>) {
    ::metrics::counter!(DECISIONS, "operation" => operation.clone(), "decision" => "execute").increment(1);
}

pub(crate) fn replayed(operation: &Arc<str>) {
    ::metrics::counter!(DECISIONS, "operation" => operation.clone(), "decision" => "replay").increment(1);
}

pub(crate) fn decided(operation: &Arc<str>, begun: &Begun) {
    let decision = match begun {
        Begun::Execute(_) => "execute",
        Begun::Replay { .. } => "replay",
        Begun::Mismatch => "mismatch",
        Begun::InProgress { .. } => "in-progress",
        Begun::Unknown { .. } => "unknown",
        Begun::Expired { .. } => "expired",
    };
    ::metrics::counter!(DECISIONS, "operation" => operation.clone(), "decision" => decision).increment(1);
}

pub(crate) fn ended(operation: &Arc<str>, end: End) {
    ::metrics::counter!(ENDS, "operation" => operation.clone(), "end" => end.as_str()).increment(1);
}

pub(crate) fn refused(operation: &Arc<str>, end: End, why: &'static str) {
    ::metrics::counter!(REFUSED_ENDS, "operation" => operation.clone(), "end" => end.as_str(), "why" => why)
        .increment(1);
}

pub(crate) fn unrecorded(operation: &Arc<str>) {
    ::metrics::counter!(UNRECORDED, "operation" => operation.clone()).increment(1);
}

pub(crate) fn answered_without_settle(operation: &Arc<str>) {
    ::metrics::counter!(ANSWERED_WITHOUT_SETTLE, "operation" => operation.clone()).increment(1);
}

pub(crate) fn problem(operation: &Arc<str>, problem: &'static str) {
    ::metrics::counter!(PROBLEMS, "operation" => operation.clone(), "problem" => problem).increment(1);
}

pub(crate) fn store_failed(error: &StoreError) {
    ::metrics::counter!(STORE_ERRORS, "kind" => error.kind.as_str()).increment(1);
}

pub(crate) fn handled(operation: &Arc<str>, took: Duration) {
    ::metrics::histogram!(HANDLER_SECONDS, "operation" => operation.clone()).record(took);
}

/// One more of a gauge for as long as this lives.
pub(crate) struct Counted(&'static str);

impl Counted {
    pub(crate) fn new(gauge: &'static str) -> Self {
        ::metrics::gauge!(gauge).increment(1.0);
        Self(gauge)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        ::metrics::gauge!(self.0).decrement(1.0);
    }
}
