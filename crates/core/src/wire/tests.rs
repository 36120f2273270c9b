//! Keys as they come over the wire, and problem documents as they go. Paths are in `tests/paths`.

mod paths;
mod problems;

use proptest::prelude::*;

use super::*;
use crate::error::Error;

fn parse(line: &[u8]) -> Result<Key, Error> {
    parse_key([line]).map(|key| key.expect("a line came"))
}

/// Each line names this key.
#[test]
fn quoted_and_bare_text_name_the_same_key() {
    let rows: &[(&str, &str)] = &[
        ("order-1234", "order-1234"),
        (r#""order-1234""#, "order-1234"),
        ("  order-1234\t", "order-1234"),
        ("\t \"order-1234\" ", "order-1234"),
        ("9f1c2b3a-0000-4000-8000-000000000001", "9f1c2b3a-0000-4000-8000-000000000001"),
        (r#""9f1c2b3a-0000-4000-8000-000000000001""#, "9f1c2b3a-0000-4000-8000-000000000001"),
        // Escapes of a quoted string; the same characters in bare text are themselves.
        (r#""a\"b\\c""#, r#"a"b\c"#),
        (r#"a"b\c"#, r#"a"b\c"#),
        (r#"a\"b"#, r#"a\"b"#),
        (r#""\"""#, "\""),
        // White space inside counts, around bare text it does not.
        ("a b", "a b"),
        (r#"" a b ""#, " a b "),
        (r#"" ""#, " "),
        // Parameters of a quoted key are ignored; bare text has none.
        (r#""a";v=1"#, "a"),
        (r#""a"; v=1;w="x";flag;at=@1"#, "a"),
        (r#""a";v=:AAAA:"#, "a"),
        ("a;v=1", "a;v=1"),
        // What RFC 9651 would read as token, number, bytes, boolean, date or list is bare text.
        ("a, b", "a, b"),
        ("42", "42"),
        ("-4.5", "-4.5"),
        (":YWJj:", ":YWJj:"),
        ("?1", "?1"),
        ("@1659578233", "@1659578233"),
        (r#"%"f%c3%bc""#, r#"%"f%c3%bc""#),
        ("(a b)", "(a b)"),
        ("'a'", "'a'"),
        ("~!@#$%^&*()_+{}|:<>?", "~!@#$%^&*()_+{}|:<>?"),
    ];
    for (line, key) in rows {
        assert_eq!(parse(line.as_bytes()), Ok(Key::new(*key).unwrap()), "{line}");
    }
}

#[test]
fn list_headers_are_read_by_items() {
    let check = |lines: &[&str], expected: &[&str]| {
        let found: Vec<&[u8]> = list_items(lines.iter().map(|line| line.as_bytes())).collect();
        assert_eq!(found, expected.iter().map(|item| item.as_bytes()).collect::<Vec<_>>(), "{lines:?}");
    };
    check(&[], &[]);
    check(&["gzip"], &["gzip"]);
    check(&[" gzip\t,br;q=0 ", "zstd"], &["gzip", "br;q=0", "zstd"]);
    check(&["", ", ,a,,", " "], &["a"]);
}

#[test]
fn what_names_no_key_is_refused() {
    let rows: &[(&[u8], Error)] = &[
        (b"", Error::KeyEmpty),
        (b" \t ", Error::KeyEmpty),
        (br#""""#, Error::KeyEmpty),
        (br#"""; v=1"#, Error::KeyEmpty),
        (br#"""#, Error::KeyQuoting),
        (br#""a"#, Error::KeyQuoting),
        (br#""a\"#, Error::KeyQuoting),
        (br#""a\""#, Error::KeyQuoting),
        (br#""a\n""#, Error::KeyQuoting),
        (br#""a"b"#, Error::KeyQuoting),
        (br#""a" "b""#, Error::KeyQuoting),
        (br#""a", "b""#, Error::KeyQuoting),
        (br#""a","b""#, Error::KeyQuoting),
        (br#""a";"#, Error::KeyQuoting),
        (br#""a";V=1"#, Error::KeyQuoting),
        (br#""a" ;v=1"#, Error::KeyQuoting),
        ("é".as_bytes(), Error::KeyCharacter { at: 0 }),
        ("a\u{feff}".as_bytes(), Error::KeyCharacter { at: 1 }),
        ("\"é\"".as_bytes(), Error::KeyCharacter { at: 1 }),
        (b"a\xff", Error::KeyCharacter { at: 1 }),
        (b"a\tb", Error::KeyCharacter { at: 1 }),
        (b"\"a\tb\"", Error::KeyCharacter { at: 2 }),
        (b"a\0", Error::KeyCharacter { at: 1 }),
        (b"\x0ca", Error::KeyCharacter { at: 0 }),
        (b"a\r\n", Error::KeyCharacter { at: 1 }),
        (b"a\x7f", Error::KeyCharacter { at: 1 }),
    ];
    for (line, expected) in rows {
        assert_eq!(parse(line).as_ref(), Err(expected), "{:?}", String::from_utf8_lossy(line));
    }
}

#[test]
fn a_key_has_at_most_255_bytes_however_it_is_written() {
    let check = |line: String, expected: Result<usize, usize>| {
        let found = parse(line.as_bytes());
        let expected = expected.map_err(|bytes| Error::KeyTooLong { bytes });
        assert_eq!(found.map(|key| key.as_str().len()), expected, "{} bytes", line.len());
    };
    check("k".repeat(255), Ok(255));
    check("k".repeat(256), Err(256));
    check(format!("  {}  ", "k".repeat(255)), Ok(255));
    check(format!("\"{}\"", "k".repeat(255)), Ok(255));
    check(format!("\"{}\"", "k".repeat(256)), Err(256));
    check(format!("\"{}\"", r"\\".repeat(255)), Ok(255));
    check(format!("\"{}\"", r"\\".repeat(256)), Err(256));
    check(format!("\"{}\";v=\"{}\"", r"\\".repeat(255), "p".repeat(1000)), Ok(255));
    check(format!("\"k\";v=\"{}\"", "p".repeat(5000)), Err(5008));
    check("k".repeat(1 << 20), Err(1 << 20));
}

#[test]
fn one_line_is_a_key_none_is_none_and_more_are_refused() {
    assert_eq!(parse_key([]), Ok(None));
    for lines in [vec!["a", "a"], vec!["a", "b"], vec!["", ""], vec!["a", "b", "c"]] {
        let found = parse_key(lines.iter().map(|line| line.as_bytes()));
        assert_eq!(found, Err(Error::KeyRepeated { lines: lines.len() }), "{lines:?}");
    }
}

#[test]
fn header_names_are_spelled_as_the_http_library_wants_them() {
    let names = [IDEMPOTENCY_KEY, IDEMPOTENT_REPLAYED, IDEMPOTENCY_EXPIRES, IDEMPOTENCY_STATUS, IDEMPOTENCY_REMEMBER];
    for name in names {
        assert_eq!(http::HeaderName::from_static(name).as_str(), name);
    }
}

proptest! {
    #[test]
    fn any_key_comes_back_from_its_quoted_form(text in "[ -~]{1,255}") {
        let escaped = text.replace('\\', r"\\").replace('"', r#"\""#);
        prop_assert_eq!(parse(format!("\"{escaped}\"").as_bytes()), Key::new(text));
    }

    #[test]
    fn any_bare_key_comes_back(text in "[!#-~]([ -~]{0,253}[!-~])?") {
        prop_assert_eq!(parse(text.as_bytes()), Key::new(text));
    }

    #[test]
    fn any_line_is_answered(line in proptest::collection::vec(any::<u8>(), 0..40), quoted in any::<bool>()) {
        let line = if quoted { [b"\"", line.as_slice()].concat() } else { line };
        if let Ok(key) = parse(&line) {
            prop_assert!(Key::new(key.as_str()).is_ok());
        }
    }
}
