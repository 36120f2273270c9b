//! How an outcome is told: the answer to standard output or a file, the words to standard error, and the exit code.

use std::fs::File;
use std::io::{self, Write};

use counterfoil_client::{Client, Outcome};
use counterfoil_core::intent::{Difference, Intent, Name, Settler, State};
use counterfoil_core::profile::Reason;
use counterfoil_core::{Body, Receipt};
use counterfoil_store::points;
use http::StatusCode;

use super::story::say;
use crate::args::{JournalPlace, Printed};
use crate::error::CliError;
use crate::exit::Exit;
use crate::instant;

/// What is told, of which journal, and how.
pub(crate) struct Told<'a> {
    pub(crate) client: &'a Client,
    pub(crate) place: &'a JournalPlace,
    pub(crate) printed: &'a Printed,
}

impl Told<'_> {
    /// Tells what became of the intent `name`, in whose behalf `attempts` were made now.
    pub(crate) async fn of(&self, name: &Name, outcome: Outcome, attempts: u32) -> Result<Exit, CliError> {
        let intent = self.client.intent(name).await?;
        let (exit, words) = self.words(&intent, &outcome, attempts);
        let (Outcome::Succeeded { answer: Some(answer) } | Outcome::Refused { answer: Some(answer) }) = &outcome else {
            say(&intent, &words);
            return Ok(exit);
        };
        points::pass("client.before-print");
        print(self.printed, answer)?;
        say(&intent, &words);
        Ok(exit)
    }

    /// A further command on the same journal.
    fn command(&self, words: &str, intent: &Intent) -> String {
        let name = quoted(intent.request.name.as_str());
        format!("`counterfoil intents {words} {name}{}`", self.place.further())
    }

    /// How to find out without another attempt: by a recipe of the profile, else by a person.
    fn way_out(&self, intent: &Intent) -> String {
        let profile = self.client.profile(&intent.request.profile.id);
        if profile.is_ok_and(|profile| profile.lookup.is_some() || profile.cancel.is_some()) {
            self.command("recover", intent)
        } else {
            format!("find out from the provider, and settle it as {} says", self.command("show", intent))
        }
    }

    fn words(&self, intent: &Intent, outcome: &Outcome, attempts: u32) -> (Exit, String) {
        let earlier = if attempts == 0 { "; that was recorded earlier, and nothing was sent" } else { "" };
        match outcome {
            Outcome::Succeeded { answer } => {
                (Exit::Done, format!("done{}{}{earlier}", status(answer.as_ref()), by(intent)))
            }
            Outcome::Refused { answer } => (
                Exit::Refused,
                format!(
                    "refused for good{}{}{earlier}; a corrected request takes a new name, or --again",
                    status(answer.as_ref()),
                    by(intent)
                ),
            ),
            Outcome::Uncertain { again_at, last_start } => {
                let last = last_start.map(|last| format!(" and before {}", instant::print(last))).unwrap_or_default();
                let words = format!(
                    "uncertain: it may have been done; run the same command again from {}{last}, or {}",
                    instant::print(*again_at),
                    self.way_out(intent)
                );
                (Exit::Uncertain, words)
            }
            Outcome::Overdue { why } => self.overdue(intent, *why),
            Outcome::NotDone { again_at } => {
                let again = instant::print(*again_at);
                (Exit::NotExecuted, format!("certainly not executed so far; run the same command again from {again}"))
            }
            Outcome::WindowClosed => (
                Exit::WindowClosed,
                "not done, and the window in which it could be sent is over; a new action takes a new name, or --again"
                    .to_owned(),
            ),
            Outcome::InProgress { until } => {
                let until = instant::print(*until);
                (Exit::InProgress, format!("in progress elsewhere, until {until} at most; run the same command again"))
            }
            Outcome::Mismatch(differences) => self.mismatch(intent, differences),
            Outcome::Blocked => self.blocked(intent),
        }
    }

    fn overdue(&self, intent: &Intent, why: Reason) -> (Exit, String) {
        let exit = if why == Reason::WindowClosed { Exit::WindowClosed } else { Exit::Uncertain };
        let words = format!(
            "uncertain: it may have been done, and no further attempt can tell ({}): {}",
            why.as_str(),
            self.way_out(intent)
        );
        (exit, words)
    }

    fn mismatch(&self, intent: &Intent, differences: &[Difference]) -> (Exit, String) {
        let which: Vec<String> = differences.iter().map(ToString::to_string).collect();
        let which = which.join(", ");
        let settled = matches!(intent.state, State::Settled { .. });
        if !settled && differences.iter().any(Difference::is_drift) {
            let words = format!(
                "in doubt, and this request goes to another scope ({which}), where its key means nothing: nothing was \
                 sent; settle it first, {}",
                self.command("show", intent)
            );
            return (Exit::Blocked, words);
        }
        let words =
            format!("stands for another request (other: {which}): nothing was sent; another action takes a new name");
        (Exit::Mismatch, words)
    }

    fn blocked(&self, intent: &Intent) -> (Exit, String) {
        if matches!(intent.state, State::Settled { .. }) {
            let words = "settled under another key: nothing was sent; another action takes a new name, or --again";
            return (Exit::Mismatch, words.to_owned());
        }
        let words = format!(
            "not settled, so a further action or another key could do it twice: nothing was sent; run the command \
             without --again and --key, or {}",
            self.command("show", intent)
        );
        (Exit::Blocked, words)
    }
}

