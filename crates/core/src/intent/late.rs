//! What comes after its time: answers of attempts whose lease ran out, and words about what is settled. They are kept
//! as history; they may settle what is not settled, and never change an outcome.

use super::machine::{give_up, settle};
use super::{End, Found, Intent, Outcome, Said, Settler, State};
use crate::profile::{Proof, Verdict};
use crate::time::Timestamp;

/// The end of attempt `number`, which is not the one under way. Its lapse has set the doubt, so only an answer from the
/// record settles.
pub(super) fn ended(intent: &mut Intent, number: u32, end: &End, now: Timestamp) -> Said {
    let End::Answered { answer, verdict, .. } = end else { return Said::Noted };
    if let State::Settled { outcome, by, .. } = &intent.state {
        return alarmed(contradicts(outcome, by, *verdict), intent);
    }
    let by = Settler::Answer { number, proof: Proof::Record };
    match verdict {
        Verdict::Succeeded(Proof::Record) => {
            settle(intent, Outcome::Succeeded { answer: Some(answer.clone()) }, by, now)
        }
        Verdict::Refused(Proof::Record) => settle(intent, Outcome::Refused { answer: Some(answer.clone()) }, by, now),
        Verdict::LookUp(why) | Verdict::Operator(why) => match intent.state {
            State::Waiting { .. } | State::Uncertain { .. } => give_up(intent, *why, now),
            State::Ready | State::Sending { .. } | State::Overdue { .. } | State::Settled { .. } => Said::Noted,
        },
        Verdict::Succeeded(Proof::Answer) | Verdict::Refused(Proof::Answer) | Verdict::Retry(_) | Verdict::Wait => {
            Said::Noted
        }
    }
}

/// A look-up's word about what is settled.
pub(super) fn looked_up(intent: &mut Intent, refused: bool, found: &Found) -> Said {
    match found {
        Found::Done(_) => alarmed(refused, intent),
        Found::Absent | Found::Unclear => Said::Noted,
    }
}

fn alarmed(contradicts: bool, intent: &mut Intent) -> Said {
    intent.alarm |= contradicts;
    if contradicts { Said::Alarm } else { Said::Noted }
}

/// Whether an answer says otherwise than what was recorded. Who said *not done* without an answer from the record is
/// contradicted already by *it is being done* and by a failure behind which the effect may stand.
fn contradicts(outcome: &Outcome, by: &Settler, verdict: Verdict) -> bool {
    let proven = matches!(by, Settler::Answer { proof: Proof::Record, .. });
    match (outcome, verdict) {
        (Outcome::Succeeded { .. }, Verdict::Refused(Proof::Record))
        | (Outcome::Refused { .. }, Verdict::Succeeded(_)) => true,
        (Outcome::Refused { .. }, Verdict::Wait | Verdict::LookUp(_) | Verdict::Operator(_)) => !proven,
        (
            Outcome::Succeeded { .. },
            Verdict::Succeeded(_)
            | Verdict::Refused(Proof::Answer)
            | Verdict::Retry(_)
            | Verdict::Wait
            | Verdict::LookUp(_)
            | Verdict::Operator(_),
        )
        | (Outcome::Refused { .. }, Verdict::Refused(_) | Verdict::Retry(_)) => false,
    }
}
