//! The rules of Counterfoil: who an action is ([`identity`]), what was asked ([`fingerprint`]), what is remembered
//! ([`record`], [`receipt`]), and what may happen next ([`action`]). For callers: what is sent until its outcome is known
//! ([`intent`]), read through a provider's contract ([`profile`]).
//!
//! Every rule is a total function of values, time included. What does not belong here: clocks, files, sockets,
//! async, randomness, SQL, and status codes chosen for a decision (`middleware/reject.rs`).

#![forbid(unsafe_code)]

pub mod action;
pub mod child;
pub mod claim;
mod codec;
pub mod complaint;
pub mod error;
pub mod fingerprint;
pub mod identity;
pub mod intent;
pub mod policy;
pub mod profile;
pub mod receipt;
pub mod record;
pub mod schedule;
pub mod sent;
pub mod time;
pub mod wire;

pub use action::{Decision, Write, decide};
pub use child::child_key;
pub use claim::{Asked, Claim};
pub use error::Error;
pub use fingerprint::{Fingerprint, Parts, Rule};
pub use identity::{Digest, Identity, Key, Operation, Scope};
pub use policy::{Effect, Expiry, Hold, Policy};
pub use receipt::{Body, Receipt};
pub use record::{Holder, Keyed, Lease, LeaseId, Record, State, Why};
pub use time::{Now, Timestamp};
