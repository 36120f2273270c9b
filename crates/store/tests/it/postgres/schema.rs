//! How a database gets its schema, and which schemas are refused.
//! What the schema is for stands in its own file.

use counterfoil_store::postgres::trial::{Database, Server};
use counterfoil_store::postgres::{Options, PostgresStore};
use counterfoil_store::seam::RecordStore as _;
use counterfoil_store::sqlite::{Migrated, Missing};
use counterfoil_store::{ErrorKind, StoreError};

fn empty() -> Database {
    Server::shared().unwrap().empty().unwrap()
}

async fn refused(database: &Database) -> StoreError {
    PostgresStore::open(&database.url(), Options::default()).await.expect_err("it holds no store of this version")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_is_made_once_by_whoever_comes_first() {
    let database = empty();
    let error = refused(&database).await;
    assert_eq!(error.kind, ErrorKind::Unavailable);
    assert!(error.detail.contains("counterfoil migrate"), "{error}");
    let url = database.url();
    let (a, b, c) =
        tokio::join!(PostgresStore::migrate(&url), PostgresStore::migrate(&url), PostgresStore::migrate(&url));
    let made = [a, b, c].map(Result::unwrap);
    assert_eq!(made.iter().filter(|migrated| **migrated == Migrated::Made).count(), 1, "{made:?}");
    let store = PostgresStore::open(&url, Options::default()).await.unwrap();
    let about = store.about().await.unwrap();
    assert_eq!(about.records, 0);
    assert!(about.place.ends_with(database.name()), "{}", about.place);
    // Nobody replaced the clock here: it is near this machine's.
    let wall = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis();
    let off = u64::try_from(about.now.at.as_millis()).unwrap().abs_diff(u64::try_from(wall).unwrap());
    assert!(off < 120_000, "the server's clock is {off} ms off");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_can_be_made_by_opening_it() {
    let database = empty();
    let mut options = Options::default();
    options.missing = Missing::Create;
    PostgresStore::open(&database.url(), options).await.unwrap();
    PostgresStore::open(&database.url(), Options::default()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_newer_schema_is_refused_and_left_alone() {
    let database = empty();
    PostgresStore::migrate(&database.url()).await.unwrap();
    database.psql(&["INSERT INTO counterfoil.migration VALUES (99, 0)"]).unwrap();
    assert_eq!(refused(&database).await.kind, ErrorKind::StoreNewer);
    let error = PostgresStore::migrate(&database.url()).await.expect_err("it is newer");
    assert_eq!(error.kind, ErrorKind::StoreNewer, "{error}");
}
