//! What servers do: stop and come back, crash, refuse writes, and settings that lose commits; how a store is made.
//! What the network does stands in `faults`.

use std::sync::Arc;

use counterfoil_store::mysql::trial::{Database, Server};
use counterfoil_store::mysql::{MysqlStore, Options};
use counterfoil_store::seam::{RecordStore as _, Swapped};
use counterfoil_store::sqlite::Migrated;
use counterfoil_store::{Applied, ErrorKind};

use super::{Place, claiming, identity, record};

async fn refused(database: &Database, set: &str, back: &str, told: &str) {
    database.sql(set).unwrap();
    let opened = MysqlStore::open(&database.url(), Options::default()).await;
    database.sql(back).unwrap();
    let error = opened.expect_err(set);
    assert_eq!((error.applied, error.kind), (Applied::No, ErrorKind::Unavailable), "{set}: {error}");
    assert!(error.detail.contains(told), "{set}: {error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_may_lose_commits_is_refused_and_a_crash_loses_nothing() {
    let server = Arc::new(Server::start(&["--log-bin=binary", "--server-id=1", "--sync-binlog=1"]).unwrap());
    let database = server.empty().unwrap();
    MysqlStore::migrate(&database.url()).await.unwrap();
    let global = |setting: &str| format!("SET GLOBAL {setting}");
    for (set, back, told) in [
        (
            "innodb_flush_log_at_trx_commit = 0",
            "innodb_flush_log_at_trx_commit = 1",
            "innodb_flush_log_at_trx_commit = 1",
        ),
        (
            "innodb_flush_log_at_trx_commit = 2",
            "innodb_flush_log_at_trx_commit = 1",
            "innodb_flush_log_at_trx_commit = 1",
        ),
        ("sync_binlog = 0", "sync_binlog = 1", "sync_binlog = 1"),
        ("read_only = 1", "read_only = 0", "primary"),
    ] {
        refused(&database, &global(set), &global(back), told).await;
    }
    let engine = |name: &str| format!("ALTER TABLE counterfoil_history ENGINE = {name}");
    refused(&database, &engine("Aria"), &engine("InnoDB"), "InnoDB").await;

    let store = MysqlStore::open(&database.url(), Options::default()).await.unwrap();
    // Told while it serves: nothing begins that may be forgotten.
    database.sql("SET GLOBAL innodb_flush_log_at_trx_commit = 2").unwrap();
    let error = store.swap(claiming("a", 1)).await.expect_err("it may be lost");
    assert_eq!((error.applied, error.kind), (Applied::No, ErrorKind::Unavailable), "{error}");
    database.sql("SET GLOBAL innodb_flush_log_at_trx_commit = 1").unwrap();
    let won = store.swap(claiming("a", 1)).await.unwrap();
    assert!(matches!(won, Swapped::Won { .. }), "{won:?}");
    server.stop("KILL").unwrap();

    let error = store.read(&identity("a")).await.expect_err("the server is down");
    assert_eq!((error.applied, error.kind), (Applied::No, ErrorKind::Unavailable), "{error}");
    assert!(store.health().is_err());
    server.run().unwrap();
    // The same store, on new connections.
    assert!(record(store.as_ref(), "a").await.is_some(), "a claim that was answered is gone");
    store.health().unwrap();
    server.stop("TERM").unwrap();
    server.run().unwrap();
    assert!(record(store.as_ref(), "a").await.is_some(), "a claim that was answered is gone");
    store.close().await;
    let error = store.read(&identity("a")).await.expect_err("it is closed");
    assert_eq!(error.kind, ErrorKind::Unavailable);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn users_that_cannot_serve_are_told_why_and_grants_suffice() {
    let place = Place::new().await;
    let (server, name) = (place.database.server(), place.database.name());
    let user = format!("serving_{name}");
    server.sql("", &format!("CREATE USER {user}@'127.0.0.1' WITH MAX_USER_CONNECTIONS 1")).unwrap();
    let url = place.database.url().replace("tester@", &format!("{user}@"));
    let error = MysqlStore::open(&url, place.options()).await.expect_err("it has no rights");
    assert_eq!((error.applied, error.kind), (Applied::No, ErrorKind::Unavailable), "{error}");
    assert!(error.detail.contains("grant"), "{error}");
    let grant = format!("GRANT SELECT, INSERT, UPDATE, DELETE, EXECUTE ON {name}.* TO {user}@'127.0.0.1'");
    server.sql("", &grant).unwrap();
    let store = MysqlStore::open(&url, place.options()).await.unwrap();
    let won = store.swap(claiming("a", 1)).await.unwrap();
    assert!(matches!(won, Swapped::Won { .. }), "{won:?}");
    // It has its one connection.
    let error = MysqlStore::open(&url, place.options()).await.expect_err("there is no connection left");
    assert_eq!((error.applied, error.kind), (Applied::No, ErrorKind::Busy), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_schema_is_made_once_and_read_by_its_version() {
    let server = Server::shared().unwrap();
    let database = server.empty().unwrap();
    let error = MysqlStore::open(&database.url(), Options::default()).await.expect_err("there is no store");
    assert!(error.detail.contains("counterfoil migrate"), "{error}");
    let url = database.url();
    let (first, second) = tokio::join!(MysqlStore::migrate(&url), MysqlStore::migrate(&url));
    let mut made = [first.unwrap(), second.unwrap()];
    made.sort_by_key(|migrated| *migrated != Migrated::Made);
    assert_eq!(made, [Migrated::Made, Migrated::Current]);
    // Cut short before its last word, and begun again.
    database.sql("DELETE FROM counterfoil_migration").unwrap();
    assert_eq!(MysqlStore::migrate(&url).await.unwrap(), Migrated::Made);
    let store = MysqlStore::open(&url, Options::default()).await.unwrap();
    let skew = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis();
    let now = u128::try_from(store.about().await.unwrap().now.at.as_millis()).unwrap();
    assert!(now.abs_diff(skew) < 60_000, "the server's time zone has a say: {now} and {skew}");
    database.sql("INSERT INTO counterfoil_migration VALUES (99, 0)").unwrap();
    let error = MysqlStore::open(&url, Options::default()).await.expect_err("it is newer");
    assert_eq!(error.kind, ErrorKind::StoreNewer, "{error}");
}
