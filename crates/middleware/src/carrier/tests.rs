//! Keys in both carriers, and what is refused.

use super::*;

const ID: &str = "0192F5C0-7D3A-7C11-B0B5-0D7E55A0C001";
const DATE: &str = "Sun, 06 Nov 1994 08:49:37 GMT";

fn headers(lines: &[(&'static str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in lines {
        headers.append(*name, HeaderValue::from_str(value).unwrap());
    }
    headers
}

#[test]
fn a_key_travels_in_one_carrier() {
    let check = |lines: &[(&'static str, &str)], repeatability, expected: Result<(&str, bool), &str>| {
        let headers = headers(lines);
        let found = read(&headers, repeatability);
        let found = found.as_ref().map(|carried| (carried.key.as_str(), carried.first_sent.is_some()));
        match (found, expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{lines:?}"),
            (Err(found), Err(expected)) => assert!(format!("{found:?}").contains(expected), "{lines:?}: {found:?}"),
            (found, expected) => panic!("{lines:?}: {found:?} instead of {expected:?}"),
        }
        assert_eq!(is_keyed(&headers, repeatability), !lines.is_empty() && expected != Err("MissingKey"), "{lines:?}");
    };
    check(&[("idempotency-key", "\"k\"")], true, Ok(("k", false)));
    check(&[(REQUEST_ID, "k"), (FIRST_SENT, DATE)], true, Ok(("k", true)));
    // A UUID in either case is the same one; other texts are not folded.
    check(&[(REQUEST_ID, ID), (FIRST_SENT, DATE)], true, Ok((&ID.to_ascii_lowercase(), true)));
    check(&[(REQUEST_ID, "Order-A"), (FIRST_SENT, DATE)], true, Ok(("Order-A", true)));
    check(&[("idempotency-key", ID)], true, Ok((ID, false)));
    check(&[], true, Err("MissingKey"));
    check(&[(REQUEST_ID, "k")], true, Err("First-Sent is missing"));
    check(&[(FIRST_SENT, DATE)], true, Err("Request-ID is missing"));
    check(&[(REQUEST_ID, "k"), (FIRST_SENT, DATE), (FIRST_SENT, DATE)], true, Err("came twice"));
    check(&[(REQUEST_ID, "k"), (REQUEST_ID, "k"), (FIRST_SENT, DATE)], true, Err("KeyRepeated"));
    check(&[(REQUEST_ID, "k"), (FIRST_SENT, "yesterday")], true, Err("no HTTP date"));
    check(&[(REQUEST_ID, "k"), (FIRST_SENT, DATE), ("idempotency-key", "k")], true, Err("send one of them"));
    // Switched off, the second carrier is not there.
    check(&[(REQUEST_ID, "k"), (FIRST_SENT, DATE)], false, Err("MissingKey"));
    check(&[(REQUEST_ID, "r"), (FIRST_SENT, DATE), ("idempotency-key", "k")], false, Ok(("k", false)));
}