fn status(answer: Option<&Receipt>) -> String {
    match answer {
        Some(Receipt { status, body: Body::NotKept, .. }) => format!(" ({status}, its body was too large to keep)"),
        Some(Receipt { status, .. }) => format!(" ({status})"),
        None => " (there is no answer to show)".to_owned(),
    }
}

fn by(intent: &Intent) -> String {
    match &intent.state {
        State::Settled { by: Settler::Operator { who, why }, .. } => format!(", as {who} says: {why}"),
        State::Settled { by: Settler::LookUp, .. } => ", as the provider said when it was asked".to_owned(),
        State::Settled { by: Settler::Answer { .. } | Settler::NothingDone, .. }
        | State::Ready
        | State::Sending { .. }
        | State::Waiting { .. }
        | State::Uncertain { .. }
        | State::Overdue { .. } => String::new(),
    }
}

/// A name as a shell takes it.
pub(crate) fn quoted(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:,@%+=".contains(&byte);
    if name.bytes().all(plain) { name.to_owned() } else { format!("'{}'", name.replace('\'', r"'\''")) }
}

/// Writes the answer, and all of it has gone out when this returns.
fn print(printed: &Printed, answer: &Receipt) -> Result<(), CliError> {
    let (written, place) = match &printed.output {
        Some(path) => {
            let written = File::create(path).and_then(|mut file| write(&mut file, printed.include, answer));
            (written, path.display().to_string())
        }
        None => (write(&mut io::stdout().lock(), printed.include, answer), "standard output".to_owned()),
    };
    written.map_err(|error| {
        CliError::Internal(format!(
            "the answer could not be written to {place}: {error}; it is kept: run the same command again"
        ))
    })
}

fn write(out: &mut impl Write, head: bool, answer: &Receipt) -> io::Result<()> {
    if head {
        let reason = StatusCode::from_u16(answer.status).ok().and_then(|status| status.canonical_reason());
        write!(out, "HTTP {} {}\r\n", answer.status, reason.unwrap_or_default())?;
        for (name, value) in answer.headers.iter() {
            write!(out, "{name}: ")?;
            out.write_all(value)?;
            out.write_all(b"\r\n")?;
        }
        out.write_all(b"\r\n")?;
    }
    match &answer.body {
        Body::Kept(bytes) => out.write_all(bytes)?,
        Body::NotKept => {}
    }
    out.flush()
}
