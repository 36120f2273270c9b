//! The one error of the command, and the exit code of each kind. `docs/reference/cli.md` lists the codes.

use counterfoil_client::ClientError;
use counterfoil_server::ServerError;
use counterfoil_server::config::Complaints;
use counterfoil_store::{ErrorKind, StoreError};

use crate::exit::Exit;

/// Why a command did not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum CliError {
    /// The system or the store failed.
    #[error("{0}")]
    Internal(String),
    /// The arguments, the configuration or a file that they name is wrong.
    #[error("{0}")]
    Usage(String),
    /// A rule or the state of a record does not allow it.
    #[error("{0}")]
    Refused(String),
    /// What `probe` found, or why it could not ask; without words where they were printed already.
    #[error("{why}")]
    Probe {
        /// The exit code, which has a meaning of its own for this command.
        code: u8,
        /// In words.
        why: String,
    },
    /// Whoever read our output has gone.
    #[error("the output was closed")]
    Closed,
}

impl CliError {
    /// How the command ends with it. A closed output is no failure of ours.
    pub(crate) const fn exit(&self) -> Exit {
        match self {
            Self::Closed => Exit::Done,
            Self::Internal(_) => Exit::Internal,
            Self::Usage(_) => Exit::Usage,
            Self::Refused(_) => Exit::Refused,
            Self::Probe { code, .. } => Exit::Probe(*code),
        }
    }
}

impl From<StoreError> for CliError {
    fn from(error: StoreError) -> Self {
        match error.kind {
            ErrorKind::Misuse => Self::Refused(error.to_string()),
            _ => Self::Internal(error.to_string()),
        }
    }
}

impl From<Complaints> for CliError {
    fn from(complaints: Complaints) -> Self {
        Self::Usage(complaints.to_string())
    }
}

impl From<ServerError> for CliError {
    fn from(error: ServerError) -> Self {
        match error {
            ServerError::Config(complaints) => complaints.into(),
            ServerError::Store(error) => error.into(),
            ServerError::Guard(error) => Self::Usage(error.to_string()),
            ServerError::Name(error) => Self::Usage(error.to_string()),
            ServerError::Principal(_) => Self::Usage(error.to_string()),
            other => Self::Internal(other.to_string()),
        }
    }
}

impl From<ClientError> for CliError {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Journal(error) => Self::Internal(format!("the journal: {error}")),
            // Never 3: of an action that would say that it was refused for good.
            ClientError::Request(_)
            | ClientError::Key(_)
            | ClientError::NoProfile(_)
            | ClientError::NoIntent(_)
            | ClientError::NoRecipe(_)
            | ClientError::Secret { .. } => Self::Usage(error.to_string()),
            other => Self::Internal(other.to_string()),
        }
    }
}
