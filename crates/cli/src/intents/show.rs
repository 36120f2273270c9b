//! `intents show`: one intent, its attempts, and what can be done about it.

use counterfoil_core::Now;
use counterfoil_core::intent::{AttemptEnd, Intent, Outcome, Promise, Settler, State};
use counterfoil_store::sqlite::Missing;
use serde_json::Value;

use super::{found, view};
use crate::args::{IntentsShow, JournalPlace};
use crate::error::CliError;
use crate::send::outcome::quoted;
use crate::send::story::window;
use crate::{instant, journal, print};

pub(super) async fn run(show: &IntentsShow) -> Result<(), CliError> {
    let journal = journal::open(&show.place, Missing::Refuse).await?;
    let (intent, now) = found(&journal, &show.name).await?;
    journal.close().await;
    if show.json {
        return print::data(&Value::Object(view::json(&intent, now, show.show_key)).to_string());
    }
    print::human(&text(&intent, now, show));
    Ok(())
}

/// Lines of a name and a value.
struct Lines(String);

impl Lines {
    fn add(&mut self, name: &str, value: &str) {
        use std::fmt::Write as _;
        // Writing to a text cannot fail.
        let _ = writeln!(self.0, "{name:<12} {value}");
    }
}

fn text(intent: &Intent, now: Now, show: &IntentsShow) -> String {
    let mut lines = Lines(String::new());
    let request = &intent.request;
    lines.add("name", request.name.as_str());
    if show.show_key {
        lines.add("key", request.key.as_str());
    }
    lines.add("request", &format!("{} {}, {} bytes", request.method, request.origin, request.body.len()));
    lines.add("profile", &format!("{}, version {}", request.profile.id, request.profile.version));
    lines.add("state", &state(intent));
    lines.add("version", &intent.version.to_string());
    lines.add("written down", &instant::print(intent.created_at));
    if let Some(doubt) = intent.doubt {
        lines.add("in doubt", &format!("since {}", instant::print(doubt)));
    }
    lines.add("window", &window(intent, now.at));
    if let Some(deadline) = intent.deadline.filter(|_| intent.terms.window != Promise::ForEver) {
        lines.add("deadline", &format!("{}: nothing is sent later", instant::print(deadline.until)));
    }
    if let Some(resource) = &intent.resource {
        lines.add("names", resource);
    }
    if intent.alarm {
        lines.add("ALARM", "an answer contradicts how it was settled: find out which is true");
    }
    for attempt in &intent.attempts {
        let started = instant::print(attempt.started_at);
        lines.add("attempt", &format!("{} at {started}: {}", attempt.number, end(attempt.end.as_ref())));
    }
    lines.0.push_str(&further(intent, &show.place));
    lines.0.trim_end().to_owned()
}

fn end(end: Option<&AttemptEnd>) -> String {
    match end {
        None => "under way".to_owned(),
        Some(AttemptEnd::Answered { status, verdict, .. }) => format!("{status}: {verdict}"),
        Some(AttemptEnd::NotSent { .. }) => "nothing was sent".to_owned(),
        Some(AttemptEnd::Uncertain { .. }) => "no whole answer".to_owned(),
        Some(AttemptEnd::Lapsed) => "its process ended, or took too long".to_owned(),
    }
}

fn state(intent: &Intent) -> String {
    let word = intent.state.as_str();
    match &intent.state {
        State::Ready => word.to_owned(),
        State::Sending { attempt, lease } => {
            format!("{word} attempt {attempt}, until {}", instant::print(lease.until))
        }
        State::Waiting { until } | State::Uncertain { until } => format!("{word}, next try {}", instant::print(*until)),
        State::Overdue { since, why } => format!("{word} since {} ({})", instant::print(*since), why.as_str()),
        State::Settled { outcome, by, at } => {
            let by = match by {
                Settler::Answer { number, .. } => format!("by the answer to attempt {number}"),
                Settler::LookUp => "by asking the provider".to_owned(),
                Settler::Operator { who, why } => format!("by {who}: {why}"),
                Settler::NothingDone => "because its window closed and nothing was done".to_owned(),
            };
            let (Outcome::Succeeded { answer } | Outcome::Refused { answer }) = outcome;
            let status = answer.as_ref().map(|answer| format!(" ({})", answer.status)).unwrap_or_default();
            format!("{word}{status} at {}, {by}", instant::print(*at))
        }
    }
}

/// The commands that settle it, ready to be completed.
fn further(intent: &Intent, place: &JournalPlace) -> String {
    let in_doubt = match &intent.state {
        State::Uncertain { .. } | State::Overdue { .. } => true,
        State::Ready | State::Sending { .. } | State::Waiting { .. } | State::Settled { .. } => false,
    };
    if !in_doubt {
        return String::new();
    }
    let rest = format!("{}{}", quoted(intent.request.name.as_str()), place.further());
    let resolve = format!("counterfoil intents resolve {rest} --version {}", intent.version);
    let mut text = "\n".to_owned();
    if matches!(intent.state, State::Uncertain { .. }) {
        text.push_str(&format!("send it again, with the same key:\n  counterfoil intents resume {rest}\n"));
    }
    text.push_str(&format!(
        "ask the provider:\n  counterfoil intents recover {rest}\n\
         it happened:\n  {resolve} --happened --who NAME --why REASON\n\
         it did not happen and no longer can:\n  {resolve} --did-not-happen --who NAME --why REASON\n"
    ));
    text
}
