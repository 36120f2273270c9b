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
    check(&[(REPEATABILITY_REQUEST_ID, "k"), (REPEATABILITY_FIRST_SENT, DATE)], true, Ok(("k", true)));
    // A UUID in either case is the same one; other texts are not folded.
    check(
        &[(REPEATABILITY_REQUEST_ID, ID), (REPEATABILITY_FIRST_SENT, DATE)],
        true,
        Ok((&ID.to_ascii_lowercase(), true)),
    );
    check(&[(REPEATABILITY_REQUEST_ID, "Order-A"), (REPEATABILITY_FIRST_SENT, DATE)], true, Ok(("Order-A", true)));
    check(&[("idempotency-key", ID)], true, Ok((ID, false)));
    check(&[], true, Err("MissingKey"));
    check(&[(REPEATABILITY_REQUEST_ID, "k")], true, Err("First-Sent is missing"));
    check(&[(REPEATABILITY_FIRST_SENT, DATE)], true, Err("Request-ID is missing"));
    check(
        &[(REPEATABILITY_REQUEST_ID, "k"), (REPEATABILITY_FIRST_SENT, DATE), (REPEATABILITY_FIRST_SENT, DATE)],
        true,
        Err("came twice"),
    );
    check(
        &[(REPEATABILITY_REQUEST_ID, "k"), (REPEATABILITY_REQUEST_ID, "k"), (REPEATABILITY_FIRST_SENT, DATE)],
        true,
        Err("KeyRepeated"),
    );
    check(&[(REPEATABILITY_REQUEST_ID, "k"), (REPEATABILITY_FIRST_SENT, "yesterday")], true, Err("no HTTP date"));
    check(
        &[(REPEATABILITY_REQUEST_ID, "k"), (REPEATABILITY_FIRST_SENT, DATE), ("idempotency-key", "k")],
        true,
        Err("send one of them"),
    );
    // Switched off, the second carrier is not there.
    check(&[(REPEATABILITY_REQUEST_ID, "k"), (REPEATABILITY_FIRST_SENT, DATE)], false, Err("MissingKey"));
    check(
        &[(REPEATABILITY_REQUEST_ID, "r"), (REPEATABILITY_FIRST_SENT, DATE), ("idempotency-key", "k")],
        false,
        Ok(("k", false)),
    );
}
