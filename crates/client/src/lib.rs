//! The caller's half of an idempotency key: an intent is written down before its first attempt, and sent until its
//! outcome is known.
//!
//! What providers promise is data in `profiles/*.toml`, read by [`profiles`] into the types of `core::profile`. What does
//! not belong here: the rules of an intent's life (`core::intent`) and how it is kept (`store`).

//!
//! ```no_run
//! use std::sync::Arc;
//! use std::time::Duration;
//! use counterfoil_client::{Client, Http, Outcome, Wish};
//! use counterfoil_core::intent::{Draft, Header, Name, ProfileRef, Secret, Value};
//! use counterfoil_store::{SqliteStore, sqlite::Options};
//!
//! # async fn charge() -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::new(SqliteStore::open("intents.db", Options::default())?, Arc::new(Http::new()?));
//! let credential = Secret::parse("Bearer env:STRIPE_KEY").ok_or("it is looked up at each attempt")?;
//! let draft = Draft {
//!     name: Name::new("order-1234/charge")?,
//!     method: http::Method::POST,
//!     url: "https://api.stripe.com/v1/payment_intents".to_owned(),
//!     headers: vec![Header { name: "authorization".to_owned(), value: Value::Secret(credential) }],
//!     body: "amount=2000&currency=eur".into(),
//!     scope: None,
//!     profile: ProfileRef { id: "stripe-v1".to_owned(), version: 1 },
//! };
//! // The same call after a crash goes on with the same key.
//! match client.send(&Wish::new(draft), Duration::from_secs(60)).await? {
//!     Outcome::Succeeded { answer } => drop(answer),
//!     Outcome::Refused { .. } => return Err("refused for good".into()),
//!     // In doubt or not done: the same again later, or `counterfoil intents`.
//!     other => return Err(format!("not known yet: {other:?}").into()),
//! }
//! # Ok(())
//! # }
//! ```

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
mod reach;
mod recover;
pub mod relay;
mod secret;
#[cfg(feature = "reqwest-middleware")]
mod through_reqwest;
mod transport;

pub use self::blocking::BlockingClient;
pub use self::client::{Client, Wish};
pub use self::deliver::{Progress, Watch, unwatched};
pub use self::error::ClientError;
pub use self::http::Http;
pub use self::layer::{Intended, IntentLayer, Intents, LayerError};
pub use self::outcome::Outcome;
pub use self::reach::Reach;
pub use self::recover::Ask;
pub use self::relay::Relay;
pub use self::transport::{ANSWER_BYTES_MAX, Heard, Outgoing, Sending, Transport};
#[cfg(feature = "reqwest-middleware")]
pub use reqwest_middleware;
