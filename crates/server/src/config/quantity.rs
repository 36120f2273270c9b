//! Spans and sizes as people write them: `15m`, `7d`, `1MiB`. Which of them a setting may be belongs to the setting.

use std::time::Duration;

/// What a span looks like, for complaints.
pub const SPAN_ACCEPTED: &str = "a span like \"500ms\", \"30s\", \"15m\", \"24h\" or \"7d\"";
/// What a size looks like, for complaints.
pub const SIZE_ACCEPTED: &str = "a size like \"64KiB\", \"1MiB\" or \"4096B\"";

/// The longest span that can be written: a hundred years and a bit, in milliseconds.
const SPAN_MILLIS_MAX: u64 = 36_600 * DAY;
const DAY: u64 = 86_400_000;
const SPAN_UNITS: [(&str, u64); 6] =
    [("w", 7 * DAY), ("d", DAY), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)];
const SIZE_UNITS: [(&str, u64); 4] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)];

/// Reads a span: a whole number and one unit of `ms`, `s`, `m`, `h`, `d`, `w`, at most 36,600 days.
///
/// # Errors
/// What is wrong with the text.
pub fn parse_span(text: &str) -> Result<Duration, String> {
    let millis = parse(text, &SPAN_UNITS).ok_or_else(|| format!("{text:?} is no span"))?;
    if millis > SPAN_MILLIS_MAX {
        return Err(format!("{text:?} is longer than 36600d"));
    }
    Ok(Duration::from_millis(millis))
}

/// Writes a span in the largest unit that leaves a whole number.
#[must_use]
pub fn print_span(span: Duration) -> String {
    let millis = u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
    // Weeks are read and not written: days are easier to compare.
    let units = SPAN_UNITS.iter().skip(1);
    print(millis, units, "ms")
}

/// Reads a size in bytes: a whole number and one unit of `B`, `KiB`, `MiB`, `GiB`.
///
/// # Errors
/// What is wrong with the text.
pub fn parse_size(text: &str) -> Result<usize, String> {
    let bytes = parse(text, &SIZE_UNITS).ok_or_else(|| format!("{text:?} is no size"))?;
    usize::try_from(bytes).map_err(|_| format!("{text:?} is too large for this machine"))
}

/// Writes a size in the largest unit that leaves a whole number.
#[must_use]
pub fn print_size(bytes: usize) -> String {
    print(u64::try_from(bytes).unwrap_or(u64::MAX), SIZE_UNITS.iter(), "B")
}

fn parse(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let end = text.find(|character: char| !character.is_ascii_digit())?;
    let (number, unit) = text.split_at(end);
    let (_, factor) = units.iter().find(|(name, _)| *name == unit)?;
    number.parse::<u64>().ok()?.checked_mul(*factor)
}

fn print<'a>(amount: u64, mut units: impl Iterator<Item = &'a (&'a str, u64)>, smallest: &str) -> String {
    let fits = units.find(|(_, factor)| amount > 0 && amount.is_multiple_of(*factor));
    match fits {
        Some((name, factor)) => format!("{}{name}", amount / factor),
        None => format!("{amount}{smallest}"),
    }
}
