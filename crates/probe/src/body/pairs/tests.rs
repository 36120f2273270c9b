//! Every change to pairs, as a table of what comes out.

use super::{Format, Hints, Pairs};
use crate::case::Body;

const BASE: &str = "product=green+tea&quantity=2&tag=a&tag=b%26c&gift=true";

fn check(format: Format, base: &str, change: Body, vary: Option<&str>, wanted: Result<&str, &str>) {
    let hints = Hints { vary, default: Some("/wrap=red paper") };
    let found = Pairs::read(base.as_bytes()).changed(format, change, &hints).map(|pairs| pairs.form());
    let found = found.map(|bytes| String::from_utf8(bytes).unwrap());
    match wanted {
        Ok(text) => assert_eq!(found.as_deref(), Ok(text), "{change:?}"),
        Err(part) => assert!(found.as_ref().is_err_and(|why| why.contains(part)), "{change:?}: {found:?}"),
    }
}

#[test]
fn changes_leave_everything_else() {
    let form = |base: &str, change, vary: &str, wanted: &str| check(Format::Form, base, change, Some(vary), Ok(wanted));
    form(BASE, Body::Base, "quantity", BASE);
    form("a=1&&b\n", Body::Base, "a", "a=1&&b");
    for vary in ["quantity", "/quantity"] {
        form(BASE, Body::Changed, vary, "product=green+tea&quantity=3&tag=a&tag=b%26c&gift=true");
    }
    form(BASE, Body::Changed, "gift", "product=green+tea&quantity=2&tag=a&tag=b%26c&gift=false");
    form("a%5B0%5D=x&b=1", Body::Changed, "a[0]", "a%5B0%5D=x+other&b=1");
    form("a=1", Body::Added, "a", "a=1&counterfoil_probe=1");
    form("a=1", Body::DefaultAdded, "a", "a=1&wrap=red+paper");
    form(BASE, Body::Removed, "tag", "product=green+tea&quantity=2&gift=true");
    form(BASE, Body::Reordered, "tag", "gift=true&tag=a&tag=b%26c&quantity=2&product=green+tea");
    form("a=x&n=7", Body::NumberDecimal, "a", "a=x&n=7.0");
    form("n=7&m=8", Body::NumberExponent, "m", "n=7&m=8e0");
    form("n=7", Body::NumberLongNext, "n", "n=12345678901234567891");
    form("a=x&n=7", Body::Invalid, "n", "a=x&n=invalid");
    form("a=x&n=7", Body::Invalid, "a", "a=&n=7");
    form("n=7&a=tea", Body::Escaped, "n", "n=7&a=%74ea");
    form("a=tea", Body::Composed, "a", "a=tea+caf%C3%A9");
    form("a=tea", Body::Decomposed, "a", "a=tea+cafe%CC%81");
    check(Format::Form, BASE, Body::Changed, None, Ok("product=green+tea+other&quantity=2&tag=a&tag=b%26c&gift=true"));
    check(Format::Multipart, "a=1", Body::NewBoundary, None, Ok("a=1"));
}

#[test]
fn what_cannot_be_asked_is_said() {
    let form = |base: &str, change, part: &str| check(Format::Form, base, change, None, Err(part));
    form("a=1", Body::NullAdded, "no null");
    form("a=1", Body::ArraysReversed, "no arrays");
    form("a=1", Body::Pretty, "no white space");
    form("a=1", Body::Nested, "no structure");
    form("a=1", Body::DuplicateMember, "a list");
    form("a=1", Body::NewBoundary, "only a multipart body");
    form("a=1&a=2", Body::Reordered, "no two names");
    form("a=x", Body::NumberLong, "no whole number");
    form("a=1", Body::Composed, "no text");
    form("", Body::Changed, "no value to vary");
    form("", Body::Removed, "no such member");
    check(Format::Form, "a=1", Body::Changed, Some("b"), Err("no b"));
    check(Format::Multipart, "a=x", Body::Escaped, None, Err("no escapes"));
}

#[test]
fn parts() {
    let pairs = Pairs::read(b"a%22=x%26+y&&c&d=100%");
    let wanted = "--B\r\ncontent-disposition: form-data; name=\"a%22\"\r\n\r\nx& y\r\n\
                  --B\r\ncontent-disposition: form-data; name=\"c\"\r\n\r\n\r\n\
                  --B\r\ncontent-disposition: form-data; name=\"d\"\r\n\r\n100%\r\n--B--\r\n";
    assert_eq!(String::from_utf8(pairs.parts("B")).unwrap(), wanted);
    assert_eq!(Pairs::read(b"\n").parts("B"), b"--B--\r\n");
}
