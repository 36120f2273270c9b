//! Hop-by-hop headers and forwarding headers, by table.

use counterfoil_middleware::Peer;
use http::{HeaderMap, HeaderName, HeaderValue};

use super::{remove_hop_by_hop, tell_origin};

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
            &[("transfer-encoding", "chunked"), ("upgrade", "h2c"), ("trailer", "x-a"), ("proxy-connection", "close")],
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

#[test]
fn origin() {
    let rows: [(Lines<'_>, Lines<'_>); 3] = [
        (
            &[("host", "api.example")],
            &[
                ("host", "api.example"),
                ("x-forwarded-for", "192.0.2.7"),
                ("x-forwarded-host", "api.example"),
                ("x-forwarded-proto", "http"),
            ],
        ),
        (
            &[("x-forwarded-for", "203.0.113.1"), ("x-forwarded-for", "203.0.113.2, 203.0.113.3")],
            &[("x-forwarded-for", "203.0.113.1, 203.0.113.2, 203.0.113.3, 192.0.2.7"), ("x-forwarded-proto", "http")],
        ),
        (
            &[("host", "inner"), ("x-forwarded-proto", "https"), ("x-forwarded-host", "shop.example")],
            &[
                ("host", "inner"),
                ("x-forwarded-for", "192.0.2.7"),
                ("x-forwarded-host", "shop.example"),
                ("x-forwarded-proto", "https"),
            ],
        ),
    ];
    for (given, expected) in rows {
        let mut headers = map(given);
        tell_origin(&mut headers, Some(Peer("[::ffff:192.0.2.7]:1234".parse().unwrap())));
        assert_eq!(lines(&headers), expected, "{given:?}");
    }
}
