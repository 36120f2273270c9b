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

/// A listener that asks for a token asks for it at everything but health.
#[tokio::test]
async fn the_token_beyond_loopback() {
    use std::sync::Arc;

    use counterfoil_middleware::{Body, GuardLayer, Settings, SingleTenant};
    use counterfoil_store::{Gate, MemoryStore};
    use http::{Request, header};

    let token = "0123456789abcdef0123456789abcdef";
    let environment = |name: &str| (name == crate::config::ADMIN_TOKEN_VARIABLE).then(|| token.to_owned());
    let text = "upstream = \"http://127.0.0.1:9\"\nprincipal = { from = \"none\" }";
    let config = crate::config::Config::read(Some(text), &environment, &crate::config::Flags::default()).unwrap();
    let store = Arc::new(MemoryStore::new());
    let layer = GuardLayer::new(Gate::new(store.clone()).unwrap(), Settings::new(SingleTenant)).unwrap();
    let (_stop, stopping) = tokio::sync::watch::channel(false);
    let admin = super::Admin::new(store, layer.drain(), stopping, crate::numbers::recorder(), config.admin_token);
    for (path, given, status) in [
        ("/healthz", None, 200),
        ("/readyz", None, 200),
        ("/metrics", None, 401),
        ("/metrics", Some("Bearer wrong"), 401),
        ("/metrics", Some("Bearer 0123456789abcdef0123456789abcdeg"), 401),
        ("/metrics", Some("Basic 0123456789abcdef0123456789abcdef"), 401),
        ("/metrics", Some("Bearer 0123456789abcdef0123456789abcdef"), 200),
    ] {
        let mut request = Request::builder().uri(path).header(header::HOST, "10.0.0.1:8788");
        if let Some(given) = given {
            request = request.header(header::AUTHORIZATION, given);
        }
        let answer = admin.clone().answer(request.body(Body::empty()).unwrap()).await.unwrap();
        assert_eq!(answer.status().as_u16(), status, "{path} {given:?}");
    }
}
