//! Public bug reports about fingerprints, each as the requests it was about. The numbers are those of the project's
//! collection of reports.

use super::Is::{Different, Same};
use super::{Ask, Is, check, rule};

fn pairs(text: &str, table: &[(&str, &str, Is)]) {
    for (first, second, expected) in table {
        check(text, &Ask::json(first), &Ask::json(second), *expected);
    }
}

#[test]
fn b39_member_order() {
    for media in [
        "application/json",
        "application/json; charset=utf-8",
        "application/vnd.x+json",
        "application/vnd.x+json;charset=utf-8",
    ] {
        let ask = |body: &str| Ask::new(media, body);
        check("auto", &ask(r#"{"a":1,"b":2}"#), &ask(r#"{"b":2,"a":1}"#), Same);
        check("bytes", &ask(r#"{"a":1,"b":2}"#), &ask(r#"{"b":2,"a":1}"#), Different);
    }
}

#[test]
fn b41_a_gateway_respells_numbers() {
    let spellings = [r#"{"qty":1}"#, r#"{"qty":1.0}"#, r#"{"qty":1e0}"#, r#"{"qty":10e-1}"#];
    for first in spellings {
        for second in spellings {
            pairs("json", &[(first, second, Same)]);
            pairs("bytes", &[(first, second, if first == second { Same } else { Different })]);
        }
    }
    pairs("json", &[("0", "-0", Same), ("0", "0.0", Same), ("-0", "-0.0e5", Same)]);
}

#[test]
fn b42_numbers_beyond_the_machine() {
    let table = [
        ("9007199254740992", "9007199254740993", Different),
        ("9223372036854775808", "9223372036854775809", Different),
        ("18446744073709551616", "18446744073709551617", Different),
        ("0.12345678901234567890", "0.123456789012345678901", Different),
        ("1e400", "2e400", Different),
    ];
    pairs("json", &table);
    pairs("auto", &table);
}

#[test]
fn b43_duplicate_members() {
    for twice in [r#"{"amount":1,"amount":100}"#, r#"{"amount":100,"amount":100}"#, r#"{"\u0061mount":1,"amount":100}"#]
    {
        assert!(Ask::json(twice).under(&rule("json")).is_err());
        check("auto", &Ask::json(twice), &Ask::json(r#"{"amount":100}"#), Different);
        check("auto", &Ask::json(r#"{"amount":100}"#), &Ask::json(twice), Different);
    }
    assert!(Ask::json(r#"[{"x":{"a":1,"a":1}}]"#).under(&rule("json")).is_err());
}

#[test]
fn b44_an_envelope_that_changes_with_every_attempt() {
    let first = r#"{"id":1,"method":"pay","params":{"n":1,"_meta":{"sentAt":"10:00","by":"x"}}}"#;
    let retry = r#"{"id":2,"method":"pay","params":{"n":1,"_meta":{"sentAt":"10:01","by":"x"}}}"#;
    let other = r#"{"id":2,"method":"pay","params":{"n":2,"_meta":{"sentAt":"10:01","by":"x"}}}"#;
    let text = "json;ignore=/id,/params/_meta/sentAt";
    pairs(text, &[(first, retry, Same), (first, other, Different)]);
    pairs("json", &[(first, retry, Different)]);
    // The record's rule decides, so naming a rule later makes no false conflict, and dropping it neither.
    let stored = Ask::json(first).under(&rule(text)).unwrap();
    assert_eq!(stored.rule().as_text(), text);
    assert_eq!(Ask::json(retry).under(stored.rule()), Ok(stored));
}

#[test]
fn b45_a_fresh_boundary_for_every_attempt() {
    let ask = |boundary: &str, byte: &str| {
        let media = format!("multipart/form-data; boundary={boundary}");
        let part = "Content-Disposition: form-data; name=\"f\"; filename=\"f\"\r\n\r\n";
        Ask::new(&media, format!("--{boundary}\r\n{part}{byte}\r\n--{boundary}--\r\n"))
    };
    check("auto", &ask("AAA", "x"), &ask("BBB", "x"), Same);
    check("auto", &ask("AAA", "x"), &ask("AAA", "y"), Different);
    check("bytes", &ask("AAA", "x"), &ask("BBB", "x"), Different);
}

#[test]
fn b49_escapes_are_equal_and_text_is_not_normalised() {
    pairs(
        "json",
        &[
            (r#"{"t":"<p>"}"#, r#"{"t":"\u003cp\u003e"}"#, Same),
            (r#"["a\/b"]"#, r#"["a/b"]"#, Same),
            ("[\"\u{e9}\"]", r#"["\u00e9"]"#, Same),
            ("[\"\u{e9}\"]", "[\"e\u{301}\"]", Different),
            ("[\"\u{e9}\"]", " [ \"\u{e9}\" ]\n", Same),
            ("[1]", "\u{feff}[1]", Different),
            ("[\"\\ufffd\"]", r#"["\ud800"]"#, Different),
        ],
    );
}

#[test]
fn b50_forms_have_a_rule_of_their_own() {
    let table = [
        ("a=1&b=2", "b=2&a=1", Same),
        ("a=1&a=2", "a=2&a=1", Different),
        ("n=+", "n=%20", Same),
        ("n=%7E", "n=~", Same),
    ];
    for (first, second, expected) in table {
        check("auto", &Ask::form(first), &Ask::form(second), expected);
        check("bytes", &Ask::form(first), &Ask::form(second), Different);
    }
    let charset = Ask::new("application/x-www-form-urlencoded; charset=utf-8", "n=1");
    check("auto", &Ask::form("n=1"), &charset, Same);
}

#[test]
fn b51_codings_are_compared_as_sent() {
    let gzip = |body: &[u8]| Ask::json(body).with("content-encoding", "gzip");
    check("auto", &gzip(b"\x1f\x8b1"), &gzip(b"\x1f\x8b1"), Same);
    check("auto", &gzip(b"\x1f\x8b1"), &gzip(b"\x1f\x8b2"), Different);
    check("auto", &gzip(b"\x1f\x8b1"), &Ask::json("{}"), Different);
    check("auto", &gzip(b"{}"), &Ask::json("{}"), Different);
    assert!(gzip(b"{}").under(&rule("json")).is_err());
}

#[test]
fn b52_the_query_is_a_part() {
    let ask = |path: &str, query: &str| {
        let mut ask = Ask::json("{}");
        ask.path = path.into();
        ask.query = query.into();
        ask
    };
    check("auto", &ask("/transfers", "dryRun=true"), &ask("/transfers", "dryRun=false"), Different);
    check("auto", &ask("/transfers", "a=1&b=2"), &ask("/transfers", "b=2&a=1"), Different);
    check("auto", &ask("/orders", ""), &ask("/orders/", ""), Different);
    check("auto", &ask("/a%2Fb", ""), &ask("/a/b", ""), Different);
}

#[test]
fn b53_a_redelivery_that_counts_its_attempts() {
    let first = r#"{"id":"E1","type":"paid","at":1}"#;
    let again = r#"{"id":"E1","type":"paid","at":2,"attempt":2}"#;
    pairs("json", &[(first, again, Different)]);
    pairs("json;choose=/id", &[(first, again, Same)]);
    pairs("json;ignore=/at,/attempt", &[(first, again, Same)]);
}

#[test]
fn b54_another_channel_under_the_same_key() {
    pairs("auto", &[(r#"{"to":"A"}"#, r#"{"to":"B"}"#, Different)]);
}
