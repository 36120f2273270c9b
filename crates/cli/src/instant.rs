//! Instants and ages as people read and write them. Spans of the configuration belong to the server.

use std::time::Duration;

use counterfoil_core::Timestamp;

/// An instant as RFC 3339 has it, in UTC.
pub(crate) fn print(at: Timestamp) -> String {
    match jiff::Timestamp::from_millisecond(at.as_millis()) {
        Ok(instant) => instant.to_string(),
        Err(_) => at.to_string(),
    }
}

/// An instant as an argument names it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Moment {
    /// When the store reads it.
    Now,
    /// This one.
    At(Timestamp),
}

/// Reads an instant: RFC 3339 with its offset, or `now`.
pub(crate) fn parse(text: &str) -> Result<Moment, String> {
    if text == "now" {
        return Ok(Moment::Now);
    }
    let instant: jiff::Timestamp =
        text.parse().map_err(|_| format!("{text:?} is no instant; write one like 2026-03-01T12:00:00Z, or now"))?;
    Ok(Moment::At(Timestamp::from_millis(instant.as_millisecond())))
}

/// An age in its two largest units.
pub(crate) fn age(span: Duration) -> String {
    let seconds = span.as_secs();
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds}s"),
        (0, 0, _) => format!("{minutes}m {}s", seconds % 60),
        (0, _, _) => format!("{hours}h {minutes}m"),
        (_, _, _) => format!("{days}d {hours}h"),
    }
}

/// A pause as people read it.
pub(crate) fn short(span: Duration) -> String {
    if span < Duration::from_secs(10) { format!("{:.1}s", span.as_secs_f64()) } else { age(span) }
}
