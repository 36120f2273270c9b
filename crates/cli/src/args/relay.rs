//! The arguments of `relay`. What it does belongs to the command.

use std::path::PathBuf;

use clap::Args;
use counterfoil_core::intent::{Secret, SecretSource, origin};

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
    /// Read this secret where an intent refers to it, as often as there are secrets; no other is read.
    #[arg(long, value_name = "env:NAME|file:PATH", value_parser = secret)]
    pub(crate) secret: Vec<SecretSource>,
    /// Send to this host, as `https://api.example` or with its port, as often as there are hosts; without any, to every host
    /// that an intent names.
    #[arg(long, value_name = "ORIGIN", value_parser = reached)]
    pub(crate) to: Vec<String>,
    /// A provider's contract of your own, before those that are built in; as often as there are files.
    #[arg(long, value_name = "FILE")]
    pub(crate) profile: Vec<PathBuf>,
}

fn secret(text: &str) -> Result<SecretSource, String> {
    let read = Secret::parse(text).filter(|secret| secret.prefix.is_empty());
    read.map(|secret| secret.source).ok_or_else(|| "it is no reference: write env:NAME or file:PATH".to_owned())
}

fn reached(text: &str) -> Result<String, String> {
    let read = origin(text).map_err(|error| error.to_string())?;
    let is_whole = text.trim_end_matches('/').matches('/').count() == 2 && !text.contains('?');
    if is_whole { Ok(read) } else { Err(format!("it is more than a host: write {read}")) }
}
