//! A shop behind three proxies that share one PostgreSQL: every attempt goes to one of them by chance, and the time is
//! the server's, moved by the test.
//!
//! What does not belong here: the proxy as a process of its own (`proxied.rs`).

use std::{net::SocketAddr, sync::Arc, time::Duration};

use counterfoil_server::{
    Server, Store,
    config::{Config, Flags, Listen},
};
use counterfoil_store::{
    PostgresStore, RecordStore,
    postgres::{
        Options,
        trial::{Database, Server as Postgres, TestTime},
    },
};
use tokio::{runtime::Handle, task::AbortHandle, task::block_in_place};

use super::{
    Fixture, Order, Shop, Told,
    elsewhere::Orders,
    http::{self, Desk, TENANT, told},
    wire,
};

const OPERATIONS: [&str; 3] = ["web-order", "batch-order", "create-order"];
const INSTANCES: usize = 3;

/// Proxies of one start; ended when nobody needs them any more.
struct Proxies {
    addresses: Vec<SocketAddr>,
    running: Vec<AbortHandle>,
}

impl Drop for Proxies {
    fn drop(&mut self) {
        self.running.iter().for_each(AbortHandle::abort);
    }
}

pub(super) struct Instances {
    database: Database,
    time: TestTime,
    store: Arc<dyn RecordStore>,
    orders: Orders,
    upstream: SocketAddr,
    proxies: Arc<Proxies>,
}

async fn open(database: &Database, time: &TestTime) -> Arc<PostgresStore> {
    let mut options = Options::default();
    options.clock = Arc::new(time.clock.clone());
    PostgresStore::open(&database.url(), options).await.expect("the store opens")
}

fn config(upstream: SocketAddr) -> Config {
    let operations = OPERATIONS.map(|name| {
        format!(
            "[[operation]]\nname = \"{name}\"\nmatch = \"POST /{name}\"\nkey = \"required\"\n\
             fingerprint = {{ body = \"json\" }}\nduplicates = \"wait 10s\"\nretention = \"60s\"\n"
        )
    });
    let flags = Flags {
        listen: Some("127.0.0.1:0".to_owned()),
        admin: Some("127.0.0.1:0".to_owned()),
        upstream: Some(format!("http://{upstream}")),
        principal: Some(format!("header:{TENANT}@127.0.0.1")),
        ..Flags::default()
    };
    Config::read(Some(&operations.concat()), &|_| None, &flags).expect("the configuration is good")
}

async fn start(database: &Database, time: &TestTime, upstream: SocketAddr) -> Arc<Proxies> {
    let mut proxies = Proxies { addresses: Vec::new(), running: Vec::new() };
    for _ in 0..INSTANCES {
        let store = Store::of(open(database, time).await);
        let server = Server::start_on(store, config(upstream)).await.expect("a proxy starts");
        let Listen::Tcp(address) = server.address() else { panic!("it listens on a port") };
        proxies.addresses.push(*address);
        proxies.running.push(tokio::spawn(server.run(std::future::pending())).abort_handle());
    }
    Arc::new(proxies)
}

impl Instances {
    pub(super) async fn new(fixture: Fixture) -> Self {
        let server = Postgres::shared().expect("PostgreSQL starts");
        let database = server.with_store().await.expect("a database is made");
        let time = TestTime::of(&database).await.expect("the server answers");
        let orders = Orders::default();
        let upstream = http::serve(http::router(fixture, Desk::Elsewhere(orders.clone())));
        let proxies = start(&database, &time, upstream).await;
        let store = open(&database, &time).await;
        Self { database, time, store, orders, upstream, proxies }
    }
}

impl Shop for Instances {
    async fn order(&self, order: Order) -> Told {
        let at = fastrand::usize(..INSTANCES);
        told(wire::post(self.proxies.addresses[at], &order).await)
    }

    fn connected(&self) -> Self {
        let (database, time, store) = (self.database.clone(), self.time.clone(), self.store.clone());
        let (orders, proxies) = (self.orders.clone(), self.proxies.clone());
        Self { database, time, store, orders, upstream: self.upstream, proxies }
    }

    fn fresh(&self) -> Self {
        let starting = start(&self.database, &self.time, self.upstream);
        let proxies = block_in_place(|| Handle::current().block_on(starting));
        Self { proxies, ..self.connected() }
    }

    async fn counts(&self) -> (u64, u64) {
        (self.orders.count(), self.store.about().await.expect("the store answers").records)
    }

    fn advance(&self, by: Duration) {
        block_in_place(|| Handle::current().block_on(self.time.advance(by))).expect("the time can be moved");
    }
}
