//! A connection to the upstream, with its place among all: one that rested, or name, address and handshakes. Until it
//! stands nothing of a request was sent, so every failure here leaves the key free.

use std::sync::Arc;
use std::time::Duration;

use counterfoil_middleware::Fault;
use rustls::pki_types::ServerName;
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_rustls::TlsConnector;

use super::line::AnyLine;
use super::link::Link;
use super::pool::Pool;
use crate::config::{Config, Http, Upstream, print_span};
use crate::error::ServerError;
use crate::tls::{H2, HTTP_1_1, connector};

/// The way to the upstream.
pub(super) struct Reach {
    pub(super) upstream: Upstream,
    connect: Duration,
    http: Http,
    tls: Option<Tls>,
    /// One for each exchange under way. What rests has none, and gives way to what is opened.
    places: Arc<Semaphore>,
    pool: Arc<Pool>,
}

struct Tls {
    name: ServerName<'static>,
    /// Offers what the configuration says.
    any: TlsConnector,
    /// Offers HTTP/1.1 only, for what HTTP/2 cannot carry.
    one: TlsConnector,
}

/// A connection that stands, with its place.
pub(super) struct Reached {
    pub(super) link: Link,
    pub(super) place: Place,
    /// It carried another request before.
    pub(super) reused: bool,
}

/// A place among the connections, and where a connection rests that gives its place back.
pub(super) struct Place {
    permit: OwnedSemaphorePermit,
    pool: Arc<Pool>,
}

impl Place {
    #[cfg(test)]
    pub(super) fn new(permit: OwnedSemaphorePermit, pool: Arc<Pool>) -> Self {
        Self { permit, pool }
    }

    /// The exchange is over. The connection rests before its place is free, so that there are never too many.
    pub(super) fn leave(self, link: Link) {
        self.pool.rest(link);
        drop(self.permit);
    }
}

/// Which connection a request needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Need {
    /// It must not meet a connection that is being closed.
    pub(super) guarded: bool,
    /// For an upgrade: one of its own, and HTTP/2 does not carry it.
    pub(super) switch: bool,
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
            pool: Arc::default(),
        })
    }

    /// A connection that has rested, if there is a place and one that will do.
    pub(super) fn at_hand(&self, need: Need) -> Option<Reached> {
        if need.switch {
            return None;
        }
        let permit = self.places.clone().try_acquire_owned().ok()?;
        let link = self.pool.take(need.guarded)?;
        Some(Reached { link, place: Place { permit, pool: self.pool.clone() }, reused: true })
    }

    /// Waits for a place, if there is none, and takes what is at hand by then, or connects.
    pub(super) async fn reach(&self, need: Need) -> Result<Reached, Fault> {
        self.in_time(async {
            let permit = self.places.clone().acquire_owned().await.map_err(|error| self.not_sent(&error))?;
            let place = Place { permit, pool: self.pool.clone() };
            let rested = if need.switch { None } else { self.pool.take(need.guarded) };
            match rested {
                Some(link) => Ok(Reached { link, place, reused: true }),
                None => self.connect(need, place).await,
            }
        })
        .await
    }

    /// A fresh connection in the place of another.
    pub(super) async fn anew(&self, need: Need, place: Place) -> Result<Reached, Fault> {
        self.in_time(self.connect(need, place)).await
    }

    async fn in_time(&self, reaching: impl Future<Output = Result<Reached, Fault>>) -> Result<Reached, Fault> {
        tokio::time::timeout(self.connect, reaching).await.unwrap_or_else(|_| {
            let full = if self.places.available_permits() == 0 { ": all places are taken" } else { "" };
            let span = print_span(self.connect);
            Err(self.not_sent(&format_args!("no connection in {span}{full}")))
        })
    }

    /// Whether HTTP/2 is what is spoken, without a handshake that could choose otherwise.
    pub(super) fn is_two_in_clear(&self) -> bool {
        self.tls.is_none() && self.http == Http::Two
    }

    async fn connect(&self, need: Need, place: Place) -> Result<Reached, Fault> {
        self.pool.trim(self.places.available_permits());
        let (line, two) = self.line(need.switch).await?;
        let link = Link::shake(line, two, need.switch).await?;
        Ok(Reached { link, place, reused: false })
    }

    /// A line, and whether HTTP/2 is spoken on it.
    async fn line(&self, switch: bool) -> Result<(AnyLine, bool), Fault> {
        let line = self.dial().await?;
        let Some(tls) = &self.tls else { return Ok((line, self.http == Http::Two)) };
        let connector = if switch { &tls.one } else { &tls.any };
        let shaken = connector.connect(tls.name.clone(), line).await;
        let line = shaken.map_err(|error| self.not_sent(&format_args!("tls: {error}")))?;
        let two = line.get_ref().1.alpn_protocol() == Some(H2);
        if self.http == Http::Two && !two && !switch {
            return Err(self.not_sent(&"it did not agree on HTTP/2, which forward.http asks for"));
        }
        Ok((Box::new(line), two))
    }

    /// Resolves the name and connects to the first address that takes the connection.
    async fn dial(&self) -> Result<AnyLine, Fault> {
        if let Some(path) = self.upstream.socket_path() {
            let line = UnixStream::connect(path).await.map_err(|error| self.not_sent(&error))?;
            return Ok(Box::new(line));
        }
        let target = self.upstream.target().unwrap_or_default();
        let line = TcpStream::connect(target).await.map_err(|error| self.not_sent(&error))?;
        line.set_nodelay(true).map_err(|error| self.not_sent(&error))?;
        Ok(Box::new(line))
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
