//! The arguments of `relay`. What it does belongs to the command.

use std::path::PathBuf;

use clap::Args;

use super::Place;

/// What `relay` is told. One store is the application's own database: sqlite:PATH or postgres://…
///
/// Any number of relays may share an outbox. Order is not promised.
#[derive(Args, Debug)]
pub(crate) struct Relay {
    #[command(flatten)]
    pub(crate) place: Place,
    /// Send so many intents at once, at most 1000.
    #[arg(long, value_name = "COUNT", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) at_once: u16,
    /// A provider's contract of your own, before those that are built in; as often as there are files.
    #[arg(long, value_name = "FILE")]
    pub(crate) profile: Vec<PathBuf>,
}
