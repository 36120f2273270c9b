//! Requests as the target's own side counts them, held against those that were sent: more is somebody's repetition.
//!
//! What does not belong here: effects (`fact.rs`), and how a number is asked for (`observer.rs`).

use crate::error::ProbeError;
use crate::exchange::Exchange;
use crate::observer;
use crate::settings::Settings;
use crate::target::{Counter, Target};
use crate::wire::Wire;

/// What counts them, where anything does.
pub(crate) fn counter(settings: &Settings) -> Result<Option<Counter>, ProbeError> {
    let (url, command) = (settings.requests_url.as_deref(), settings.requests_command.as_deref());
    Counter::of(url, settings.requests.as_deref(), command).map_err(|error| match error {
        ProbeError::Usage(why) => ProbeError::Usage(format!("requests that arrive: {why}")),
        other => other,
    })
}

/// Those that arrived so far; nothing where nobody counts them.
pub(crate) async fn count(target: &Target, wire: &Wire) -> Result<Option<u64>, String> {
    let Some(counter) = &target.arrivals else { return Ok(None) };
    match observer::count(counter, target, wire).await {
        Ok(count) => Ok(Some(count)),
        Err(why) => Err(format!("requests that arrive: {why}")),
    }
}

/// Refuses a number that grows while nothing is sent: it would accuse whoever stands between of what others do.
pub(crate) async fn rest(target: &Target, wire: &Wire, before: Option<u64>) -> Result<(), ProbeError> {
    let after = count(target, wire).await.map_err(ProbeError::Unreachable)?;
    match (before, after) {
        (Some(before), Some(after)) if before != after => Err(ProbeError::Usage(format!(
            "the number of requests went from {before} to {after} while none was sent; it must count those to the \
             operation, not those that count, and nobody else's"
        ))),
        _ => Ok(()),
    }
}

/// What the round before left open.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Late(u64);

impl Late {
    /// Why something on the way repeats requests, from what arrived in a round. A request of the round before whose
    /// answer nobody awaited may arrive only now, and is no repetition.
    pub(crate) fn judge(&mut self, arrived: u64, exchanges: &[Exchange]) -> Option<String> {
        let number = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        let sent = number(exchanges.len());
        let open = number(exchanges.iter().filter(|exchange| exchange.answer.is_none()).count());
        let allowed = sent.saturating_add(self.0);
        self.0 = open.min(allowed.saturating_sub(arrived));
        (arrived > allowed).then(|| format!("{arrived} requests reached the target, and {sent} were sent"))
    }
}

#[cfg(test)]
mod tests;
