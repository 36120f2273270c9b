//! What is told becomes a body of a kind, and every change of a form, as tables.

use super::{Entity, Hints, Shape};
use crate::case::Body;
use crate::lack::Lack;

fn entity(body: &str) -> Entity {
    Entity::of(Some(body), &[], None).unwrap()
}

fn check(base: &Entity, change: Body, vary: Option<&str>, wanted: Result<&str, Lack>) {
    let hints = Hints { vary, default: Some("/gift=no"), ..Hints::default() };
    let found = base.changed(change, &hints).map(|entity| String::from_utf8(entity.bytes).unwrap());
    assert_eq!(found, wanted.map(str::to_owned), "{change:?}");
}

#[test]
fn the_kind_follows_what_is_given() {
    let media = |body: Option<&str>, told: Option<&str>| {
        let entity = Entity::of(body, &[], told).unwrap();
        (entity.shape, entity.media)
    };
    let json = (Shape::Json, "application/json".to_owned());
    let form = (Shape::Form, "application/x-www-form-urlencoded".to_owned());
    assert_eq!(media(None, None), json);
    assert_eq!(media(Some("{\"a\":\"b=c&d=e\"}"), None), json);
    assert_eq!(media(Some("\"a=b\""), None), json);
    assert_eq!(media(Some("a=1&b[0]=2"), None), form);
    assert_eq!(media(Some("a=1"), Some("text/plain")), (Shape::Json, "text/plain".to_owned()));
    let told = "application/x-www-form-urlencoded; charset=utf-8";
    assert_eq!(media(Some(""), Some(told)), (Shape::Form, told.to_owned()));
    let parts = (Shape::Multipart("x y".to_owned()), "multipart/form-data; boundary=\"x y\"".to_owned());
    assert_eq!(media(Some("--x y--\r\n"), Some(&parts.1)), parts);
    let parts = (Shape::Multipart("xy".to_owned()), "multipart/form-data; boundary=xy".to_owned());
    assert_eq!(media(Some("--xy\r\n\r\n--xy--\r\n"), None), parts);
    let fields = ["a=1".to_owned()];
    assert!(Entity::of(Some("{}"), &fields, None).is_err_and(|why| why.contains("not both")));
    assert!(Entity::of(None, &fields, Some("application/json")).is_err_and(|why| why.contains("multipart")));
    assert!(Entity::of(None, &["=1".to_owned()], None).is_err_and(|why| why.contains("NAME=VALUE")));
    assert!(Entity::of(None, &["a=@/none/such".to_owned()], None).is_err_and(|why| why.contains("/none/such")));
    assert!(Entity::of(Some("x"), &[], Some("multipart/form-data")).is_err_and(|why| why.contains("boundary")));
}

#[test]
fn a_form_keeps_its_spelling() {
    let base = entity("p=green+tea%21&n=2&tag=a&tag=b");
    check(&base, Body::Base, None, Ok("p=green+tea%21&n=2&tag=a&tag=b"));
    check(&base, Body::Changed, None, Ok("p=green+tea%21+other&n=2&tag=a&tag=b"));
    check(&base, Body::Changed, Some("/n"), Ok("p=green+tea%21&n=3&tag=a&tag=b"));
    check(&base, Body::Changed, Some("n"), Ok("p=green+tea%21&n=3&tag=a&tag=b"));
    check(&base, Body::Added, None, Ok("p=green+tea%21&n=2&tag=a&tag=b&counterfoil_probe=1"));
    check(&base, Body::DefaultAdded, None, Ok("p=green+tea%21&n=2&tag=a&tag=b&gift=no"));
    check(&base, Body::Removed, Some("/n"), Ok("p=green+tea%21&tag=a&tag=b"));
    check(&base, Body::Reordered, None, Ok("tag=b&tag=a&n=2&p=green+tea%21"));
    check(&base, Body::ArraysReversed, None, Ok("p=green+tea%21&n=2&tag=b&tag=a"));
    check(&base, Body::NumberDecimal, None, Ok("p=green+tea%21&n=2.0&tag=a&tag=b"));
    check(&base, Body::Escaped, Some("/n"), Ok("p=green+tea%21&n=%32&tag=a&tag=b"));
    check(&base, Body::Composed, None, Ok("p=caf%C3%A9&n=2&tag=a&tag=b"));
    check(&base, Body::Structured, Some("/n"), Ok("p=green+tea%21&n[]=2&tag=a&tag=b"));
    check(&base, Body::Invalid, Some("/n"), Ok("p=green+tea%21&n[invalid]=2&tag=a&tag=b"));
    check(&base, Body::MemberTwice, Some("/n"), Ok("p=green+tea%21&n=2&tag=a&tag=b&n=3"));
    check(&base, Body::NullAdded, None, Err(Lack::void("a form has no null")));
    check(&base, Body::NewBoundary, None, Err(Lack::void("only multipart bodies have a boundary")));
    check(&base, Body::Changed, Some("/x"), Err("the body has no /x".into()));
    check(&entity("a=1"), Body::Reordered, None, Err("the body has no two fields of different names".into()));
    check(
        &entity("a=1&a=1"),
        Body::ArraysReversed,
        None,
        Err("no field of the body stands twice with two values".into()),
    );
    let keyed = entity("a=1").with_member("token", "k/1").unwrap();
    assert_eq!(keyed.bytes, b"a=1&token=k%2F1");
}

#[test]
fn parts_keep_their_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("note.txt");
    std::fs::write(&file, "a\r\nb").unwrap();
    let form = ["n=2".to_owned(), format!("file=@{}", file.display())];
    let base = Entity::of(None, &form, None).unwrap();
    let Shape::Multipart(boundary) = &base.shape else { panic!("{base:?}") };
    let part = |head: &str, value: &str| format!("--{boundary}\r\n{head}\r\n\r\n{value}\r\n");
    let named = |name: &str| format!("content-disposition: form-data; name=\"{name}\"");
    let upload = format!("{}; filename=\"note.txt\"\r\ncontent-type: application/octet-stream", named("file"));
    let end = format!("--{boundary}--\r\n");
    let whole = |value: &str| [part(&named("n"), value), part(&upload, "a\r\nb"), end.clone()].concat();
    check(&base, Body::Base, None, Ok(&whole("2")));
    check(&base, Body::Changed, None, Ok(&whole("3")));
    let turned = [part(&upload, "a\r\nb"), part(&named("n"), "2"), end.clone()].concat();
    check(&base, Body::Reordered, None, Ok(&turned));
    check(&base, Body::Removed, Some("/n"), Ok(&[part(&upload, "a\r\nb"), end.clone()].concat()));
    check(&base, Body::Pretty, None, Err(Lack::void("a form has no white space of its own")));
    check(&base, Body::Escaped, None, Err(Lack::void("a part has no escapes")));
    let next = base.changed(Body::NewBoundary, &Hints::default()).unwrap();
    assert!(next.media != base.media && next.bytes != base.bytes, "{next:?}");
    let Shape::Multipart(other) = &next.shape else { panic!("{next:?}") };
    assert_eq!(String::from_utf8(next.bytes.clone()).unwrap(), whole("2").replace(boundary.as_str(), other));
    let keyed = String::from_utf8(base.with_member("token", "k").unwrap().bytes).unwrap();
    assert!(keyed.ends_with(&[part(&named("token"), "k"), end].concat()), "{keyed}");
    let broken = Entity { bytes: b"--x".to_vec(), ..base };
    assert!(broken.changed(Body::Changed, &Hints::default()).is_err());
}
