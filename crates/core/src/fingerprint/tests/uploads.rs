//! What multipart bodies have in common and what they have not.

use super::Is::{Different, Same};
use super::{Ask, BodyError, Is, check, rule};

const TEXT: &str = "Content-Disposition: form-data; name=\"note\"\r\n\r\nhello";
const FILE: &str =
    "Content-Disposition: form-data; name=\"file\"; filename=\"a.bin\"\r\nContent-Type: image/png\r\n\r\n\0\r\n--x";

fn upload(boundary: &str, parts: &[&str]) -> Ask {
    let mut body = String::new();
    for part in parts {
        body += &format!("--{boundary}\r\n{part}\r\n");
    }
    body += &format!("--{boundary}--\r\n");
    Ask::new(&format!("multipart/form-data; boundary={boundary}"), body)
}

#[test]
fn parts_are_compared_and_the_boundary_is_not() {
    let first = upload("AAA", &[TEXT, FILE]);
    let file = |from: &str, to: &str| upload("AAA", &[TEXT, &FILE.replace(from, to)]);
    let table: Vec<(&str, Ask, Is)> = vec![
        ("multipart", upload("BBB-1", &[TEXT, FILE]), Same),
        ("multipart", upload("AAA", &[FILE, TEXT]), Different),
        ("multipart", upload("AAA", &[TEXT]), Different),
        ("multipart", upload("AAA", &[TEXT, FILE, FILE]), Different),
        ("multipart", file("\0", "\x01"), Different),
        ("multipart", file("a.bin", "b.bin"), Different),
        ("multipart", file("; filename=\"a.bin\"", ""), Different),
        ("multipart", file("image/png", "image/gif"), Different),
        ("multipart", file("name=\"file\"", "name=\"data\""), Different),
        ("multipart", file("Content-Type", "content-type"), Same),
        ("multipart", file("Content-Type", "X-A: b\r\nContent-Type"), Different),
        ("multipart;ignore=/note", upload("B", &[FILE, &TEXT.replace("hello", "bye")]), Same),
        ("multipart;ignore=/note", upload("B", &[FILE]), Same),
        ("multipart;ignore=/note", upload("B", &[TEXT]), Different),
        ("multipart;choose=/note", upload("B", &[TEXT]), Same),
        ("multipart;choose=/note", upload("B", &[]), Different),
        ("bytes", upload("BBB", &[TEXT, FILE]), Different),
    ];
    for (text, second, expected) in &table {
        check(text, &first, second, *expected);
        check(&text.replace("multipart;ignore", "auto;ignore"), &first, second, *expected);
    }
    check("auto", &first, &table[0].1, Same);
    let quoted = Ask::new("Multipart/Form-Data; charset=utf-8; Boundary=\"AAA\"", &first.body);
    check("auto", &first, &quoted, Same);
}

#[test]
fn what_is_not_strict_multipart_is_refused_and_bytes_under_auto() {
    let good = String::from_utf8(upload("AAA", &[TEXT, FILE]).body).unwrap();
    let table: Vec<(String, &str)> = vec![
        (String::new(), "start with the boundary"),
        (format!("preamble\r\n{good}"), "start with the boundary"),
        (good.replace("--AAA", "--BBB"), "start with the boundary"),
        (good.replacen("--AAA\r\n", "--AAA \r\n", 1), "neither a line end"),
        (good.replacen("--AAA\r\n", "--AAA\n", 1), "neither a line end"),
        (good.replace("--x", "--AAAx"), "neither a line end"),
        (format!("{good}epilogue"), "follows the last"),
        (good.replace("--AAA--", ""), "last boundary is missing"),
        (good[..good.len() / 3].replace("\r\n\r\n", ""), "headers of a part do not end"),
        (good.replacen("Content-D", " Content-D", 1), "malformed header"),
        (good.replacen("image/png", "image\n/png", 1), "malformed header"),
        (good.replace("Content-Type: image/png", "Content-Disposition: form-data; name=x"), "two"),
        (good.replacen("form-data", "attachment", 1), "no form-data"),
        (good.replacen("; name=\"note\"", "", 1), "no form-data"),
        (good.replacen("name=\"note\"", "name=\"note\"; name=a", 1), "no form-data"),
        (good.replacen("name=\"note\"", "name=\"note", 1), "no form-data"),
        (good.replacen("name=\"note\"", "name=\"note\\\"", 1), "no form-data"),
    ];
    for (body, expected) in &table {
        let ask = Ask::new("multipart/form-data; boundary=AAA", body);
        match ask.under(&rule("multipart")) {
            Err(BodyError::Multipart { reason, .. }) => {
                assert!(reason.contains(expected), "{body}: {reason}");
            }
            other => panic!("{body}: {other:?}"),
        }
        assert_eq!(ask.under(&rule("auto")).unwrap().rule(), &rule("bytes"));
    }
}

#[test]
fn the_boundary_must_be_one_and_valid() {
    let body = upload("AAA", &[TEXT]).body;
    let long = "a".repeat(71);
    let refused = [
        "multipart/form-data",
        "multipart/form-data; boundary=",
        "multipart/form-data; boundary=\"\"",
        "multipart/form-data; boundary=AAA; boundary=AAA",
        "multipart/form-data; boundary=\"A A \"",
        "multipart/form-data; boundary=\"A@\"",
        "multipart/form-data boundary=AAA",
        "multipart/mixed; boundary=AAA",
        "text/plain",
        &format!("multipart/form-data; boundary={long}"),
    ];
    for media in refused {
        let ask = Ask::new(media, &body);
        assert_eq!(ask.under(&rule("multipart")), Err(BodyError::NoBoundary), "{media}");
        assert_eq!(ask.under(&rule("auto")).unwrap().rule(), &rule("bytes"), "{media}");
    }
}

#[test]
fn a_thousand_parts_and_no_more() {
    assert!(upload("B", &[TEXT; 1000]).under(&rule("multipart")).is_ok());
    let many = upload("B", &[TEXT; 1001]);
    assert_eq!(many.under(&rule("multipart")), Err(BodyError::TooManyParts));
    assert_eq!(many.under(&rule("auto")).unwrap().rule(), &rule("bytes"));
}
