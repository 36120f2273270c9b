//! What holds in everybody's transaction, whatever the driver and the server. What one of them promises besides stands with it.

use std::time::Duration;

use counterfoil_core::{Asked, Claim, Receipt, Record, Rule, Timestamp};
use counterfoil_store::seam::RecordStore as _;
use counterfoil_store::{Begun, Ended, ErrorKind, Gate, Permit};

use super::{Level, Shop, claim, identity, policy};

async fn begun<S: Shop>(shop: &S, tx: &mut S::Tx<'_>, key: &str) -> Begun {
    shop.begin(tx, &mut claim(key)).await.unwrap()
}

async fn granted<S: Shop>(shop: &S, tx: &mut S::Tx<'_>, key: &str) -> Box<Permit> {
    match begun(shop, tx, key).await {
        Begun::Execute(permit) => permit,
        other => panic!("it may run: {other:?}"),
    }
}

/// The whole of it, without the COMMIT.
async fn order<S: Shop>(shop: &S, tx: &mut S::Tx<'_>, key: &str) {
    let mut permit = granted(shop, tx, key).await;
    S::sends(tx, "INSERT INTO orders (item) VALUES ('pot')").await;
    let ended = shop.complete(tx, &mut permit, &Receipt::new(201, "made")).await.unwrap();
    assert!(matches!(ended, Ended::Written { expires_at: Some(_) }), "{ended:?}");
}

async fn record<S: Shop>(shop: &S, key: &str) -> Option<Record> {
    shop.store().read(&identity(key)).await.unwrap().record.map(std::sync::Arc::unwrap_or_clone)
}

fn is_replay(begun: &Begun) -> bool {
    matches!(begun, Begun::Replay { receipt, .. } if receipt.status == 201)
}

pub(super) async fn effect_and_receipt_are_committed_by_the_caller<S: Shop>() {
    let shop = S::new().await;
    let mut conn = shop.connect().await;
    // Rolled back, neither happened.
    let mut tx = S::start(&mut conn, Level::Usual).await;
    order(&shop, &mut tx, "a").await;
    S::roll_back(tx).await;
    assert_eq!((record(&shop, "a").await, shop.orders()), (None, "0".to_owned()));
    // Committed, both did; duplicates and mismatches are found, and leave the transaction usable.
    let mut tx = S::start(&mut conn, Level::Usual).await;
    order(&shop, &mut tx, "a").await;
    assert!(is_replay(&begun(&shop, &mut tx, "a").await));
    S::commit(tx).await;
    let mut tx = S::start(&mut conn, Level::Usual).await;
    assert!(is_replay(&begun(&shop, &mut tx, "a").await));
    let mut other = Claim::new(identity("a"), Asked::bytes("another order"), &Rule::bytes()).unwrap();
    let told = shop.begin(&mut tx, &mut other).await.unwrap();
    assert!(matches!(told, Begun::Mismatch), "{told:?}");
    S::sends(&mut tx, "INSERT INTO orders (item) VALUES ('besides')").await;
    S::commit(tx).await;
    assert_eq!(shop.orders(), "2");
    // Everybody else sees the same.
    let gate = Gate::new(shop.store().clone()).unwrap();
    assert!(is_replay(&gate.begin(&mut claim("a"), &policy()).await.unwrap()));
}

pub(super) async fn while_it_is_open_everybody_else_is_told_in_progress<S: Shop>() {
    let shop = S::new().await;
    let gate = Gate::new(shop.store().clone()).unwrap();
    let (mut one, mut other) = (shop.connect().await, shop.connect().await);
    let mut tx = S::start(&mut one, Level::ReadCommitted).await;
    order(&shop, &mut tx, "a").await;
    let mut beside = S::start(&mut other, Level::ReadCommitted).await;
    let told = begun(&shop, &mut beside, "a").await;
    assert!(matches!(told, Begun::InProgress { .. }), "{told:?}");
    let told = gate.begin(&mut claim("a"), &policy()).await.unwrap();
    assert!(matches!(told, Begun::InProgress { .. }), "{told:?}");
    // What was told so goes on with other things.
    order(&shop, &mut beside, "b").await;
    S::commit(tx).await;
    // At READ COMMITTED the very transaction that was told so may ask again.
    assert!(is_replay(&begun(&shop, &mut beside, "a").await));
    S::commit(beside).await;
    assert_eq!(shop.orders(), "2");
}

