//! The arguments, and their help. What they do belongs to the command of each; `docs/reference/cli.md` repeats them, and
//! a test compares the two.

mod intents;
mod profile;
mod relay;
mod send;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use counterfoil_core::intent::Name;
use counterfoil_server::config::{SPAN_ACCEPTED, STORE_ACCEPTED, StorePlace, parse_span};

use crate::journal::keeps_none;

pub(crate) use self::intents::{
    IntentState, Intents, IntentsExport, IntentsList, IntentsPurge, IntentsRecover, IntentsResolve, IntentsResume,
    IntentsShow, Pursued,
};
pub(crate) use self::profile::{Profile, ProfileFetch, ProfileList};
pub(crate) use self::relay::Relay;
pub(crate) use self::send::Send;

/// Keeps the receipt of an action, so that a retry gets the result and not a second effect.
///
/// Exit codes: 0 done, 1 the system or the store failed, 2 wrong arguments or configuration, 3 refused; `send --help`
/// lists its own.
#[derive(Parser, Debug)]
#[command(name = "counterfoil", version, max_term_width = 100, propagate_version = false)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Starts a small orders API and the proxy on loopback, and prints curl lines to try.
    Demo(Demo),
    /// Guards an API as a reverse proxy.
    Serve(Box<Settings>),
    /// Sends a request once, however often it is run.
    Send(Box<Send>),
    /// Shows, delivers and settles what `send` wrote down.
    #[command(subcommand)]
    Intents(Intents),
    /// Providers' contracts.
    #[command(subcommand)]
    Profile(Profile),
    /// Sends what applications left behind in their transactions, until it is stopped.
    Relay(Relay),
    /// Shows and settles receipts, beside a running server or without one.
    #[command(subcommand)]
    Receipts(Receipts),
    /// Asks any HTTP API which promise about its keys it keeps.
    ///
    /// Exit codes: 0 as the contract says, 1 deviations, 2 wrong arguments, 3 the target cannot be reached or set up, 4
    /// nothing but inconclusive, 5 the probe failed.
    Probe(Box<crate::probe::args::Probe>),
    /// Makes a store, or brings an older one up to date.
    Migrate(Place),
    /// Checks or prints the configuration.
    #[command(subcommand)]
    Config(Config),
}

/// What `demo` is told.
#[derive(Args, Debug)]
pub(crate) struct Demo {
    /// Run the printed lines once, show what they answer, and end.
    #[arg(long)]
    pub(crate) once: bool,
}

/// What `serve` is told. Flags win over variables, and those over the file.
#[derive(Args, Debug, Default)]
pub(crate) struct Settings {
    /// Where the proxy listens [default: 127.0.0.1:8787] [variable: COUNTERFOIL_LISTEN].
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<String>,
    /// Where health and metrics are told [default: 127.0.0.1:8788] [variable: COUNTERFOIL_ADMIN].
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) admin: Option<String>,
    /// The guarded server, such as http://127.0.0.1:9000 [variable: COUNTERFOIL_UPSTREAM].
    #[arg(long, value_name = "URL")]
    pub(crate) upstream: Option<String>,
    /// Where records are kept: sqlite:PATH, postgres://…, mysql://… or memory: [default: sqlite:counterfoil.db] [variable: COUNTERFOIL_STORE].
    #[arg(long, value_name = "STORE")]
    pub(crate) store: Option<String>,
    /// Who the callers are: none, or header:NAME@PEER,PEER; other sources in the file [variable: COUNTERFOIL_PRINCIPAL].
    #[arg(long, value_name = "SOURCE")]
    pub(crate) principal: Option<String>,
    /// The configuration file.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Config {
    /// Tells all that is wrong with the configuration, or that nothing is.
    Check(Box<Settings>),
    /// Prints the effective configuration, with where each value came from.
    Print(Box<Settings>),
}

