//! Accepts HTTP/1.1 connections, within limits, and ends them in order. What is answered belongs to the service.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use counterfoil_middleware::{Body, Peer};
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tower::Service;

use crate::error::ServerError;

/// The pause after a failed accept: the system is out of descriptors or memory, and trying again at once helps nobody.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A bound address.
pub(crate) struct Listener {
    socket: TcpListener,
    address: SocketAddr,
    connections_max: usize,
    header: Duration,
}

impl Listener {
    /// Listens on `address` for at most `connections_max` connections, each with `header` to send a request's header.
    pub(crate) async fn bind(
        address: SocketAddr,
        connections_max: usize,
        header: Duration,
    ) -> Result<Self, ServerError> {
        let failed = |source| ServerError::Listen { address, source };
        let socket = TcpListener::bind(address).await.map_err(failed)?;
        let address = socket.local_addr().map_err(failed)?;
        Ok(Self { socket, address, connections_max, header })
    }

    /// Where it listens.
    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stop` is true; then accepts nothing new, and ends when every connection has answered what it was
    /// asked.
    pub(crate) async fn run<S>(self, service: S, mut stop: watch::Receiver<bool>)
    where
        S: Service<Request<Body>, Response = Response<Body>, Error = Infallible> + Clone + Send + 'static,
        S::Future: Send,
    {
        let places = Arc::new(Semaphore::new(self.connections_max));
        let mut connections = JoinSet::new();
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new()).header_read_timeout(self.header);
        loop {
            let accepted = tokio::select! {
                biased;
                () = stopped(&mut stop) => break,
                Some(_) = connections.join_next() => continue,
                accepted = self.accept(&places) => accepted,
            };
            let Some((stream, peer, place)) = accepted else { continue };
            let service = service.clone();
            let (http, stop) = (http.clone(), stop.clone());
            connections.spawn(async move {
                connection(&http, stream, peer, service, stop).await;
                drop(place);
            });
        }
        drop(self.socket);
        while connections.join_next().await.is_some() {}
    }

    /// A connection with its place; no connection is taken from the system before there is a place.
    async fn accept(
        &self,
        places: &Arc<Semaphore>,
    ) -> Option<(TcpStream, SocketAddr, tokio::sync::OwnedSemaphorePermit)> {
        // The semaphore is never closed.
        let place = places.clone().acquire_owned().await.ok()?;
        match self.socket.accept().await {
            Ok((stream, peer)) => Some((stream, peer, place)),
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                None
            }
        }
    }
}

async fn connection<S>(
    http: &http1::Builder,
    stream: TcpStream,
    peer: SocketAddr,
    service: S,
    mut stop: watch::Receiver<bool>,
) where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
{
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "a connection ended before it began");
        return;
    }
    let service = tower::util::MapRequest::new(service, move |request: Request<Incoming>| {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(Peer(peer));
        request
    });
    let served = http.serve_connection(TokioIo::new(stream), TowerToHyperService::new(service)).with_upgrades();
    let mut served = std::pin::pin!(served);
    let ended = tokio::select! {
        ended = served.as_mut() => ended,
        () = stopped(&mut stop) => {
            served.as_mut().graceful_shutdown();
            served.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, %peer, "a connection broke off");
    }
}

/// Waits until the order to stop was given, or nobody is left to give it.
pub(crate) async fn stopped(stop: &mut watch::Receiver<bool>) {
    // A sender that is gone stops as well.
    let _ = stop.wait_for(|stop| *stop).await;
}
