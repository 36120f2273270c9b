//! Dates against a table, and against counting day by day.

use counterfoil_core::Timestamp;

use super::{civil, http_date};

fn check(seconds: i64, expected: Option<&str>) {
    let found = http_date(Timestamp::from_millis(seconds.saturating_mul(1000).saturating_add(999)));
    assert_eq!(found.as_ref().map(|date| date.to_str().unwrap()), expected, "{seconds}");
}

#[test]
fn dates_of_the_table() {
    check(0, Some("Thu, 01 Jan 1970 00:00:00 GMT"));
    check(784_111_777, Some("Sun, 06 Nov 1994 08:49:37 GMT"));
    check(951_782_400, Some("Tue, 29 Feb 2000 00:00:00 GMT"));
    check(951_868_799, Some("Tue, 29 Feb 2000 23:59:59 GMT"));
    check(4_107_542_400, Some("Mon, 01 Mar 2100 00:00:00 GMT"));
    check(253_402_300_799, Some("Fri, 31 Dec 9999 23:59:59 GMT"));
    check(253_402_300_800, None);
    check(-1, None);
    check(i64::MAX, None);
}

#[test]
fn every_day_follows_the_day_before() {
    let leap = |year: i64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let (mut year, mut month, mut date) = (1970, 1, 1);
    for day in 0..200_000 {
        assert_eq!(civil(day), (year, month, date), "day {day}");
        let last = match month {
            2 if leap(year) => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        };
        date += 1;
        if date > last {
            (date, month) = (1, month + 1);
        }
        if month > 12 {
            (month, year) = (1, year + 1);
        }
    }
}
