//! From what was seen to a verdict: one total function over the rules of a contract.
//!
//! What does not belong here: sending anything, or looking at exchanges (`fact.rs`).

use std::collections::{BTreeMap, BTreeSet};

use crate::case::{Case, Contract, Otherwise, Rule, Wanted};
use crate::fact::{Seen, Value};
use crate::lack::Lack;
use crate::verdict::{Severity, Verdict};

/// What the rounds of a case came to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Evidence {
    pub(crate) facts: BTreeMap<String, Seen>,
    /// Why a step's `want` was not met.
    pub(crate) unmet: Option<(Otherwise, String)>,
    /// Why a step could not be done: what it needs was not given, or the question does not exist.
    pub(crate) lack: Option<Lack>,
    /// Whether requests of a `together` were ever under way at once; nothing where none were sent.
    pub(crate) overlapped: Option<bool>,
    /// How it shows that something on the way sends requests again.
    pub(crate) retried: Option<String>,
    /// Why the target's answers say nothing: it could not be reached, or it refuses for the rate.
    pub(crate) disturbed: Option<String>,
}

/// A verdict with its reason, in words for people.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Judgement {
    pub(crate) verdict: Verdict,
    pub(crate) why: String,
    pub(crate) expected: String,
}

impl Judgement {
    pub(crate) fn new(verdict: Verdict, why: impl Into<String>) -> Self {
        Self { verdict, why: why.into(), expected: String::new() }
    }
}

/// Whether a rule holds.
enum Held {
    Yes,
    No,
    Unobservable(String),
    NotReached(String),
}

/// Judges a case.
pub(crate) fn judge(case: &Case, contract: Contract, evidence: &Evidence) -> Judgement {
    match &evidence.lack {
        Some(Lack::Void(why)) => return Judgement::new(Verdict::NotApplicable, why),
        Some(Lack::Missing(why)) => return Judgement::new(Verdict::Unobservable, why),
        None => {}
    }
    if let Some(why) = &evidence.disturbed {
        return Judgement::new(Verdict::Inconclusive, why);
    }
    match &evidence.unmet {
        Some((Otherwise::SetupFailed, why)) => return Judgement::new(Verdict::SetupFailed, why),
        Some((Otherwise::Inconclusive, why)) => return Judgement::new(Verdict::Inconclusive, why),
        None => {}
    }
    if let Some(why) = &evidence.retried {
        return Judgement::new(Verdict::IntermediaryRetried, why);
    }
    match case.rules(contract) {
        [] => answer(case, evidence),
        rules => held(rules, evidence),
    }
}

fn answer(case: &Case, evidence: &Evidence) -> Judgement {
    match evidence.facts.get(&case.answer) {
        Some(Seen::Values(values)) => {
            let distinct: BTreeSet<&Value> = values.iter().collect();
            let texts: Vec<String> = distinct.iter().map(ToString::to_string).collect();
            let verdict = match distinct.into_iter().collect::<Vec<_>>().as_slice() {
                [] => return Judgement::new(Verdict::Inconclusive, "nothing was seen"),
                [Value::Truth(true)] => Verdict::Yes,
                [Value::Truth(false)] => Verdict::No,
                [_, ..] => Verdict::Value,
            };
            Judgement::new(verdict, texts.join(", "))
        }
        Some(Seen::Unobservable(why)) => Judgement::new(Verdict::Unobservable, why),
        Some(Seen::NotReached(why)) => Judgement::new(Verdict::Inconclusive, why),
        None => Judgement::new(Verdict::HarnessError, format!("no fact is called {:?}", case.answer)),
    }
}

