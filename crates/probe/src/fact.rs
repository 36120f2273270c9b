//! What the exchanges of a round show: each fact of a case as values, or why it cannot be told.
//!
//! What does not belong here: whether a value is right (`judge.rs`).

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::case::{Fact, Wanted};
use crate::exchange::{Answer, Exchange};
use crate::target::IdPlace;

/// One value of a fact.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// Yes or no.
    Truth(bool),
    /// A status, a count, a length.
    Number(u64),
    /// A text.
    Text(String),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truth(true) => f.write_str("yes"),
            Self::Truth(false) => f.write_str("no"),
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => f.write_str(text),
        }
    }
}

impl Value {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// Whether it is what a rule allows: itself, a class such as `2xx`, or a text that goes on with a number.
    pub(crate) fn is(&self, wanted: &Wanted) -> bool {
        match (self, wanted) {
            (Self::Truth(found), Wanted::Truth(wanted)) => found == wanted,
            (Self::Number(found), Wanted::Number(wanted)) => found == wanted,
            (Self::Number(found), Wanted::Text(class)) => in_class(*found, class),
            (Self::Text(found), Wanted::Text(wanted)) => {
                found.strip_prefix(wanted.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
            }
            (Self::Truth(_), Wanted::Number(_) | Wanted::Text(_))
            | (Self::Number(_), Wanted::Truth(_))
            | (Self::Text(_), Wanted::Number(_) | Wanted::Truth(_)) => false,
        }
    }
}

fn in_class(status: u64, class: &str) -> bool {
    class.strip_suffix("xx").and_then(|digit| digit.parse::<u64>().ok()).is_some_and(|digit| status / 100 == digit)
}

/// What is known of a fact.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Seen {
    /// One value for each time that it was looked at.
    Values(Vec<Value>),
    /// What is needed to see it was not given.
    Unobservable(String),
    /// What it looks at did not occur.
    NotReached(String),
}

impl Seen {
    fn one(value: Value) -> Self {
        Self::Values(vec![value])
    }
}

/// A point of a round at which effects were counted.
#[derive(Clone, Debug)]
pub(crate) struct Mark {
    pub(crate) name: String,
    /// How many exchanges stand before it.
    pub(crate) exchanges: usize,
    pub(crate) count: Option<u64>,
}

/// One run of a case's steps.
#[derive(Clone, Debug, Default)]
pub(crate) struct Round {
    pub(crate) exchanges: Vec<Exchange>,
    /// The first and the last one are the round's own ends.
    pub(crate) marks: Vec<Mark>,
    /// Why something on the way repeats requests.
    pub(crate) repeated: Option<String>,
    /// The name of the header, parameter or member in which keys stand, in lower case.
    pub(crate) key_name: String,
    /// Whether effects can be behind answers that show none.
    pub(crate) hides_effects: bool,
}

impl Round {
    pub(crate) fn named(&self, name: &str) -> Vec<&Exchange> {
        self.exchanges.iter().filter(|exchange| exchange.name == name).collect()
    }

    /// How many effects were made between two marks; the ends of the round where none is named.
    pub(crate) fn effects(
        &self,
        since: Option<&str>,
        until: Option<&str>,
        id: Option<&IdPlace>,
    ) -> Result<u64, String> {
        let find = |name: Option<&str>, end: Option<&Mark>| match name {
            Some(name) => self.marks.iter().find(|mark| mark.name == name).cloned(),
            None => end.cloned(),
        };
        let ends = (find(since, self.marks.first()), find(until, self.marks.last()));
        let (Some(from), Some(to)) = ends else { return Err("the round did not get that far".to_owned()) };
        if let (Some(before), Some(after)) = (from.count, to.count) {
            return Ok(after.saturating_sub(before));
        }
        if self.hides_effects {
            return Err("answers do not show these effects (--count-url or --count-command)".to_owned());
        }
        let id = id.ok_or("nothing counts effects (--id, --count-url or --count-command)")?;
        let (known, _) = ids(self.exchanges.get(..from.exchanges).unwrap_or_default(), id)?;
        let (made, nameless) = ids(self.exchanges.get(from.exchanges..to.exchanges).unwrap_or_default(), id)?;
        if nameless {
            return Err("a success holds no id, and nothing else counts effects".to_owned());
        }
        u64::try_from(made.difference(&known).count()).map_err(|error| error.to_string())
    }
}

