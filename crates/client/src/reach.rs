//! What a process may do for intents that others wrote down: where it sends, which secrets it reads.

use counterfoil_core::intent::{Header, SecretSource, Value};

use crate::error::ClientError;

/// How far a client goes for what stands in its journal. Whoever may write there chooses hosts and references, but with
/// the rights of the process that sends: an outbox that others write to wants limits. Without any, every host is sent to
/// and every reference read.
#[derive(Clone, Debug, Default)]
pub struct Reach {
    origins: Option<Vec<String>>,
    secrets: Option<Vec<SecretSource>>,
}

impl Reach {
    /// Only these are sent to: scheme, host and port as [`counterfoil_core::intent::origin`] gives them.
    #[must_use]
    pub fn with_origins(mut self, origins: Vec<String>) -> Self {
        self.origins = Some(origins);
        self
    }

    /// Only these secrets are read.
    #[must_use]
    pub fn with_secrets(mut self, secrets: Vec<SecretSource>) -> Self {
        self.secrets = Some(secrets);
        self
    }

    /// Whether a request to `origin` with these headers is within it.
    pub(crate) fn allows(&self, origin: &str, headers: &[Header]) -> Result<(), ClientError> {
        if self.origins.as_ref().is_some_and(|origins| !origins.iter().any(|named| named == origin)) {
            return Err(ClientError::OutOfReach(origin.to_owned()));
        }
        let Some(secrets) = &self.secrets else { return Ok(()) };
        for header in headers {
            if let Value::Secret(secret) = &header.value
                && !secrets.contains(&secret.source)
            {
                return Err(ClientError::OutOfReach(secret.source.to_string()));
            }
        }
        Ok(())
    }
}
