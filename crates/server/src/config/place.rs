//! Where things are: addresses to listen on, the upstream, the store. Opening them belongs to `serve`.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use http::Uri;
use http::uri::{Authority, Scheme};

/// What an address to listen on looks like, for complaints.
pub(crate) const ADDRESS_ACCEPTED: &str =
    "an address and a port like \"127.0.0.1:8787\" or \"[::1]:8787\", or \"unix:PATH\"";
/// What an upstream looks like, for complaints.
pub(crate) const UPSTREAM_ACCEPTED: &str =
    "an origin without a path like \"http://127.0.0.1:9000\" or \"https://orders.internal\", or \"unix:PATH\"";
/// What a store looks like, for complaints.
pub const STORE_ACCEPTED: &str =
    "\"sqlite:PATH\", \"postgres://USER:PASSWORD@HOST:PORT/DATABASE\", the same with mysql, or \"memory:\"";

/// The longest path of a Unix socket, in bytes (`sun_path` with its end).
const SOCKET_PATH_BYTES_MAX: usize = 107;

/// Where to listen.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Listen {
    /// An address and a port.
    Tcp(SocketAddr),
    /// A Unix socket.
    Unix(PathBuf),
}

impl Listen {
    /// Reads `ADDRESS:PORT` or `unix:PATH`.
    ///
    /// # Errors
    /// What is wrong with the text.
    pub fn parse(text: &str) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix("unix:") {
            return socket_path(path).map(Self::Unix);
        }
        text.parse().map(Self::Tcp).map_err(|_| format!("{text:?} is no address with a port"))
    }

    /// The address, where it is no Unix socket.
    #[must_use]
    pub const fn socket(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(address) => Some(*address),
            Self::Unix(_) => None,
        }
    }

    /// Whether only this machine can connect.
    #[must_use]
    pub const fn is_local(&self) -> bool {
        match self {
            Self::Tcp(address) => address.ip().is_loopback(),
            Self::Unix(_) => true,
        }
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => write!(f, "{address}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

fn socket_path(path: &str) -> Result<PathBuf, String> {
    match path.len() {
        0 => Err("the path is empty".to_owned()),
        length if length > SOCKET_PATH_BYTES_MAX => {
            Err(format!("a socket's path has at most {SOCKET_PATH_BYTES_MAX} bytes, and this one has {length}"))
        }
        _ if path.starts_with("//") || path.contains('\0') => Err(format!("{path:?} is no plain path")),
        _ => Ok(PathBuf::from(path)),
    }
}

/// The server whose API is guarded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Upstream(Origin);

#[derive(Clone, PartialEq, Eq, Debug)]
enum Origin {
    Net { tls: bool, authority: Authority },
    Unix(PathBuf),
}

impl Upstream {
    /// Reads `http://host[:port][/]`, the same with `https`, or `unix:PATH`.
    ///
    /// # Errors
    /// What is wrong with the text.
    pub fn parse(text: &str) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix("unix:") {
            return socket_path(path).map(|path| Self(Origin::Unix(path)));
        }
        let uri: Uri = text.parse().map_err(|_| format!("{text:?} is no URL"))?;
        let tls = uri.scheme() == Some(&Scheme::HTTPS);
        let authority = uri.authority().filter(|_| tls || uri.scheme() == Some(&Scheme::HTTP));
        let authority = authority.ok_or_else(|| format!("{text:?} has no scheme http or https and host"))?;
        if authority.as_str().contains('@') {
            return Err("a user in the URL is never sent".to_owned());
        }
        if !matches!(uri.path(), "" | "/") || uri.query().is_some() {
            return Err(format!("{text:?} has a path or query"));
        }
        Ok(Self(Origin::Net { tls, authority: authority.clone() }))
    }

    /// Host and port as written, for the `Host` header; `localhost` for a Unix socket.
    #[must_use]
    pub fn authority(&self) -> &str {
        match &self.0 {
            Origin::Net { authority, .. } => authority.as_str(),
            Origin::Unix(_) => "localhost",
        }
    }

    /// Whether it is spoken to over TLS.
    #[must_use]
    pub const fn is_tls(&self) -> bool {
        matches!(self.0, Origin::Net { tls: true, .. })
    }

    /// Host and port to connect to, where it is no Unix socket.
    #[must_use]
    pub fn target(&self) -> Option<(&str, u16)> {
        let Origin::Net { tls, authority } = &self.0 else { return None };
        let host = authority.host();
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        Some((bare, authority.port_u16().unwrap_or(if *tls { 443 } else { 80 })))
    }

    /// The path of its Unix socket, where it is one.
    #[must_use]
    pub fn socket_path(&self) -> Option<&std::path::Path> {
        match &self.0 {
            Origin::Net { .. } => None,
            Origin::Unix(path) => Some(path),
        }
    }
}

impl fmt::Display for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Origin::Net { tls: false, authority } => write!(f, "http://{authority}"),
            Origin::Net { tls: true, authority } => write!(f, "https://{authority}"),
            Origin::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// Where records are kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StorePlace {
    /// A SQLite file.
    Sqlite(PathBuf),
    /// A PostgreSQL database.
    #[cfg(feature = "postgres")]
    Postgres(Database),
    /// A MySQL or MariaDB database.
    #[cfg(feature = "mysql")]
    Mysql(Database),
    /// This process's memory: gone with it.
    Memory,
}

