//! The one machine: what an event makes of an intent. Total: every event has an answer in every state.
//! Late answers are in `late`; writing what it answers belongs to the store.

use std::time::Duration;

use super::{Attempt, AttemptEnd, End, Event, Found, Intent, Outcome, Resolution, Said, Settler, State, Step, late};
use crate::profile::{Executed, Proof, Reason, Verdict};
use crate::receipt::Receipt;
use crate::record::{Holder, Lease, LeaseId};
use crate::schedule::{Jitter, next_start};
use crate::time::{Now, Timestamp};

/// What `event` makes of `intent` at `now`. What time alone does comes first, so an intent that nobody touched since
/// is judged as it stands now.
///
/// The write and the answer belong together: [`Said::Send`] holds only once the write is durable, and a write is made
/// only over the version that was read.
#[must_use]
pub fn next(intent: &Intent, event: &Event, now: Now) -> Step {
    let mut after = intent.clone();
    pass_time(&mut after, now.at);
    let said = match event {
        Event::Look => standing(&after),
        Event::Begin { lease, holder } => begin(&mut after, *lease, *holder, now.at),
        Event::Ended { lease, end, told, jitter } => ended(&mut after, *lease, end, (*told, *jitter), now.at),
        Event::Gone(holder) => gone(&mut after, *holder, now.at),
        Event::LookedUp { asked_at, found } => looked_up(&mut after, (*asked_at).min(now.at), found, now.at),
        Event::Resolved { version, verdict, who, why } => {
            if *version == intent.version {
                resolved(&mut after, verdict, Settler::Operator { who: who.clone(), why: why.clone() }, now.at)
            } else {
                Said::Stale
            }
        }
    };
    let changed = after != *intent;
    after.version = intent.version.saturating_add(1);
    Step { write: changed.then_some(after), said }
}

/// Whether the holder of `lease` may put the first byte on the wire at `now`: asked again right before it does.
#[must_use]
pub fn may_send(intent: &Intent, lease: LeaseId, now: Now) -> bool {
    match &intent.state {
        State::Sending { lease: held, .. } => held.id == lease && now.at < held.attempt_until,
        State::Ready
        | State::Waiting { .. }
        | State::Uncertain { .. }
        | State::Overdue { .. }
        | State::Settled { .. } => false,
    }
}

/// What time alone does: a lease runs out, the window closes.
fn pass_time(intent: &mut Intent, now: Timestamp) {
    if let State::Sending { lease, .. } = &intent.state
        && lease.until <= now
    {
        let (id, until) = (lease.id, lease.until);
        lapse(intent, id, until);
    }
    close_window(intent, now);
}

fn lapse(intent: &mut Intent, lease: LeaseId, at: Timestamp) {
    if let Some(attempt) = intent.attempts.iter_mut().find(|attempt| attempt.lease == lease) {
        attempt.end.get_or_insert(AttemptEnd::Lapsed);
    }
    intent.doubt.get_or_insert(at);
    intent.state = State::Uncertain { until: at };
}

/// Past the last instant at which an attempt may start: overdue where something may have been done, and refused where
/// every attempt is known to have done nothing.
fn close_window(intent: &mut Intent, now: Timestamp) {
    let Some(last_start) = intent.last_start().filter(|last| *last < now) else { return };
    match intent.state {
        State::Waiting { .. } | State::Uncertain { .. } => {
            if intent.doubt.is_some() {
                intent.state = State::Overdue { since: last_start, why: Reason::WindowClosed };
            } else {
                settle(intent, Outcome::Refused { answer: None }, Settler::NothingDone, last_start);
            }
        }
        State::Ready | State::Sending { .. } | State::Overdue { .. } | State::Settled { .. } => {}
    }
}

/// What is to be done with an intent as it stands.
pub(super) fn standing(intent: &Intent) -> Said {
    match &intent.state {
        State::Ready => Said::Ready,
        State::Sending { lease, .. } => Said::InProgress { until: lease.until },
        State::Waiting { until } | State::Uncertain { until } => Said::Wait { until: *until },
        State::Overdue { why, .. } => Said::Overdue { why: *why },
        State::Settled { .. } => Said::Settled,
    }
}

