//! Addresses: what is read, what is refused, and that no password is ever shown.

use tokio_postgres::config::TargetSessionAttrs;

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

#[test]
fn a_host_alone_has_everything_else_that_the_address_says() {
    let all = "postgres://ann:s3cret@db.test:6000/shop?options=-cx%3D1&application_name=a&sslmode=require&keepalives=0\
        &sslnegotiation=direct&keepalives_idle=7&keepalives_interval=8&keepalives_retries=9&channel_binding=require\
        &target_session_attrs=read-write&hostaddr=192.0.2.1";
    let place = Place::new(all, &Options::default()).unwrap();
    assert!(place.hosts == [place.config.clone()], "{:?} and {:?}", place.hosts, place.config);
    let place = Place::new("postgres://ann@a.test:1,b.test:2/shop", &Options::default()).unwrap();
    let hosts =
        place.hosts.iter().map(|host| (host.get_hosts().len(), host.get_ports(), host.get_target_session_attrs()));
    let writes = TargetSessionAttrs::ReadWrite;
    assert_eq!(hosts.collect::<Vec<_>>(), [(1, &[1][..], writes), (1, &[2][..], writes)]);
}
