//! A shop behind three proxies that share one PostgreSQL or MariaDB: every attempt goes to one of them by chance, and the
//! time is the server's, moved by the test.
//!
//! What does not belong here: the proxy as a process of its own (`proxied.rs`).

use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::{Router, extract::State, http::StatusCode, routing::post};
use counterfoil_server::{
    Server, Store,
    config::{Config, Flags, Listen},
};
use counterfoil_store::{MysqlStore, PostgresStore, RecordStore, mysql, postgres};
use tokio::{
    runtime::Handle,
    sync::Notify,
    task::{AbortHandle, JoinSet, block_in_place},
};

use super::{
    Fixture, Order, Shop, Told,
    elsewhere::Orders,
    http::{self, Desk, TENANT, told},
    wire,
};

const OPERATIONS: [&str; 3] = ["web-order", "batch-order", "create-order"];
const INSTANCES: [usize; 3] = [10; 3];

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

/// A database that holds a store, and its time.
#[derive(Clone)]
enum Base {
    Postgres(postgres::trial::Database, postgres::trial::TestTime),
    Mariadb(mysql::trial::Database, mysql::trial::TestTime),
}

impl Base {
    async fn postgres() -> Self {
        let server = postgres::trial::Server::shared().expect("PostgreSQL starts");
        let database = server.with_store().await.expect("a database is made");
        let time = postgres::trial::TestTime::of(&database).await.expect("the server answers");
        Self::Postgres(database, time)
    }

    async fn mariadb() -> Self {
        let server = mysql::trial::Server::shared().expect("MariaDB starts");
        let database = server.with_store().await.expect("a database is made");
        let time = mysql::trial::TestTime::of(&database).await.expect("the server answers");
        Self::Mariadb(database, time)
    }

    async fn open(&self, connections: usize) -> Arc<dyn RecordStore> {
        match self {
            Self::Postgres(database, time) => {
                let mut options = postgres::Options::default();
                options.connections = connections;
                options.clock = Arc::new(time.clock.clone());
                PostgresStore::open(&database.url(), options).await.expect("the store opens")
            }
            Self::Mariadb(database, time) => {
                let mut options = mysql::Options::default();
                options.connections = connections;
                options.clock = Arc::new(time.clock.clone());
                MysqlStore::open(&database.url(), options).await.expect("the store opens")
            }
        }
    }

    async fn advance(&self, by: Duration) {
        let moved = match self {
            Self::Postgres(_, time) => time.advance(by).await,
            Self::Mariadb(_, time) => time.advance(by).await,
        };
        moved.expect("the time can be moved");
    }
}

pub(super) struct Instances {
    base: Base,
    store: Arc<dyn RecordStore>,
    orders: Orders,
    upstream: SocketAddr,
    proxies: Arc<Proxies>,
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

/// An instance for each number of connections.
async fn start(base: &Base, upstream: SocketAddr, connections: &[usize]) -> Arc<Proxies> {
    let mut proxies = Proxies { addresses: Vec::new(), running: Vec::new() };
    for connections in connections {
        let store = Store::of(base.open(*connections).await);
        let server = Server::start_on(store, config(upstream)).await.expect("a proxy starts");
        let Listen::Tcp(address) = server.address() else { panic!("it listens on a port") };
        proxies.addresses.push(*address);
        proxies.running.push(tokio::spawn(server.run(std::future::pending())).abort_handle());
    }
    Arc::new(proxies)
}

impl Instances {
    pub(super) async fn on_postgresql(fixture: Fixture) -> Self {
        Self::new(fixture, Base::postgres().await).await
    }

    pub(super) async fn on_mariadb(fixture: Fixture) -> Self {
        Self::new(fixture, Base::mariadb().await).await
    }

    async fn new(fixture: Fixture, base: Base) -> Self {
        let orders = Orders::default();
        let upstream = http::serve(http::router(fixture, Desk::Elsewhere(orders.clone())));
        let proxies = start(&base, upstream, &INSTANCES).await;
        let store = base.open(1).await;
        Self { base, store, orders, upstream, proxies }
    }
}

impl Shop for Instances {
    async fn order(&self, order: Order) -> Told {
        let at = fastrand::usize(..INSTANCES.len());
        told(wire::post(self.proxies.addresses[at], &order).await)
    }

    fn connected(&self) -> Self {
        let (base, store) = (self.base.clone(), self.store.clone());
        let (orders, proxies) = (self.orders.clone(), self.proxies.clone());
        Self { base, store, orders, upstream: self.upstream, proxies }
    }

    fn fresh(&self) -> Self {
        let starting = start(&self.base, self.upstream, &INSTANCES);
        let proxies = block_in_place(|| Handle::current().block_on(starting));
        Self { proxies, ..self.connected() }
    }

    async fn counts(&self) -> (u64, u64) {
        (self.orders.count(), self.store.about().await.expect("the store answers").records)
    }

    fn advance(&self, by: Duration) {
        block_in_place(|| Handle::current().block_on(self.base.advance(by)));
    }
}

/// An upstream whose orders of seven take until they may.
#[derive(Clone, Default)]
struct Slow {
    begun: Arc<Notify>,
    may_end: Arc<Notify>,
}

async fn slow(State(slow): State<Slow>, body: String) -> (StatusCode, &'static str) {
    if body.contains('7') {
        slow.begun.notify_one();
        slow.may_end.notified().await;
    }
    (StatusCode::CREATED, "made")
}

fn order(key: &str, quantity: u32) -> Order {
    let body = format!("{{\"quantity\":{quantity}}}");
    let (tenant, operation) = ("north".to_owned(), "web-order".to_owned());
    Order { tenant, operation, key: key.to_owned(), body, fails: false }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn duplicates_that_wait_for_another_instance_hold_no_connection() {
    let base = Base::postgres().await;
    let upstream = Slow::default();
    let address = http::serve(Router::new().route("/{operation}", post(slow)).with_state(upstream.clone()));
    // The second has one connection for all who wait at it.
    let proxies = start(&base, address, &[10, 1]).await;
    let [one, other] = proxies.addresses[..] else { panic!("two proxies") };
    let first = tokio::spawn(async move { told(wire::post(one, &order("slow", 7)).await) });
    upstream.begun.notified().await;
    let mut waiting = JoinSet::new();
    for _ in 0..20 {
        waiting.spawn(async move { told(wire::post(other, &order("slow", 7)).await) });
    }
    for quick in 0..5 {
        let told = told(wire::post(other, &order(&format!("quick-{quick}"), 1)).await);
        assert_eq!(told, Told::Created("made".to_owned()), "{quick}");
    }
    upstream.may_end.notify_one();
    assert_eq!(first.await.expect("it is answered"), Told::Created("made".to_owned()));
    for told in waiting.join_all().await {
        assert_eq!(told, Told::Replayed("made".to_owned()));
    }
}