impl StorePlace {
    /// Whether an application can settle there by its permit.
    pub(crate) const fn takes_permits(&self) -> bool {
        match self {
            #[cfg(feature = "postgres")]
            Self::Postgres(_) => true,
            #[cfg(feature = "mysql")]
            Self::Mysql(_) => false,
            Self::Sqlite(_) | Self::Memory => false,
        }
    }

    /// Reads `sqlite:PATH`, `postgres://…`, `mysql://…` or `memory:`. What is wrong never quotes an address, which may hold
    /// a password.
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
            #[cfg(feature = "postgres")]
            "postgres" | "postgresql" => {
                return Database::of(text, counterfoil_store::PostgresStore::shown(text)).map(Self::Postgres);
            }
            #[cfg(not(feature = "postgres"))]
            "postgres" | "postgresql" => "this build has no PostgreSQL: it lacks the feature `postgres`".to_owned(),
            #[cfg(feature = "mysql")]
            "mysql" | "mariadb" => {
                return Database::of(text, counterfoil_store::MysqlStore::shown(text)).map(Self::Mysql);
            }
            #[cfg(not(feature = "mysql"))]
            "mysql" | "mariadb" => "this build has no MySQL: it lacks the feature `mysql`".to_owned(),
            "redis" | "rediss" | "valkey" | "dynamodb" => {
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
            #[cfg(feature = "postgres")]
            Self::Postgres(database) => fmt::Display::fmt(database, f),
            #[cfg(feature = "mysql")]
            Self::Mysql(database) => fmt::Display::fmt(database, f),
            Self::Memory => f.write_str("memory:"),
        }
    }
}

/// The address of a database, which may hold a password and is never shown with it.
#[cfg(any(feature = "mysql", feature = "postgres"))]
#[derive(Clone, PartialEq, Eq)]
pub struct Database {
    url: String,
    shown: String,
}

#[cfg(any(feature = "mysql", feature = "postgres"))]
impl Database {
    fn of(url: &str, shown: Result<String, counterfoil_store::StoreError>) -> Result<Self, String> {
        Ok(Self { url: url.to_owned(), shown: shown.map_err(|error| error.detail)? })
    }

    /// The whole address. Keep it out of logs.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }
}

#[cfg(any(feature = "mysql", feature = "postgres"))]
impl fmt::Display for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

#[cfg(any(feature = "mysql", feature = "postgres"))]
impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}
