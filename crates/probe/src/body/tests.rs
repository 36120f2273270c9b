//! Every change to a body, as a table of what comes out.

use super::{Hints, changed, with_member};
use crate::case::Body;

const BASE: &str = r#"{ "b" : 1, "a":["x","y"], "deep":{"n":1.50,"s":"q\"}"} }"#;

fn check(base: &str, change: Body, vary: Option<&str>, wanted: Result<&str, &str>) {
    let hints = Hints { vary, default: Some("/c=[1]") };
    let found = changed(base.as_bytes(), change, &hints).map(|bytes| String::from_utf8(bytes).unwrap());
    match wanted {
        Ok(text) => assert_eq!(found.as_deref(), Ok(text), "{change:?}"),
        Err(part) => assert!(found.as_ref().is_err_and(|why| why.contains(part)), "{change:?}: {found:?}"),
    }
}

#[test]
fn changes_leave_everything_else() {
    check(BASE, Body::Base, None, Ok(BASE));
    check(BASE, Body::Changed, None, Ok(r#"{"b":2,"a":["x","y"],"deep":{"n":1.50,"s":"q\"}"}}"#));
    check(BASE, Body::Changed, Some("/deep/s"), Ok(r#"{"b":1,"a":["x","y"],"deep":{"n":1.50,"s":"q\"} other"}}"#));
    check(BASE, Body::Removed, Some("/deep/n"), Ok(r#"{"b":1,"a":["x","y"],"deep":{"s":"q\"}"}}"#));
    check(BASE, Body::Reordered, None, Ok(r#"{"deep":{"s":"q\"}","n":1.50},"a":["x","y"],"b":1}"#));
    check(BASE, Body::ArraysReversed, None, Ok(r#"{"b":1,"a":["y","x"],"deep":{"n":1.50,"s":"q\"}"}}"#));
    check(r#"{"a":1}"#, Body::Added, None, Ok(r#"{"a":1,"counterfoil_probe":"1"}"#));
    check("{}", Body::NullAdded, None, Ok(r#"{"counterfoil_probe":null}"#));
    check(r#"{"a":1}"#, Body::DefaultAdded, None, Ok(r#"{"a":1,"c":[1]}"#));
    check(r#"{"a":[1]}"#, Body::Pretty, None, Ok("{\n  \"a\" : [\n    1\n  ]\n}"));
    check(r#"{"a":"t","n":7}"#, Body::NumberDecimal, Some("/a"), Ok(r#"{"a":"t","n":7.0}"#));
    check(r#"{"n":7,"m":8}"#, Body::NumberExponent, Some("/m"), Ok(r#"{"n":7,"m":8e0}"#));
    check(r#"{"n":7}"#, Body::NumberLongNext, None, Ok(r#"{"n":12345678901234567891}"#));
    check(r#"{"n":7}"#, Body::Invalid, None, Ok(r#"{"n":{"invalid":true}}"#));
    check(r#"{"a":1,"b":2}"#, Body::DuplicateMember, Some("/a"), Ok(r#"{"a":1,"b":2,"a":1}"#));
    check(r#"{"a":1,"b":2}"#, Body::DuplicateMember, None, Ok(r#"{"a":1,"b":2,"b":2}"#));
    check(r#"{"a":1}"#, Body::Nested, Some("/a"), Ok(r#"{"a":[1]}"#));
    check(r#"{"n":1,"a":"","b":"t\"a"}"#, Body::Escaped, Some("/n"), Ok(r#"{"n":1,"a":"","b":"\u0074\"a"}"#));
    check(r#"{"a":"😀!"}"#, Body::Escaped, None, Ok(r#"{"a":"\ud83d\ude00!"}"#));
    check(r#"{"a":"t"}"#, Body::Composed, None, Ok("{\"a\":\"t caf\u{e9}\"}"));
    check(r#"{"a":"t"}"#, Body::Decomposed, None, Ok("{\"a\":\"t cafe\u{301}\"}"));
    let keyed = with_member(b"[1]", "k", "v").map_err(|why| why.contains("no JSON object"));
    assert_eq!((with_member(b"{}", "k", "v\""), keyed), (Ok(br#"{"k":"v\""}"#.to_vec()), Err(true)));
}

#[test]
fn what_is_missing_is_said() {
    check("{}", Body::Changed, None, Err("no value to vary"));
    check("{}", Body::Changed, Some("/a"), Err("no /a"));
    check("{}", Body::Removed, Some("/a"), Err("no such member"));
    check(r#"{"a":1}"#, Body::Reordered, None, Err("two members"));
    check(r#"{"a":[1,1]}"#, Body::ArraysReversed, None, Err("two different"));
    check(r#"{"a":"1"}"#, Body::NumberLong, None, Err("no whole number"));
    check(r#"{"a":1}"#, Body::Escaped, None, Err("no text"));
    check("{}", Body::DuplicateMember, None, Err("no such member"));
    check(r#"{"a":1}"#, Body::NewBoundary, None, Err("multipart"));
    check("not json", Body::Changed, None, Err("not JSON"));
    check("[1]", Body::Added, None, Err("no JSON object"));
}
