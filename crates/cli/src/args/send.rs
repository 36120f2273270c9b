//! What `send` is told, in the habits of curl. What may be sent and kept belongs to core.

use std::time::Duration;

use clap::Args;
use counterfoil_core::intent::Name;

use super::{JournalPlace, Printed, parse_age, parse_name};

/// Sends a request once, however often it is run: the same command again goes on where the last one stopped.
#[derive(Args, Debug)]
#[command(after_help = crate::exit::TABLE)]
pub(crate) struct Send {
    /// What the action is called, such as order-1234/charge. It stands for this one request as long as the journal keeps it.
    #[arg(long, value_name = "NAME", value_parser = parse_name)]
    pub(crate) intent: Name,
    /// The method.
    #[arg(short = 'X', long = "request", value_name = "METHOD", default_value = "POST")]
    pub(crate) method: String,
    /// A header, 'Name: value'; again for more. Credentials only by reference: 'Authorization: Bearer env:TOKEN' or
    /// 'X-Api-Key: file:PATH', read at each attempt and kept nowhere.
    #[arg(short = 'H', long = "header", value_name = "HEADER")]
    pub(crate) headers: Vec<String>,
    /// The body, or @FILE, or @- for standard input, taken as it is; several are joined by &.
    #[arg(short = 'd', long = "data", value_name = "DATA|@FILE")]
    pub(crate) data: Vec<String>,
    /// The same as JSON.
    #[arg(long, value_name = "DATA|@FILE", conflicts_with = "data")]
    pub(crate) json: Option<String>,
    #[command(flatten)]
    pub(crate) printed: Printed,
    /// How long one attempt may take.
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = parse_seconds)]
    pub(crate) max_time: Duration,
    /// Do it a further time, after it is settled: NAME#2, then NAME#3.
    #[arg(long)]
    pub(crate) again: bool,
    /// The provider's contract: the id of a built-in profile, or a file.
    #[arg(long, value_name = "ID|FILE", default_value = "ietf")]
    pub(crate) profile: String,
    /// How long the provider remembers a key at the least, such as 24h, where its profile does not say.
    #[arg(long, value_name = "SPAN", value_parser = parse_age)]
    pub(crate) window: Option<Duration>,
    #[command(flatten)]
    pub(crate) place: JournalPlace,
    /// How long to go on after the first attempt; 0s: one attempt.
    #[arg(long, value_name = "SPAN", default_value = "1m", value_parser = parse_age)]
    pub(crate) wait: Duration,
    /// A key of your own; otherwise one is drawn.
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Option<String>,
    /// Where to.
    pub(crate) url: String,
}

/// The longest attempt, in seconds.
const SECONDS_MAX: f64 = 3600.0;

fn parse_seconds(text: &str) -> Result<Duration, String> {
    let seconds: Option<f64> = text.parse().ok().filter(|seconds| *seconds >= 0.001 && *seconds <= SECONDS_MAX);
    seconds.map(Duration::from_secs_f64).ok_or_else(|| "accepted: seconds from 0.001 to 3600".to_owned())
}
