//! Hop-by-hop headers and forwarding headers, by table.

use http::{HeaderMap, HeaderName, HeaderValue};

use super::{Origin, join_cookies, remove_hop_by_hop, takes_trailers, tell_origin};

type Lines<'a> = &'a [(&'a str, &'a str)];

fn map(lines: Lines<'_>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in lines {
        headers.append(HeaderName::try_from(*name).unwrap(), HeaderValue::try_from(*value).unwrap());
    }
    headers
}

fn lines(headers: &HeaderMap) -> Vec<(&str, &str)> {
    let mut lines: Vec<_> = headers.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
    lines.sort_unstable();
    lines
}

#[test]
fn hop_by_hop() {
    let rows: [(Lines<'_>, Lines<'_>); 5] = [
        (&[("accept", "*/*")], &[("accept", "*/*")]),
        (
            &[("connection", "close"), ("keep-alive", "timeout=5"), ("te", "trailers"), ("accept", "*/*")],
            &[("accept", "*/*")],
        ),
        (
            &[
                ("connection", "X-One, x-two"),
                ("connection", "x-three"),
                ("x-one", "1"),
                ("x-two", "2"),
                ("x-three", "3"),
                ("x-four", "4"),
            ],
            &[("x-four", "4")],
        ),
        (
            &[
                ("transfer-encoding", "chunked"),
                ("upgrade", "h2c"),
                ("http2-settings", "AAMAAABkAAQAAP__"),
                ("proxy-connection", "close"),
                ("proxy-authorization", "Basic eA=="),
            ],
            &[],
        ),
        // A caller must not take away what frames or addresses the message.
        (
            &[("connection", "content-length, host"), ("content-length", "3"), ("host", "a")],
            &[("content-length", "3"), ("host", "a")],
        ),
    ];
    for (given, expected) in rows {
        let mut headers = map(given);
        remove_hop_by_hop(&mut headers);
        assert_eq!(lines(&headers), expected, "{given:?}");
    }
}

/// `peer` with whether it is believed, then what came and what goes on.
#[track_caller]
fn told(peer: Option<&str>, secure: bool, trusted: bool, given: Lines<'_>, expected: Lines<'_>) {
    let mut headers = map(given);
    let host = headers.get("host").cloned();
    let origin = Origin { peer: peer.map(|peer| peer.parse().unwrap()), secure, host, trusted };
    tell_origin(&mut headers, &origin);
    assert_eq!(lines(&headers), expected, "{given:?} from {peer:?}");
}

#[test]
fn origin() {
    let v4 = Some("192.0.2.7");
    let mine = [
        ("forwarded", "for=192.0.2.7;proto=http;host=\"api.example:81\""),
        ("host", "api.example:81"),
        ("x-forwarded-for", "192.0.2.7"),
        ("x-forwarded-host", "api.example:81"),
        ("x-forwarded-proto", "http"),
    ];
    told(v4, false, false, &[("host", "api.example:81")], &mine);
    let lies = [
        ("host", "api.example:81"),
        ("x-forwarded-for", "203.0.113.1"),
        ("x-forwarded-for", "203.0.113.2, 203.0.113.3"),
        ("x-forwarded-proto", "https"),
        ("x-forwarded-host", "shop.example"),
        ("forwarded", "for=203.0.113.1"),
        ("forwarded", "for=203.0.113.2"),
    ];
    told(v4, false, false, &lies, &mine);
    told(
        v4,
        false,
        true,
        &lies,
        &[
            ("forwarded", "for=203.0.113.1, for=203.0.113.2, for=192.0.2.7;proto=http;host=\"api.example:81\""),
            ("host", "api.example:81"),
            ("x-forwarded-for", "203.0.113.1, 203.0.113.2, 203.0.113.3, 192.0.2.7"),
            ("x-forwarded-host", "shop.example"),
            ("x-forwarded-proto", "https"),
        ],
    );
    told(
        Some("2001:db8::1"),
        true,
        true,
        &[],
        &[
            ("forwarded", "for=\"[2001:db8::1]\";proto=https"),
            ("x-forwarded-for", "2001:db8::1"),
            ("x-forwarded-proto", "https"),
        ],
    );
    told(
        None,
        false,
        false,
        &[("host", "a\"b"), ("x-forwarded-for", "203.0.113.1")],
        &[
            ("forwarded", "for=unknown;proto=http"),
            ("host", "a\"b"),
            ("x-forwarded-host", "a\"b"),
            ("x-forwarded-proto", "http"),
        ],
    );
}

#[test]
fn trailers() {
    let rows: [(Lines<'_>, bool); 5] = [
        (&[], false),
        (&[("te", "gzip")], false),
        (&[("te", "trailers")], true),
        (&[("te", "gzip;q=0.5, Trailers")], true),
        (&[("te", "gzip"), ("te", "trailers")], true),
    ];
    for (given, expected) in rows {
        assert_eq!(takes_trailers(&map(given)), expected, "{given:?}");
    }
}

#[test]
fn cookies() {
    let rows: [(Lines<'_>, Lines<'_>); 3] = [
        (&[("accept", "*/*")], &[("accept", "*/*")]),
        (&[("cookie", "a=1; b=2")], &[("cookie", "a=1; b=2")]),
        (&[("cookie", "a=1"), ("cookie", "b=2")], &[("cookie", "a=1; b=2")]),
    ];
    for (given, expected) in rows {
        let mut headers = map(given);
        join_cookies(&mut headers);
        assert_eq!(lines(&headers), expected, "{given:?}");
    }
}
