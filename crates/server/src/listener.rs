//! Accepts connections on an address or a Unix socket, within limits, and ends them in order. What one connection
//! speaks belongs to `connection`, what is answered to the service.

mod body;
mod connection;
mod framing;
mod strict;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use counterfoil_middleware::{Body, Peer};
use http::{Extensions, Request, Response};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tower::Service;

pub(crate) use self::body::Fate;
use crate::config::{self, Limits, Listen};
use crate::error::ServerError;
use crate::stream::AnyStream;
use crate::tls::Acceptor;

/// The pause after a failed accept: the system is out of descriptors or memory, and trying again at once helps nobody.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How a request came, as its extension.
#[derive(Clone, Debug)]
pub(crate) struct Arrival {
    /// Over TLS.
    pub(crate) secure: bool,
    /// Through a Unix socket.
    pub(crate) unix: bool,
    /// What becomes of its body.
    pub(crate) fate: Fate,
}

/// Whether a request came from one of `peers`.
pub(crate) fn is_from(peers: &[config::Peer], extensions: &Extensions) -> bool {
    let address = extensions.get::<Peer>().map(|peer| peer.0.ip());
    let unix = extensions.get::<Arrival>().is_some_and(|arrival| arrival.unix);
    peers.iter().any(|peer| match peer {
        config::Peer::Net(net) => address.is_some_and(|address| net.contains(address)),
        config::Peer::Unix => unix,
    })
}

/// What one listener takes on.
#[derive(Clone)]
pub(crate) struct Bounds {
    pub(crate) connections_max: usize,
    pub(crate) streams_max: u32,
    pub(crate) header_bytes_max: usize,
    pub(crate) header_lines_max: usize,
    /// For the header of a request, and for a TLS handshake.
    pub(crate) header: Duration,
    /// For the body of a guarded request.
    pub(crate) body: Duration,
    /// For a body or a reader that rests.
    pub(crate) idle: Duration,
    pub(crate) tls: Option<Acceptor>,
}

impl Bounds {
    pub(crate) fn new(limits: &Limits, connections_max: usize, tls: Option<Acceptor>) -> Self {
        Self {
            connections_max,
            streams_max: u32::try_from(limits.http2_streams.value).unwrap_or(u32::MAX),
            header_bytes_max: limits.header_bytes.value,
            header_lines_max: limits.header_lines.value,
            header: limits.header.value,
            body: limits.body.value,
            idle: limits.idle.value,
            tls,
        }
    }
}

enum Socket {
    Tcp(TcpListener),
    Unix { socket: UnixListener, _file: SocketFile },
}

/// A bound address.
pub(crate) struct Listener {
    socket: Socket,
    place: Listen,
    bounds: Arc<Bounds>,
}

impl Listener {
    /// Listens on `place` within `bounds`.
    pub(crate) async fn bind(place: &Listen, bounds: Bounds) -> Result<Self, ServerError> {
        let failed = |source| ServerError::Listen { address: place.clone(), source };
        let (socket, place) = match place {
            Listen::Tcp(address) => {
                let socket = TcpListener::bind(address).await.map_err(failed)?;
                let address = socket.local_addr().map_err(failed)?;
                (Socket::Tcp(socket), Listen::Tcp(address))
            }
            Listen::Unix(path) => {
                let socket = bind_unix(path).map_err(failed)?;
                (Socket::Unix { socket, _file: SocketFile(path.clone()) }, place.clone())
            }
        };
        Ok(Self { socket, place, bounds: Arc::new(bounds) })
    }

    /// Where it listens.
    pub(crate) const fn place(&self) -> &Listen {
        &self.place
    }

    /// Serves until `stop` is true; then accepts nothing new, and ends when every connection has answered what it was
    /// asked.
    pub(crate) async fn run<S>(self, service: S, mut stop: watch::Receiver<bool>)
    where
        S: Service<Request<Body>, Response = Response<Body>, Error = Infallible> + Clone + Send + 'static,
        S::Future: Send,
    {
        let places = Arc::new(Semaphore::new(self.bounds.connections_max));
        let mut connections = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                biased;
                () = stopped(&mut stop) => break,
                Some(_) = connections.join_next() => continue,
                accepted = self.accept(&places) => accepted,
            };
            let Some((stream, peer, place)) = accepted else { continue };
            let (bounds, service, stop) = (self.bounds.clone(), service.clone(), stop.clone());
            connections.spawn(async move {
                connection::serve(&bounds, stream, peer, service, stop).await;
                drop(place);
            });
        }
        drop(self.socket);
        while connections.join_next().await.is_some() {}
    }

    /// A connection with its place; no connection is taken from the system before there is a place.
    async fn accept(&self, places: &Arc<Semaphore>) -> Option<(AnyStream, Option<SocketAddr>, OwnedSemaphorePermit)> {
        // The semaphore is never closed.
        let place = places.clone().acquire_owned().await.ok()?;
        match self.take().await {
            Ok((stream, peer)) => Some((stream, peer, place)),
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                None
            }
        }
    }

    async fn take(&self) -> std::io::Result<(AnyStream, Option<SocketAddr>)> {
        match &self.socket {
            Socket::Tcp(socket) => {
                let (stream, peer) = socket.accept().await?;
                if let Err(error) = stream.set_nodelay(true) {
                    tracing::debug!(%error, "a connection ended before it began");
                }
                Ok((Box::new(stream), Some(peer)))
            }
            Socket::Unix { socket, .. } => {
                let (stream, _) = socket.accept().await?;
                Ok((Box::new(stream), None))
            }
        }
    }
}

/// The file of a Unix socket, removed with it.
struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_file(&self.0) {
            tracing::debug!(%error, "the socket's file was gone");
        }
    }
}

/// Binds a Unix socket. A file that a killed process left is replaced; one that somebody listens on is not.
fn bind_unix(path: &Path) -> std::io::Result<UnixListener> {
    match UnixListener::bind(path) {
        Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => {}
        bound => return bound,
    }
    let in_use = || std::io::Error::from(std::io::ErrorKind::AddrInUse);
    match std::os::unix::net::UnixStream::connect(path) {
        Err(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => {}
        Ok(_) | Err(_) => return Err(in_use()),
    }
    use std::os::unix::fs::FileTypeExt as _;
    if !std::fs::symlink_metadata(path)?.file_type().is_socket() {
        return Err(in_use());
    }
    std::fs::remove_file(path)?;
    UnixListener::bind(path)
}

/// Waits until the order to stop was given, or nobody is left to give it.
pub(crate) async fn stopped(stop: &mut watch::Receiver<bool>) {
    // A sender that is gone stops as well.
    let _ = stop.wait_for(|stop| *stop).await;
}
