//! Where a store is: an address as `postgres://user@host:port/database`, read once, and printed without its password.
//!
//! What does not belong here: how a connection is made (`pool`).

use std::fmt;
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, TargetSessionAttrs};

use super::options::Options;
use crate::error::{ErrorKind, StoreError};

/// A database's address.
#[derive(Clone)]
pub(super) struct Place {
    pub(super) config: Config,
    /// The same for each host alone.
    pub(super) hosts: Vec<Config>,
}

impl Place {
    /// Reads `url`; nothing of it gets into an error, because it may hold a password.
    pub(super) fn new(url: &str, options: &Options) -> Result<Self, StoreError> {
        let accepted = "an address is postgres://user:password@host:port/database";
        let misuse = |detail: String| StoreError::not_applied(ErrorKind::Misuse, detail);
        if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
            return Err(misuse(format!("the database's address is not understood: {accepted}")));
        }
        let mut config: Config =
            url.parse().map_err(|_| misuse(format!("the database's address cannot be read: {accepted}")))?;
        if config.get_hosts().is_empty() {
            return Err(misuse(format!("the database's address names no host: {accepted}")));
        }
        if config.get_application_name().is_none() {
            config.application_name("counterfoil");
        }
        if config.get_hosts().len() > 1 && config.get_target_session_attrs() == TargetSessionAttrs::Any {
            // Of several, the one that takes writes: decisions read the primary only.
            config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        }
        config.connect_timeout(options.connect_timeout);
        config.tcp_user_timeout(options.call_timeout + Duration::from_secs(1));
        let hosts = (0..config.get_hosts().len()).map(|at| alone(&config, at)).collect();
        Ok(Self { config, hosts })
    }
}

/// The host at `at` with everything else that `config` says.
fn alone(config: &Config, at: usize) -> Config {
    let mut own = Config::new();
    match config.get_hosts().get(at) {
        Some(Host::Tcp(name)) => drop(own.host(name)),
        #[cfg(unix)]
        Some(Host::Unix(path)) => drop(own.host_path(path)),
        None => {}
    }
    let ports = config.get_ports();
    ports.get(at).or_else(|| ports.first()).map(|port| own.port(*port));
    config.get_hostaddrs().get(at).map(|address| own.hostaddr(*address));
    config.get_user().map(|user| own.user(user));
    config.get_password().map(|password| own.password(password));
    config.get_dbname().map(|name| own.dbname(name));
    config.get_options().map(|options| own.options(options));
    config.get_application_name().map(|name| own.application_name(name));
    config.get_connect_timeout().map(|timeout| own.connect_timeout(*timeout));
    config.get_tcp_user_timeout().map(|timeout| own.tcp_user_timeout(*timeout));
    own.ssl_mode(config.get_ssl_mode());
    own.ssl_negotiation(config.get_ssl_negotiation());
    own.keepalives(config.get_keepalives());
    own.keepalives_idle(config.get_keepalives_idle());
    config.get_keepalives_interval().map(|interval| own.keepalives_interval(interval));
    config.get_keepalives_retries().map(|retries| own.keepalives_retries(retries));
    own.target_session_attrs(config.get_target_session_attrs());
    own.channel_binding(config.get_channel_binding());
    own
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("postgres://")?;
        if let Some(user) = self.config.get_user() {
            write!(f, "{user}@")?;
        }
        let ports = self.config.get_ports();
        for (at, host) in self.config.get_hosts().iter().enumerate() {
            if at > 0 {
                f.write_str(",")?;
            }
            match host {
                Host::Tcp(name) if name.contains(':') => write!(f, "[{name}]")?,
                Host::Tcp(name) => f.write_str(name)?,
                #[cfg(unix)]
                Host::Unix(path) => write!(f, "{}", path.display())?,
            }
            let port = ports.get(at).or_else(|| ports.first()).copied().unwrap_or(5432);
            write!(f, ":{port}")?;
        }
        write!(f, "/{}", self.config.get_dbname().or_else(|| self.config.get_user()).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests;
