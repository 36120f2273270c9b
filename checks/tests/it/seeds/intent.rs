//! The second fixture: one intent is one key, kept over every attempt.
//!
//! Its figures: three attempts make one order; the order ids are 1, 2 and 3. Our 422 stands for its 409.

use std::fs;

use serde_json::{Value, json};

use super::{
    Fixture, Kept, Order, Shop, Told, clock, coupled::Coupled, elsewhere::Elsewhere, http::Served,
    instances::Instances, proxied::Proxied,
};

/// A key with its parameters, written down before the first attempt.
fn intent(key: &str, parameters: &str) -> Value {
    json!({"key": key, "parameters": parameters})
}

fn order(intent: &Value) -> Order {
    let text = |member: &str| intent[member].as_str().expect("an intent holds texts").to_owned();
    let (key, body) = (text("key"), text("parameters"));
    Order { tenant: "north".to_owned(), operation: "create-order".to_owned(), key, body, fails: false }
}

async fn tell(shop: impl Shop) {
    let number = |id: u32| format!("{{\"order_id\":{id}}}");
    let home = tempfile::tempdir().expect("there is room for temporary files");
    let file = home.path().join("intent.json");
    let first = intent("7a5f2c1e-0d3b-4f6a-9e8d-1b2c3d4e5f60", r#"{"product":"notebook","quantity":2}"#);
    fs::write(&file, first.to_string()).expect("it can be written");
    // The first answer is lost.
    let _ = shop.order(order(&first)).await;
    assert_eq!(shop.counts().await, (1, 1));
    let recovered: Value = serde_json::from_slice(&fs::read(&file).expect("it can be read")).expect("it is JSON");
    assert_eq!(recovered, first);
    let result = Told::Replayed(number(1));
    for _ in 2..=3 {
        assert_eq!(shop.order(order(&recovered)).await, result);
    }
    assert_eq!(shop.counts().await, (1, 1), "three attempts make one order");

    let reordered = intent(first["key"].as_str().expect("text"), r#"{ "quantity": 2, "product": "notebook" }"#);
    assert_eq!(shop.order(order(&reordered)).await, result);
    let changed = intent(first["key"].as_str().expect("text"), r#"{"product":"notebook","quantity":3}"#);
    assert_eq!(shop.order(order(&changed)).await, Told::Mismatch);
    assert_eq!(shop.counts().await, (1, 1));
    assert_eq!(shop.order(order(&recovered)).await, result, "the conflict replaced nothing");

    let mistaken = intent("c0ffee00-9b1d-4a7e-8f2a-5d6e7f8091a2", r#"{"product":"notebook","quantity":2}"#);
    assert_eq!(shop.order(order(&mistaken)).await, Told::Created(number(2)));
    assert_eq!(shop.counts().await, (2, 2));

    let key = "0ddba11e-3c4d-4e5f-a6b7-c8d9e0f1a2b3";
    assert_eq!(shop.order(order(&intent(key, r#"{"product":"notebook","quantity":0}"#))).await, Told::Invalid);
    assert_eq!(shop.counts().await, (2, 2), "a refusal before the effect is not kept");
    let corrected = intent(key, r#"{"product":"notebook","quantity":1}"#);
    assert_eq!(shop.order(order(&corrected)).await, Told::Created(number(3)));
    assert_eq!(shop.counts().await, (3, 3));
}

#[tokio::test]
async fn effects_elsewhere_on_memory() {
    let clock = clock();
    tell(Elsewhere::new(Fixture::Intent, Kept::memory(&clock), clock)).await;
}

#[tokio::test]
async fn effects_elsewhere_on_sqlite() {
    let clock = clock();
    tell(Elsewhere::new(Fixture::Intent, Kept::sqlite(&clock), clock)).await;
}

#[tokio::test]
async fn effects_coupled_on_sqlite() {
    tell(Coupled::new(Fixture::Intent)).await;
}

#[tokio::test]
async fn over_http_on_memory() {
    let clock = clock();
    tell(Served::elsewhere(Fixture::Intent, Kept::memory(&clock), clock)).await;
}

#[tokio::test]
async fn over_http_on_sqlite() {
    let clock = clock();
    tell(Served::elsewhere(Fixture::Intent, Kept::sqlite(&clock), clock)).await;
}

#[tokio::test]
async fn over_http_coupled_on_sqlite() {
    tell(Served::coupled(Fixture::Intent)).await;
}

#[tokio::test]
async fn behind_the_proxy() {
    tell(Proxied::new(Fixture::Intent)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn behind_three_proxies_on_postgresql() {
    tell(Instances::on_postgresql(Fixture::Intent).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn behind_three_proxies_on_mariadb() {
    tell(Instances::on_mariadb(Fixture::Intent).await).await;
}
