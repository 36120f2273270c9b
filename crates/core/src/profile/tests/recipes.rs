//! Recipes filled in for an intent.

use super::*;
use crate::intent::tests::{draft, header_carrier};

fn recipe(url: &str, body: Option<&str>) -> Recipe {
    Recipe {
        method: "POST".to_owned(),
        url: url.to_owned(),
        body: body.map(str::to_owned),
        found: Vec::new(),
        absent: Vec::new(),
        note: String::new(),
    }
}

#[test]
fn a_question_goes_to_the_same_host_and_keeps_what_is_filled_in_apart() {
    let check = |recipe: &Recipe, key: &str, resource: Option<&str>, wanted: Option<(&str, Option<&str>)>| {
        let request = draft().freeze(&crate::Key::new(key).unwrap(), &header_carrier()).unwrap();
        let found = recipe.question(&request, resource);
        let found = found.as_ref().map(|question| (question.url.as_str(), question.body.as_deref()));
        assert_eq!(found, wanted, "{recipe:?}");
    };
    let by_key = recipe("{url}?key={key}", None);
    check(&by_key, "k1", None, Some(("https://api.example/v1/charges?key=k1", None)));
    check(&by_key, "a b&{url}/?", None, Some(("https://api.example/v1/charges?key=a%20b%26%7Burl%7D%2F%3F", None)));
    let by_id = recipe("{url}/{resource}", None);
    check(&by_id, "k1", None, None);
    check(&by_id, "k1", Some("po_1"), Some(("https://api.example/v1/charges/po_1", None)));
    check(&by_id, "k1", Some("../{key}"), Some(("https://api.example/v1/charges/..%2F%7Bkey%7D", None)));
    let cancel = recipe("{origin}/cancel", Some(r#"{"k":"{key}"}"#));
    check(&cancel, r#"a"b"#, None, Some(("https://api.example/cancel", Some(r#"{"k":"a\"b"}"#))));
    let both = recipe("{origin}/x", Some(r#"["{resource}","{key}"]"#));
    check(&both, "k1", Some("{key}"), Some(("https://api.example/x", Some(r#"["\u007bkey\u007d","k1"]"#))));
}
