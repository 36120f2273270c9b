//! A server in this process, on free ports.

use std::net::SocketAddr;

use counterfoil_server::config::{Config, Flags, Listen};
use counterfoil_server::{Drained, Reload, Server, Store};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// A running server; dropped, it stops in order.
pub(crate) struct Running {
    pub(crate) proxy: SocketAddr,
    pub(crate) admin: SocketAddr,
    pub(crate) place: Listen,
    pub(crate) reload: Reload,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<Drained>,
}

/// The configuration before `upstream` with further settings, keeping records in memory.
pub(crate) fn config(upstream: SocketAddr, more: &str) -> Config {
    config_at(upstream, "memory:", more)
}

/// The same, keeping records at `store`, which is made where it does not stand.
pub(crate) fn config_at(upstream: SocketAddr, store: &str, more: &str) -> Config {
    config_of(&format!("http://{upstream}"), "127.0.0.1:0", store, more)
}

/// The configuration that listens on `listen` before an upstream of any kind.
pub(crate) fn config_before(upstream: &str, listen: &str, more: &str) -> Config {
    config_of(upstream, listen, "memory:", more)
}

fn config_of(upstream: &str, listen: &str, store: &str, more: &str) -> Config {
    let flags = Flags {
        listen: Some(listen.to_owned()),
        admin: Some("127.0.0.1:0".to_owned()),
        upstream: Some(upstream.to_owned()),
        store: Some(store.to_owned()),
        principal: None,
    };
    let principal = if more.contains("[principal]") { "" } else { "[principal]\nfrom = \"none\"\n" };
    Config::read(Some(&format!("{more}\n{principal}")), &|_| None, &flags).unwrap()
}

impl Running {
    pub(crate) async fn start(upstream: SocketAddr, more: &str) -> Self {
        Self::with(config(upstream, more)).await
    }

    /// Before an upstream of any kind.
    pub(crate) async fn before(upstream: &str, more: &str) -> Self {
        Self::with(config_before(upstream, "127.0.0.1:0", more)).await
    }

    pub(crate) async fn with(config: Config) -> Self {
        Self::serve(Server::start(config).await.unwrap())
    }

    /// On a store of the test's own.
    pub(crate) async fn on(store: Store, config: Config) -> Self {
        Self::serve(Server::start_on(store, config).await.unwrap())
    }

    fn serve(server: Server) -> Self {
        let place = server.address().clone();
        let nowhere = SocketAddr::from(([127, 0, 0, 1], 0));
        let (proxy, admin) = (place.socket().unwrap_or(nowhere), server.admin_address().socket().unwrap_or(nowhere));
        let reload = server.reload();
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(server.run(async {
            drop(stopped.await);
        }));
        Self { proxy, admin, place, reload, stop: Some(stop), task }
    }

    /// Gives the order to stop.
    pub(crate) fn stop(&mut self) {
        drop(self.stop.take());
    }

    /// Waits for the end.
    pub(crate) async fn ended(self) -> Drained {
        self.task.await.unwrap()
    }
}