fn held(rules: &[Rule], evidence: &Evidence) -> Judgement {
    let mut worst: Option<(Severity, &Rule)> = None;
    let mut unknown: Option<Judgement> = None;
    for rule in rules {
        match holds(rule, &evidence.facts) {
            Held::Yes => {}
            Held::No if worst.is_none_or(|(severity, _)| severity < rule.severity) => {
                worst = Some((rule.severity, rule))
            }
            Held::No => {}
            Held::Unobservable(why) => unknown = Some(Judgement::new(Verdict::Unobservable, why)),
            Held::NotReached(why) => {
                unknown.get_or_insert(Judgement::new(Verdict::Inconclusive, why));
            }
        }
    }
    let expected = rules.iter().map(told).collect::<Vec<_>>().join(" and ");
    if let Some((severity, rule)) = worst {
        return Judgement { verdict: Verdict::Deviates(severity), why: found(rule, evidence), expected: told(rule) };
    }
    let judgement = match (unknown, evidence.overlapped) {
        (Some(unknown), _) => unknown,
        (None, Some(false)) => Judgement::new(Verdict::Inconclusive, "no two requests were under way at once"),
        (None, Some(true) | None) => Judgement::new(Verdict::Conforms, ""),
    };
    Judgement { expected, ..judgement }
}

fn holds(rule: &Rule, facts: &BTreeMap<String, Seen>) -> Held {
    let mut unknown = None;
    for alternative in &rule.any {
        match all_hold(alternative, facts) {
            Held::Yes => return Held::Yes,
            Held::No => {}
            other @ (Held::Unobservable(_) | Held::NotReached(_)) => unknown = Some(other),
        }
    }
    unknown.unwrap_or(Held::No)
}

fn all_hold(alternative: &BTreeMap<String, Vec<Wanted>>, facts: &BTreeMap<String, Seen>) -> Held {
    let mut unknown = None;
    for (name, allowed) in alternative {
        match facts.get(name) {
            Some(Seen::Values(values)) if values.is_empty() => {
                unknown = Some(Held::NotReached("nothing was seen".to_owned()));
            }
            Some(Seen::Values(values)) => {
                if !values.iter().all(|value| allowed.iter().any(|wanted| value.is(wanted))) {
                    return Held::No;
                }
            }
            Some(Seen::Unobservable(why)) => unknown = Some(Held::Unobservable(why.clone())),
            Some(Seen::NotReached(why)) => unknown = Some(Held::NotReached(why.clone())),
            None => unknown = Some(Held::NotReached(format!("no fact is called {name:?}"))),
        }
    }
    unknown.unwrap_or(Held::Yes)
}

/// A rule in words.
fn told(rule: &Rule) -> String {
    let one = |(name, allowed): (&String, &Vec<Wanted>)| {
        let values: Vec<String> = allowed
            .iter()
            .map(|wanted| match wanted {
                Wanted::Number(number) => number.to_string(),
                Wanted::Truth(truth) => Value::Truth(*truth).to_string(),
                Wanted::Text(text) => text.clone(),
            })
            .collect();
        format!("{name} {}", values.join(" or "))
    };
    let each = |alternative: &BTreeMap<String, Vec<Wanted>>| alternative.iter().map(one).collect::<Vec<_>>().join(", ");
    rule.any.iter().map(each).collect::<Vec<_>>().join("; else ")
}

/// What was seen of the facts that a rule names.
fn found(rule: &Rule, evidence: &Evidence) -> String {
    let names: BTreeSet<&String> = rule.any.iter().flat_map(BTreeMap::keys).collect();
    let one = |name: &&String| {
        let seen = match evidence.facts.get(*name) {
            Some(Seen::Values(values)) => tally(values),
            Some(Seen::Unobservable(_) | Seen::NotReached(_)) | None => "not seen".to_owned(),
        };
        format!("{name} {seen}")
    };
    names.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// `201 ×3, 409 ×5`, or the one value.
pub(crate) fn tally(values: &[Value]) -> String {
    let distinct: BTreeSet<&Value> = values.iter().collect();
    let count = |value: &&Value| values.iter().filter(|other| other == value).count();
    match distinct.len() {
        1 => distinct.iter().map(ToString::to_string).collect(),
        _ => distinct.iter().map(|value| format!("{value} ×{}", count(value))).collect::<Vec<_>>().join(", "),
    }
}

#[cfg(test)]
mod tests;