/// The ids of successes, and whether one of them holds none.
fn ids(exchanges: &[Exchange], place: &IdPlace) -> Result<(BTreeSet<String>, bool), String> {
    let mut found = BTreeSet::new();
    let mut nameless = false;
    for exchange in exchanges {
        let Some(answer) = &exchange.answer else {
            return Err("an answer did not come, and nothing but answers counts effects (--count-url)".to_owned());
        };
        match (answer.is_success(), id_of(answer, place)) {
            (true, Some(id)) => drop(found.insert(id)),
            (true, None) => nameless = true,
            (false, _) => {}
        }
    }
    Ok((found, nameless))
}

/// The id of a result, as text.
pub(crate) fn id_of(answer: &Answer, place: &IdPlace) -> Option<String> {
    match place {
        IdPlace::Header(name) => answer.header(name).map(str::to_owned),
        IdPlace::Pointer(pointer) => {
            let body: serde_json::Value = serde_json::from_str(&answer.body).ok()?;
            match body.pointer(pointer)? {
                serde_json::Value::String(text) => Some(text.clone()),
                serde_json::Value::Null => None,
                other => Some(other.to_string()),
            }
        }
    }
}

/// Looks at one fact of one round.
pub(crate) fn look(fact: &Fact, round: &Round, id: Option<&IdPlace>) -> Seen {
    match fact {
        Fact::Effects { since, until } => match round.effects(since.as_deref(), until.as_deref(), id) {
            Ok(count) => Seen::one(Value::Number(count)),
            Err(why) => Seen::Unobservable(why),
        },
        Fact::Status { of } => {
            let status = |exchange: &&Exchange| match &exchange.answer {
                Some(answer) => Value::Number(answer.status.into()),
                None => Value::text("no-answer"),
            };
            Seen::Values(round.named(of).iter().map(status).collect())
        }
        Fact::Relation { of: [first, later] } => relations(&round.named(first), &round.named(later), id),
        Fact::SameStatus { of } => {
            pair(round, of, |first, later| Seen::one(Value::Truth(first.status == later.status)))
        }
        Fact::SameBody { of } => pair(round, of, |first, later| Seen::one(Value::Truth(first.body == later.body))),
        Fact::HeadersDiffer { of, among } => pair(round, of, |first, later| {
            let differ = |name: &&String| first.all(name) != later.all(name);
            Seen::one(listed(among.iter().filter(differ).cloned().collect()))
        }),
        Fact::Marker { of: [first, later, third] } => {
            match (answered(round, first), answered(round, later), answered(round, third)) {
                (Some(first), Some(later), Some(third)) => Seen::one(listed(markers(first, later, third))),
                _ => Seen::NotReached("an answer did not come".to_owned()),
            }
        }
        Fact::Discloses { of } => pair(round, of, |first, later| discloses(first, later, id)),
        Fact::Problem { of } => problem(answered(round, of)),
        Fact::Distinguishable { of: [first, later] } => distinguishable(&round.named(first), answered(round, later)),
        Fact::Echo { of } => echo(&round.named(of)),
        Fact::Names { of } => match answered(round, of) {
            Some(answer) => Seen::one(Value::Truth(answer.body.to_ascii_lowercase().contains(&round.key_name))),
            None => Seen::NotReached("an answer did not come".to_owned()),
        },
        Fact::Longest { of } => {
            let taken = of.iter().flat_map(|name| round.named(name));
            let taken = taken.filter(|exchange| exchange.answer.as_ref().is_some_and(Answer::is_success));
            let longest = taken.map(|exchange| exchange.key_bytes).max().unwrap_or_default();
            Seen::one(Value::Number(u64::try_from(longest).unwrap_or(u64::MAX)))
        }
        Fact::RefusalHeader { of, name } => refusal_header(&round.named(of), name),
        Fact::Refusals { of } => {
            let named = round.named(of);
            let refused = named.iter().filter_map(|exchange| exchange.answer.as_ref());
            let refused = refused.filter(|answer| !answer.is_success());
            let statuses: Vec<Value> = refused.map(|answer| Value::Number(answer.status.into())).collect();
            match statuses.is_empty() {
                true => Seen::NotReached("nothing was refused".to_owned()),
                false => Seen::Values(statuses),
            }
        }
        Fact::Successes { of } => {
            let named = round.named(of);
            let successes = named.iter().filter_map(|exchange| exchange.answer.as_ref());
            let count = successes.filter(|answer| answer.is_success()).count();
            Seen::one(Value::Number(u64::try_from(count).unwrap_or(u64::MAX)))
        }
        Fact::Basis { used, unused } => {
            let related = |of: &[String; 2]| relations(&round.named(&of[0]), &round.named(&of[1]), id);
            basis(related(used), related(unused))
        }
    }
}

