//! Where things are: addresses to listen on, the upstream, the store. Opening them belongs to `serve`.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use http::Uri;
use http::uri::{Authority, Scheme};

/// What an address to listen on looks like, for complaints.
pub(crate) const ADDRESS_ACCEPTED: &str = "an address and a port like \"127.0.0.1:8787\" or \"[::1]:8787\"";
/// What an upstream looks like, for complaints.
pub(crate) const UPSTREAM_ACCEPTED: &str = "an origin without a path like \"http://127.0.0.1:9000\"";
/// What a store looks like, for complaints.
pub const STORE_ACCEPTED: &str = "\"sqlite:PATH\" or \"memory:\"";

/// Reads an address to listen on.
pub(crate) fn parse_address(text: &str) -> Result<SocketAddr, String> {
    if text.starts_with("unix:") {
        return Err("unix sockets are not built yet in this version".to_owned());
    }
    text.parse().map_err(|_| format!("{text:?} is no address with a port"))
}

/// The server whose API is guarded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Upstream {
    authority: Authority,
}

impl Upstream {
    /// Reads `http://host[:port][/]`.
    ///
    /// # Errors
    /// What is wrong with the text.
    pub fn parse(text: &str) -> Result<Self, String> {
        let uri: Uri = text.parse().map_err(|_| format!("{text:?} is no URL"))?;
        if uri.scheme() == Some(&Scheme::HTTPS) {
            return Err("https to the upstream (tls) is not built yet in this version".to_owned());
        }
        let authority = uri.authority().filter(|_| uri.scheme() == Some(&Scheme::HTTP));
        let authority = authority.ok_or_else(|| format!("{text:?} has no scheme http and host"))?;
        if authority.as_str().contains('@') {
            return Err("a user in the URL is never sent".to_owned());
        }
        if !matches!(uri.path(), "" | "/") || uri.query().is_some() {
            return Err(format!("{text:?} has a path or query"));
        }
        Ok(Self { authority: authority.clone() })
    }

    /// Host and port as written, for the `Host` header.
    #[must_use]
    pub fn authority(&self) -> &str {
        self.authority.as_str()
    }

    /// Host and port to connect to.
    #[must_use]
    pub fn target(&self) -> (&str, u16) {
        let host = self.authority.host();
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        (bare, self.authority.port_u16().unwrap_or(80))
    }
}

impl fmt::Display for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}", self.authority)
    }
}

/// Where records are kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StorePlace {
    /// A SQLite file.
    Sqlite(PathBuf),
    /// This process's memory: gone with it.
    Memory,
}

impl StorePlace {
    /// Reads `sqlite:PATH` or `memory:`.
    ///
    /// # Errors
    /// What is wrong with the text.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text == "memory:" {
            return Ok(Self::Memory);
        }
        if let Some(path) = text.strip_prefix("sqlite:") {
            return match path {
                "" => Err("the path is empty".to_owned()),
                path if path.starts_with(':') || path.starts_with("//") || path.contains('?') => {
                    Err(format!("{path:?} is no plain path"))
                }
                path => Ok(Self::Sqlite(PathBuf::from(path))),
            };
        }
        let scheme = text.split(':').next().unwrap_or_default();
        Err(match scheme {
            "postgres" | "postgresql" | "mysql" | "mariadb" | "redis" | "rediss" | "valkey" | "dynamodb" => {
                format!("stores on {scheme} are not built yet in this version")
            }
            _ => format!("{text:?} names no store"),
        })
    }
}

impl fmt::Display for StorePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            Self::Memory => f.write_str("memory:"),
        }
    }
}
