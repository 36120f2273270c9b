//! Many writes in one statement, each with its own answer; and what somebody's open transaction holds up, and what not.
//! Lost replies stand in `faults`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use counterfoil_core::action::{Completed, complete};
use counterfoil_core::{Effect, Expiry, Policy, Receipt, Record, Timestamp, Why};
use counterfoil_store::postgres::tokio_postgres::{Client, NoTls, connect};
use counterfoil_store::postgres::trial::Wire;
use counterfoil_store::postgres::{Options, PostgresStore};
use counterfoil_store::seam::{Expected, New, RecordStore as _, Swap, Swapped};
use counterfoil_store::{Applied, Begun, ErrorKind, Gate, StoreError};
use tokio::task::JoinSet;

use super::{Place, claim, claiming, identity, record};

/// One lane, behind a wire that is slow enough for the others to gather.
async fn narrow(place: &Place) -> (Wire, Arc<PostgresStore>) {
    let wire = Wire::to(place.database.server().port()).await.unwrap();
    let mut options: Options = place.options();
    options.connections = 2;
    options.lock_timeout = Duration::from_millis(200);
    let store = PostgresStore::open(&place.database.url_through(wire.port()), options).await.unwrap();
    wire.delay(Duration::from_millis(20));
    (wire, store)
}

async fn all(store: &Arc<PostgresStore>, swaps: Vec<Swap>) -> Vec<(String, Result<Swapped, StoreError>)> {
    let mut sending = JoinSet::new();
    for swap in swaps {
        let store = store.clone();
        sending.spawn(async move { (swap.identity.key.as_str().to_owned(), store.swap(swap).await) });
    }
    sending.join_all().await
}

fn done(record: &Record) -> New {
    let receipt = Receipt::new(201, "made");
    let (lease, now) = (record.lease.id, record.lease.renewed_at);
    match complete(Some(record), lease, receipt, Duration::from_hours(1), Expiry::NewAction, now) {
        Ok(Completed::Write(record)) => New::put(record),
        other => panic!("{other:?}"),
    }
}

fn put(key: &str, expected: &Record, new: New) -> Swap {
    let expected = Expected::record(expected);
    Swap { identity: identity(key), expected, new, not_after: None, note: None }
}

