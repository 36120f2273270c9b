//! How a place is told, and where it is in a round.

use super::{Further, Place};

#[test]
fn a_place_is_told_with_a_method_or_without() {
    let check = |place: Place, told: &str, method: Option<&str>, path: &str| {
        let further = Further::parse(place, told).unwrap();
        assert_eq!((further.method.as_deref(), further.address.path.as_str()), (method, path), "{told}");
    };
    check(Place::Other, "http://localhost/refunds", None, "/refunds");
    check(Place::Change, "http://localhost/orders/{{id}}", Some("PATCH"), "/orders/{{id}}");
    check(Place::Change, "POST  http://localhost/orders/{{id}}/edit", Some("POST"), "/orders/{{id}}/edit");
    check(Place::Delete, "http://localhost/orders/{{id}}", Some("DELETE"), "/orders/{{id}}");
    check(Place::Lookup, "http://localhost/orders?key={{key}}", Some("GET"), "/orders?key={{key}}");
    check(Place::Cancel, "http://localhost/cancel/{{key}}", None, "/cancel/{{key}}");
    for (told, why) in
        [("GE T http://localhost/", "not a URL"), ("G@T http://localhost/", "is no method"), ("", "not a URL")]
    {
        let refused = Further::parse(Place::Lookup, told).unwrap_err().to_string();
        assert!(refused.contains(why), "{told}: {refused}");
    }
}

#[test]
fn what_is_not_known_is_said() {
    let path = |told: &str, key: Option<&str>, id: Option<&str>| {
        Further::parse(Place::Lookup, told).unwrap().at(key, id).map(|address| address.path)
    };
    assert_eq!(path("http://localhost/x/{{id}}?k={{key}}", Some("a b"), Some("/o/1")).unwrap(), "/x/%2Fo%2F1?k=a%20b");
    assert!(path("http://localhost/{{id}}", None, None).unwrap_err().contains("--id"));
    assert!(path("http://localhost/{{key}}", None, Some("1")).unwrap_err().contains("the case has none"));
}

#[test]
fn names_are_those_of_the_settings() {
    assert_eq!("second".parse(), Ok(Place::Second));
    let unknown = "target".parse::<Place>().unwrap_err();
    assert!(unknown.contains("`lookup`"), "{unknown}");
}
