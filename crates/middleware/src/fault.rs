//! How a guarded service says by its error what became of the request. Which answer follows belongs to `reject`.

/// An error of the guarded service that tells what is known of the request.
///
/// A service that forwards has it as its error, or in a box ([`BoxError`](crate::BoxError)). Every other error of a guarded service is read as
/// [`Fault::Broken`]: nobody knows whether the effect happened.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// The request was certainly not sent, so the key is released.
    #[error("the request was certainly not sent: {0}")]
    NotSent(String),
    /// No answer came in time.
    #[error("no answer came in time: {0}")]
    TimedOut(String),
    /// Something went wrong after the request may have been sent.
    #[error("the request may have been sent, and then: {0}")]
    Broken(String),
}
