//! Results by table: what is accepted, and every complaint.

use counterfoil_core::Body;

use super::{from_base64, parse, to_base64};

#[track_caller]
fn check(text: &str, expected: Result<(u16, usize, Option<&[u8]>), &str>) {
    let found = parse(text).map(|receipt| {
        let body = match receipt.body {
            Body::Kept(bytes) => Some(bytes.to_vec()),
            Body::NotKept => None,
        };
        (receipt.status, receipt.headers.len(), body)
    });
    let expected = expected.map(|(status, headers, body)| (status, headers, body.map(<[u8]>::to_vec)));
    assert_eq!(found, expected.map_err(str::to_owned), "{text}");
}

#[test]
fn accepted() {
    check(r#"{"status":201}"#, Ok((201, 0, None)));
    check(r#"{"status":204,"body":""}"#, Ok((204, 0, Some(b""))));
    check(
        r#"{"status":201,"headers":[["Location","/orders/1"],["link","a"],["link","b"]],"body":"{\"id\":1}"}"#,
        Ok((201, 3, Some(b"{\"id\":1}"))),
    );
    check(r#"{"status":200,"body_base64":"AP8="}"#, Ok((200, 0, Some(&[0, 255]))));
}

#[test]
fn refused() {
    check("", Err("it is not JSON: EOF while parsing a value at line 1 column 0"));
    check("[]", Err("it is no JSON object"));
    check("{}", Err("status: accepted: a number from 200 to 599"));
    check(r#"{"status":"201"}"#, Err("status: accepted: a number from 200 to 599"));
    check(r#"{"status":100}"#, Err("status: accepted: a number from 200 to 599"));
    check(
        r#"{"status":200,"body":{"id":1}}"#,
        Err("body: accepted: a text, such as the JSON that was answered, in quotes"),
    );
    check(r#"{"status":200,"body":"a","body_base64":"YQ=="}"#, Err("body: accepted: body or body_base64, not both"));
    check(
        r#"{"status":200,"body_base64":"YQ"}"#,
        Err("body_base64: accepted: base64 with padding (RFC 4648 section 4)"),
    );
    check(
        r#"{"status":7,"headers":[["a b","x"],["a"],["a","\n"]],"colour":1}"#,
        Err(
            "colour: unknown; accepted: status, headers, body, body_base64; status: accepted: a number from 200 to 599; \
             headers[0]: accepted: a pair like [\"location\", \"/orders/1\"]; \
             headers[1]: accepted: a pair like [\"location\", \"/orders/1\"]; \
             headers[2]: accepted: a pair like [\"location\", \"/orders/1\"]",
        ),
    );
}

/// The vectors of RFC 4648 section 10, and texts that a strict reader refuses.
#[test]
fn base64() {
    let rows = [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("foobar", "Zm9vYmFy")];
    for (plain, coded) in rows {
        assert_eq!(to_base64(plain.as_bytes()), coded);
        assert_eq!(from_base64(coded).as_deref(), Some(plain.as_bytes()), "{coded}");
    }
    for text in ["Z", "Zg", "Zg=", "Zg===", "Z===", "====", "Zh==", "Zm9=", "Zm 9", "Zg==Zg=="] {
        assert_eq!(from_base64(text), None, "{text}");
    }
}
