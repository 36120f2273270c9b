//! Addresses: what is read, what is refused, and that no password is ever shown.

use super::Place;
use crate::postgres::Options;

fn check(url: &str, want: Option<&str>) {
    let place = Place::new(url, &Options::default());
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
        ("postgres://ann:s3cret@db.test/shop", Some("postgres://ann@db.test:5432/shop")),
        ("postgresql://ann:s3cret@db.test:6000/shop?sslmode=require", Some("postgres://ann@db.test:6000/shop")),
        ("postgres://ann:s3cret@a.test:1,b.test:2/shop", Some("postgres://ann@a.test:1,b.test:2/shop")),
        ("postgres://ann:s3cret@[::1]:5433/shop", Some("postgres://ann@[::1]:5433/shop")),
        ("postgres://ann@db.test", Some("postgres://ann@db.test:5432/ann")),
        ("postgres://", None),
        ("mysql://ann:s3cret@db.test/shop", None),
        ("postgres://ann:s3cret@db.test:port/shop", None),
        ("postgres://ann:s3cret@db.test/shop?no_such_option=s3cret", None),
    ] {
        check(url, want);
    }
}
