//! The caller's half of an idempotency key: an intent is written down before its first attempt, and sent until its
//! outcome is known.
//!
//! What does not belong here: the rules of an intent's life and of a profile (`core`), and SQL (`store`).

#![forbid(unsafe_code)]

mod error;
mod http;
mod transport;

pub use self::error::ClientError;
pub use self::http::Http;
pub use self::transport::{ANSWER_BYTES_MAX, Heard, Outgoing, Sending, Transport};
