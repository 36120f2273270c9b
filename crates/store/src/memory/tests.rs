//! What only the memory store has: its bound, and indexes that stay whole. What every store must do is in `contract`.

use std::time::Duration;

use counterfoil_core::action::{Completed, complete};
use counterfoil_core::claim::Draft;
use counterfoil_core::{Asked, Claim, Expiry, Key, LeaseId, Operation, Policy, Receipt, Record, Rule, Scope};
use proptest::prelude::*;

use super::*;
use crate::clock::TestClock;

const RETENTION: Duration = Duration::from_mins(1);

fn identity(key: u8) -> Identity {
    let operation = Operation::new("create-order").unwrap();
    Identity::new(Scope::single_tenant(), operation, Key::new(format!("k{key}")).unwrap())
}

fn claim(identity: &Identity, lease: u8) -> New {
    let claim = Claim::new(identity.clone(), Asked::bytes("x"), &Rule::bytes()).unwrap();
    New::claim(Draft::new(&claim, &Policy::default(), LeaseId::from_bytes([lease; 16]), None))
}

fn done(record: &Record, expiry: Expiry, now: Timestamp) -> New {
    let receipt = Receipt::new(201, "made");
    match complete(Some(record), record.lease.id, receipt, RETENTION, expiry, now).unwrap() {
        Completed::Write(record) => New::put(record),
        Completed::Already => panic!("it was not done"),
    }
}

fn swap(store: &MemoryStore, identity: &Identity, new: New) -> Result<Swapped, StoreError> {
    let expected = stands(store, identity).as_deref().map_or(Expected::Absent, Expected::record);
    store.apply(Swap { identity: identity.clone(), expected, new, not_after: None, note: None })
}

fn stands(store: &MemoryStore, identity: &Identity) -> Option<Arc<Record>> {
    store.kept().rows.get(store.hashing.of(identity), identity).cloned()
}

fn start() -> (TestClock, MemoryStore) {
    let clock = TestClock::new(Timestamp::from_millis(1_000_000));
    let store = MemoryStore::with_clock(Arc::new(clock.clone()));
    (clock, store)
}

#[test]
fn a_full_store_is_busy_until_something_has_expired() {
    let (clock, store) = start();
    let store = store.records_max(2);
    for key in 0..2 {
        swap(&store, &identity(key), claim(&identity(key), key)).unwrap();
    }
    let full = swap(&store, &identity(2), claim(&identity(2), 2)).unwrap_err();
    assert_eq!((full.kind, full.applied), (ErrorKind::Busy, crate::Applied::No), "{full}");
    let record = stands(&store, &identity(0)).unwrap();
    swap(&store, &identity(0), done(&record, Expiry::NewAction, store.now().at)).unwrap();
    assert!(swap(&store, &identity(2), claim(&identity(2), 2)).is_err(), "a live receipt makes no room");
    clock.advance(RETENTION);
    assert!(matches!(swap(&store, &identity(2), claim(&identity(2), 2)), Ok(Swapped::Won { .. })));
}

#[test]
fn the_history_is_bounded_for_all_identities_together() {
    let (_clock, store) = start();
    let note = |key: u8| Note {
        identity: identity(key),
        at: store.now().at,
        kind: crate::seam::NoteKind::LateCompletion,
        lease: LeaseId::from_bytes([0; 16]),
        who: String::new(),
        why: String::new(),
    };
    store.kept().append(note(1));
    for _ in 0..NOTES_MAX {
        store.kept().append(note(0));
    }
    let kept = store.kept();
    assert_eq!(kept.notes.len(), NOTES_MAX);
    assert!(kept.notes.iter().all(|note| note.identity == identity(0)), "the oldest goes first");
}

proptest! {
    #[test]
    fn indexes_stay_whole(collide: bool, steps in proptest::collection::vec((0u8..6, 0u8..6), 0..80)) {
        let (clock, mut store) = start();
        store.hashing.bits = collide.then_some(1);
        for (number, (key, what)) in (0u8..).zip(steps) {
            let record = stands(&store, &identity(key));
            let now = store.now();
            let new = match (what, &record) {
                (0 | 1, _) | (2 | 3, None) => claim(&identity(key), number),
                (2, Some(record)) if record.sweep_at().is_none() => done(record, Expiry::NewAction, now.at),
                (3, Some(record)) if record.sweep_at().is_none() => done(record, Expiry::Refuse(RETENTION), now.at),
                (4, _) => New::Delete,
                _ => {
                    clock.advance(Duration::from_secs(25));
                    let now = store.now();
                    store.kept().sweep(usize::from(key), now);
                    store.kept().rows.assert_whole();
                    continue;
                }
            };
            swap(&store, &identity(key), new).unwrap();
            store.kept().rows.assert_whole();
        }
    }
}
