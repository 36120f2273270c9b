//! A shop behind `counterfoil serve`, a process of its own, on its own clock: time does not pass here.
//!
//! What does not belong here: the layer inside one process (`http.rs`).

use std::{
    fs,
    io::{BufRead, BufReader},
    net::SocketAddr,
    path::Path,
    process::{Child, Command, Stdio},
    sync::Arc,
    time::Duration,
};

use counterfoil_store::{RecordStore, SqliteStore, sqlite::Options};
use tempfile::TempDir;

use super::{
    Fixture, Order, Shop, Told,
    elsewhere::Orders,
    http::{self, Desk, TENANT, told},
    wire,
};

const OPERATIONS: [&str; 3] = ["web-order", "batch-order", "create-order"];

pub(super) struct Proxied {
    orders: Orders,
    home: Arc<TempDir>,
    upstream: SocketAddr,
    proxy: Arc<Proxy>,
}

impl Proxied {
    pub(super) fn new(fixture: Fixture) -> Self {
        let (orders, home) = (Orders::default(), tempfile::tempdir().expect("there is room for temporary files"));
        let upstream = http::serve(http::router(fixture, Desk::Elsewhere(orders.clone())));
        let operations = OPERATIONS.map(|name| {
            format!(
                "[[operation]]\nname = \"{name}\"\nmatch = \"POST /{name}\"\nkey = \"required\"\n\
                 fingerprint = {{ body = \"json\" }}\nduplicates = \"wait 10s\"\n"
            )
        });
        fs::write(home.path().join("counterfoil.toml"), operations.concat()).expect("it can be written");
        let proxy = Arc::new(Proxy::start(home.path(), upstream));
        Self { orders, home: Arc::new(home), upstream, proxy }
    }
}

impl Shop for Proxied {
    const AGES: bool = false;

    async fn order(&self, order: Order) -> Told {
        told(wire::post(self.proxy.address, &order).await)
    }

    fn connected(&self) -> Self {
        let (orders, home, proxy) = (self.orders.clone(), self.home.clone(), self.proxy.clone());
        Self { orders, home, upstream: self.upstream, proxy }
    }

    fn fresh(&self) -> Self {
        let proxy = Arc::new(Proxy::start(self.home.path(), self.upstream));
        Self { proxy, ..self.connected() }
    }

    async fn counts(&self) -> (u64, u64) {
        let store = SqliteStore::open(self.home.path().join("seeds.db"), Options::default()).expect("the store opens");
        (self.orders.count(), store.about().await.expect("the store answers").records)
    }

    fn advance(&self, _by: Duration) {}
}

/// The process; killed when nobody needs it any more.
struct Proxy {
    child: Child,
    address: SocketAddr,
}

impl Proxy {
    /// Starts it beside this test's binary, and waits until it says where it listens.
    fn start(home: &Path, upstream: SocketAddr) -> Self {
        let me = std::env::current_exe().expect("a test binary has a path");
        let program = me.parent().and_then(Path::parent).expect("test binaries stand in deps").join("counterfoil");
        let mut command = Command::new(&program);
        command.args(["serve", "--config", "counterfoil.toml", "--store", "sqlite:seeds.db"]);
        command.args(["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]);
        command.args(["--upstream", &format!("http://{upstream}")]);
        command.args(["--principal", &format!("header:{TENANT}@127.0.0.1")]);
        command.current_dir(home).env("NO_COLOR", "1").env_remove("RUST_LOG");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let started = command.spawn();
        let mut child = started.unwrap_or_else(|error| panic!("{}: {error}: build the workspace", program.display()));
        let mut log = BufReader::new(child.stderr.take().expect("its errors are piped")).lines();
        let mut seen = Vec::new();
        let address = loop {
            let Some(Ok(line)) = log.next() else { panic!("it does not listen: {seen:#?}") };
            let listens = line.split_once(" listen=").and_then(|(_, rest)| rest.split(' ').next()?.parse().ok());
            if let Some(address) = listens {
                break address;
            }
            seen.push(line);
        };
        // Somebody must read on, or its log fills the pipe and it stands still.
        std::thread::spawn(move || log.for_each(drop));
        Self { child, address }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.child.kill().and_then(|()| self.child.wait()).expect("it can be killed");
    }
}