pub(super) async fn a_claim_that_was_committed_without_an_end_is_taken_over_and_superseded<S: Shop>() {
    let shop = S::new().await;
    let (mut one, mut other) = (shop.connect().await, shop.connect().await);
    let mut tx = S::start(&mut one, Level::Usual).await;
    let mut first = granted(&shop, &mut tx, "a").await;
    S::commit(tx).await;
    shop.advance(Duration::from_secs(40)).await;
    let mut tx = S::start(&mut other, Level::Usual).await;
    order(&shop, &mut tx, "a").await;
    S::commit(tx).await;
    let mut tx = S::start(&mut one, Level::Usual).await;
    S::sends(&mut tx, "INSERT INTO orders (item) VALUES ('twice')").await;
    let late = shop.complete(&mut tx, &mut first, &Receipt::new(201, "twice")).await.unwrap();
    assert!(matches!(late, Ended::Refused(_)), "{late:?}");
    S::roll_back(tx).await;
    assert_eq!(shop.orders(), "1");
    let history = shop.store().history(&identity("a")).await.unwrap();
    assert_eq!(history.len(), 1, "the alarm outlives what was rolled back");
}

pub(super) async fn a_released_claim_leaves_the_key_free<S: Shop>() {
    let shop = S::new().await;
    let mut conn = shop.connect().await;
    let mut tx = S::start(&mut conn, Level::Usual).await;
    let mut permit = granted(&shop, &mut tx, "a").await;
    let ended = shop.release(&mut tx, &mut permit).await.unwrap();
    assert!(matches!(ended, Ended::Written { .. }), "{ended:?}");
    S::commit(tx).await;
    assert!(record(&shop, "a").await.is_none());
    let mut tx = S::start(&mut conn, Level::Usual).await;
    let again = begun(&shop, &mut tx, "a").await;
    assert!(matches!(again, Begun::Execute(_)), "{again:?}");
}

pub(super) async fn a_stricter_isolation_level_is_busy_or_right_where_somebody_was_faster<S: Shop>() {
    let shop = S::new().await;
    let (mut one, mut other) = (shop.connect().await, shop.connect().await);
    let mut strict = S::start(&mut other, Level::RepeatableRead).await;
    // Its snapshot is from before the other's commit.
    S::sends(&mut strict, "SELECT count(*) FROM orders").await;
    let mut tx = S::start(&mut one, Level::Usual).await;
    order(&shop, &mut tx, "a").await;
    S::commit(tx).await;
    let told = shop.begin(&mut strict, &mut claim("a")).await;
    if S::STRICT {
        assert_eq!(told.expect_err("it cannot see it").kind, ErrorKind::Busy);
    } else {
        assert!(is_replay(&told.unwrap()));
    }
    S::roll_back(strict).await;
}

pub(super) async fn a_transaction_is_on_the_stores_own_database<S: Shop>() {
    let (shop, elsewhere) = (S::new().await, S::new().await);
    let mut other = elsewhere.connect().await;
    let mut tx = S::start(&mut other, Level::Usual).await;
    let error = shop.begin(&mut tx, &mut claim("a")).await.expect_err("another database");
    assert_eq!(error.kind, ErrorKind::Misuse, "{error}");
    S::roll_back(tx).await;
    assert!(record(&elsewhere, "a").await.is_none());
}

pub(super) async fn under_a_quarantine_what_cannot_be_dated_does_not_run<S: Shop>() {
    let shop = S::new().await;
    let mut conn = shop.connect().await;
    let far = Timestamp::from_millis(1_760_000_000_000);
    // Once as this store knows it, and once set by another instance behind its back.
    shop.store().set_quarantine(Some(far)).await.unwrap();
    for key in ["a", "b"] {
        let mut tx = S::start(&mut conn, Level::Usual).await;
        let told = begun(&shop, &mut tx, key).await;
        assert!(matches!(told, Begun::Unknown { .. }), "{told:?}");
        S::commit(tx).await;
        assert!(record(&shop, key).await.is_some(), "it stays unknown");
        shop.store().set_quarantine(None).await.unwrap();
        shop.run(S::QUARANTINES);
    }
}
