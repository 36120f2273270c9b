//! `demo`: a small orders API and the proxy in front of it, on loopback, and lines to try.
//!
//! What it shows is only what `serve` does: the API is a plain HTTP service that knows nothing of keys.

mod client;
mod orders;
mod tour;

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;

use counterfoil_server::Server;
use counterfoil_server::config::{Config, Flags, Listen};

use crate::args::Demo;
use crate::error::CliError;
use crate::print;
use crate::serve::{Signals, serve};

/// The demo's configuration; addresses and store come as flags. The lease outlasts the handler by far enough that it is
/// not renewed before the slow order ends, so that its version is known in advance.
const CONFIG: &str = r#"
[principal]
from = "none"

[limits]
drain = "2s"

[[operation]]
name = "create-order"
match = "POST /orders"
key = "required"
fingerprint = { body = "json" }
handler = "2s"
lease = "7s"
"#;

/// Where everything is.
pub(crate) struct Stage {
    proxy: SocketAddr,
    admin: SocketAddr,
    api: SocketAddr,
    folder: PathBuf,
}

pub(crate) async fn run(demo: Demo) -> Result<(), CliError> {
    let mut signals = Signals::catch()?;
    let folder = Folder::make()?;
    let api = tokio::net::TcpListener::bind(free(9000)).await;
    let api = api.map_err(|error| CliError::Internal(format!("the orders API cannot listen: {error}")))?;
    let api_address = api.local_addr().map_err(|error| CliError::Internal(error.to_string()))?;
    let flags = Flags {
        listen: Some(free(8787).to_string()),
        admin: Some(free(8788).to_string()),
        upstream: Some(format!("http://{api_address}")),
        store: Some(format!("sqlite:{}", folder.0.join("receipts.db").display())),
        principal: None,
    };
    let server = Server::start(Config::read(Some(CONFIG), &|_| None, &flags)?).await?;
    let socket = |place: &Listen| place.socket().ok_or_else(|| CliError::Internal(format!("{place} has no port")));
    let (proxy, admin) = (socket(server.address())?, socket(server.admin_address())?);
    let stage = Stage { proxy, admin, api: api_address, folder: folder.0.clone() };
    let api = tokio::spawn(orders::serve(api));
    let result = tour::result(&stage)?;
    let ended = if demo.once {
        tour::once(server, &stage, &mut signals).await
    } else {
        print::human(&tour::lines(&stage, &result));
        serve(server, &mut signals).await
    };
    api.abort();
    ended
}

/// The usual port where it is free, else any.
fn free(port: u16) -> SocketAddr {
    let usual = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    match TcpListener::bind(usual) {
        Ok(_) => usual,
        Err(_) => SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
    }
}

/// A folder of the demo's own, gone with it.
struct Folder(PathBuf);

impl Folder {
    fn make() -> Result<Self, CliError> {
        use std::os::unix::fs::DirBuilderExt as _;
        let path = std::env::temp_dir().join(format!("counterfoil-demo-{}", std::process::id()));
        let made = std::fs::DirBuilder::new().mode(0o700).create(&path);
        made.map_err(|error| CliError::Internal(format!("{} cannot be made: {error}", path.display())))?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What cannot be removed stays where it was said to be.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