/// Which store. Without either: the variable COUNTERFOIL_STORE, else sqlite:counterfoil.db.
#[derive(Args, Debug)]
pub(crate) struct Place {
    /// Where records are kept: sqlite:PATH, postgres://… or mysql://…
    #[arg(long, value_name = "STORE", value_parser = parse_store)]
    pub(crate) store: Option<StorePlace>,
    /// The configuration file that names the store.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

/// Which journal.
#[derive(Args, Debug)]
pub(crate) struct JournalPlace {
    /// Where intents are kept: sqlite:PATH or postgres://… [default: counterfoil/intents.db in $XDG_STATE_HOME, else in ~/.local/state] [variable: COUNTERFOIL_JOURNAL].
    #[arg(long, value_name = "JOURNAL", value_parser = parse_journal)]
    pub(crate) journal: Option<StorePlace>,
}

impl JournalPlace {
    /// The argument that names it to a further command, where it was named to this one.
    pub(crate) fn further(&self) -> String {
        self.journal.as_ref().map(|place| format!(" --journal {place}")).unwrap_or_default()
    }
}

/// How an answer is printed.
#[derive(Args, Debug)]
pub(crate) struct Printed {
    /// Write the answer's body to a file instead of standard output.
    #[arg(short = 'o', long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Print the answer's head as well.
    #[arg(short = 'i', long)]
    pub(crate) include: bool,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Receipts {
    /// Lists records, the oldest first.
    List(List),
    /// Shows one record with its history.
    Show(Show),
    /// Settles a record in doubt.
    Resolve(Box<Resolve>),
    /// Removes expired receipts now.
    Sweep(Sweep),
    /// Writes every record to standard output, one JSON object a line.
    Export(Export),
    /// Keeps old keys from running in a store that was restored from a backup.
    Quarantine(Quarantine),
    /// The store's clock.
    #[command(subcommand)]
    Clock(Clock),
}

#[derive(Args, Debug)]
pub(crate) struct List {
    #[command(flatten)]
    pub(crate) place: Place,
    /// Only records in these states as of now.
    #[arg(long, value_name = "STATE", value_delimiter = ',')]
    pub(crate) state: Vec<StateName>,
    /// Only records that have been in their state for longer, such as 15m or 7d.
    #[arg(long, value_name = "SPAN", value_parser = parse_age)]
    pub(crate) older_than: Option<Duration>,
    /// At most so many records.
    #[arg(long, value_name = "COUNT", default_value_t = 1000)]
    pub(crate) limit: usize,
    /// Show keys, not only digests.
    #[arg(long)]
    pub(crate) show_key: bool,
    /// Print one JSON object a line to standard output.
    #[arg(long)]
    pub(crate) json: bool,
}

/// What a record is as of now.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum StateName {
    /// A lease is live.
    Running,
    /// A lease is over, and the next claim takes the action over.
    Lapsed,
    /// Nobody knows whether it happened.
    Unknown,
    /// The receipt stands.
    Done,
    /// The receipt has expired, and the key is refused.
    Expired,
    /// The receipt has expired and waits to be swept.
    Absent,
    /// The record cannot be decoded.
    Unreadable,
}

#[derive(Args, Debug)]
pub(crate) struct Show {
    #[command(flatten)]
    pub(crate) place: Place,
    /// The key, or the beginning of the digest that lists and logs show.
    pub(crate) key_or_digest: String,
    /// Show the key, not only the digest.
    #[arg(long)]
    pub(crate) show_key: bool,
    /// Print one JSON object to standard output.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
#[command(group = clap::ArgGroup::new("verdict").required(true).args(["happened", "did_not_happen", "send_anew"]))]
pub(crate) struct Resolve {
    #[command(flatten)]
    pub(crate) place: Place,
    /// The key, or the beginning of the digest that lists and logs show.
    pub(crate) key_or_digest: String,
    /// The version that `receipts show` printed: N, or N:LEASE to be sure that it is the same run.
    #[arg(long, value_name = "N[:LEASE]", value_parser = parse_version)]
    pub(crate) version: Version,
    /// It happened, and this file (or - for standard input) holds its result as JSON: {"status": 201, "headers":
    /// [["location", "/orders/1"]], "body": "text"}, or "body_base64"; without a body a retry is told that the body was not kept.
    #[arg(long, value_name = "FILE")]
    pub(crate) happened: Option<PathBuf>,
    /// It did not happen and no longer can: the next attempt runs.
    #[arg(long)]
    pub(crate) did_not_happen: bool,
    /// As --did-not-happen, and the next attempt sends another child key (effect = "keyed-upstream"): where the upstream may
    /// have forgotten the old one, or keeps answering it.
    #[arg(long)]
    pub(crate) send_anew: bool,
    /// Who settles it.
    #[arg(long, value_name = "NAME", value_parser = parse_note)]
    pub(crate) who: String,
    /// How you know.
    #[arg(long, value_name = "REASON", value_parser = parse_note)]
    pub(crate) why: String,
    /// The owner and its workers are stopped or fenced.
    #[arg(long)]
    pub(crate) owner_stopped: bool,
    /// How long the result is promised [default: what --config says of the operation, else 24h].
    #[arg(long, value_name = "SPAN", value_parser = parse_age)]
    pub(crate) retention: Option<Duration>,
}

/// What the operator saw.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Version {
    pub(crate) number: u64,
    pub(crate) lease: Option<String>,
}

/// The fewest digits of a lease that tell runs apart.
const LEASE_DIGITS_MIN: usize = 4;
/// The most characters of who and why.
const NOTE_CHARS_MAX: usize = 1000;

fn parse_store(text: &str) -> Result<StorePlace, String> {
    StorePlace::parse(text).map_err(|fault| format!("{fault}; accepted: {STORE_ACCEPTED}"))
}

/// The place of a journal.
pub(crate) fn parse_journal(text: &str) -> Result<StorePlace, String> {
    let accepted = "accepted: sqlite:PATH or postgres://…";
    match StorePlace::parse(text) {
        Ok(place @ (StorePlace::Sqlite(_) | StorePlace::Postgres(_))) => Ok(place),
        Ok(place @ (StorePlace::Memory | StorePlace::Mysql(_))) => Err(keeps_none(&place)),
        Err(fault) => Err(format!("{fault}; {accepted}")),
    }
}

fn parse_name(text: &str) -> Result<Name, String> {
    Name::new(text).map_err(|error| error.to_string())
}

fn parse_age(text: &str) -> Result<Duration, String> {
    parse_span(text).map_err(|fault| format!("{fault}; accepted: {SPAN_ACCEPTED}"))
}

fn parse_version(text: &str) -> Result<Version, String> {
    let (number, lease) = match text.split_once(':') {
        Some((number, lease)) => (number, Some(lease.to_ascii_lowercase())),
        None => (text, None),
    };
    let number = number.parse().map_err(|_| format!("{number:?} is no version"))?;
    let fits = |lease: &String| {
        (LEASE_DIGITS_MIN..=32).contains(&lease.len()) && lease.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    if lease.as_ref().is_some_and(|lease| !fits(lease)) {
        return Err(format!("a lease is named by {LEASE_DIGITS_MIN} to 32 hexadecimal digits"));
    }
    Ok(Version { number, lease })
}

fn parse_note(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("it is empty".to_owned()),
        text if text.chars().count() > NOTE_CHARS_MAX => Err(format!("it has more than {NOTE_CHARS_MAX} characters")),
        text => Ok(text.to_owned()),
    }
}

#[derive(Args, Debug)]
pub(crate) struct Sweep {
    #[command(flatten)]
    pub(crate) place: Place,
    /// Print one JSON object to standard output.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Export {
    #[command(flatten)]
    pub(crate) place: Place,
    /// Write keys, not only digests.
    #[arg(long)]
    pub(crate) show_key: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Quarantine {
    #[command(flatten)]
    pub(crate) place: Place,
    /// From now on, keys that are dated before this instant, or not at all, do not run: the first moment the restored
    /// store serves, plus a margin for clocks. Like 2026-03-01T12:00:00Z, or now.
    #[arg(long, value_name = "INSTANT", value_parser = crate::instant::parse, conflicts_with = "lift")]
    pub(crate) before: Option<crate::instant::Moment>,
    /// End the quarantine.
    #[arg(long)]
    pub(crate) lift: bool,
    /// End it before the longest retention has passed, because nothing older can still come.
    #[arg(long, requires = "lift")]
    pub(crate) nothing_older_can_come: bool,
    /// Print one JSON object to standard output.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Clock {
    /// Says that the machine's clock is right, after it was stepped.
    Accept(Place),
}