fn begin(intent: &mut Intent, lease: LeaseId, holder: Option<Holder>, now: Timestamp) -> Said {
    match &intent.state {
        State::Waiting { until } | State::Uncertain { until } if now < *until => Said::Wait { until: *until },
        State::Ready | State::Waiting { .. } | State::Uncertain { .. } => start(intent, lease, holder, now),
        // The same write once more: its first copy may have won.
        State::Sending { attempt, lease: held } if held.id == lease => {
            Said::Send { attempt: *attempt, until: held.attempt_until }
        }
        State::Sending { .. } | State::Overdue { .. } | State::Settled { .. } => standing(intent),
    }
}

fn start(intent: &mut Intent, id: LeaseId, holder: Option<Holder>, now: Timestamp) -> Said {
    let span = intent.terms.attempt_limit;
    let until = now.plus(span);
    intent.deadline.get_or_insert(intent.terms.deadline(now));
    intent.attempted = intent.attempted.saturating_add(1);
    intent.reached = intent.reached.saturating_add(1);
    let number = intent.attempted;
    intent.attempts.push(Attempt { number, lease: id, started_at: now, until, end: None });
    if intent.attempts.len() > super::ATTEMPTS_KEPT_MAX {
        intent.attempts.remove(1);
    }
    let lease = Lease { id, holder, renewed_at: now, span, until, attempt_until: until };
    intent.state = State::Sending { attempt: number, lease };
    Said::Send { attempt: number, until }
}

type Pause = (Option<Duration>, Jitter);

fn ended(intent: &mut Intent, lease: LeaseId, end: &End, pause: Pause, now: Timestamp) -> Said {
    let current = matches!(&intent.state, State::Sending { lease: held, .. } if held.id == lease);
    let Some(number) = note(intent, lease, end, now) else { return known(intent, lease) };
    if !current {
        return late::ended(intent, number, end, now);
    }
    match end {
        End::NotSent => {}
        End::Uncertain => {
            intent.doubt.get_or_insert(now);
        }
        End::Answered { answer, verdict, .. } => {
            if let Some(said) = judge(intent, number, answer, *verdict, now) {
                return said;
            }
        }
    }
    let pause = intent.terms.backoff.pause(intent.attempted, pause.0, pause.1);
    let until = next_start(pause, intent.last_start(), now);
    intent.state = match intent.doubt {
        Some(_) => State::Uncertain { until },
        None => State::Waiting { until },
    };
    close_window(intent, now);
    standing(intent)
}

/// An end that changes nothing: told once more, or of an attempt that is not known.
fn known(intent: &Intent, lease: LeaseId) -> Said {
    if intent.attempts.iter().any(|attempt| attempt.lease == lease) { Said::Noted } else { Said::Stale }
}

/// Writes the end into the history; the attempt's number, unless its end was told before.
fn note(intent: &mut Intent, lease: LeaseId, end: &End, now: Timestamp) -> Option<u32> {
    let attempt = intent.attempts.iter_mut().find(|attempt| attempt.lease == lease)?;
    match attempt.end {
        None | Some(AttemptEnd::Lapsed) => {}
        Some(AttemptEnd::Answered { .. } | AttemptEnd::NotSent { .. } | AttemptEnd::Uncertain { .. }) => return None,
    }
    let number = attempt.number;
    attempt.end = Some(match end {
        End::Answered { answer, verdict, .. } => {
            AttemptEnd::Answered { at: now, status: answer.status, verdict: verdict.to_string() }
        }
        End::NotSent => AttemptEnd::NotSent { at: now },
        End::Uncertain => AttemptEnd::Uncertain { at: now },
    });
    match end {
        End::Answered { resource: Some(resource), .. } => {
            intent.resource.get_or_insert_with(|| resource.clone());
        }
        End::NotSent => {
            intent.reached = intent.reached.saturating_sub(1);
            if intent.reached == 0 {
                intent.deadline = None;
            }
        }
        End::Answered { resource: None, .. } | End::Uncertain => {}
    }
    Some(number)
}

