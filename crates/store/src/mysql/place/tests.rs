//! Addresses: what is read, what is refused, and that no password is ever shown.

use super::Place;

fn check(url: &str, want: Option<&str>) {
    let place = Place::new(url);
    match (&place, want) {
        (Ok(place), Some(want)) => assert_eq!(place.to_string(), want, "{url}"),
        (Err(error), None) => assert!(!error.to_string().contains("s3cret"), "{url}: {error}"),
        (Ok(place), None) => panic!("{url} was taken as {place}"),
        (Err(error), Some(_)) => panic!("{url} was refused: {error}"),
    }
}

#[test]
fn addresses_are_shown_without_their_secrets() {
    for (url, want) in [
        ("mysql://ann:s3cret@db.test/shop", Some("mysql://ann@db.test:3306/shop")),
        ("mariadb://ann:s3cret@db.test:6000/shop", Some("mysql://ann@db.test:6000/shop")),
        ("mysql://ann:s3cret@db.test/shop?require_ssl=true", Some("mysql://ann@db.test:3306/shop")),
        ("mysql://ann:s3cret@[::1]:5433/shop", Some("mysql://ann@[::1]:5433/shop")),
        ("mysql://ann:s3cret@db.test/shop?require_ssl=true&verify_ca=false", None),
        ("mysql://ann:s3cret@db.test/shop?require_ssl=true&verify_identity=false", None),
        ("mysql://ann:s3cret@db.test", None),
        ("mysql://", None),
        ("postgres://ann:s3cret@db.test/shop", None),
        ("mysql://ann:s3cret@db.test:port/shop", None),
        ("mysql://ann:s3cret@db.test/shop?no_such_option=s3cret", None),
    ] {
        check(url, want);
    }
}
