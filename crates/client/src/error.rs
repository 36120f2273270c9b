//! What can go wrong on the client's own side. What became of an action is never an error: that is `outcome`.

/// A fault of the client's own side; nothing of it is a word about an action.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// No TLS can be spoken.
    #[error("tls: {0}")]
    Tls(String),
}