/// What an answer to the attempt under way makes of the intent; `None`: it goes on.
fn judge(intent: &mut Intent, number: u32, answer: &Receipt, verdict: Verdict, now: Timestamp) -> Option<Said> {
    let settles = |proof: Proof| intent.doubt.is_none() || proof == Proof::Record;
    match verdict {
        Verdict::Succeeded(proof) if settles(proof) => {
            let outcome = Outcome::Succeeded { answer: Some(answer.clone()) };
            Some(settle(intent, outcome, Settler::Answer { number, proof }, now))
        }
        Verdict::Refused(proof) if settles(proof) => {
            let outcome = Outcome::Refused { answer: Some(answer.clone()) };
            Some(settle(intent, outcome, Settler::Answer { number, proof }, now))
        }
        Verdict::Retry(Executed::No) => None,
        Verdict::Succeeded(_) | Verdict::Refused(_) | Verdict::Retry(Executed::Unknown) | Verdict::Wait => {
            intent.doubt.get_or_insert(now);
            None
        }
        Verdict::LookUp(why) | Verdict::Operator(why) => {
            intent.doubt.get_or_insert(now);
            Some(give_up(intent, why, now))
        }
    }
}

pub(super) fn give_up(intent: &mut Intent, why: Reason, now: Timestamp) -> Said {
    intent.state = State::Overdue { since: now, why };
    Said::Overdue { why }
}

pub(super) fn settle(intent: &mut Intent, outcome: Outcome, by: Settler, at: Timestamp) -> Said {
    intent.doubt = None;
    intent.state = State::Settled { outcome, by, at };
    Said::Settled
}

fn gone(intent: &mut Intent, holder: Holder, now: Timestamp) -> Said {
    if let State::Sending { lease, .. } = &intent.state
        && lease.holder == Some(holder)
    {
        let id = lease.id;
        lapse(intent, id, now);
        close_window(intent, now);
    }
    standing(intent)
}

fn looked_up(intent: &mut Intent, asked_at: Timestamp, found: &Found, now: Timestamp) -> Said {
    let under_way = match &intent.state {
        State::Ready => return Said::Noted,
        State::Settled { outcome, .. } => {
            return late::looked_up(intent, matches!(outcome, Outcome::Refused { .. }), found);
        }
        State::Sending { .. } => true,
        State::Waiting { .. } | State::Uncertain { .. } | State::Overdue { .. } => false,
    };
    match found {
        Found::Done(answer) => {
            settle(intent, Outcome::Succeeded { answer: Some(answer.clone()) }, Settler::LookUp, now)
        }
        Found::Absent => match intent.quiet_from().filter(|quiet| under_way || asked_at < *quiet) {
            Some(until) => Said::TooEarly { until },
            None => settle(intent, Outcome::Refused { answer: None }, Settler::LookUp, now),
        },
        Found::Unclear => Said::Noted,
    }
}

fn resolved(intent: &mut Intent, verdict: &Resolution, by: Settler, now: Timestamp) -> Said {
    match &intent.state {
        State::Sending { lease, .. } => return Said::InProgress { until: lease.until },
        State::Settled { .. } => return Said::Settled,
        State::Ready | State::Waiting { .. } | State::Uncertain { .. } | State::Overdue { .. } => {}
    }
    match verdict {
        Resolution::Happened(answer) => settle(intent, Outcome::Succeeded { answer: answer.clone() }, by, now),
        Resolution::DidNotHappen => match intent.quiet_from().filter(|quiet| now < *quiet) {
            Some(until) => Said::TooEarly { until },
            None => settle(intent, Outcome::Refused { answer: None }, by, now),
        },
    }
}
