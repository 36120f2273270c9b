//! The tower layer: it runs an action once and replays its receipt.
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::sync::Arc;
//! use counterfoil_middleware::{GuardLayer, Settings, SingleTenant};
//! use counterfoil_store::{Gate, MemoryStore};
//!
//! let gate = Gate::new(Arc::new(MemoryStore::new()))?;
//! // Every POST and PATCH that carries an Idempotency-Key is guarded.
//! let guard = GuardLayer::new(gate, Settings::new(SingleTenant))?;
//! # let _ = guard;
//! # Ok(())
//! # }
//! ```
//!
//! The order is always: authenticate, parse the key, read the body, fingerprint, claim, run, complete, answer. No record
//! is looked up before the caller is known. What does not belong here: when a key may run again (core), how records
//! are kept (store), forwarding to another server and configuration files (server).

mod body;
mod carrier;
mod child;
mod coding;
mod contract;
mod cors;
mod coupled;
mod date;
mod drain;
mod end;
mod error;
mod fault;
mod job;
mod layer;
mod operation;
mod permit;
mod principal;
mod reject;
mod remember;
mod replay;
mod request;
mod run;
mod service;
mod settings;
mod wait;

pub mod metrics;

pub use self::body::{Body, BodyError, BoxError};
pub use self::child::{ChildKeyHeader, ChildKeys};
pub use self::contract::CONTRACT_PATH;
pub use self::cors::Cors;
pub use self::coupled::Coupled;
pub use self::drain::{Drain, Drained};
pub use self::error::Error;
pub use self::fault::Fault;
pub use self::job::Guarded;
pub use self::layer::{Guard, GuardLayer};
pub use self::operation::Pattern;
pub use self::permit::PermitText;
pub use self::principal::{Peer, Principal, PrincipalAnswer, PrincipalFault, SingleTenant};
pub use self::remember::is_event_stream;
pub use self::replay::is_never_replayed;
pub use self::settings::{Duplicates, KeyNeed, OperationRule, Settings, Terms, Unlisted};
