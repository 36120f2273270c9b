//! Which methods a key guards: what an operation lists, and never a safe one.
//! What is guarded where nothing is listed is tested beside `operation.rs`.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use counterfoil_core::Operation;
use counterfoil_middleware::{Body, KeyNeed, OperationRule, Settings, Terms};
use http::{Method, Request, Response};

use crate::kit::{Handler, House, handler, settings};

/// Deletes once: the second time there is nothing left to delete.
fn deleting(deleted: &Arc<AtomicUsize>) -> Handler {
    let deleted = deleted.clone();
    handler(move |request: Request<Body>| {
        let status = match *request.method() {
            Method::DELETE if deleted.fetch_add(1, Ordering::SeqCst) == 0 => 204,
            Method::DELETE => 404,
            _ => 200,
        };
        async move { Ok(Response::builder().status(status).body(Body::empty()).unwrap()) }
    })
}

#[tokio::test]
async fn a_key_on_a_safe_method_neither_fills_nor_meets_the_record_of_a_listed_one() {
    let deleted = Arc::new(AtomicUsize::new(0));
    let rule = OperationRule {
        name: Some(Operation::new("delete-thing").unwrap()),
        pattern: "DELETE /things/{id}".parse().unwrap(),
        key: KeyNeed::Optional,
        terms: Terms::default(),
    };
    let house = House::with(Settings { operations: vec![rule], ..settings(Terms::default()) }, deleting(&deleted));
    let table = [
        ("GET", "k", "200 replayed=none"),
        ("DELETE", "k", "204 replayed=false"),
        ("GET", "k", "200 replayed=none"),
        ("HEAD", "k", "200 replayed=none"),
        ("OPTIONS", "k", "200 replayed=none"),
        ("PUT", "k", "200 replayed=none"),
        ("DELETE", "k", "204 replayed=true"),
        ("DELETE", "l", "404 replayed=false"),
        ("DELETE", "k", "204 replayed=true"),
    ];
    for (method, key, expected) in table {
        let calls = house.store.calls();
        let request = Request::builder().method(method).uri("/things/7").header("idempotency-key", key);
        let answer = house.send(request.body(Body::empty()).unwrap()).await;
        assert_eq!(answer.line(), expected, "{method} {key}");
        assert_eq!(house.store.calls() > calls, method == "DELETE", "{method}: whether a record was looked up");
    }
    assert_eq!(deleted.load(Ordering::SeqCst), 2);
}
