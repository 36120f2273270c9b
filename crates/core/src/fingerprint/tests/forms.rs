//! What forms have in common and what they have not.

use super::Is::{Different, Same};
use super::{Ask, BodyError, Is, check, rule};

#[test]
fn pairs_are_compared_decoded() {
    let table: &[(&str, &str, &str, Is)] = &[
        ("form", "a=1&b=2", "b=2&a=1", Same),
        ("form", "a=1&a=2", "a=2&a=1", Different),
        ("form", "a=1&b=0&a=2", "b=0&a=1&a=2", Same),
        ("form", "a[]=1&a[]=2", "a[]=2&a[]=1", Different),
        ("form", "l[][x]=1&l[][y]=2&l[][x]=3", "l[][x]=1&l[][x]=3&l[][y]=2", Different),
        ("form", "a=1&a[b]=2", "a[b]=2&a=1", Different),
        ("form", "a[x]=1&b[x]=2", "b%5Bx]=2&a[x%5d=1", Same),
        ("form", "n=a+b", "n=a%20b", Same),
        ("form", "n=a+b", "n=a%2Bb", Different),
        ("form", "n=%7E", "n=~", Same),
        ("form", "n=%c3%A9", "n=%C3%a9", Same),
        ("form", "n=%E9", "n=%C3%A9", Different),
        ("form", "a=1&&b=2&", "a=1&b=2", Same),
        ("form", "a", "a=", Different),
        ("form", "=1", "1", Different),
        ("form", "a=b=c", "a=b%3Dc", Same),
        ("form", "a=1&b=2", "a=1%26b=2", Different),
        ("form", "a=1;b=2", "a=1&b=2", Different),
        ("form", "", "&", Same),
        ("form", "", "a=", Different),
        ("form;ignore=/t", "a=1&t=5", "t=6&a=1&t=7", Same),
        ("form;ignore=/t", "a=1&t=5", "a=1", Same),
        ("form;ignore=/t", "a=1&t[x]=5", "a=1&t[x]=6", Different),
        ("form;ignore=/t[x]", "a=1&t[x]=5", "a=1&t%5Bx%5D=6", Same),
        ("form;choose=/a,/b", "a=1&c=2", "c=3&a=1", Same),
        ("form;choose=/a,/b", "a=1", "b=1", Different),
        ("form;choose=/a", "a=", "c=1", Different),
        ("auto;ignore=/t,/x/y", "a=1&t=5", "t=6&a=1", Same),
    ];
    for (text, first, second, expected) in table {
        check(text, &Ask::form(first), &Ask::form(second), *expected);
    }
}

#[test]
fn broken_escapes_and_raw_bytes_are_refused_and_bytes_under_auto() {
    let table: &[(&[u8], usize)] = &[
        (b"a=%", 2),
        (b"a=%4", 2),
        (b"a=%zz&b=1", 2),
        (b"ok=1&b%G0=1", 6),
        (b"a=%+1", 2),
        (b"a= 1", 2),
        (b"a=1\r\n", 3),
        (b"a=\xc3\xa9", 2),
        (b"{\"a\": 1}", 5),
    ];
    for (body, offset) in table {
        let ask = Ask::form(body);
        let refused = Err(BodyError::Form { offset: *offset });
        assert_eq!(ask.under(&rule("form")), refused, "{}", String::from_utf8_lossy(body));
        assert_eq!(ask.under(&rule("auto")).unwrap().rule(), &rule("bytes"));
    }
}
