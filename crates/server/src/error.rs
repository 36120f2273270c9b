//! The one error of the crate: why a server cannot be started. What a request meets is an answer and never here.

use std::path::PathBuf;

use crate::config::{Complaints, Listen};

/// Why a server cannot be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// The configuration has faults.
    #[error(transparent)]
    Config(#[from] Complaints),
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] counterfoil_store::StoreError),
    /// The guard cannot be made of the settings.
    #[error(transparent)]
    Guard(#[from] counterfoil_middleware::Error),
    /// An address cannot be listened on.
    #[error("cannot listen on {address}: {source}; choose another address, or stop what listens there")]
    Listen {
        /// The address.
        address: Listen,
        /// The cause.
        source: std::io::Error,
    },
    /// An operation is coupled, and the store takes no permits.
    #[error(
        "effect = \"coupled\" needs a store on PostgreSQL, the database of the application: this store cannot keep it"
    )]
    Coupled,
    /// What callers are known by cannot be used.
    #[error("principal: {0}")]
    Principal(String),
    /// A file of certificates or keys cannot be used.
    #[error("{}: {why}", path.display())]
    Tls {
        /// The file.
        path: PathBuf,
        /// What is wrong, and the next step.
        why: String,
    },
    /// The upstream cannot be spoken to over TLS.
    #[error("tls to the upstream: {0}")]
    TlsUpstream(String),
    /// An operation's name cannot be used.
    #[error(transparent)]
    Name(#[from] counterfoil_core::Error),
}
