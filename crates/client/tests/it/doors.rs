//! The other doors to the same client: threads that block, and code that sends through a tower service.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use counterfoil_client::{BlockingClient, Intended, IntentLayer, LayerError, Outcome};
use counterfoil_core::intent::Name;
use counterfoil_store::SqliteStore;
use counterfoil_store::sqlite::Options;
use http::{Request, Response};
use tempfile::TempDir;
use tower::{Layer as _, ServiceExt as _, service_fn};

use crate::intents::{order, word};
use crate::provider::{Provider, answered};

fn journal(directory: &TempDir) -> Arc<SqliteStore> {
    SqliteStore::open(directory.path().join("journal.db"), Options::default()).unwrap()
}

#[test]
fn threads_that_block() {
    let directory = TempDir::new().unwrap();
    let provider = Provider::new([answered(201, "made")]);
    let client = BlockingClient::new(journal(&directory), Arc::new(provider.clone())).unwrap();
    for _ in 0..2 {
        assert_eq!(word(&client.send(&order("order-1"), Duration::ZERO).unwrap()), "succeeded");
    }
    assert_eq!(provider.keys().len(), 1);
}

#[derive(Debug, thiserror::Error)]
#[error("the connection broke off")]
struct Broken;

/// Fails once, then answers.
fn failing_once(calls: Arc<AtomicUsize>, request: &Request<Bytes>) -> Result<Response<Bytes>, Broken> {
    let key = request.headers().get("idempotency-key").map_or("none", |key| key.to_str().unwrap()).to_owned();
    match calls.fetch_add(1, Ordering::SeqCst) {
        0 => Err(Broken),
        _ => Ok(Response::builder().status(201).header("idempotent-replayed", "false").body(key.into()).unwrap()),
    }
}

fn request(name: Option<&str>) -> Request<Bytes> {
    let mut request = Request::post("http://127.0.0.1:9/orders").body(Bytes::from_static(b"{}")).unwrap();
    if let Some(name) = name {
        request.extensions_mut().insert(Intended::new(Name::new(name).unwrap(), "counterfoil"));
    }
    request
}

#[tokio::test]
async fn a_service_that_fails_is_asked_again_under_the_same_key() {
    let directory = TempDir::new().unwrap();
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    let inner = service_fn(move |request: Request<Bytes>| {
        let answer = failing_once(counted.clone(), &request);
        async move { answer }
    });
    let service = IntentLayer::new(journal(&directory), Duration::ZERO).layer(inner);
    let lost = service.clone().oneshot(request(Some("order-1"))).await.unwrap_err();
    assert!(matches!(lost, LayerError::Outcome(Outcome::Uncertain { .. })), "{lost}");

    let patient = IntentLayer::new(journal(&directory), Duration::from_mins(1));
    let patient = patient.layer(service_fn(move |request: Request<Bytes>| {
        let key = request.headers()["idempotency-key"].to_str().unwrap().to_owned();
        let answer = Response::builder().status(201).header("idempotent-replayed", "true");
        async move { Ok::<_, Infallible>(answer.body(Bytes::from(key)).unwrap()) }
    }));
    let made = patient.clone().oneshot(request(Some("order-1"))).await.unwrap();
    let kept = patient.oneshot(request(Some("order-1"))).await.unwrap();
    assert_eq!((made.status(), made.body()), (kept.status(), kept.body()));
    assert!(!made.body().is_empty());
    assert_eq!(calls.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn what_has_no_name_passes_as_it_is() {
    let directory = TempDir::new().unwrap();
    let calls = Arc::new(AtomicUsize::new(1));
    let inner = service_fn(move |request: Request<Bytes>| {
        let answer = failing_once(calls.clone(), &request);
        async move { answer }
    });
    let service = IntentLayer::new(journal(&directory), Duration::ZERO).layer(inner);
    assert_eq!(service.oneshot(request(None)).await.unwrap().body(), "none");
}
