//! A connection to the upstream, with its place among all: name, address, handshake. Until it stands nothing of a
//! request was sent, so every failure here leaves the key free.

use std::sync::Arc;
use std::time::Duration;

use counterfoil_middleware::Fault;
use rustls::pki_types::ServerName;
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_rustls::TlsConnector;

use crate::config::{Config, Http, Upstream, print_span};
use crate::error::ServerError;
use crate::stream::AnyStream;
use crate::tls::{H2, HTTP_1_1, connector};

/// The way to the upstream.
pub(super) struct Reach {
    pub(super) upstream: Upstream,
    connect: Duration,
    http: Http,
    tls: Option<Tls>,
    places: Arc<Semaphore>,
}

struct Tls {
    name: ServerName<'static>,
    /// Offers what the configuration says.
    any: TlsConnector,
    /// Offers HTTP/1.1 only, for what HTTP/2 cannot carry.
    one: TlsConnector,
}

/// A connection that stands.
pub(super) struct Reached {
    pub(super) stream: AnyStream,
    /// HTTP/2 is spoken on it.
    pub(super) two: bool,
    pub(super) place: OwnedSemaphorePermit,
}

impl Reach {
    pub(super) fn new(config: &Config) -> Result<Self, ServerError> {
        let upstream = config.upstream.value.clone();
        let http = config.forward.http.value;
        let tls = if upstream.is_tls() { Some(Tls::new(config, http)?) } else { None };
        Ok(Self {
            upstream,
            connect: config.limits.connect.value,
            http,
            tls,
            places: Arc::new(Semaphore::new(config.limits.upstream_connections.value)),
        })
    }

    /// Connects. `switch`: for an upgrade, which HTTP/2 does not carry.
    pub(super) async fn reach(&self, switch: bool) -> Result<Reached, Fault> {
        let reached = tokio::time::timeout(self.connect, self.connect(switch)).await;
        reached.unwrap_or_else(|_| {
            let full = if self.places.available_permits() == 0 { ": all places are taken" } else { "" };
            let span = print_span(self.connect);
            Err(self.not_sent(&format_args!("no connection in {span}{full}")))
        })
    }

    /// Whether HTTP/2 is what is spoken, without a handshake that could choose otherwise.
    pub(super) fn is_two_in_clear(&self) -> bool {
        self.tls.is_none() && self.http == Http::Two
    }

    async fn connect(&self, switch: bool) -> Result<Reached, Fault> {
        let place = self.places.clone().acquire_owned().await.map_err(|error| self.not_sent(&error))?;
        let stream = self.dial().await?;
        let Some(tls) = &self.tls else {
            return Ok(Reached { stream, two: self.http == Http::Two, place });
        };
        let connector = if switch { &tls.one } else { &tls.any };
        let shaken = connector.connect(tls.name.clone(), stream).await;
        let stream = shaken.map_err(|error| self.not_sent(&format_args!("tls: {error}")))?;
        let two = stream.get_ref().1.alpn_protocol() == Some(H2);
        if self.http == Http::Two && !two && !switch {
            return Err(self.not_sent(&"it did not agree on HTTP/2, which forward.http asks for"));
        }
        Ok(Reached { stream: Box::new(stream), two, place })
    }

    /// Resolves the name and connects to the first address that takes the connection.
    async fn dial(&self) -> Result<AnyStream, Fault> {
        if let Some(path) = self.upstream.socket_path() {
            let stream = UnixStream::connect(path).await.map_err(|error| self.not_sent(&error))?;
            return Ok(Box::new(stream));
        }
        let target = self.upstream.target().unwrap_or_default();
        let stream = TcpStream::connect(target).await.map_err(|error| self.not_sent(&error))?;
        stream.set_nodelay(true).map_err(|error| self.not_sent(&error))?;
        Ok(Box::new(stream))
    }

    fn not_sent(&self, why: &dyn std::fmt::Display) -> Fault {
        Fault::NotSent(format!("{}: {why}", self.upstream))
    }
}

impl Tls {
    fn new(config: &Config, http: Http) -> Result<Self, ServerError> {
        let offered: &[&[u8]] = match http {
            Http::Auto => &[H2, HTTP_1_1],
            Http::One => &[HTTP_1_1],
            Http::Two => &[H2],
        };
        let host = config.upstream.value.target().map(|(host, _)| host.to_owned()).unwrap_or_default();
        let name = ServerName::try_from(host.clone())
            .map_err(|_| ServerError::TlsUpstream(format!("{host:?} is no name that a certificate can have")))?;
        let roots = &config.forward.roots.value;
        Ok(Self { name, any: connector(roots, offered)?, one: connector(roots, &[HTTP_1_1])? })
    }
}
