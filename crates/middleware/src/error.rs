//! The one error of the crate: settings that make no sense, told when the layer is made.
//! What a request meets is never an error here: `reject` answers it.

/// Why a layer cannot be made of its settings.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A pattern cannot be read.
    #[error(
        "the pattern {pattern:?} cannot be used, because {why}: write a method and a path, such as `POST /orders/{{id}}`"
    )]
    Pattern {
        /// What was written.
        pattern: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Two operations match the same requests.
    #[error("the patterns {first:?} and {second:?} match the same requests: drop one of them")]
    SamePattern {
        /// One of them.
        first: String,
        /// The other.
        second: String,
    },
    /// Two operations have one name, so their keys would meet.
    #[error("two operations are named {name:?}: give each its own name")]
    SameName {
        /// The name.
        name: String,
    },
    /// An operation has no usable name.
    #[error("the pattern {pattern:?} needs a name, because it is too long to be one")]
    NoName {
        /// The pattern.
        pattern: String,
    },
    /// A problem cannot be answered with this status.
    #[error("{problem} cannot be answered with status {status}: use 400 to 599")]
    Status {
        /// The problem's name.
        problem: &'static str,
        /// The status.
        status: u16,
    },
    /// An upstream that forgets a child key before a run with it can be over.
    #[error(
        "the window of {operation} is too short: say how long its upstream remembers a key, more than one run and a margin \
         of 5 minutes or one run, whichever is longer"
    )]
    Window {
        /// The operation.
        operation: String,
    },
    /// Nothing tells an upstream's "still running" from its result.
    #[error(
        "the upstream of {operation} has no way to say that it is still running: name its statuses or problem types"
    )]
    InProgress {
        /// The operation.
        operation: String,
    },
    /// A header that is never replayed was asked for.
    #[error("the header {name} belongs to one answer and is never replayed: drop it from the replayed headers")]
    NeverReplayed {
        /// The header.
        name: String,
    },
    /// The contract cannot be written.
    #[error("the contract cannot be written, because {why}: publish none")]
    Contract {
        /// What is wrong with it.
        why: String,
    },
    /// An action may be older than its receipt would be kept.
    #[error("the oldest age of {operation} is longer than its retention: a retry could be younger than what forgot it")]
    AgeMax {
        /// The operation.
        operation: String,
    },
    /// A limit or span of zero.
    #[error("{setting} is zero: set at least one")]
    Zero {
        /// The setting.
        setting: &'static str,
    },
}
