//! Spans as the contract tells them. The document itself is tested over the whole layer, in `tests/it`.

use std::time::Duration;

use super::seconds;

#[test]
fn spans_are_told_in_seconds_and_never_rounded_up() {
    let table = [
        (Duration::from_hours(24), "86400"),
        (Duration::from_millis(1), "0.001"),
        (Duration::from_millis(1500), "1.5"),
        (Duration::from_millis(30_007), "30.007"),
        (Duration::from_nanos(2_999_999_999), "2.999"),
        (Duration::from_nanos(999), "0"),
        (Duration::from_hours(36_500 * 24), "3153600000"),
        (Duration::from_secs(u64::MAX), "18446744073709551615"),
    ];
    for (span, expected) in table {
        assert_eq!(seconds(span).to_string(), expected, "{span:?}");
    }
}
