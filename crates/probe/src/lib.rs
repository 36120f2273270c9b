//! Asks any HTTP API which promise about idempotency keys it keeps, and shows the evidence.
//!
//! Cases are data (`cases/*.toml`). [`Probe::new`] judges the settings and chooses cases, [`Probe::plan`] tells what
//! they cost, [`Probe::run`] asks. Nothing of our own product is used here, so that it can be judged like any other.
//!
//! What does not belong here: arguments and printing, which are the command's.

mod address;
mod answer;
mod arrivals;
mod body;
mod case;
mod catalogue;
mod contract;
mod error;
mod exchange;
mod fact;
mod hook;
mod http2;
mod judge;
mod observer;
mod place;
mod probe;
mod redact;
pub mod report;
mod round;
mod run;
mod settings;
mod target;
mod verdict;
mod wire;

pub use case::{
    Body, Case, Contract, Credential, Fact, FirstSent, KeyForm, KeyPlace, Kind, Loss, Otherwise, Request, Rule, Step,
    Wanted,
};
pub use catalogue::{Catalogue, Group};
pub use error::ProbeError;
pub use exchange::{Answer, Exchange};
pub use fact::Value;
pub use hook::{Hook, Span};
pub use place::Place;
pub use probe::{Plan, Probe};
pub use run::{CaseResult, FailOn, Run};
pub use settings::{Documented, Settings};
pub use verdict::{Severity, Verdict};
