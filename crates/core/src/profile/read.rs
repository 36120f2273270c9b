//! What an answer means for an action, read through a profile. What follows for the intent is in `intent`.

use std::fmt;

use super::matching::Seen;
use super::{Advice, AnswerRule, Meaning, Profile, Recipe};
use crate::receipt::Receipt;

/// What to do after an answer. A new key is never among it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Send again with the same key.
    Retry(Executed),
    /// It is being done: ask again later, with the same key.
    Wait,
    /// Ask the provider what became of it, by a recipe of the profile.
    LookUp(Reason),
    /// The action is done, whatever the status says.
    Succeeded(Proof),
    /// The action was refused for good.
    Refused(Proof),
    /// A person has to find out.
    Operator(Reason),
}

/// What is known of the attempt that was answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Executed {
    /// It certainly did nothing.
    No,
    /// It may have done something.
    Unknown,
}

/// What an answer is worth.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Proof {
    /// It comes from what the provider keeps under this key, so it speaks of the action.
    Record,
    /// It speaks of this attempt alone: it may come from a layer in front of what is kept.
    Answer,
}

/// Why no further attempt can tell.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Reason {
    /// The provider keeps a failure behind which the effect may stand, and would only repeat it.
    StoredFailure,
    /// The provider knows the key with other parameters.
    Mismatch,
    /// The provider may have forgotten the key: another attempt could be a second action.
    WindowClosed,
    /// The provider does not guard this request: another attempt would be a second action.
    Unguarded,
    /// The provider advised against another attempt.
    Advised,
    /// The profile says that only a person can tell.
    Told,
}

impl Reason {
    /// The word that lists and histories show.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::StoredFailure => "stored-failure",
            Self::Mismatch => "mismatch",
            Self::WindowClosed => "window-closed",
            Self::Unguarded => "unguarded",
            Self::Advised => "advised-to-stop",
            Self::Told => "told",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Retry(Executed::No) => f.write_str("retry, not executed"),
            Self::Retry(Executed::Unknown) => f.write_str("retry, same key"),
            Self::Wait => f.write_str("wait, same key"),
            Self::LookUp(reason) => write!(f, "look up: {}", reason.as_str()),
            Self::Succeeded(Proof::Record) => f.write_str("success"),
            Self::Succeeded(Proof::Answer) => f.write_str("success, unproven"),
            Self::Refused(Proof::Record) => f.write_str("refused"),
            Self::Refused(Proof::Answer) => f.write_str("refused, unproven"),
            Self::Operator(reason) => write!(f, "operator: {}", reason.as_str()),
        }
    }
}

/// How an answer was read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reading {
    /// What to do.
    pub verdict: Verdict,
    /// The rule of the profile that fitted; `None`: HTTP's own meaning.
    pub rule: Option<String>,
    /// What the answer says was made.
    pub resource: Option<String>,
}

/// What to do after `answer`. `doubt` says that an earlier attempt, or one under way, may have done the action: then
/// only what comes from the provider's record settles anything, and every other end reads as *retry with the same key*.
#[must_use]
pub fn read(answer: &Receipt, profile: &Profile, doubt: bool) -> Verdict {
    reading(answer, profile, doubt).verdict
}

/// [`read`], with the rule that it followed and what the answer names.
#[must_use]
pub fn reading(answer: &Receipt, profile: &Profile, doubt: bool) -> Reading {
    let seen = Seen::new(answer);
    let marked = profile.marker.as_ref().is_some_and(|marker| seen.is_marked(marker));
    let rule = profile.answers.iter().find(|rule| seen.fits(rule));
    let resource = rule.and_then(|rule| rule.resource.as_deref()).and_then(|at| seen.at(at));
    let meaning = meaning(answer.status, rule, marked);
    let proof = if marked || rule.is_some_and(|rule| rule.record) { Proof::Record } else { Proof::Answer };
    let verdict = verdict(meaning, proof, answer.status, doubt, profile, resource.is_some());
    let verdict = match &profile.advice {
        Some(advice) => advised(verdict, advice, &seen, doubt),
        None => verdict,
    };
    Reading { verdict, rule: rule.map(|rule| rule.name.clone()), resource }
}

