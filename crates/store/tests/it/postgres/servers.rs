//! What servers do: stop and come back, crash, refuse writes, give up on their standbys, and roles that lose commits.
//! What the network does stands in `faults`.

use std::sync::Arc;
use std::time::Duration;

use counterfoil_store::postgres::trial::{Database, Server};
use counterfoil_store::postgres::{Options, PostgresStore};
use counterfoil_store::seam::{RecordStore as _, Swapped};
use counterfoil_store::{Applied, ErrorKind};

use super::{Place, claiming, identity, record};

/// The rights that serving needs, and no more.
const GRANTS: [&str; 4] = [
    "GRANT USAGE ON SCHEMA counterfoil TO serving",
    "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA counterfoil TO serving",
    "GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA counterfoil TO serving",
    "REVOKE INSERT, UPDATE, DELETE ON counterfoil.migration FROM serving",
];

fn url_of(database: &Database, role: &str) -> String {
    database.url().replace("postgres://postgres@", &format!("postgres://{role}@"))
}

async fn fresh(server: &Arc<Server>) -> Database {
    let database = server.empty().unwrap();
    PostgresStore::migrate(&database.url()).await.unwrap();
    database
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_answered_survives_a_crash_whatever_the_role_says() {
    // Such a role's commits are on disk ten seconds later, were it not overridden.
    let server = Arc::new(Server::start(&["wal_writer_delay = 10s"]).unwrap());
    let database = fresh(&server).await;
    database.psql(&["CREATE ROLE serving LOGIN", "ALTER ROLE serving SET synchronous_commit = off"]).unwrap();
    database.psql(&GRANTS).unwrap();
    let store = PostgresStore::open(&url_of(&database, "serving"), Options::default()).await.unwrap();
    let won = store.swap(claiming("a", 1)).await.unwrap();
    assert!(matches!(won, Swapped::Won { .. }));
    server.stop("immediate").unwrap();

    let error = store.read(&identity("a")).await.expect_err("the server is down");
    assert_eq!((error.applied, error.kind), (Applied::No, ErrorKind::Unavailable), "{error}");
    let error = store.swap(claiming("b", 2)).await.expect_err("the server is down");
    assert_eq!((error.applied, error.kind), (Applied::No, ErrorKind::Unavailable), "{error}");
    assert!(store.health().is_err());

    server.run().unwrap();
    // The same store, on new connections.
    assert!(record(store.as_ref(), "a").await.is_some(), "a claim that was answered is gone");
    assert!(record(store.as_ref(), "b").await.is_none());
    store.health().unwrap();
    store.close().await;
    let error = store.read(&identity("a")).await.expect_err("it is closed");
    assert_eq!(error.kind, ErrorKind::Unavailable);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_takes_no_writes_says_so() {
    let place = Place::new().await;
    let set = format!("ALTER DATABASE {} SET default_transaction_read_only = on", place.database.name());
    place.database.psql(&[&set]).unwrap();
    let store = place.open().await;
    assert!(record(store.as_ref(), "a").await.is_none());
    let error = store.swap(claiming("a", 1)).await.expect_err("it takes no writes");
    assert_eq!((error.applied, error.kind), (Applied::No, ErrorKind::Unavailable), "{error}");
    assert!(error.detail.contains("primary"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_that_is_silent_or_gone_hides_no_other() {
    let database = fresh(&Server::shared().unwrap()).await;
    let port = database.server().port();
    // Connections are made to the first, and nothing is ever said there; nobody is at the second.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mute = silent.local_addr().unwrap().port();
    let hosts = format!("127.0.0.1:{mute},127.0.0.1:{gone},127.0.0.1:{port}");
    let url = database.url().replace(&format!("127.0.0.1:{port}"), &hosts);
    let store = PostgresStore::open(&url, Options::default()).await.unwrap();
    assert!(matches!(store.swap(claiming("a", 1)).await.unwrap(), Swapped::Won { .. }));
    let nobody = url.replace(&format!(",127.0.0.1:{port}"), "");
    let error = PostgresStore::open(&nobody, Options::default()).await.expect_err("nobody answers");
    assert_eq!((error.applied, error.kind), (Applied::No, ErrorKind::Unavailable), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn roles_that_cannot_serve_are_told_why() {
    let server = Server::shared().unwrap();
    let database = fresh(&server).await;
    database.psql(&["CREATE ROLE stranger LOGIN", "CREATE ROLE crowded LOGIN CONNECTION LIMIT 0"]).unwrap();
    for (role, kind, told) in [("stranger", ErrorKind::Unavailable, "grant"), ("crowded", ErrorKind::Busy, "busy")] {
        let opened = PostgresStore::open(&url_of(&database, role), Options::default()).await;
        let error = opened.expect_err(role);
        assert_eq!((error.applied, error.kind), (Applied::No, kind), "{role}: {error}");
        assert!(error.detail.contains(told), "{role}: {error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_that_no_standby_confirmed_is_unknown() {
    let server = Arc::new(Server::start(&[]).unwrap());
    let database = fresh(&server).await;
    let mut options = Options::default();
    options.call_timeout = Duration::from_secs(60);
    let store = PostgresStore::open(&database.url(), options).await.unwrap();
    let own = ["SET synchronous_commit = local", "ALTER SYSTEM SET synchronous_standby_names = 'nobody'"];
    database.psql(&own).unwrap();
    database.psql(&["SELECT pg_reload_conf()"]).unwrap();
    let waits = |statement: &'static str| {
        // Until somebody waits for the standby that does not exist.
        let told = (0..1_000).map(|_| database.psql(&[statement]).unwrap()).find(|told| !told.is_empty());
        told.expect("a commit waits for its standby")
    };
    let cancel = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
    let sending = store.clone();
    let sent = tokio::spawn(async move { sending.swap(claiming("a", 1)).await });
    waits(cancel);
    let error = sent.await.unwrap().expect_err("it is not replicated");
    assert_eq!((error.applied, error.kind), (Applied::Unknown, ErrorKind::Unknown), "{error}");
    assert!(error.detail.contains("standbys"), "{error}");
    // The same write again finds itself, and waits for the standby again before it says so.
    let sending = store.clone();
    let sent = tokio::spawn(async move { sending.swap(claiming("a", 1)).await });
    waits(cancel);
    let error = sent.await.unwrap().expect_err("it is still not replicated");
    assert!(error.applied == Applied::Unknown && error.detail.contains("standbys"), "{error}");
    database.psql(&["ALTER SYSTEM RESET synchronous_standby_names"]).unwrap();
    database.psql(&["SELECT pg_reload_conf()"]).unwrap();
    let own = store.swap(claiming("a", 1)).await.unwrap();
    assert!(matches!(&own, Swapped::Lost { stands: Some(stands), .. } if stands.lease.id.as_bytes() == &[1; 16]));
}
