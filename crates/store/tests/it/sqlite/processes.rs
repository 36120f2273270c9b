//! Several processes on one file: each store of one process is one instance here, with a lock of its own.
//! Killed processes stand in the crash tests of the whole.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::OpenOptionsExt as _;
use std::sync::Arc;

use counterfoil_core::record::{State, decode, encode};
use counterfoil_core::{Holder, Policy, Record, Why};
use counterfoil_store::seam::RecordStore as _;
use counterfoil_store::sqlite::Origin;

use super::{Place, claim, claimed, instances, order, origin, record};

#[tokio::test]
async fn each_process_holds_a_lock_for_its_life() {
    let place = Place::new();
    let first = place.open();
    let second = place.open();
    assert_ne!(first.holder(), second.holder());
    let held = instances(place.directory.path());
    assert_eq!(held.len(), 2);
    for path in &held {
        let file = OpenOptions::new().write(true).open(path).unwrap();
        file.try_lock().unwrap_err();
    }
    drop(first);
    assert_eq!(instances(place.directory.path()).len(), 1);
    drop(second);
    assert!(instances(place.directory.path()).is_empty());
}

#[tokio::test]
async fn a_process_that_ends_in_order_leaves_word_of_what_it_still_holds() {
    let place = Place::new();
    let first = place.open();
    let holder = first.holder();
    assert_eq!(claimed(&first, "held", 1).await.lease.holder, holder);
    drop(first);
    assert_eq!(instances(place.directory.path()).len(), 1, "nobody could tell that it is gone");
    let second = place.open();
    let ended = record(&second, "held").await.unwrap();
    assert!(ended.lease.is_ended(), "{ended:?}");
    drop(second);
    assert!(instances(place.directory.path()).is_empty());
}

/// Gives the record of `key` a holder whose instance file stands unlocked, as a killed process leaves it.
fn orphan(place: &Place, key: &str, holder: Holder) {
    let conn = place.outside();
    let bytes: Vec<u8> =
        conn.query_row("SELECT record FROM counterfoil_record WHERE key = ?1", [key], |row| row.get(0)).unwrap();
    let mut orphaned: Record = decode(&bytes).unwrap();
    orphaned.lease.holder = Some(holder);
    conn.execute(
        "UPDATE counterfoil_record SET record = ?1, holder = ?2 WHERE key = ?3",
        (encode(&orphaned), holder.as_bytes(), key),
    )
    .unwrap();
}

fn leave_file(place: &Place, holder: Holder) -> std::path::PathBuf {
    let path = place.directory.path().canonicalize().unwrap().join(format!("store.db-instance-{holder}"));
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path).unwrap();
    path
}

#[tokio::test]
async fn a_starting_process_ends_the_leases_of_gone_ones_and_of_nobody_else() {
    let place = Place::new();
    let living = place.open();
    let lives = claimed(&living, "lives", 1).await;
    for key in 0..250_usize {
        claimed(&living, &format!("gone-{key}"), 2).await;
    }
    let gone = Holder::from_bytes([0xab; 16]);
    for key in 0..250_usize {
        orphan(&place, &format!("gone-{key}"), gone);
    }
    let left = leave_file(&place, gone);
    let restarted = place.open();
    assert!(!left.exists(), "a gone process is forgotten");
    assert_eq!(record(&restarted, "lives").await.unwrap(), lives, "a living one's lease was touched");
    for key in 0..250_usize {
        let ended = record(&restarted, &format!("gone-{key}")).await.unwrap();
        assert_eq!((ended.lease.until, ended.lease.holder, ended.version), (restarted.now().at, None, 2));
        let standing = ended.standing(restarted.now());
        assert!(
            matches!(standing, counterfoil_core::record::Standing::Unknown { why: Why::Lapsed, .. }),
            "{standing:?}"
        );
        assert_eq!(ended.state, State::Running);
    }
}

#[tokio::test]
async fn two_processes_share_the_file() {
    let place = Place::new();
    let first = place.with_orders();
    let second = place.open();
    assert_eq!(origin(first.execute(claim("a"), &Policy::default(), order("1")).await), Origin::Fresh);
    assert_eq!(origin(second.execute(claim("a"), &Policy::default(), order("2")).await), Origin::Replayed);
    // One is restarted; what the other holds stands.
    let running = claimed(&first, "b", 1).await;
    drop(second);
    let second = place.open();
    assert_eq!(record(&second, "b").await, Some(running));
    assert_eq!(origin(second.execute(claim("c"), &Policy::default(), order("3")).await), Origin::Fresh);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_processes_race_without_a_second_effect() {
    let place = Place::new();
    let stores = {
        let first = place.with_orders();
        let mut options = place.options();
        options.busy_timeout = std::time::Duration::from_secs(30);
        drop(first);
        [place.open_with(options.clone()).unwrap(), place.open_with(options).unwrap()]
    };
    let mut racers = Vec::new();
    for round in 0..40_usize {
        for store in &stores {
            let (store, key) = (Arc::clone(store), format!("key-{}", round / 2));
            racers.push(tokio::spawn(async move {
                let claim = counterfoil_core::Claim::new(
                    super::identity(&key),
                    counterfoil_core::Asked::bytes("order"),
                    &counterfoil_core::Rule::bytes(),
                );
                origin(store.execute(claim.unwrap(), &Policy::default(), order(&key)).await)
            }));
        }
    }
    let mut fresh = 0;
    for racer in racers {
        fresh += usize::from(racer.await.unwrap() == Origin::Fresh);
    }
    assert_eq!((fresh, place.orders()), (20, 20));
}

#[tokio::test]
async fn a_file_that_only_looks_like_an_instance_is_left_alone() {
    let place = Place::new();
    drop(place.open());
    let names = ["store.db-instance-", "store.db-instance-xyz", "store.db-instance-ABABABABABABABABABABABABABABABAB"];
    for name in names {
        fs::write(place.directory.path().join(name), "mine").unwrap();
    }
    drop(place.open());
    for name in names {
        assert!(place.directory.path().join(name).exists(), "{name}");
    }
}
