//! What JSON bodies have in common and what they have not, and what is refused.

use super::Is::{Different, Same};
use super::{Ask, BodyError, Is, check, rule};

#[test]
fn bodies_are_compared_by_meaning() {
    let table: &[(&str, &str, Is)] = &[
        (r#"{"a":1,"b":2}"#, " {\n\t\"b\" : 2 ,\r\n \"a\":1 } ", Same),
        (r#"{"a":{"x":1,"y":[{"p":1,"q":2}]}}"#, r#"{"a":{"y":[{"q":2,"p":1}],"x":1}}"#, Same),
        (r#"{"a":"x"}"#, r#"{"\u0061":"\u0078"}"#, Same),
        (r#"["\/","\n","😀"]"#, r#"["/","\u000a","\uD83D\uDE00"]"#, Same),
        ("[1,2]", "[2,1]", Different),
        ("[1,2]", "[12]", Different),
        ("[[1],2]", "[[1,2]]", Different),
        ("[]", "{}", Different),
        ("[]", "[null]", Different),
        ("null", "false", Different),
        ("true", "false", Different),
        ("1", r#""1""#, Different),
        (r#""""#, "null", Different),
        (r#"{"a":null}"#, "{}", Different),
        (r#"{"a":0}"#, "{}", Different),
        (r#"{"a":1}"#, r#"{"A":1}"#, Different),
        (r#"{"a":{"b":1}}"#, r#"{"a":{},"b":1}"#, Different),
        (r#"{"a":"b","c":"d"}"#, r#"{"a":"d","c":"b"}"#, Different),
        (r#"["1:a"]"#, r#"["1","a"]"#, Different),
        ("\"\u{e9}\"", "\"e\u{301}\"", Different),
        ("\"\u{df}\"", "\"ss\"", Different),
    ];
    for (first, second, expected) in table {
        check("json", &Ask::json(first), &Ask::json(second), *expected);
        check("auto", &Ask::json(first), &Ask::json(second), *expected);
    }
}

#[test]
fn numbers_are_exact_decimals() {
    let table: &[(&str, &str, Is)] = &[
        ("1", "1.0", Same),
        ("1.00", "1e0", Same),
        ("1", "10e-1", Same),
        ("100", "1E+2", Same),
        ("0.001", "1e-003", Same),
        ("12.50", "0.1250e2", Same),
        ("-0", "0", Same),
        ("0.000", "-0e999999999999999999999999", Same),
        ("1e400", "10e399", Same),
        ("1e400", "2e400", Different),
        ("1e-400", "0", Different),
        ("1e400", "1e401", Different),
        ("1", "-1", Different),
        ("1", "10", Different),
        ("101", "1001", Different),
        ("9007199254740993", "9007199254740992", Different),
        ("0.1", "0.1000000000000000055511151231257827", Different),
        ("1e999999999999999999", "10e999999999999999998", Same),
        ("1e-999999999999999999", "0.1e-999999999999999998", Same),
        ("1e999999999999999999", "1e-999999999999999999", Different),
    ];
    for (first, second, expected) in table {
        check("json", &Ask::json(first), &Ask::json(second), *expected);
        let inside = |number: &str| Ask::json(format!(r#"{{"n":[{number}]}}"#));
        check("json", &inside(first), &inside(second), *expected);
    }
    let long = |last: char| Ask::json(format!("0.{}{last}", "3".repeat(100_000)));
    check("json", &long('1'), &long('2'), Different);
    check("json", &long('1'), &Ask::json(format!("0.{}10", "3".repeat(100_000))), Same);
}

#[test]
fn what_is_not_strict_json_is_refused_and_compared_as_bytes_under_auto() {
    let deep = |levels: usize| ["[".repeat(levels), "]".repeat(levels)].concat().into_bytes();
    let table: Vec<(Vec<u8>, usize)> = vec![
        (b"".to_vec(), 0),
        (b" ".to_vec(), 1),
        (b"\xef\xbb\xbf{}".to_vec(), 0),
        (b"{} x".to_vec(), 3),
        (b"{}{}".to_vec(), 2),
        (b"[1,]".to_vec(), 3),
        (b"{\"a\":1,}".to_vec(), 7),
        (b"{a:1}".to_vec(), 1),
        (b"['a']".to_vec(), 1),
        (b"[NaN]".to_vec(), 1),
        (b"[Infinity]".to_vec(), 1),
        (b"[-Infinity]".to_vec(), 2),
        (b"nul".to_vec(), 3),
        (b"nulls".to_vec(), 4),
        (b"01".to_vec(), 1),
        (b"+1".to_vec(), 0),
        (b".5".to_vec(), 0),
        (b"1.".to_vec(), 2),
        (b"1.e1".to_vec(), 2),
        (b"1e".to_vec(), 2),
        (b"-".to_vec(), 1),
        (b"--1".to_vec(), 1),
        (b"0x10".to_vec(), 1),
        (b"1_000".to_vec(), 1),
        (b"/* c */ 1".to_vec(), 0),
        (b"\"\\ud800\"".to_vec(), 7),
        (b"\"\\udc00\"".to_vec(), 6),
        (b"\"\\ud800\\u0041\"".to_vec(), 12),
        (b"{\"\\ud800\":1}".to_vec(), 8),
        (b"\"\xff\"".to_vec(), 1),
        (b"\"\\n\xff\"".to_vec(), 2),
        (b"\"\xed\xa0\x80\"".to_vec(), 1),
        (b"\"a\nb\"".to_vec(), 2),
        (b"\"a\0b\"".to_vec(), 2),
        (b"\"\\x41\"".to_vec(), 2),
        (b"\"open".to_vec(), 5),
        (vec![b'9'; 4301], 4301),
    ];
    for (body, expected) in &table {
        let ask = Ask::json(body);
        match ask.under(&rule("json")) {
            Err(BodyError::NotJson { offset, .. }) => {
                assert_eq!(offset, *expected, "{}", String::from_utf8_lossy(body));
            }
            other => panic!("{}: {other:?}", String::from_utf8_lossy(body)),
        }
        assert_eq!(ask.under(&rule("auto")).unwrap().rule(), &rule("bytes"));
    }
    assert!(Ask::json(deep(128)).under(&rule("json")).is_ok());
    let too_deep = Err(BodyError::TooDeep { offset: 128 });
    assert_eq!(Ask::json(deep(129)).under(&rule("json")), too_deep);
    assert_eq!(Ask::json(vec![b'['; 1 << 20]).under(&rule("json")), too_deep);
    for number in ["1e9999999999999999999", "1e-1000000000000000000"] {
        let refused = Err(BodyError::Exponent { offset: 1 });
        assert_eq!(Ask::json(format!("[{number}]")).under(&rule("json")), refused);
    }
    assert!(Ask::json("1e0000000000000000000000000001").under(&rule("json")).is_ok());
}

#[test]
fn duplicate_members_are_named_by_pointer() {
    let long = "n".repeat(100);
    let cut = format!("/{}…", "n".repeat(64));
    let table: &[(String, &str)] = &[
        (r#"{"a":1,"a":1}"#.into(), "/a"),
        (r#"{"a":1,"b":2,"\u0061":3}"#.into(), "/a"),
        (r#"{"x":[0,{"y":{"b":1,"a":2,"b":3}}]}"#.into(), "/x/1/y/b"),
        (r#"{"a/b":{"m~n":{"":1,"":2}}}"#.into(), "/a~1b/m~0n/"),
        (r#"{"secret":1,"secret":2}"#.into(), "/secret"),
        (format!(r#"{{"{long}":1,"{long}":2}}"#), &cut),
    ];
    for (body, pointer) in table {
        let expected = BodyError::DuplicateMember { pointer: (*pointer).to_owned() };
        for text in ["json", "json;ignore=/secret,/x", "json;choose=/nothing"] {
            assert_eq!(Ask::json(body).under(&rule(text)), Err(expected.clone()), "{body}");
        }
    }
}

#[test]
fn ignored_pointers_are_as_if_absent() {
    let table: &[(&str, &str, &str, Is)] = &[
        ("/t", r#"{"a":1,"t":1}"#, r#"{"t":{"x":[]},"a":1}"#, Same),
        ("/t", r#"{"a":1,"t":1}"#, r#"{"a":1}"#, Same),
        ("/t", r#"{"a":1,"t":1}"#, r#"{"a":2,"t":1}"#, Different),
        ("/t", r#"{"a":{"t":1}}"#, r#"{"a":{"t":2}}"#, Different),
        ("/a/t", r#"{"a":{"t":1}}"#, r#"{"a":{"t":2}}"#, Same),
        ("/a/t", r#"{"a":{"t":1}}"#, r#"{"a":{}}"#, Same),
        ("/a/t", r#"{"a":{}}"#, r#"{}"#, Different),
        ("/a/t", r#"{"a":[1]}"#, r#"{"a":[2]}"#, Different),
        ("/l/1", r#"{"l":[1,2,3]}"#, r#"{"l":[1,9,3]}"#, Same),
        ("/l/1", r#"{"l":[1,2,3]}"#, r#"{"l":[1,2,4]}"#, Different),
        ("/l/01", r#"{"l":[1,2]}"#, r#"{"l":[1,3]}"#, Different),
        ("/l/-", r#"{"l":[1,2]}"#, r#"{"l":[1,3]}"#, Different),
        ("/l/1", r#"{"l":{"1":2}}"#, r#"{"l":{"1":3}}"#, Same),
        ("/l/0/at", r#"{"l":[{"at":1,"v":1}]}"#, r#"{"l":[{"at":2,"v":1}]}"#, Same),
        ("/l/0/at", r#"{"l":[{},{"at":1}]}"#, r#"{"l":[{},{"at":2}]}"#, Different),
        ("/m~1n,/p~0q,/", r#"{"m/n":1,"p~q":1,"":1}"#, r#"{}"#, Same),
        ("/a%2Cb,/c%3Bd", r#"{"a,b":1,"c;d":1}"#, r#"{}"#, Same),
        ("/0", "[1,2]", "[3,2]", Same),
        ("/t", "1", "2", Different),
    ];
    for (pointers, first, second, expected) in table {
        let (first, second) = (Ask::json(first), Ask::json(second));
        check(&format!("json;ignore={pointers}"), &first, &second, *expected);
        check(&format!("auto;ignore={pointers}"), &first, &second, *expected);
    }
    let bad = Ask::json(r#"{"t":{"x":01}}"#);
    assert!(bad.under(&rule("json;ignore=/t")).is_err(), "what is ignored is still read strictly");
}

#[test]
fn chosen_pointers_are_all_that_counts() {
    let table: &[(&str, &str, &str, Is)] = &[
        ("/a", r#"{"a":1,"b":1}"#, r#"{"c":2,"a":1.0}"#, Same),
        ("/a", r#"{"a":1}"#, r#"{"a":2}"#, Different),
        ("/a", r#"{"a":null}"#, r#"{}"#, Different),
        ("/a", r#"{"b":1}"#, r#"[]"#, Same),
        ("/a,/b", r#"{"a":1}"#, r#"{"b":1}"#, Different),
        ("/a,/b", r#"{"a":1,"b":2}"#, r#"{"b":2,"a":1}"#, Same),
        ("/a", r#"{"a":{"x":1,"y":2}}"#, r#"{"a":{"y":2,"x":1}}"#, Same),
        ("/l/1/id", r#"{"l":[{"id":1},{"id":2}]}"#, r#"{"l":[{"id":9},{"id":2,"x":0}]}"#, Same),
        ("/l/1/id", r#"{"l":[{"id":1},{"id":2}]}"#, r#"{"l":[{"id":1},{"id":3}]}"#, Different),
        ("/l/1/id", r#"{"l":[{"id":1},{"id":2}]}"#, r#"{"l":[{"id":2}]}"#, Different),
    ];
    for (pointers, first, second, expected) in table {
        let text = format!("json;choose={pointers}");
        check(&text, &Ask::json(first), &Ask::json(second), *expected);
    }
}
