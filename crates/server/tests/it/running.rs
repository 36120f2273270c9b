//! A server in this process, on free ports.

use std::net::SocketAddr;

use counterfoil_server::config::{Config, Flags};
use counterfoil_server::{Drained, Server};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// A running server; dropped, it stops in order.
pub(crate) struct Running {
    pub(crate) proxy: SocketAddr,
    pub(crate) admin: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<Drained>,
}

/// The configuration before `upstream` with further settings, keeping records in memory.
pub(crate) fn config(upstream: SocketAddr, more: &str) -> Config {
    let flags = Flags {
        listen: Some("127.0.0.1:0".to_owned()),
        admin: Some("127.0.0.1:0".to_owned()),
        upstream: Some(format!("http://{upstream}")),
        store: Some("memory:".to_owned()),
        principal: None,
    };
    let principal = if more.contains("[principal]") { "" } else { "[principal]\nfrom = \"none\"\n" };
    Config::read(Some(&format!("{more}\n{principal}")), &|_| None, &flags).unwrap()
}

impl Running {
    pub(crate) async fn start(upstream: SocketAddr, more: &str) -> Self {
        let server = Server::start(config(upstream, more)).await.unwrap();
        let (proxy, admin) = (server.address().socket().unwrap(), server.admin_address().socket().unwrap());
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(server.run(async {
            drop(stopped.await);
        }));
        Self { proxy, admin, stop: Some(stop), task }
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
