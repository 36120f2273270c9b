//! An instant as an HTTP date (RFC 9110 section 5.6.7), for `Idempotency-Expires`. Reading dates is not done here.

use counterfoil_core::Timestamp;
use http::HeaderValue;

const DAY_SECONDS: i64 = 24 * 60 * 60;
const WEEKDAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
/// The last second of the year 9999: an HTTP date has four digits for the year.
const LAST_SECOND: i64 = 253_402_300_799;

/// The date of the last whole second that is not after `at`; `None` outside the years 1970 to 9999.
pub(crate) fn http_date(at: Timestamp) -> Option<HeaderValue> {
    let seconds = at.as_millis().div_euclid(1000);
    if !(0..=LAST_SECOND).contains(&seconds) {
        return None;
    }
    let (day, second) = (seconds / DAY_SECONDS, seconds % DAY_SECONDS);
    let weekday = WEEKDAYS.get(usize::try_from(day % 7).ok()?)?;
    let (year, month, date) = civil(day);
    let month = MONTHS.get(usize::try_from(month - 1).ok()?)?;
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    // Written by hand, as it stands on every guarded answer.
    let mut text = *b"Thu, 01 Jan 1970 00:00:00 GMT";
    text[..3].copy_from_slice(weekday.as_bytes());
    text[8..11].copy_from_slice(month.as_bytes());
    for (at, number) in [(5, date), (12, year / 100), (14, year % 100), (17, hour), (20, minute), (23, second)] {
        text[at..at + 2].copy_from_slice(&two_digits(number));
    }
    HeaderValue::from_bytes(&text).ok()
}

/// The digits of a number from 0 to 99.
fn two_digits(number: i64) -> [u8; 2] {
    let digit = |digit: i64| b'0' + u8::try_from(digit % 10).unwrap_or_default();
    [digit(number / 10), digit(number)]
}

/// Year, month and day of a day counted from 1970-01-01, in the Gregorian calendar.
///
/// The year is taken to begin in March, so that the leap day is its last; 400 years have 146,097 days.
fn civil(day: i64) -> (i64, i64, i64) {
    let from_march = day + 719_468; // days from 0000-03-01 to 1970-01-01
    let (era, in_era) = (from_march / 146_097, from_march % 146_097);
    let year_of_era = (in_era - in_era / 1_460 + in_era / 36_524 - in_era / 146_096) / 365;
    let in_year = in_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * in_year + 2) / 153;
    let date = in_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (year, month, date)
}

#[cfg(test)]
mod tests;
