//! The layer around axum: a whole router, and one route.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::extract::{Path, State};
use axum::routing::{get, post};
use axum::{Extension, Json, Router};
use counterfoil_middleware::{GuardLayer, Guarded, Settings, SingleTenant};
use counterfoil_store::Gate;
use http::{Request, StatusCode};
use tower::ServiceExt as _;

use crate::kit::{Answer, read};
use crate::store::Scripted;

type Effects = State<Arc<AtomicUsize>>;

async fn create(State(effects): Effects, Extension(guarded): Extension<Guarded>) -> (StatusCode, Json<usize>) {
    assert!(!guarded.operation.as_str().is_empty());
    (StatusCode::CREATED, Json(effects.fetch_add(1, Ordering::SeqCst) + 1))
}

async fn cancel(State(effects): Effects, Path(id): Path<u32>) -> String {
    effects.fetch_add(1, Ordering::SeqCst);
    format!("cancelled {id}")
}

async fn send(router: &Router, method: &str, path: &str, key: Option<&str>) -> Answer {
    let mut request = Request::builder().method(method).uri(path);
    if let Some(key) = key {
        request = request.header("idempotency-key", key);
    }
    let request = request.body(axum::body::Body::from("{}")).unwrap();
    read(router.clone().oneshot(request).await.unwrap()).await
}

fn layer() -> GuardLayer {
    GuardLayer::new(Gate::new(Scripted::new()).unwrap(), Settings::new(SingleTenant)).unwrap()
}

#[tokio::test]
async fn around_a_whole_router() {
    let effects = Arc::new(AtomicUsize::new(0));
    let router = Router::new()
        .route("/orders", post(create).get(async || "list"))
        .route("/orders/{id}/cancel", post(cancel))
        .layer(layer())
        .with_state(effects.clone());
    let table = [
        ("POST", "/orders", Some("k"), "201 replayed=false"),
        ("POST", "/orders", Some("k"), "201 replayed=true"),
        ("POST", "/orders/7/cancel", Some("k"), "200 replayed=false"),
        ("POST", "/orders/7/cancel", Some("k"), "200 replayed=true"),
        ("POST", "/orders/8/cancel", Some("k"), "200 replayed=false"),
        ("POST", "/orders/8/cancel", None, "200 replayed=none"),
        ("GET", "/orders", Some("k"), "200 replayed=none"),
        ("POST", "/nowhere", Some("k"), "404 replayed=false"),
    ];
    for (method, path, key, expected) in table {
        assert_eq!(send(&router, method, path, key).await.line(), expected, "{method} {path} {key:?}");
    }
    let replay = send(&router, "POST", "/orders", Some("k")).await;
    assert_eq!((replay.body.as_ref(), replay.header("content-type")), (&b"1"[..], Some("application/json")));
    assert_eq!(effects.load(Ordering::SeqCst), 4);
}

#[tokio::test]
async fn around_one_route() {
    let effects = Arc::new(AtomicUsize::new(0));
    let router = Router::new()
        .route("/orders", post(create))
        .route_layer(layer())
        .route("/orders/{id}/cancel", post(cancel))
        .route("/orders/list", get(async || "list"))
        .with_state(effects.clone());
    let table = [
        ("POST", "/orders", Some("k"), "201 replayed=false"),
        ("POST", "/orders", Some("k"), "201 replayed=true"),
        ("POST", "/orders/7/cancel", Some("k"), "200 replayed=none"),
        ("POST", "/nowhere", Some("k"), "404 replayed=none"),
    ];
    for (method, path, key, expected) in table {
        assert_eq!(send(&router, method, path, key).await.line(), expected, "{method} {path} {key:?}");
    }
}
