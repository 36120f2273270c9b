//! Quantities, peers and places by table; whole files are in `tests/it/config.rs`.

use std::time::Duration;

use super::{Listen, Net, Peer, StorePlace, Upstream, parse_size, parse_span, print_size, print_span};

#[test]
fn spans() {
    let rows: [(&str, Option<u64>); 16] = [
        ("0s", Some(0)),
        ("1ms", Some(1)),
        ("500ms", Some(500)),
        ("30s", Some(30_000)),
        ("15m", Some(900_000)),
        ("24h", Some(86_400_000)),
        ("7d", Some(604_800_000)),
        ("2w", Some(1_209_600_000)),
        ("36600d", Some(36_600 * 86_400_000)),
        ("36601d", None),
        ("99999999999999999999s", None),
        ("15", None),
        ("m", None),
        ("1.5h", None),
        ("1h30m", None),
        ("-1s", None),
    ];
    for (text, millis) in rows {
        assert_eq!(parse_span(text).ok(), millis.map(Duration::from_millis), "{text}");
    }
    for (text, printed) in
        [("90s", "90s"), ("60s", "1m"), ("48h", "2d"), ("2w", "14d"), ("0s", "0ms"), ("1500ms", "1500ms")]
    {
        assert_eq!(print_span(parse_span(text).unwrap()), printed, "{text}");
    }
}

#[test]
fn sizes() {
    let rows = [
        ("0B", Some(0)),
        ("4096B", Some(4096)),
        ("64KiB", Some(65_536)),
        ("1MiB", Some(1_048_576)),
        ("1GiB", Some(1_073_741_824)),
        ("1MB", None),
        ("1", None),
        ("MiB", None),
        ("18446744073709551615GiB", None),
    ];
    for (text, bytes) in rows {
        assert_eq!(parse_size(text).ok(), bytes, "{text}");
    }
    for (bytes, printed) in [(0, "0B"), (1, "1B"), (1024, "1KiB"), (1_572_864, "1536KiB")] {
        assert_eq!(print_size(bytes), printed);
    }
}

#[test]
fn peers() {
    let rows = [
        ("127.0.0.1/32", "127.0.0.1", true),
        ("127.0.0.1/32", "127.0.0.2", false),
        ("127.0.0.1", "::ffff:127.0.0.1", true),
        ("10.0.0.0/8", "10.255.0.1", true),
        ("10.0.0.0/8", "11.0.0.1", false),
        ("0.0.0.0/0", "203.0.113.9", true),
        ("0.0.0.0/0", "::1", false),
        ("::/0", "203.0.113.9", false),
        ("::1", "::1", true),
        ("fd00::/8", "fdff::1", true),
        ("fd00::/8", "fe00::1", false),
    ];
    for (peer, address, believed) in rows {
        assert_eq!(Net::parse(peer).unwrap().contains(address.parse().unwrap()), believed, "{peer} {address}");
    }
    for text in ["", "Unix", "unix:", "localhost", "10.0.0.0/33", "::/129", "10.0.0.1/8", "10.0.0.0/", "fd00::1/8"] {
        assert!(Peer::parse(text).is_err(), "{text}");
    }
    for (text, shown) in [("unix", "unix"), ("::1", "::1/128")] {
        assert_eq!(Peer::parse(text).unwrap().to_string(), shown);
    }
}

#[test]
fn upstreams() {
    let rows = [
        ("http://127.0.0.1:9000", Some(("127.0.0.1", 9000))),
        ("http://orders/", Some(("orders", 80))),
        ("http://[::1]:9000", Some(("::1", 9000))),
        ("https://orders", Some(("orders", 443))),
        ("https://orders:8443", Some(("orders", 8443))),
        ("unix:/run/orders.sock", None),
        ("ftp://orders", None),
        ("https://user@orders", None),
        ("http://user@orders", None),
        ("http://orders/api", None),
        ("http://orders/?a", None),
        ("orders:9000", None),
        ("/orders", None),
        ("", None),
    ];
    for (text, target) in rows {
        let found = Upstream::parse(text).ok();
        assert_eq!(found.as_ref().and_then(Upstream::target), target, "{text}");
    }
}

#[test]
fn places_to_listen() {
    let long = format!("unix:/{}", "x".repeat(107));
    let rows = [
        ("127.0.0.1:8787", true),
        ("[::1]:8787", true),
        ("unix:/run/counterfoil.sock", true),
        ("unix:here.sock", true),
        ("localhost:8787", false),
        ("127.0.0.1", false),
        ("unix:", false),
        ("unix://host/x", false),
        (&long, false),
    ];
    for (text, accepted) in rows {
        let found = Listen::parse(text);
        assert_eq!(found.is_ok(), accepted, "{text}");
        if let Ok(found) = found {
            assert_eq!(found.to_string(), text);
        }
        if text.starts_with("unix:") {
            assert_eq!(Upstream::parse(text).is_ok(), accepted, "{text}");
        }
    }
}

/// An address is shown without its password, in complaints too.
#[cfg(feature = "postgres")]
#[test]
fn databases() {
    let rows = [
        ("postgres://ann:s3cret@db.test/shop", Some("postgres://ann@db.test:5432/shop")),
        ("postgresql://ann:s3cret@db.test:6000/shop?sslmode=require", Some("postgres://ann@db.test:6000/shop")),
        ("postgres://ann:s3cret@db.test/shop?unheard_of=s3cret", None),
        ("postgres:ann:s3cret", None),
    ];
    for (text, shown) in rows {
        let found = StorePlace::parse(text);
        let told = match &found {
            Ok(place) => format!("{place} {place:?}"),
            Err(fault) => fault.clone(),
        };
        assert!(!told.contains("s3cret"), "{text}: {told}");
        assert_eq!(found.ok().map(|place| place.to_string()).as_deref(), shown, "{text}");
    }
}

#[test]
fn stores() {
    let rows = [
        ("sqlite:counterfoil.db", true),
        ("sqlite:/var/lib/x.db", true),
        ("memory:", true),
        ("sqlite:", false),
        ("sqlite::memory:", false),
        ("sqlite://host/x", false),
        ("sqlite:x.db?mode=ro", false),
        ("memory", false),
        ("redis://localhost", false),
    ];
    for (text, accepted) in rows {
        let found = StorePlace::parse(text);
        assert_eq!(found.is_ok(), accepted, "{text}");
        if let Ok(found) = found {
            assert_eq!(found.to_string(), text);
        }
    }
}
