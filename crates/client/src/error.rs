//! What can go wrong on the client's own side. What became of an action is never an error: that is `outcome`.

use counterfoil_core::profile::KeyFault;
use counterfoil_store::StoreError;

/// A fault of the client's own side; nothing of it is a word about an action. Where an intent was written down before,
/// it stands as it stood, and the same call goes on with it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The journal could not be read or written. Nothing is sent that was not written down first.
    #[error("the journal: {0}")]
    Journal(#[from] StoreError),
    /// The request is not one that can be kept and sent.
    #[error("the request: {0}")]
    Request(#[from] counterfoil_core::Error),
    /// The key that was given is refused.
    #[error(transparent)]
    Key(#[from] KeyFault),
    /// No such contract.
    #[error("there is no profile `{0}`: `counterfoil profile list` shows those that there are")]
    NoProfile(String),
    /// A secret's reference leads nowhere; nothing was sent.
    #[error("the secret in header `{header}`: {why}")]
    Secret {
        /// The header that it belongs to.
        header: String,
        /// What is wrong, and what to do.
        why: String,
    },
    /// The intent asks for a host or a secret that this client was not given; nothing was sent.
    #[error("`{0}` is not among what may be sent to or read here: name it where this is started, or mend the intent")]
    OutOfReach(String),
    /// The profile gives no way to ask what became of an action.
    #[error("profile `{0}` documents no way to ask: find out from the provider, then say it with `intents resolve`")]
    NoRecipe(String),
    /// No intent has this name.
    #[error("the journal holds no intent `{0}`: `counterfoil intents list` shows those that there are")]
    NoIntent(String),
    /// No TLS can be spoken.
    #[error("tls: {0}")]
    Tls(String),
    /// The operating system gives no thread to run on.
    #[error("no thread to run on: {0}")]
    Runtime(String),
    /// The operating system gives no randomness.
    #[error("the operating system gives no randomness: {0}")]
    Random(String),
}
