//! Replies that are lost and callers that give up: what becomes of the record and of the pool.
//! What a server does by itself stands in `servers`.

use std::sync::Arc;
use std::time::Duration;

use counterfoil_core::{Policy, Receipt};
use counterfoil_store::mysql::MysqlStore;
use counterfoil_store::mysql::trial::Wire;
use counterfoil_store::seam::{Query, RecordStore as _, Swapped};
use counterfoil_store::{Applied, Begun, Ended, ErrorKind, Gate};
use tokio::time::timeout;

use super::{Place, claim, claiming, identity, record};

/// A store that talks through a wire.
struct Behind {
    place: Place,
    wire: Wire,
    store: Arc<MysqlStore>,
    gate: Gate,
}

async fn behind(connections: usize) -> Behind {
    let place = Place::new().await;
    let wire = Wire::to(place.database.server().port()).await.unwrap();
    let mut options = place.options();
    options.connections = connections;
    let store = MysqlStore::open(&place.database.url_through(wire.port()), options).await.unwrap();
    let gate = Gate::new(store.clone()).unwrap();
    Behind { place, wire, store, gate }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_reply_is_recognised_as_our_own() {
    let Behind { wire, gate, store, place: _place } = &behind(4).await;
    let lost = claiming("alone", 7);
    wire.lose_reply_of(&[7; 16]);
    let error = store.swap(lost.clone()).await.expect_err("its reply is lost");
    assert_eq!((error.applied, error.kind), (Applied::Unknown, ErrorKind::Unknown), "{error}");
    wire.lost().await;
    let again = store.swap(lost).await.unwrap();
    assert!(
        matches!(&again, Swapped::Lost { stands: Some(own), .. } if own.lease.id.as_bytes() == &[7; 16]),
        "{again:?}"
    );

    // Before its reads do, a first claim sends the key.
    wire.lose_reply_of(b"key-in-a-write");
    let begun = gate.begin(&mut claim("key-in-a-write"), &Policy::default()).await.unwrap();
    let Begun::Execute(mut permit) = begun else { panic!("the claim is our own: {begun:?}") };
    wire.lost().await;
    let other = gate.begin(&mut claim("key-in-a-write"), &Policy::default()).await.unwrap();
    assert!(matches!(other, Begun::InProgress { .. }), "a second run beside it: {other:?}");

    wire.lose_reply_of(b"what was made");
    let ended = gate.complete(&mut permit, &Receipt::new(201, "what was made")).await.unwrap();
    wire.lost().await;
    assert!(matches!(ended, Ended::Written { .. }), "{ended:?}");
    let again = gate.begin(&mut claim("key-in-a-write"), &Policy::default()).await.unwrap();
    assert!(matches!(&again, Begun::Replay { receipt, .. } if receipt.status == 201), "{again:?}");
}

/// As after a restart of the server between two calls: what only reads is asked again, and nobody learns of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_on_a_connection_that_rested_is_sent_once_more() {
    let Behind { wire, store, place: _place, .. } = &behind(1).await;
    assert_eq!(record(store.as_ref(), "a").await, None);
    wire.lose_reply_of(identity("a").digest().as_bytes());
    assert_eq!(record(store.as_ref(), "a").await, None);
    wire.lost().await;
}

/// Transactions of this database that are open on the server, seen from outside.
fn open_transactions(place: &Place) -> String {
    let statement = format!(
        "SELECT COUNT(*) FROM information_schema.innodb_trx AS t JOIN information_schema.processlist AS p
         ON p.id = t.trx_mysql_thread_id WHERE p.db = '{}'",
        place.database.name()
    );
    place.database.sql(&statement).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn callers_that_give_up_never_poison_a_pool_of_one() {
    let world = behind(1).await;
    let Begun::Execute(mut permit) = world.gate.begin(&mut claim("due"), &Policy::default()).await.unwrap() else {
        panic!("not granted")
    };
    world.gate.complete(&mut permit, &Receipt::new(201, "made")).await.unwrap();
    world.place.time.advance(Duration::from_hours(25)).await.unwrap();
    world.wire.delay(Duration::from_millis(10));
    // Each call is dropped at another point of its way: while it waits, in BEGIN, in the write, in COMMIT.
    for step in 0..12_u8 {
        let patience = Duration::from_millis(u64::from(step) * 8);
        let key = format!("given-up-{step}");
        let _ = timeout(patience, world.store.swap(claiming(&key, step + 1))).await;
        let _ = timeout(patience, world.store.sweep(10)).await;
        let _ = timeout(patience, world.store.list(Query { unsettled_only: true, after: 0, limit: 10 })).await;
    }
    world.wire.delay(Duration::ZERO);
    // Everything before has had the only connection.
    assert!(record(world.store.as_ref(), "due").await.is_none(), "a sweep was cut in half");
    assert_eq!(open_transactions(&world.place), "0");
    for step in 0..12_u8 {
        let key = format!("given-up-{step}");
        let stands = record(world.store.as_ref(), &key).await.unwrap_or_else(|| panic!("{key} was cut in half"));
        assert_eq!(stands.lease.id.as_bytes(), &[step + 1; 16], "{key}");
    }
    assert!(matches!(world.store.swap(claiming("after", 99)).await.unwrap(), Swapped::Won { .. }));
    drop(world.store.read(&identity("after")).await.unwrap().record.unwrap());
}
