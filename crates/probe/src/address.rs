//! Where a server listens, and what is asked of it.
//!
//! What does not belong here: which servers there are (`target.rs`, `place.rs`).

use std::net::IpAddr;

use http::Uri;

use crate::error::ProbeError;

/// Where a server listens, and what is asked of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Address {
    pub(crate) tls: bool,
    /// Whether it is spoken to in HTTP/2.
    pub(crate) http2: bool,
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) authority: String,
    pub(crate) path: String,
}

impl Address {
    pub(crate) fn parse(url: &str) -> Result<Self, ProbeError> {
        let wrong = |why: &str| ProbeError::Usage(format!("{url:?} is no address to probe: {why}"));
        let uri: Uri = url.parse().map_err(|_| wrong("it is not a URL"))?;
        let tls = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            Some(_) | None => return Err(wrong("it begins with neither http:// nor https://")),
        };
        let authority = uri.authority().ok_or_else(|| wrong("it names no host"))?;
        if authority.as_str().contains('@') {
            return Err(wrong("it holds a name or password; use --credential"));
        }
        let host = authority.host().trim_matches(['[', ']']).to_owned();
        let port = authority.port_u16().unwrap_or(if tls { 443 } else { 80 });
        let path = uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
        Ok(Self { tls, http2: false, host, port, authority: authority.as_str().to_owned(), path })
    }

    /// Whether both are the same server.
    pub(crate) fn is_beside(&self, other: &Self) -> bool {
        (self.tls, &self.host, self.port) == (other.tls, &other.host, other.port)
    }

    /// The version as it is written down.
    pub(crate) const fn version(&self) -> &'static str {
        if self.http2 { "HTTP/2" } else { "HTTP/1.1" }
    }

    /// Whether it is this machine by its very name.
    pub(crate) fn is_loopback(&self) -> bool {
        self.host.eq_ignore_ascii_case("localhost") || self.host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
    }
}