fn answered<'a>(round: &'a Round, name: &str) -> Option<&'a Answer> {
    round.exchanges.iter().find(|exchange| exchange.name == name)?.answer.as_ref()
}

fn pair(round: &Round, of: &[String; 2], compare: impl Fn(&Answer, &Answer) -> Seen) -> Seen {
    match (answered(round, &of[0]), answered(round, &of[1])) {
        (Some(first), Some(later)) => compare(first, later),
        _ => Seen::NotReached("an answer did not come".to_owned()),
    }
}

fn listed(names: Vec<String>) -> Value {
    if names.is_empty() { Value::text("none") } else { Value::Text(names.join(", ")) }
}

fn relations(first: &[&Exchange], later: &[&Exchange], id: Option<&IdPlace>) -> Seen {
    let first = first.iter().filter_map(|exchange| exchange.answer.as_ref()).find(|answer| answer.is_success());
    let mut values = Vec::new();
    for exchange in later {
        values.push(match &exchange.answer {
            None => Value::text("no-answer"),
            Some(answer) if answer.status >= 500 => Value::Text(format!("failed {}", answer.status)),
            Some(answer) if answer.status >= 400 => Value::Text(format!("refused {}", answer.status)),
            Some(answer) if !answer.is_success() => Value::Text(format!("redirected {}", answer.status)),
            Some(answer) => match (first, id) {
                (None, _) => return Seen::NotReached("there is no success to compare with".to_owned()),
                (Some(first), Some(id)) => match (id_of(first, id), id_of(answer, id)) {
                    (Some(first), Some(later)) if first == later => Value::text("replay"),
                    (Some(_), Some(_)) => Value::text("new-effect"),
                    (_, None) => Value::text("no-id"),
                    (None, Some(_)) => return Seen::Unobservable("the first success holds no id".to_owned()),
                },
                (Some(first), None) if first.body == answer.body && !first.body.is_empty() => Value::text("replay"),
                (Some(_), None) => return Seen::Unobservable("no id tells results apart (--id)".to_owned()),
            },
        });
    }
    Seen::Values(values)
}

/// What a window is counted from, by whether a key that was used in between lives longer than one that was not.
fn basis(used: Seen, unused: Seen) -> Seen {
    let (used, unused) = match (used, unused) {
        (Seen::Values(used), Seen::Values(unused)) => (used, unused),
        (seen @ (Seen::Unobservable(_) | Seen::NotReached(_)), _) | (_, seen) => return seen,
    };
    let kept = |values: &[Value]| values.iter().all(|value| *value == Value::text("replay"));
    let over = |values: &[Value]| values.iter().all(|value| *value == Value::text("new-effect"));
    match (kept(&used), kept(&unused)) {
        (true, false) if over(&unused) => Seen::one(Value::text("last-use")),
        (false, false) if over(&used) && over(&unused) => Seen::one(Value::text("first-use")),
        (_, true) => Seen::NotReached("nothing expired: the window is longer than was said".to_owned()),
        (_, false) => Seen::NotReached("a key that expired is not taken for a new one".to_owned()),
    }
}

