//! Records in the file: guards, corruption, look-ups, history.
//! What every store must do stands in the contract.

use counterfoil_core::record::encode;
use counterfoil_core::{Policy, Receipt, Record, State};
use counterfoil_store::seam::{Expected, New, Note, NoteKind, Query, RecordStore as _, Swapped};
use counterfoil_store::{ErrorKind, SqliteStore};

use super::{Place, claimed, claiming, identity, put, record, refused};

fn done(record: &Record, store: &SqliteStore, body: &str) -> Record {
    let policy = Policy::default();
    let receipt = Receipt::new(200, body.to_owned());
    let lease = record.lease.id;
    match counterfoil_core::action::complete(
        Some(record),
        lease,
        receipt,
        policy.retention,
        policy.expiry,
        store.now().at,
    ) {
        Ok(counterfoil_core::action::Completed::Write(done)) => done,
        other => panic!("not completed: {other:?}"),
    }
}

#[tokio::test]
async fn columns_and_record_must_agree() {
    let damage = [
        ("the version", "UPDATE counterfoil_record SET version = version + 1"),
        ("the lease", "UPDATE counterfoil_record SET lease = randomblob(16)"),
        ("the due instant", "UPDATE counterfoil_record SET expires_at = 5"),
        ("the bytes", "UPDATE counterfoil_record SET record = x'0102'"),
        ("no bytes", "UPDATE counterfoil_record SET record = x''"),
    ];
    for (what, statement) in damage {
        let place = Place::new();
        let store = place.open();
        claimed(&store, "a", 1).await;
        place.outside().execute_batch(statement).unwrap();
        let error = refused(store.read(&identity("a")).await, ErrorKind::Corrupt, "restore the row");
        assert!(error.to_string().contains(&identity("a").digest().to_string()), "{what}: {error}");
        // Refused and never treated as absent, by a claim either.
        refused(store.swap(claiming("a", 2, &store)).await, ErrorKind::Corrupt, "restore the row");
        let listed = store.list(Query { limit: 10, ..Query::default() }).await.unwrap();
        assert!(listed.rows[0].record.is_err(), "{what}");
    }
}

#[tokio::test]
async fn a_record_of_a_newer_version_is_told() {
    let place = Place::new();
    let store = place.open();
    let mut newer = encode(&claimed(&store, "a", 1).await);
    newer[0] = 200;
    place.outside().execute("UPDATE counterfoil_record SET record = ?1", [newer]).unwrap();
    refused(store.read(&identity("a")).await, ErrorKind::StoreNewer, "run the newer version");
}

#[tokio::test]
async fn a_swap_wins_only_over_exactly_what_it_expects() {
    let place = Place::new();
    let store = place.open();
    let running = claimed(&store, "a", 1).await;
    let mut other_version = put("a", &running, done(&running, &store, "x"));
    other_version.expected = Expected::Record { version: 9, lease: running.lease.id };
    let mut other_lease = put("a", &running, done(&running, &store, "x"));
    other_lease.expected = Expected::Record { version: 1, lease: counterfoil_core::LeaseId::from_bytes([9; 16]) };
    let mut absent = put("a", &running, done(&running, &store, "x"));
    absent.expected = Expected::Absent;
    let mut deleted = put("a", &running, done(&running, &store, "x"));
    (deleted.expected, deleted.new) = (Expected::Absent, New::Delete);
    for swap in [other_version, other_lease, absent, deleted] {
        match store.swap(swap).await.unwrap() {
            Swapped::Lost { stands, .. } => assert_eq!(stands.as_deref(), Some(&running)),
            other => panic!("{other:?}"),
        }
    }
    assert!(matches!(store.swap(put("a", &running, done(&running, &store, "x"))).await.unwrap(), Swapped::Won { .. }));
}

#[tokio::test]
async fn records_are_found_by_key_and_by_the_beginning_of_their_digest() {
    let place = Place::new();
    let store = place.open();
    for key in ["first", "second", "abc"] {
        claimed(&store, key, 1).await;
    }
    let digest = identity("second").digest();
    let whole = digest.to_hex();
    for (text, wanted) in [
        ("second", Some("second")),
        (whole.as_str(), Some("second")),
        (&digest.to_string(), Some("second")),
        (&whole[..10].to_uppercase(), Some("second")),
        ("abc", Some("abc")),
        ("nobody", None),
        ("", None),
    ] {
        let found = store.find(text, 10).await.unwrap();
        let keys: Vec<&str> = found.iter().map(|row| row.identity.key.as_str()).collect();
        assert_eq!(keys, wanted.into_iter().collect::<Vec<_>>(), "{text}");
    }
}

#[tokio::test]
async fn a_note_is_written_with_its_swap_or_not_at_all() {
    let place = Place::new();
    let store = place.open();
    let running = claimed(&store, "a", 1).await;
    let note = Note {
        identity: identity("a"),
        at: store.now().at,
        kind: NoteKind::ResolvedHappened,
        lease: running.lease.id,
        who: "somebody".to_owned(),
        why: "the bank says so".to_owned(),
    };
    let mut settled = put("a", &running, done(&running, &store, "x"));
    settled.note = Some(note.clone().into());
    place.outside().execute_batch("ALTER TABLE counterfoil_history RENAME TO hidden").unwrap();
    store.swap(settled.clone()).await.unwrap_err();
    assert!(matches!(record(&store, "a").await.unwrap().state, State::Running), "the record alone was written");
    place.outside().execute_batch("ALTER TABLE hidden RENAME TO counterfoil_history").unwrap();
    store.swap(settled.clone()).await.unwrap();
    // A swap that loses notes nothing.
    assert!(matches!(store.swap(settled).await.unwrap(), Swapped::Lost { .. }));
    assert_eq!(store.history(&identity("a")).await.unwrap(), [note]);
}

#[tokio::test]
async fn a_page_ends_where_its_bytes_are_many() {
    let place = Place::new();
    let store = place.open();
    let large = "x".repeat(20 << 20);
    for key in ["a", "b", "c", "d"] {
        let running = claimed(&store, key, 1).await;
        store.swap(put(key, &running, done(&running, &store, &large))).await.unwrap();
    }
    let first = store.list(Query { limit: 1000, ..Query::default() }).await.unwrap();
    assert_eq!((first.rows.len(), first.more), (2, true));
    let after = first.rows[1].position;
    let second = store.list(Query { limit: 1000, after, ..Query::default() }).await.unwrap();
    assert_eq!((second.rows.len(), second.more), (2, false));
}
