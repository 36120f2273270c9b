//! The one error of the crate. What a target does wrong is a verdict and never an error.

/// Why a run could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProbeError {
    /// A file of cases breaks the format.
    #[error("{file}: {why}")]
    Case {
        /// The file.
        file: String,
        /// What is wrong.
        why: String,
    },
    /// A setting is wrong, or one is missing.
    #[error("{0}")]
    Usage(String),
    /// The target cannot be reached, or what counts effects gives no number.
    #[error("{0}")]
    Unreachable(String),
    /// The probe itself failed.
    #[error("{0}")]
    Harness(String),
}
