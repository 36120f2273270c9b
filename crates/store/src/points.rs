//! Named points of the gate and the stores, at which a crash test stops the process.
//! Without the feature `points` they are nothing; no behaviour may depend on them.

/// Every point, in the order in which a guarded action passes them.
pub const ALL: [&str; 13] = [
    "gate.begin.before-read",
    "gate.begin.before-claim",
    "gate.begin.claimed",
    "gate.complete.before-write",
    "gate.complete.written",
    "gate.release.before-write",
    "gate.doubt.before-write",
    "sqlite.batch.begun",
    "sqlite.batch.before-commit",
    "sqlite.batch.committed",
    "sqlite.coupled.claimed",
    "sqlite.coupled.effect",
    "sqlite.coupled.settled",
];

/// Every point of a client, in the order in which an attempt passes them.
pub const CLIENT: [&str; 7] = [
    "client.before-journal",
    "client.journalled",
    "client.before-wire",
    "client.on-wire",
    "client.answered",
    "client.noted",
    "client.before-print",
];

#[cfg(feature = "points")]
static HOOK: std::sync::OnceLock<Box<dyn Fn(&'static str) + Send + Sync>> = std::sync::OnceLock::new();

/// Calls `hook` at every point from now on; the first hook stays.
#[cfg(feature = "points")]
pub fn set_hook(hook: impl Fn(&'static str) + Send + Sync + 'static) {
    // A second hook is ignored: a test process sets one.
    let _ = HOOK.set(Box::new(hook));
}

/// Passes a point.
#[cfg(feature = "points")]
pub fn pass(point: &'static str) {
    if let Some(hook) = HOOK.get() {
        hook(point);
    }
}

/// Passes a point.
#[cfg(not(feature = "points"))]
#[inline(always)]
pub const fn pass(_point: &'static str) {}
