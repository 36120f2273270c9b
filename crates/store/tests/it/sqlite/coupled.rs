//! Claim, effect and receipt in one transaction: what a claim is answered, and that replays stay out of the writer.
//! Effects that misbehave stand in `effects`.

use std::sync::Arc;
use std::time::Duration;

use counterfoil_core::claim::Draft;
use counterfoil_core::record::{Author, State};
use counterfoil_core::{Asked, Claim, LeaseId};
use counterfoil_core::{Effect, Expiry, Policy, Receipt, Rule, Why};
use counterfoil_store::seam::{Expected, New, RecordStore as _, Swap, Swapped};
use counterfoil_store::sqlite::{Executed, Origin};

use super::{Place, claim, claim_of, identity, order, origin, record};

fn policy() -> Policy {
    Policy { retention: Duration::from_secs(60), ..Policy::default() }
}

#[tokio::test]
async fn an_effect_runs_once_and_its_receipt_is_replayed() {
    let place = Place::new();
    let store = place.with_orders();
    let first = store.execute(claim("a"), &policy(), order("1")).await;
    assert_eq!(origin(first), Origin::Fresh);
    for _ in 0..3 {
        let again = store.execute(claim("a"), &policy(), order("2")).await.unwrap();
        let Executed::Done { receipt, expires_at, origin } = again else { panic!("{again:?}") };
        assert_eq!(receipt, Receipt::new(201, "1"));
        assert_eq!(expires_at, super::BEGIN.plus(Duration::from_secs(60)));
        assert_eq!(origin, Origin::Replayed);
    }
    let mismatch = store.execute(claim_of("a", "another order"), &policy(), order("3")).await.unwrap();
    assert_eq!(mismatch, Executed::Mismatch);
    assert_eq!(place.orders(), 1);
    let stands = record(&store, "a").await.unwrap();
    assert_eq!((stands.version, stands.effect), (2, Effect::Coupled));
    assert!(matches!(stands.state, State::Done { author: Author::Owner, .. }));
}

#[tokio::test]
async fn a_receipt_is_live_before_its_instant_and_gone_at_it() {
    let place = Place::new();
    let store = place.with_orders();
    assert_eq!(origin(store.execute(claim("a"), &policy(), order("1")).await), Origin::Fresh);
    place.clock.advance(Duration::from_millis(59_999));
    assert_eq!(origin(store.execute(claim("a"), &policy(), order("2")).await), Origin::Replayed);
    place.clock.advance(Duration::from_millis(1));
    assert_eq!(origin(store.execute(claim("a"), &policy(), order("2")).await), Origin::Fresh);
    assert_eq!(place.orders(), 2);
}

#[tokio::test]
async fn an_expired_key_is_refused_where_the_operation_says_so() {
    let place = Place::new();
    let store = place.with_orders();
    let refusing = Policy { expiry: Expiry::Refuse(Duration::from_secs(100)), ..policy() };
    assert_eq!(origin(store.execute(claim("a"), &refusing, order("1")).await), Origin::Fresh);
    place.clock.advance(Duration::from_secs(60));
    let until = super::BEGIN.plus(Duration::from_secs(160));
    for swept in [false, true] {
        let refused = store.execute(claim("a"), &refusing, order("2")).await.unwrap();
        assert_eq!(refused, Executed::Expired { until }, "swept: {swept}");
        store.sweep(10).await.unwrap();
    }
    place.clock.advance(Duration::from_secs(100));
    assert_eq!(origin(store.execute(claim("a"), &refusing, order("2")).await), Origin::Fresh);
}

