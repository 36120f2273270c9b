//! Opening and migrating: what is made, what is refused, and that each refusal says what to do.
//! What happens to a file in use stands in `file`.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use counterfoil_store::seam::RecordStore as _;
use counterfoil_store::sqlite::{Migrated, Missing, rusqlite};
use counterfoil_store::{ErrorKind, SqliteStore};

use super::{Place, claimed, record, refused};

#[test]
fn the_linked_sqlite_loses_no_commits() {
    assert!(rusqlite::version_number() >= 3_051_003, "{}", rusqlite::version());
}

#[tokio::test]
async fn a_migration_makes_the_file_once() {
    let place = Place::new();
    assert_eq!(SqliteStore::migrate(place.path()).unwrap(), Migrated::Made);
    assert_eq!(SqliteStore::migrate(place.path()).unwrap(), Migrated::Current);
    assert_eq!(fs::metadata(place.path()).unwrap().permissions().mode() & 0o777, 0o600);
    let mut options = place.options();
    options.missing = Missing::Refuse;
    let store = place.open_with(options.clone()).unwrap();
    let first = store.about().await.unwrap();
    claimed(&store, "a", 1).await;
    for entry in fs::read_dir(place.directory.path()).unwrap() {
        let entry = entry.unwrap();
        assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o077, 0, "{:?}", entry.file_name());
    }
    drop(store);
    assert_eq!(SqliteStore::migrate(place.path()).unwrap(), Migrated::Current);
    let store = place.open_with(options).unwrap();
    let second = store.about().await.unwrap();
    assert_eq!((first.id, first.born_at), (second.id, second.born_at));
    assert_eq!(second.records, 1);
    let mode: String = place.outside().query_row("PRAGMA journal_mode", [], |row| row.get(0)).unwrap();
    assert_eq!(mode, "wal");
}

#[test]
fn many_may_make_it_at_once() {
    for _ in 0..10 {
        let place = Place::new();
        let mut options = place.options();
        options.busy_timeout = std::time::Duration::from_secs(30);
        let openers: Vec<_> = (0..8)
            .map(|_| {
                let (path, options) = (place.path(), options.clone());
                std::thread::spawn(move || SqliteStore::open(path, options).map(drop))
            })
            .collect();
        for opener in openers {
            opener.join().unwrap().unwrap();
        }
        assert!(super::instances(place.directory.path()).is_empty());
    }
}

#[test]
fn what_is_no_store_is_refused_with_the_next_step() {
    let place = Place::new();
    let mut options = place.options();
    options.missing = Missing::Refuse;
    let open = || place.open_with(options.clone());
    refused(open(), ErrorKind::Unavailable, "run `counterfoil migrate`");
    assert!(!place.path().exists(), "a refused store was made");
    // A file of somebody else without our tables.
    place.outside().execute_batch("CREATE TABLE orders (id TEXT)").unwrap();
    refused(open(), ErrorKind::Unavailable, "run `counterfoil migrate`");
    fs::write(place.path(), "plain text, and long enough to be taken for a header of a database").unwrap();
    refused(open(), ErrorKind::Unavailable, "no SQLite database");
    fs::remove_file(place.path()).unwrap();
    fs::create_dir(place.path()).unwrap();
    refused(open(), ErrorKind::Unavailable, "is no file");
    refused(
        SqliteStore::open(place.path().join("no/directory.db"), place.options()),
        ErrorKind::Unavailable,
        "make its directory",
    );
}

#[test]
fn our_tables_stand_beside_the_application_s() {
    let place = Place::new();
    place.outside().execute_batch("CREATE TABLE orders (id TEXT); INSERT INTO orders VALUES ('a')").unwrap();
    drop(place.open());
    assert_eq!(place.orders(), 1);
    let others: i64 = place
        .outside()
        .query_row(
            "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'counterfoil\\_%' ESCAPE '\\'",
            [],
            |row| row.get(0),
        )
        .unwrap();
    assert_eq!(others, 1, "only the application's table lacks our prefix");
}

#[tokio::test]
async fn a_newer_schema_is_refused_and_left_alone() {
    let place = Place::new();
    claimed(&place.open(), "a", 1).await;
    place.outside().execute_batch("INSERT INTO counterfoil_migration VALUES (99, 0)").unwrap();
    refused(place.open_with(place.options()), ErrorKind::StoreNewer, "schema 99");
    refused(SqliteStore::migrate(place.path()), ErrorKind::StoreNewer, "run the newer version");
    place.outside().execute_batch("DELETE FROM counterfoil_migration WHERE version = 99").unwrap();
    assert!(record(&place.open(), "a").await.is_some());
}

#[tokio::test]
async fn a_closed_store_answers_nothing() {
    let place = Place::new();
    let store = place.open();
    claimed(&store, "a", 1).await;
    store.close();
    store.close();
    refused(store.read(&super::identity("a")).await, ErrorKind::Unavailable, "closed");
    refused(store.swap(super::claiming("b", 1, &store)).await, ErrorKind::Unavailable, "closed");
    refused(store.health(), ErrorKind::Unavailable, "closed");
    // It still held a lease: its file tells that it is gone.
    assert_eq!(super::instances(place.directory.path()).len(), 1);
    let reopened = place.open();
    assert!(record(&reopened, "a").await.is_some());
    drop(reopened);
    assert!(super::instances(place.directory.path()).is_empty());
}
