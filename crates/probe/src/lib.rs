//! Asks any HTTP API which promise about idempotency keys it keeps, and shows the evidence.
//!
//! Cases are data (`cases/*.toml`). [`Probe::new`] judges the settings and chooses cases, [`Probe::plan`] tells what
//! they cost, [`Probe::run`] asks. Nothing of our own product is used here, so that it can be judged like any other.
//!
//! What does not belong here: arguments and printing, which are the command's.

mod answer;
mod body;
mod case;
mod catalogue;
mod error;
mod exchange;
mod fact;
mod hook;
mod judge;
mod lack;
mod observer;
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
    Along, Body, Case, Contract, Credential, Fact, Hook, Http, KeyForm, KeyPlace, Kind, Loss, Media, Otherwise,
    Request, Rule, State, Step, To, Wanted,
};
pub use catalogue::{Catalogue, Group};
pub use error::ProbeError;
pub use exchange::{Answer, Exchange};
pub use fact::Value;
pub use probe::{Plan, Probe};
pub use run::{CaseResult, FailOn, Run};
pub use settings::{Also, Settings};
pub use verdict::{Severity, Verdict};