/// Headers that say something else with every answer, or of the connection, and never that it is a replay.
const NO_MARKERS: [&str; 12] = [
    "date",
    "age",
    "connection",
    "keep-alive",
    "content-length",
    "content-type",
    "set-cookie",
    "x-request-id",
    "request-id",
    "server-timing",
    "traceparent",
    "transfer-encoding",
];

fn markers(first: &Answer, later: &Answer, third: &Answer) -> Vec<String> {
    let marks = |(name, value): &&(String, String)| {
        let stays = third.header(name) == Some(value.as_str());
        !NO_MARKERS.contains(&name.as_str()) && stays && first.header(name) != Some(value.as_str())
    };
    later.headers.iter().filter(marks).map(|(name, value)| format!("{name}: {value}")).collect()
}

fn discloses(first: &Answer, later: &Answer, id: Option<&IdPlace>) -> Seen {
    let same_body = !first.body.is_empty() && first.body == later.body;
    let ids = id.map(|id| (id_of(first, id), id_of(later, id)));
    match ids {
        Some((Some(first), Some(later))) if first == later => Seen::one(Value::Truth(true)),
        _ if first.body.is_empty() && id.is_none() => Seen::Unobservable("the first answer has no body".to_owned()),
        Some(_) | None => Seen::one(Value::Truth(same_body)),
    }
}

fn problem(answer: Option<&Answer>) -> Seen {
    let Some(answer) = answer.filter(|answer| answer.status >= 400) else {
        return Seen::NotReached("nothing was refused".to_owned());
    };
    let kind = answer.header("content-type").unwrap_or_default().split(';').next().unwrap_or_default().trim();
    let linked = answer.all("link").iter().any(|link| link.contains("describedby") || link.contains("help"));
    Seen::one(Value::text(match kind.to_ascii_lowercase().as_str() {
        "application/problem+json" | "application/problem+xml" => "problem+json",
        _ if linked => "link",
        kind if kind == "application/json" || kind.ends_with("+json") => "json",
        "" => "nothing",
        _ => "text",
    }))
}

/// Where services write a code that a program can read.
const CODES: [&str; 6] = ["/type", "/code", "/error/code", "/error/type", "/errors/0/code", "/error"];

fn distinguishable(race: &[&Exchange], changed: Option<&Answer>) -> Seen {
    let waiting = race.iter().filter_map(|exchange| exchange.answer.as_ref()).find(|answer| answer.status >= 400);
    let Some(waiting) = waiting else {
        return Seen::NotReached("no answer said that the first is still under way".to_owned());
    };
    let Some(changed) = changed.filter(|answer| answer.status >= 400) else {
        return Seen::NotReached("a changed value was not refused".to_owned());
    };
    let codes = |answer: &Answer| {
        let body: serde_json::Value = serde_json::from_str(&answer.body).unwrap_or_default();
        CODES.map(|pointer| body.pointer(pointer).cloned())
    };
    Seen::one(Value::Truth(waiting.status != changed.status || codes(waiting) != codes(changed)))
}

/// The header of each answer that is no success.
fn refusal_header(named: &[&Exchange], name: &str) -> Seen {
    let refused = named.iter().filter_map(|exchange| exchange.answer.as_ref()).filter(|answer| !answer.is_success());
    let values = refused.map(|answer| {
        let found = answer.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        Value::text(found.map_or("none", |(_, value)| value))
    });
    match values.collect::<Vec<_>>() {
        values if values.is_empty() => Seen::NotReached("nothing was refused".to_owned()),
        values => Seen::Values(values),
    }
}

fn echo(exchanges: &[&Exchange]) -> Seen {
    let found = exchanges.iter().find_map(|exchange| Some((exchange.key.as_deref()?, exchange.answer.as_ref()?)));
    let Some((key, answer)) = found else { return Seen::NotReached("an answer did not come".to_owned()) };
    let header = answer.headers.iter().find(|(_, value)| value.contains(key));
    Seen::one(match header {
        Some((name, _)) => Value::Text(format!("header {name}")),
        None if answer.body.contains(key) => Value::text("body"),
        None => Value::text("no"),
    })
}

#[cfg(test)]
mod tests;
