//! Replies that are lost, copies that come late, callers that give up: what becomes of the record and of the pool.
//! What a server does by itself stands in `servers`.

use std::sync::Arc;
use std::time::Duration;

use counterfoil_core::{Policy, Receipt, State};
use counterfoil_store::postgres::PostgresStore;
use counterfoil_store::postgres::trial::Wire;
use counterfoil_store::seam::{Query, RecordStore as _, Swapped};
use counterfoil_store::{Begun, Ended, Gate, Permit};
use tokio::time::timeout;

use super::{Place, claim, claiming, record};

/// A store that talks through a wire.
struct Behind {
    place: Place,
    wire: Wire,
    store: Arc<PostgresStore>,
    gate: Gate,
}

async fn behind(connections: usize, call_timeout: Duration) -> Behind {
    let place = Place::new().await;
    let wire = Wire::to(place.database.server().port()).await.unwrap();
    let mut options = place.options();
    options.connections = connections;
    options.call_timeout = call_timeout;
    let store = PostgresStore::open(&place.database.url_through(wire.port()), options).await.unwrap();
    let gate = Gate::new(store.clone()).unwrap();
    Behind { place, wire, store, gate }
}

impl Behind {
    async fn permit(&self, key: &str) -> Box<Permit> {
        match self.gate.begin(&mut claim(key), &Policy::default()).await.unwrap() {
            Begun::Execute(permit) => permit,
            other => panic!("not granted: {other:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_reply_is_recognised_as_our_own() {
    let Behind { wire, gate, store, place: _place } = &behind(4, Duration::from_secs(5)).await;
    wire.lose_reply_of("counterfoil.claim(");
    let begun = gate.begin(&mut claim("a"), &Policy::default()).await.unwrap();
    let Begun::Execute(mut permit) = begun else { panic!("the claim is our own: {begun:?}") };
    wire.lost().await;
    assert_eq!(record(store.as_ref(), "a").await.unwrap().lease.id, permit.lease());
    let other = gate.begin(&mut claim("a"), &Policy::default()).await.unwrap();
    assert!(matches!(other, Begun::InProgress { .. }), "a second run beside it: {other:?}");

    wire.lose_reply_of("counterfoil.put(");
    let ended = gate.complete(&mut permit, &Receipt::new(201, "made")).await.unwrap();
    wire.lost().await;
    assert!(matches!(ended, Ended::Written { .. }), "{ended:?}");
    let again = gate.begin(&mut claim("a"), &Policy::default()).await.unwrap();
    assert!(matches!(&again, Begun::Replay { receipt, .. } if receipt.status == 201), "{again:?}");
}

/// As after a restart of the server between two calls: what only reads is asked again, and nobody learns of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_on_a_connection_that_rested_is_sent_once_more() {
    let Behind { wire, store, place: _place, .. } = &behind(1, Duration::from_secs(5)).await;
    assert_eq!(record(store.as_ref(), "a").await, None);
    wire.lose_reply_of("pg_is_in_recovery");
    assert_eq!(record(store.as_ref(), "a").await, None);
    wire.lost().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_that_lands_late_changes_nothing() {
    for released in [false, true] {
        let world = behind(4, Duration::from_millis(300)).await;
        // The first copy is kept back; the gate repeats it on another connection, and runs.
        world.wire.hold_request_of("counterfoil.claim(");
        let mut permit = world.permit("a").await;
        world.wire.held().await;
        if released {
            world.gate.release(&mut permit).await.unwrap();
            world.place.time.advance(Duration::from_secs(6)).await.unwrap();
        } else {
            world.gate.complete(&mut permit, &Receipt::new(201, "made")).await.unwrap();
        }
        world.wire.release();
        // It was carried out now, long after it was given up.
        world.wire.lost().await;
        let stands = record(world.store.as_ref(), "a").await;
        assert_eq!(
            stands.map(|record| matches!(record.state, State::Done { .. })),
            (!released).then_some(true),
            "released: {released}"
        );
    }
}

/// What waits in a transaction on the server, seen from outside.
fn resting(place: &Place) -> String {
    let statement = "SELECT count(*) FROM pg_stat_activity
      WHERE datname = current_database() AND state LIKE 'idle in transaction%'";
    place.database.psql(&[statement]).unwrap()
}

/// Whether a key has a record, seen from outside.
fn seen(place: &Place, key: &str) -> String {
    let statement = format!("SELECT count(*) FROM counterfoil.record WHERE key = '{key}'::bytea");
    place.database.psql(&[&statement]).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn callers_that_give_up_never_poison_a_pool_of_one() {
    let world = behind(1, Duration::from_secs(10)).await;
    let due = record(world.store.as_ref(), "none").await;
    assert!(due.is_none());
    let mut permit = world.permit("due").await;
    world.gate.complete(&mut permit, &Receipt::new(201, "made")).await.unwrap();
    world.place.time.advance(Duration::from_hours(25)).await.unwrap();
    world.wire.delay(Duration::from_millis(10));
    // Each call is dropped at another point of its way: while it waits, in BEGIN, in the batch, in COMMIT.
    for step in 0..14_u8 {
        let patience = Duration::from_millis(u64::from(step) * 8);
        let key = format!("given-up-{step}");
        let _ = timeout(patience, world.store.swap(claiming(&key, step + 1))).await;
        let _ = timeout(patience, world.store.sweep(10)).await;
        let _ = timeout(patience, world.store.list(Query { unsettled_only: true, after: 0, limit: 10 })).await;
        let _ = timeout(patience, world.store.sweep(10)).await;
        // Whoever comes next has the same connection, and what is answered is committed.
        let next = world.store.swap(claiming(&format!("next-{step}"), 100 + step)).await.unwrap();
        assert!(matches!(next, Swapped::Won { .. }), "{step}: {next:?}");
        assert_eq!(seen(&world.place, &format!("next-{step}")), "1", "step {step}");
    }
    world.wire.delay(Duration::ZERO);
    // Everything before has had the only connection.
    assert!(record(world.store.as_ref(), "due").await.is_none(), "a sweep was cut in half");
    assert_eq!(resting(&world.place), "0");
    for step in 0..14_u8 {
        let key = format!("given-up-{step}");
        if let Some(stands) = record(world.store.as_ref(), &key).await {
            assert_eq!(stands.lease.id.as_bytes(), &[step + 1; 16], "{key}");
        }
    }
}
