//! What is kept, for how long, and what is forgotten.

use std::time::Duration;

use counterfoil_core::action::{Completed, complete};
use counterfoil_core::claim::Draft;
use counterfoil_core::policy::Expiry;
use counterfoil_core::{Asked, Claim, Key, LeaseId, Operation, Policy, Receipt, Rule, Scope, Timestamp};

use super::*;

const RETENTION: Duration = Duration::from_secs(60);

fn at(seconds: i64) -> Now {
    let at = Timestamp::from_millis(seconds * 1000);
    Now { at, expiry_at: at }
}

fn identity(key: &str) -> Identity {
    Identity::new(Scope::single_tenant(), Operation::new("keep").unwrap(), Key::new(key).unwrap())
}

fn running() -> Arc<Record> {
    let claim = Claim::new(identity("any"), Asked::bytes("asked"), &Rule::bytes()).unwrap();
    Arc::new(Draft::new(&claim, &Policy::default(), LeaseId::from_bytes([1; 16]), None).at(at(0).at, None))
}

/// Finished at second 0, with a body of so many bytes.
fn finished(bytes: usize) -> Arc<Record> {
    let (running, receipt) = (running(), Receipt::new(200, vec![b'x'; bytes]));
    let done = complete(Some(&running), running.lease.id, receipt, RETENTION, Expiry::NewAction, at(0).at);
    match done.unwrap() {
        Completed::Write(record) => Arc::new(record),
        Completed::Already => panic!("it runs"),
    }
}

#[test]
fn a_receipt_is_kept_until_the_second_it_expires() {
    let kept = Finished::new();
    let (key, record) = (identity("a"), finished(3));
    kept.keep(&key, &record, kept.before());
    for (second, lives) in [(0, true), (59, true), (60, false), (59, false)] {
        assert_eq!(kept.get(&key, at(second)).is_some(), lives, "second {second}");
    }
    assert_eq!(kept.get(&identity("b"), at(0)), None, "another key is another record");
}

#[test]
fn only_short_finished_records_are_kept() {
    let kept = Finished::new();
    let check = |key: &str, record: Arc<Record>, wanted: bool| {
        kept.keep(&identity(key), &record, kept.before());
        assert_eq!(kept.get(&identity(key), at(0)), wanted.then_some(record), "{key}");
    };
    check("running", running(), false);
    check("longest", finished(BODY_MAX), true);
    check("too long", finished(BODY_MAX + 1), false);
}

#[test]
fn what_may_have_been_replaced_is_forgotten() {
    let kept = Finished::new();
    let (key, record) = (identity("a"), finished(3));
    kept.keep(&key, &record, kept.before());
    kept.forget(&key);
    assert_eq!(kept.get(&key, at(0)), None);
    // It was read before it was replaced, and would be kept after.
    let before = kept.before();
    kept.forget(&key);
    kept.keep(&key, &record, before);
    assert_eq!(kept.get(&key, at(0)), None);
    kept.keep(&key, &record, kept.before());
    kept.clear();
    assert_eq!(kept.get(&key, at(0)), None);
}

#[test]
fn bytes_are_bounded() {
    let kept = Finished::new();
    let record = finished(BODY_MAX);
    for number in 0..1_000 {
        kept.keep(&identity(&number.to_string()), &record, kept.before());
    }
    assert!(kept.records.weight() <= BYTES_MAX, "{}", kept.records.weight());
    assert!(kept.records.len() > 300, "{} are kept", kept.records.len());
}
