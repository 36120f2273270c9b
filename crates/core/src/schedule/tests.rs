//! Pauses as a table. What an intent makes of them is tested in `intent`.

use super::*;

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

#[test]
fn pauses_grow_to_the_cap_and_hear_the_provider() {
    let check = |attempt, told: Option<u64>, least, jitter, wanted| {
        let backoff = Backoff { base: ms(500), cap: ms(8_000), least: ms(least) };
        let pause = backoff.pause(attempt, told.map(ms), Jitter(jitter));
        assert_eq!(pause, ms(wanted), "attempt {attempt}, told {told:?}, least {least}, jitter {jitter}");
    };
    check(1, None, 0, 0, 250);
    check(1, None, 0, u32::MAX, 500);
    check(2, None, 0, 0, 500);
    check(3, None, 0, u32::MAX / 2, 1_499);
    check(5, None, 0, u32::MAX, 8_000);
    check(6, None, 0, u32::MAX, 8_000);
    check(u32::MAX, None, 0, u32::MAX, 8_000);
    check(0, None, 0, 0, 250);
    check(1, Some(3_000), 0, 0, 3_000);
    check(1, Some(3_000), 0, u32::MAX, 3_750);
    check(1, Some(0), 0, 0, 250);
    check(1, Some(600_000), 0, u32::MAX, 630_000);
    check(1, None, 30_000, 0, 30_000);
    check(1, Some(60_000), 30_000, 0, 60_000);
}

#[test]
fn no_start_is_planned_past_the_last_one() {
    let check = |pause, last: Option<i64>, wanted| {
        let last = last.map(Timestamp::from_millis);
        let start = next_start(ms(pause), last, Timestamp::from_millis(1_000));
        assert_eq!(start, Timestamp::from_millis(wanted), "pause {pause}, last start {last:?}");
    };
    check(500, None, 1_500);
    check(500, Some(1_500), 1_500);
    check(500, Some(1_499), 1_499);
    check(u64::MAX, Some(2_000), 2_000);
    check(500, Some(900), 1_000);
    check(u64::MAX, None, i64::MAX);
}
