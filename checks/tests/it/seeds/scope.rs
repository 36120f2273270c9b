//! The first fixture: scope is part of the identity, effect and receipt belong together, retention is a boundary.
//!
//! Its figures: eight racers make one created and seven replays; at the end 7 effects and 6 receipts. Our mismatch
//! stands for its conflict.

use std::{sync::Arc, time::Duration};

use tokio::sync::Barrier;

use super::{
    Fixture, Kept, Order, Shop, Told, clock, coupled::Coupled, elsewhere::Elsewhere, http::Served,
    instances::Instances, proxied::Proxied,
};

const RACERS: usize = 8;

fn order(tenant: &str, operation: &str, key: &str, quantity: u32) -> Order {
    let body = format!("{{\"quantity\":{quantity}}}");
    Order { tenant: tenant.to_owned(), operation: operation.to_owned(), key: key.to_owned(), body, fails: false }
}

async fn tell<S: Shop>(shop: S) {
    let shop = Arc::new(shop);
    let seconds = |from: u64, to: u64| shop.advance(Duration::from_secs(to - from));
    let original = race(&shop).await;

    seconds(0, 1);
    assert_eq!(shop.order(order("north", "web-order", "intent-a", 3)).await, Told::Mismatch);
    assert_eq!(shop.counts().await, (1, 1));
    let replayed = Told::Replayed(original.clone());
    assert_eq!(shop.order(order("north", "web-order", "intent-a", 2)).await, replayed, "a conflict replaces nothing");
    let elsewhere =
        [("south", "web-order", "intent-a"), ("north", "batch-order", "intent-a"), ("north", "web-order", "intent-b")];
    for (tenant, operation, key) in elsewhere {
        let told = shop.order(order(tenant, operation, key, 2)).await;
        assert!(matches!(told, Told::Created(_)), "{tenant} {operation} {key}: {told:?}");
    }
    assert_eq!(shop.counts().await, (4, 4));

    seconds(1, 2);
    let failing = Order { fails: true, ..order("north", "web-order", "rolled-back", 1) };
    assert_eq!(shop.order(failing.clone()).await, Told::Failed);
    assert_eq!(shop.counts().await, (4, 4), "it leaves neither effect nor receipt");
    let told = shop.order(Order { fails: false, ..failing }).await;
    assert!(matches!(told, Told::Created(_)), "{told:?}");
    assert_eq!(shop.counts().await, (5, 5));

    seconds(2, 3);
    let unheard = order("north", "web-order", "committed-no-reply", 1);
    let Told::Created(committed) = shop.order(unheard.clone()).await else { panic!("it is a new order") };
    let fresh = shop.fresh();
    assert_eq!(fresh.order(unheard).await, Told::Replayed(committed));
    assert_eq!(fresh.counts().await, (6, 6));

    if !S::AGES {
        return;
    }
    seconds(3, 59);
    let again = order("north", "web-order", "intent-a", 2);
    assert_eq!(shop.order(again.clone()).await, replayed, "it is live at second 59");
    seconds(59, 60);
    let Told::Created(after) = shop.order(again).await else { panic!("it is gone at second 60") };
    assert_ne!(after, original, "the effect is another one");
    assert_eq!(shop.counts().await, (7, 6), "the first order stands, its receipt is gone");
}

/// Eight attempts at once; the one result.
async fn race<S: Shop>(shop: &Arc<S>) -> String {
    let barrier = Arc::new(Barrier::new(RACERS));
    let mut racers = tokio::task::JoinSet::new();
    for _ in 0..RACERS {
        let (shop, barrier) = (shop.clone(), barrier.clone());
        racers.spawn(async move {
            let connected = shop.connected();
            barrier.wait().await;
            connected.order(order("north", "web-order", "intent-a", 2)).await
        });
    }
    let told = racers.join_all().await;
    let created: Vec<&String> =
        told.iter().filter_map(|told| if let Told::Created(result) = told { Some(result) } else { None }).collect();
    let [original] = created[..] else { panic!("one is created: {told:?}") };
    let replays = told.iter().filter(|told| **told == Told::Replayed(original.clone())).count();
    assert_eq!(replays, RACERS - 1, "the others replay that very result: {told:?}");
    assert_eq!(shop.counts().await, (1, 1));
    original.clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn effects_elsewhere_on_memory() {
    let clock = clock();
    tell(Elsewhere::new(Fixture::Scope, Kept::memory(&clock), clock)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn effects_elsewhere_on_sqlite() {
    let clock = clock();
    tell(Elsewhere::new(Fixture::Scope, Kept::sqlite(&clock), clock)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn effects_coupled_on_sqlite() {
    tell(Coupled::new(Fixture::Scope)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn over_http_on_memory() {
    let clock = clock();
    tell(Served::elsewhere(Fixture::Scope, Kept::memory(&clock), clock)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn over_http_on_sqlite() {
    let clock = clock();
    tell(Served::elsewhere(Fixture::Scope, Kept::sqlite(&clock), clock)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn over_http_coupled_on_sqlite() {
    tell(Served::coupled(Fixture::Scope)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn behind_the_proxy() {
    tell(Proxied::new(Fixture::Scope)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn behind_three_proxies_on_postgresql() {
    tell(Instances::on_postgresql(Fixture::Scope).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn behind_three_proxies_on_mariadb() {
    tell(Instances::on_mariadb(Fixture::Scope).await).await;
}
