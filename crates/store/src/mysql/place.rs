//! Where a store is: an address as `mysql://user@host:port/database`, read once, and printed without its password.
//!
//! What does not belong here: how a connection is made (`pool`).

use std::fmt;

use mysql_async::{Opts, OptsBuilder, SslOpts};

use crate::error::{ErrorKind, StoreError};

const ACCEPTED: &str = "an address is mysql://user:password@host:port/database";

/// A database's address.
#[derive(Clone)]
pub(super) struct Place {
    pub(super) opts: Opts,
}

impl Place {
    /// Reads `url`; nothing of it gets into an error, because it may hold a password.
    pub(super) fn new(url: &str) -> Result<Self, StoreError> {
        let misuse = |detail: String| StoreError::not_applied(ErrorKind::Misuse, detail);
        let url = match url.strip_prefix("mariadb://") {
            Some(rest) => format!("mysql://{rest}"),
            None => url.to_owned(),
        };
        let opts =
            Opts::from_url(&url).map_err(|_| misuse(format!("the database's address cannot be read: {ACCEPTED}")))?;
        if opts.db_name().is_none_or(str::is_empty) {
            return Err(misuse(format!("the database's address names no database: {ACCEPTED}")));
        }
        let tls = opts.ssl_opts().cloned();
        if tls.as_ref().is_some_and(|tls| tls.accept_invalid_certs() || tls.skip_domain_validation()) {
            let detail = "a server's certificate is always verified: leave verify_ca and verify_identity out";
            return Err(misuse(detail.to_owned()));
        }
        let opts = OptsBuilder::from_opts(opts)
            // The address that was given, and no other that the server tells.
            .prefer_socket(false)
            // A guard that holds counts as one row, also where nothing in it changes.
            .client_found_rows(true)
            .ssl_opts(tls.map(trusting_the_system));
        Ok(Self { opts: opts.into() })
    }
}

/// The authorities that the operating system believes, and no others.
fn trusting_the_system(tls: SslOpts) -> SslOpts {
    let found = rustls_native_certs::load_native_certs().certs;
    let roots = found.into_iter().map(|root| root.to_vec().into());
    tls.with_root_certs(roots.collect()).with_disable_built_in_roots(true)
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("mysql://")?;
        if let Some(user) = self.opts.user() {
            write!(f, "{user}@")?;
        }
        let (host, port) = (self.opts.ip_or_hostname(), self.opts.tcp_port());
        if host.contains(':') && !host.starts_with('[') {
            write!(f, "[{host}]")?
        } else {
            f.write_str(host)?
        }
        write!(f, ":{port}/{}", self.opts.db_name().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests;
