//! The reply to a committed claim or completion is lost between `counterfoil serve` and its database, or a claim is
//! delayed until long after it was given up: the application runs once, and its caller is answered 201.
//!
//! What does not belong here: what becomes of the record and of the pool, which the store's own tests have.

use std::thread;

use counterfoil_store::{mysql, postgres};
use tokio::runtime::{Builder, Runtime};

use super::{
    curl::{Answer, post},
    served::{Served, run},
    upstream::Upstream,
};

/// A proxy whose database is behind a wire, which runs on a runtime of its own.
struct World {
    proxy: Served,
    upstream: Upstream,
}

impl World {
    /// On the empty database at `direct`, which the proxy reaches at `through`.
    fn new(direct: &str, through: &str) -> Self {
        let home = tempfile::tempdir().expect("a directory");
        let migrated = run(&["migrate", "--store", direct], home.path());
        assert!(migrated.status.success(), "{}", String::from_utf8_lossy(&migrated.stderr));
        let upstream = Upstream::start();
        let arguments = ["--principal", "none", "--store", through, "--upstream", upstream.url()];
        Self { proxy: Served::with(&arguments, Some(home.path())), upstream }
    }

    fn order(&self, key: &str) -> Answer {
        post(&self.proxy.url("/orders"), key)
    }

    /// That the action `key` was answered 201 and ran once, as the application's call number `calls`.
    fn is_done(&self, key: &str, first: &Answer, calls: usize) {
        first.is(201, "false");
        assert_eq!(first.header("idempotency-status"), "", "{first:?}");
        assert_eq!(self.order(key).is(201, "true").body, first.body);
        assert_eq!(self.upstream.calls(), calls, "{key}");
    }
}

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime")
}

#[test]
fn on_postgresql_the_application_runs_once() {
    let database = postgres::trial::Server::shared().and_then(|server| server.empty()).expect("PostgreSQL starts");
    let runtime = runtime();
    let wire = runtime.block_on(postgres::trial::Wire::to(database.server().port())).expect("a wire");
    let world = World::new(&database.url(), &database.url_through(wire.port()));

    for (call, (key, statement)) in
        [("claim", "counterfoil.claim("), ("completion", "counterfoil.put(")].iter().enumerate()
    {
        wire.lose_reply_of(statement);
        let first = world.order(key);
        runtime.block_on(wire.lost());
        world.is_done(key, &first, call + 1);
    }
    wire.hold_request_of("counterfoil.claim(");
    let first = thread::scope(|scope| {
        let url = world.proxy.url("/orders");
        let asked = scope.spawn(move || post(&url, "delayed"));
        runtime.block_on(wire.held());
        asked.join().expect("it is answered")
    });
    world.is_done("delayed", &first, 3);
    wire.release();
    // The copy is carried out now, long after another one was, and the action too.
    runtime.block_on(wire.lost());
    world.is_done("delayed", &first, 3);
    world.proxy.stop();
}

#[test]
fn on_mariadb_the_application_runs_once() {
    let database = mysql::trial::Server::shared().and_then(|server| server.empty()).expect("MariaDB starts");
    let runtime = runtime();
    let wire = runtime.block_on(mysql::trial::Wire::to(database.server().port())).expect("a wire");
    let world = World::new(&database.url(), &database.url_through(wire.port()));

    // The claim is the first request that holds the key, and the completion the first that holds the answer.
    for (call, (key, bytes)) in [("lost-claim", "lost-claim"), ("lost-completion", "\"call\": 2")].iter().enumerate() {
        wire.lose_reply_of(bytes.as_bytes());
        let first = world.order(key);
        runtime.block_on(wire.lost());
        world.is_done(key, &first, call + 1);
    }
    wire.hold_request_of(b"delayed-claim");
    let first = thread::scope(|scope| {
        let url = world.proxy.url("/orders");
        let asked = scope.spawn(move || post(&url, "delayed-claim"));
        runtime.block_on(wire.held());
        asked.join().expect("it is answered")
    });
    world.is_done("delayed-claim", &first, 3);
    wire.release();
    runtime.block_on(wire.lost());
    world.is_done("delayed-claim", &first, 3);
    world.proxy.stop();
}