#[tokio::test]
async fn a_failed_effect_leaves_nothing_and_the_key_is_free() {
    let place = Place::new();
    let store = place.with_orders();
    let failed = store
        .execute(claim("a"), &policy(), |handle| {
            handle.execute("INSERT INTO orders VALUES ('1')", []).unwrap();
            Err("out of stock")
        })
        .await
        .unwrap();
    assert_eq!(failed, Executed::EffectFailed("out of stock"));
    assert_eq!((place.orders(), record(&store, "a").await), (0, None));
    assert_eq!(origin(store.execute(claim("a"), &policy(), order("1")).await), Origin::Fresh);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_eight_racers_one_runs_and_seven_replay() {
    let place = Place::new();
    let store = place.with_orders();
    let racers: Vec<_> = (0..8)
        .map(|racer| {
            let store = Arc::clone(&store);
            tokio::spawn(async move { store.execute(claim("a"), &policy(), order(&racer.to_string())).await })
        })
        .collect();
    let mut fresh = 0;
    for racer in racers {
        fresh += usize::from(origin(racer.await.unwrap()) == Origin::Fresh);
    }
    assert_eq!((fresh, place.orders()), (1, 1));
}

#[tokio::test]
async fn a_replay_never_enters_the_writer() {
    let place = Place::new();
    let store = place.with_orders();
    store.execute(claim("a"), &policy(), order("1")).await.unwrap();
    let before = store.batches();
    for _ in 0..10 {
        store.execute(claim("a"), &policy(), order("2")).await.unwrap();
        store.execute(claim_of("a", "other"), &policy(), order("2")).await.unwrap();
        assert_eq!(origin(store.execute_blocking(claim("a"), &policy(), order("2"))), Origin::Replayed);
    }
    assert_eq!(store.batches(), before);
    // Nor does it wait for whoever has it: another process holds the file.
    let other = place.outside();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert_eq!(origin(store.execute(claim("a"), &policy(), order("2")).await), Origin::Replayed);
}

#[tokio::test]
async fn a_record_under_another_rule_is_compared_under_that_rule() {
    let place = Place::new();
    let store = place.with_orders();
    let json = |rule: &str, body: &'static str| {
        Claim::new(identity("a"), Asked::bytes(body), &rule.parse::<Rule>().unwrap()).unwrap()
    };
    let first = store.execute(json("json", r#"{"a":1,"b":2}"#), &policy(), order("1")).await;
    assert_eq!(origin(first), Origin::Fresh);
    let again = store.execute(json("bytes", r#"{"b":2, "a":1}"#), &policy(), order("2")).await;
    assert_eq!(origin(again), Origin::Replayed);
    let other = store.execute(json("bytes", r#"{"b":2,"a":3}"#), &policy(), order("2")).await;
    assert_eq!(other.unwrap(), Executed::Mismatch);
}

/// Puts a claim of somebody else under the key, with its effect where `effect` says.
async fn stands(store: &counterfoil_store::SqliteStore, effect: Effect) {
    let policy = Policy { effect, ..policy() };
    let draft = Draft::new(&claim("a"), &policy, LeaseId::from_bytes([7; 16]), None);
    let new = New::claim(draft);
    let swap = Swap { identity: identity("a"), expected: Expected::Absent, new, not_after: None, note: None };
    assert!(matches!(store.swap(swap).await.unwrap(), Swapped::Won { .. }));
}

#[tokio::test]
async fn a_lapsed_run_is_taken_over_only_where_its_effect_is_coupled() {
    for (effect, runs) in [(Effect::Coupled, true), (Effect::Other, false)] {
        let place = Place::new();
        let store = place.with_orders();
        stands(&store, effect).await;
        let running = store.execute(claim("a"), &policy(), order("1")).await.unwrap();
        assert!(matches!(running, Executed::InProgress { .. }), "{effect:?}: {running:?}");
        place.clock.advance(Duration::from_secs(30));
        let lapsed = store.execute(claim("a"), &policy(), order("1")).await.unwrap();
        let stands = record(&store, "a").await.unwrap();
        if runs {
            assert!(matches!(lapsed, Executed::Done { origin: Origin::Fresh, .. }), "{lapsed:?}");
            assert_eq!((stands.version, stands.claimed_at, place.orders()), (3, super::BEGIN, 1));
            assert_ne!(stands.lease.id, LeaseId::from_bytes([7; 16]), "a take-over has a lease of its own");
        } else {
            assert!(matches!(lapsed, Executed::Unknown { why: Why::Lapsed, .. }), "{lapsed:?}");
            // From now on the store shows it.
            assert!(matches!(stands.state, State::Unknown { why: Why::Lapsed, .. }));
            assert_eq!(place.orders(), 0);
        }
    }
}

#[tokio::test]
async fn a_quarantine_stops_effects_in_the_same_batch() {
    let place = Place::new();
    let store = place.with_orders();
    store.set_quarantine(Some(super::BEGIN)).await.unwrap();
    let stopped = store.execute(claim("undatable"), &policy(), order("1")).await.unwrap();
    assert!(matches!(stopped, Executed::Unknown { why: Why::Quarantined, .. }), "{stopped:?}");
    let young = claim("young").first_sent(super::BEGIN);
    assert_eq!(origin(store.execute(young, &policy(), order("2")).await), Origin::Fresh);
    // The longest promise is counted from the quarantine's instant.
    let about = store.about().await.unwrap();
    assert_eq!(about.promised_until, Some(super::BEGIN.plus(Duration::from_secs(60))));
    store.set_quarantine(None).await.unwrap();
    assert_eq!(origin(store.execute(claim("later"), &policy(), order("3")).await), Origin::Fresh);
}

#[test]
fn a_thread_without_a_runtime_executes_too() {
    let place = Place::new();
    let store = place.with_orders();
    let racers: Vec<_> = (0..8)
        .map(|racer: usize| {
            let store = Arc::clone(&store);
            std::thread::spawn(move || {
                let key = format!("key-{}", racer / 2);
                let claim = Claim::new(identity(&key), Asked::bytes("order"), &Rule::bytes()).unwrap();
                origin(store.execute_blocking(claim, &policy(), order(&key)))
            })
        })
        .collect();
    let fresh = racers.into_iter().map(|racer| racer.join().unwrap()).filter(|origin| *origin == Origin::Fresh);
    assert_eq!((fresh.count(), place.orders()), (4, 4));
}
