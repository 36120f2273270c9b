//! Which hosts an admin request may be addressed to, by table. Routes are tried from outside in `tests/it`.

use http::HeaderValue;

use super::is_right_host;

#[test]
fn hosts() {
    let rows = [
        (Some("127.0.0.1:8788"), true),
        (Some("127.0.0.1"), true),
        (Some("[::1]:8788"), true),
        (Some("localhost:8788"), true),
        (Some("LOCALHOST"), true),
        (Some("10.2.3.4:8788"), true),
        (Some("counterfoil.example:8788"), false),
        (Some("localhost.example"), false),
        (Some("127.0.0.1.example"), false),
        (Some(""), false),
        (None, false),
    ];
    for (host, right) in rows {
        let host = host.map(|host| HeaderValue::from_str(host).unwrap());
        assert_eq!(is_right_host(host.as_ref()), right, "{host:?}");
    }
}