/// What it means: the rule's word, else HTTP's. What comes back from the record is never *not processed*.
fn meaning(status: u16, rule: Option<&AnswerRule>, marked: bool) -> Meaning {
    let meaning = rule.map_or_else(|| of_status(status), |rule| rule.means);
    match meaning {
        Meaning::Unclear | Meaning::NotProcessed if marked => match status {
            400..=499 => Meaning::Refused,
            _ => Meaning::StoredFailure,
        },
        Meaning::Unguarded if marked => self::meaning(status, None, marked),
        Meaning::Success
        | Meaning::InProgress
        | Meaning::NotProcessed
        | Meaning::Unclear
        | Meaning::Refused
        | Meaning::StoredFailure
        | Meaning::Mismatch
        | Meaning::WindowClosed
        | Meaning::Unguarded
        | Meaning::Operator => meaning,
    }
}

/// What a status means by itself (RFC 9110 section 15). 408, 409, 423 and 429 are used for *still running* by some, so
/// they say nothing of the action without a rule; 421 and 425 say that it was not taken up (RFC 8470).
fn of_status(status: u16) -> Meaning {
    match status {
        200..=299 => Meaning::Success,
        307 | 308 => Meaning::Refused,
        300..=399 => Meaning::Operator,
        421 | 425 => Meaning::NotProcessed,
        408 | 409 | 423 | 429 => Meaning::Unclear,
        400..=499 => Meaning::Refused,
        _ => Meaning::Unclear,
    }
}

fn verdict(meaning: Meaning, proof: Proof, status: u16, doubt: bool, profile: &Profile, resource: bool) -> Verdict {
    let settles = !doubt || proof == Proof::Record;
    match meaning {
        Meaning::Success if settles => Verdict::Succeeded(proof),
        Meaning::Refused if settles => Verdict::Refused(proof),
        Meaning::Success | Meaning::Refused | Meaning::Unclear => Verdict::Retry(Executed::Unknown),
        Meaning::InProgress => Verdict::Wait,
        Meaning::NotProcessed => Verdict::Retry(Executed::No),
        Meaning::StoredFailure => ask(profile, Reason::StoredFailure, resource),
        Meaning::Mismatch => ask(profile, Reason::Mismatch, resource),
        Meaning::WindowClosed if doubt => ask(profile, Reason::WindowClosed, resource),
        Meaning::WindowClosed => Verdict::Refused(proof),
        Meaning::Unguarded if doubt => Verdict::Operator(Reason::Unguarded),
        Meaning::Unguarded => match status {
            200..=299 => Verdict::Succeeded(Proof::Answer),
            400..=499 => Verdict::Refused(Proof::Answer),
            _ => Verdict::Operator(Reason::Unguarded),
        },
        Meaning::Operator => Verdict::Operator(Reason::Told),
    }
}

/// A recipe, where the profile has one that can be filled in; else a person.
fn ask(profile: &Profile, reason: Reason, resource: bool) -> Verdict {
    let usable = |recipe: &Recipe| resource || !recipe.needs_resource();
    if profile.lookup.as_ref().is_some_and(usable) || profile.cancel.as_ref().is_some_and(usable) {
        Verdict::LookUp(reason)
    } else {
        Verdict::Operator(reason)
    }
}

/// The provider's own advice overrules the meaning of a status, and never a success.
fn advised(verdict: Verdict, advice: &Advice, seen: &Seen<'_>, doubt: bool) -> Verdict {
    let says = |value: &Option<String>| value.as_deref().is_some_and(|value| seen.has(&advice.header, Some(value)));
    if says(&advice.again) {
        return match verdict {
            Verdict::Refused(_) | Verdict::LookUp(_) | Verdict::Operator(_) => Verdict::Retry(Executed::Unknown),
            Verdict::Retry(_) | Verdict::Wait | Verdict::Succeeded(_) => verdict,
        };
    }
    if says(&advice.stop) {
        return match verdict {
            Verdict::Retry(Executed::No) if !doubt => Verdict::Refused(Proof::Answer),
            Verdict::Retry(Executed::No | Executed::Unknown) | Verdict::Wait => Verdict::Operator(Reason::Advised),
            Verdict::LookUp(_) | Verdict::Succeeded(_) | Verdict::Refused(_) | Verdict::Operator(_) => verdict,
        };
    }
    verdict
}
