//! The caller's half of an idempotency key: an intent is written down before its first attempt, and sent until its
//! outcome is known.
//!
//! What providers promise is data in `profiles/*.toml`, read by [`profiles`] into the types of `core::profile`. What does
//! not belong here: the rules of an intent's life (`core::intent`) and how it is kept (`store`).

#![forbid(unsafe_code)]

mod blocking;
mod client;
mod deliver;
mod error;
mod http;
mod journal;
mod layer;
mod outcome;
pub mod profiles;
mod recover;
pub mod relay;
mod secret;
mod transport;

pub use self::blocking::BlockingClient;
pub use self::client::{Client, Wish};
pub use self::deliver::{Progress, Watch, unwatched};
pub use self::error::ClientError;
pub use self::http::Http;
pub use self::layer::{Intended, IntentLayer, Intents, LayerError};
pub use self::outcome::Outcome;
pub use self::recover::Ask;
pub use self::relay::Relay;
pub use self::transport::{ANSWER_BYTES_MAX, Heard, Outgoing, Sending, Transport};
