//! HTTP dates (RFC 9110 section 5.6.7), written and read.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use counterfoil_core::Timestamp;
use http::HeaderValue;

/// The last second of the year 9999: an HTTP date has four digits for the year.
const LAST_SECOND: u64 = 253_402_300_799;

/// The date of the last whole second that is not after `at`; `None` outside the years 1970 to 9999.
pub(crate) fn http_date(at: Timestamp) -> Option<HeaderValue> {
    let seconds = u64::try_from(at.as_millis()).ok()? / 1000;
    if seconds > LAST_SECOND {
        return None;
    }
    HeaderValue::try_from(httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(seconds))).ok()
}

/// The instant that a date names, in any of the three forms that a recipient must read.
pub(crate) fn read(text: &str) -> Option<Timestamp> {
    let since = httpdate::parse_http_date(text).ok()?.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    Some(Timestamp::from_millis(i64::try_from(since.as_millis()).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_of_the_table() {
        let check = |seconds: i64, expected: Option<&str>| {
            let found = http_date(Timestamp::from_millis(seconds.saturating_mul(1000).saturating_add(999)));
            assert_eq!(found.as_ref().map(|date| date.to_str().unwrap()), expected, "{seconds}");
            if let Some(text) = expected {
                assert_eq!(read(text), Some(Timestamp::from_millis(seconds * 1000)), "{text}");
            }
        };
        check(0, Some("Thu, 01 Jan 1970 00:00:00 GMT"));
        check(784_111_777, Some("Sun, 06 Nov 1994 08:49:37 GMT"));
        check(951_868_799, Some("Tue, 29 Feb 2000 23:59:59 GMT"));
        check(4_107_542_400, Some("Mon, 01 Mar 2100 00:00:00 GMT"));
        check(253_402_300_799, Some("Fri, 31 Dec 9999 23:59:59 GMT"));
        check(253_402_300_800, None);
        check(-1, None);
        check(i64::MAX, None);
    }

    #[test]
    fn what_is_no_date_is_refused() {
        for text in
            ["", "now", "2026-11-30T12:00:00Z", "Sun, 06 Nov 1994 08:49:37 CET", "Sun, 31 Feb 1994 08:49:37 GMT"]
        {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
