//! What `intents` is told. What an intent is, and which word about it is accepted, belongs to core.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use counterfoil_core::intent::Name;

use super::{JournalPlace, Printed, parse_age, parse_name, parse_note};

#[derive(Subcommand, Debug)]
pub(crate) enum Intents {
    /// Lists intents, the oldest first.
    List(IntentsList),
    /// Shows one intent with its attempts.
    Show(IntentsShow),
    /// Delivers an intent further; it ends as `send` does.
    Resume(IntentsResume),
    /// Asks the provider what became of an action, by the recipe of its profile; it ends as `send` does.
    Recover(IntentsRecover),
    /// Settles an intent by a person's word.
    Resolve(Box<IntentsResolve>),
    /// Writes every intent to standard output, one JSON object a line.
    Export(IntentsExport),
    /// Removes settled intents whose window is over.
    Purge(IntentsPurge),
}

/// What an intent is as of now.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum IntentState {
    /// Written down, and nothing was sent.
    Ready,
    /// A process sends it.
    Sending,
    /// Nothing was done by what was sent; it is sent again later.
    Waiting,
    /// It may have been done; the same key is sent again later.
    Uncertain,
    /// It may have been done, and no further attempt can tell.
    Overdue,
    /// It was done.
    Succeeded,
    /// It was not done, and will not be.
    Refused,
}

#[derive(Args, Debug)]
pub(crate) struct IntentsList {
    #[command(flatten)]
    pub(crate) place: JournalPlace,
    /// Only intents in these states as of now.
    #[arg(long, value_name = "STATE", value_delimiter = ',')]
    pub(crate) state: Vec<IntentState>,
    /// At most so many.
    #[arg(long, value_name = "COUNT", default_value_t = 1000)]
    pub(crate) limit: usize,
    /// Show keys and, with --json, bodies.
    #[arg(long)]
    pub(crate) show_key: bool,
    /// Print one JSON object a line to standard output.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct IntentsShow {
    #[command(flatten)]
    pub(crate) place: JournalPlace,
    /// What the action is called.
    #[arg(value_parser = parse_name)]
    pub(crate) name: Name,
    /// Show the key and, with --json, bodies.
    #[arg(long)]
    pub(crate) show_key: bool,
    /// Print one JSON object to standard output.
    #[arg(long)]
    pub(crate) json: bool,
}

/// An intent that is gone on with, and how its outcome is printed.
#[derive(Args, Debug)]
pub(crate) struct Pursued {
    #[command(flatten)]
    pub(crate) place: JournalPlace,
    /// What the action is called.
    #[arg(value_parser = parse_name)]
    pub(crate) name: Name,
    #[command(flatten)]
    pub(crate) printed: Printed,
    /// The file of its profile, where that is not built in.
    #[arg(long, value_name = "FILE")]
    pub(crate) profile: Option<String>,
}

#[derive(Args, Debug)]
#[command(after_help = crate::exit::TABLE)]
pub(crate) struct IntentsResume {
    #[command(flatten)]
    pub(crate) of: Pursued,
    /// How long to go on after the first attempt; 0s: one attempt.
    #[arg(long, value_name = "SPAN", default_value = "1m", value_parser = parse_age)]
    pub(crate) wait: Duration,
}

#[derive(Args, Debug)]
#[command(after_help = crate::exit::TABLE)]
pub(crate) struct IntentsRecover {
    #[command(flatten)]
    pub(crate) of: Pursued,
    /// Ask that it does not happen any more, instead of what became of it.
    #[arg(long)]
    pub(crate) cancel: bool,
}

#[derive(Args, Debug)]
#[command(group = clap::ArgGroup::new("word").required(true).args(["happened", "did_not_happen"]))]
pub(crate) struct IntentsResolve {
    #[command(flatten)]
    pub(crate) place: JournalPlace,
    /// What the action is called.
    #[arg(value_parser = parse_name)]
    pub(crate) name: Name,
    /// The version that `intents show` printed.
    #[arg(long, value_name = "N")]
    pub(crate) version: u64,
    /// It happened; the file (or - for standard input) may hold its answer, as for `receipts resolve`.
    #[arg(long, value_name = "FILE", num_args = 0..=1)]
    pub(crate) happened: Option<Option<PathBuf>>,
    /// It did not happen and no longer can.
    #[arg(long)]
    pub(crate) did_not_happen: bool,
    /// Who settles it.
    #[arg(long, value_name = "NAME", value_parser = parse_note)]
    pub(crate) who: String,
    /// How you know.
    #[arg(long, value_name = "REASON", value_parser = parse_note)]
    pub(crate) why: String,
}

#[derive(Args, Debug)]
pub(crate) struct IntentsExport {
    #[command(flatten)]
    pub(crate) place: JournalPlace,
    /// Write keys and bodies too.
    #[arg(long)]
    pub(crate) show_key: bool,
}

#[derive(Args, Debug)]
pub(crate) struct IntentsPurge {
    #[command(flatten)]
    pub(crate) place: JournalPlace,
    /// Only what has been settled for longer, such as 90d. What is not settled, or inside its window, stays anyway.
    #[arg(long, value_name = "SPAN", value_parser = parse_age)]
    pub(crate) older_than: Duration,
    /// Print one JSON object to standard output.
    #[arg(long)]
    pub(crate) json: bool,
}