/// Another party's connection to the same database.
async fn outside(place: &Place) -> Client {
    let (client, connection) = connect(&place.database.url(), NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_answers_each_caller_with_its_own() {
    let place = Place::new().await;
    let (wire, store) = narrow(&place).await;
    let damaged = store.swap(claiming("damaged", 1)).await.unwrap();
    assert!(matches!(damaged, Swapped::Won { .. }));
    place.database.psql(&["UPDATE counterfoil.record SET record = '\\x00'"]).unwrap();
    let mut swaps: Vec<Swap> = (0..120_u8).map(|number| claiming(&format!("k{number}"), number)).collect();
    swaps.extend((120..140).map(|number| claiming("same", number)));
    swaps.push(claiming("damaged", 2));
    let late = Swap { not_after: Some(Timestamp::from_millis(5)), ..claiming("late", 3) };
    swaps.push(late);
    wire.count("counterfoil.claim(");
    let (mut won, mut lost) = (0, 0);
    for (key, answer) in all(&store, swaps).await {
        match (key.as_str(), answer) {
            ("damaged", Err(error)) => assert_eq!(error.kind, ErrorKind::Corrupt, "{error}"),
            ("late", Ok(Swapped::TooLate { .. })) => {}
            ("same", Ok(Swapped::Lost { stands: Some(_), .. })) => lost += 1,
            (_, Ok(Swapped::Won { record: Some(written), .. })) => {
                won += 1;
                assert_eq!(record(store.as_ref(), &key).await.as_ref(), Some(written.as_ref()), "{key}");
            }
            (_, other) => panic!("{key}: {other:?}"),
        }
    }
    assert_eq!((won, lost), (121, 19));
    // Each identity once in a statement: the twenty of one key take as many.
    assert!(wire.counted() <= 30, "142 claims went in {} statements", wire.counted());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_written_meanwhile_costs_its_own_claim_alone() {
    let place = Place::new().await;
    let (wire, store) = narrow(&place).await;
    assert!(matches!(store.swap(claiming("raced", 1)).await.unwrap(), Swapped::Won { .. }));
    place.database.psql(&["CREATE TABLE kept AS TABLE counterfoil.record", "DELETE FROM counterfoil.record"]).unwrap();
    // What is no claim takes no lock: nothing shows before its commit.
    let mut other = outside(&place).await;
    let writes = other.transaction().await.unwrap();
    writes.execute("INSERT INTO counterfoil.record OVERRIDING SYSTEM VALUE TABLE kept", &[]).await.unwrap();
    wire.count("counterfoil.claim(");
    let swaps = (10..50_u8).map(|number| claiming(&format!("k{number}"), number));
    let swaps = swaps.chain([claiming("raced", 2)]).collect();
    let (sending, looker) = (
        tokio::spawn({
            let store = store.clone();
            async move { all(&store, swaps).await }
        }),
        outside(&place).await,
    );
    let waits = "SELECT FROM pg_locks WHERE locktype = 'transactionid' AND NOT granted";
    while looker.query(waits, &[]).await.unwrap().is_empty() {
        assert!(!sending.is_finished(), "nobody met the open transaction");
    }
    writes.commit().await.unwrap();
    for (key, answer) in sending.await.unwrap() {
        match (key.as_str(), answer) {
            ("raced", Ok(Swapped::Lost { stands: Some(_), .. })) => {}
            (_, Ok(Swapped::Won { .. })) => assert_ne!(key, "raced"),
            (_, other) => panic!("{key}: {other:?}"),
        }
    }
    assert!(wire.counted() > 40, "the raced claim was in no batch: {} statements", wire.counted());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_locked_row_holds_up_nobody_but_its_own_write() {
    let place = Place::new().await;
    let (wire, store) = narrow(&place).await;
    let mut records = Vec::new();
    for number in 0..40_u8 {
        let key = format!("k{number}");
        let Swapped::Won { record: Some(record), .. } = store.swap(claiming(&key, number)).await.unwrap() else {
            panic!("not won")
        };
        records.push((key, record));
    }
    let mut other = outside(&place).await;
    let holds = other.transaction().await.unwrap();
    holds.execute("SELECT FROM counterfoil.record WHERE key = $1 FOR UPDATE", &[&&b"k7"[..]]).await.unwrap();
    wire.count("counterfoil.put(");
    let swaps = records.iter().map(|(key, record)| put(key, record, done(record))).collect();
    for (key, answer) in all(&store, swaps).await {
        match (key.as_str(), answer) {
            ("k7", Err(error)) => assert_eq!(error.kind, ErrorKind::Busy, "{error}"),
            (_, Ok(Swapped::Won { .. })) => assert_ne!(key, "k7"),
            (_, other) => panic!("{key}: {other:?}"),
        }
    }
    assert!(wire.counted() <= 10, "40 completions went in {} statements", wire.counted());
    holds.rollback().await.unwrap();
    let (key, record) = &records[7];
    let after = store.swap(put(key, record, done(record))).await.unwrap();
    assert!(matches!(after, Swapped::Won { .. }), "{after:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_waits_for_an_open_transaction() {
    let place = Place::new().await;
    let store = place.open().await;
    let gate = Gate::new(store.clone()).unwrap();
    let mut other = outside(&place).await;
    // Somebody claims in a transaction that is still open: its record cannot be seen, and whether it will is not known.
    let holds = other.transaction().await.unwrap();
    let [a, b, c, d, e, f, g, h, ..] = *identity("open").digest().as_bytes();
    let lock = i64::from_be_bytes([a, b, c, d, e, f, g, h]);
    holds.execute("SELECT pg_advisory_xact_lock($1)", &[&lock]).await.unwrap();
    let begun = Instant::now();
    let told = gate.begin(&mut claim("open"), &Policy::default()).await.unwrap();
    assert!(matches!(told, Begun::InProgress { .. }), "{told:?}");
    let beside = gate.begin(&mut claim("beside"), &Policy::default()).await.unwrap();
    assert!(matches!(beside, Begun::Execute(_)), "{beside:?}");
    assert!(begun.elapsed() < Duration::from_secs(3), "somebody waited {:?}", begun.elapsed());
    holds.rollback().await.unwrap();
    let after = gate.begin(&mut claim("open"), &Policy::default()).await.unwrap();
    assert!(matches!(after, Begun::Execute(_)), "{after:?}");

    // A lapsed run whose row an open transaction has locked is not taken over meanwhile.
    let policy = Policy { effect: Effect::Coupled, ..Policy::default() };
    assert!(matches!(gate.begin(&mut claim("lapsed"), &policy).await.unwrap(), Begun::Execute(_)));
    place.time.advance(Duration::from_secs(40)).await.unwrap();
    let holds = other.transaction().await.unwrap();
    holds.execute("SELECT FROM counterfoil.record WHERE key = $1 FOR UPDATE", &[&&b"lapsed"[..]]).await.unwrap();
    let told = gate.begin(&mut claim("lapsed"), &policy).await.unwrap();
    assert!(matches!(told, Begun::InProgress { .. }), "{told:?}");
    holds.rollback().await.unwrap();
    assert!(matches!(gate.begin(&mut claim("lapsed"), &policy).await.unwrap(), Begun::Execute(_)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_instances_never_sweep_the_same_rows() {
    let place = Place::new().await;
    let (one, other) = (place.open().await, place.open().await);
    for (_, answer) in all(&one, (0..250_u8).map(|number| claiming(&format!("k{number}"), number)).collect()).await {
        let Ok(Swapped::Won { record: Some(_), .. }) = answer else { panic!("{answer:?}") };
    }
    let mut swaps = Vec::new();
    for number in 0..250_u8 {
        let key = format!("k{number}");
        let record = record(one.as_ref(), &key).await.unwrap();
        swaps.push(put(&key, &record, done(&record)));
    }
    assert!(all(&one, swaps).await.into_iter().all(|(_, answer)| matches!(answer, Ok(Swapped::Won { .. }))));
    place.time.advance(Duration::from_hours(2)).await.unwrap();
    let (first, second) = tokio::join!(one.sweep(1_000), other.sweep(1_000));
    let (first, second) = (first.unwrap(), second.unwrap());
    assert_eq!(first.expired + second.expired, 250, "{first:?} {second:?}");
    assert_eq!(one.about().await.unwrap().records, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_quarantine_that_another_instance_set_is_judged_in_the_write() {
    let place = Place::new().await;
    let (one, other) = (place.open().await, place.open().await);
    let before = one.now().at.plus(Duration::from_secs(60));
    one.set_quarantine(Some(before)).await.unwrap();
    let gate = Gate::new(other.clone()).unwrap();
    for round in 0..2 {
        let told = gate.begin(&mut claim(&format!("undated-{round}")), &Policy::default()).await.unwrap();
        assert!(matches!(told, Begun::Unknown { why: Why::Quarantined, .. }), "{told:?}");
    }
    one.set_quarantine(None).await.unwrap();
    let told = gate.begin(&mut claim("after"), &Policy::default()).await.unwrap();
    assert!(matches!(told, Begun::Execute(_)), "{told:?}");
    // A claim in somebody's open transaction was judged already: no quarantine begins beside it.
    let mut outside = outside(&place).await;
    let open = outside.transaction().await.unwrap();
    let told = one.begin_in(&open, &mut claim("open"), &Policy::default()).await.unwrap();
    assert!(matches!(told, Begun::Execute(_)), "{told:?}");
    let error = other.set_quarantine(Some(before)).await.expect_err("a claim is under way");
    assert_eq!((error.applied, error.kind), (Applied::No, ErrorKind::Busy), "{error}");
    open.rollback().await.unwrap();
    other.set_quarantine(Some(before)).await.unwrap();
}
