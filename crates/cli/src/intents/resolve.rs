//! `intents resolve`: a person's word on an intent. When it is accepted belongs to `core::intent`.

use counterfoil_core::intent::{Intent, Outcome, Resolution, Said, Settler, State};

use super::client;
use crate::args::IntentsResolve;
use crate::error::CliError;
use crate::instant;
use crate::receipts::result;
use crate::send::story::say;

const SETTLED: &str = "it is settled already, and that stands";

pub(super) async fn run(resolve: &IntentsResolve) -> Result<(), CliError> {
    let verdict = match &resolve.happened {
        Some(file) => Resolution::Happened(file.as_deref().map(result::read).transpose()?),
        None => Resolution::DidNotHappen,
    };
    let (journal, client) = client(&resolve.place, None).await?;
    let stored = client.intent(&resolve.name).await?;
    if matches!(stored.state, State::Settled { .. }) {
        return Err(refused(resolve, SETTLED));
    }
    let told = client.resolve(stored, resolve.version, verdict.clone(), &resolve.who, &resolve.why).await;
    journal.close().await;
    let (said, intent) = told?;
    match said {
        Said::Settled if is_mine(&intent, resolve) => {}
        // Somebody else was faster.
        Said::Settled => return Err(refused(resolve, SETTLED)),
        Said::TooEarly { until } => {
            let until = instant::print(until);
            return Err(refused(resolve, &format!("what was sent may still arrive: say so again from {until}")));
        }
        Said::InProgress { until } => {
            let until = instant::print(until);
            return Err(refused(resolve, &format!("a process sends it until {until} at most: look again then")));
        }
        Said::Stale => {
            let stands = intent.version;
            let text =
                format!("it changed since you looked: it is at version {stands}; see `counterfoil intents show`");
            return Err(refused(resolve, &text));
        }
        Said::Send { .. } | Said::Wait { .. } | Said::Overdue { .. } | Said::Ready | Said::Noted | Said::Alarm => {
            return Err(refused(resolve, "nothing was settled: look again with `counterfoil intents show`"));
        }
    }
    match verdict {
        Resolution::Happened(_) => say(&intent, "settled: it happened"),
        Resolution::DidNotHappen => {
            say(&intent, "settled: it did not happen; a further action takes a new name, or --again");
        }
    }
    Ok(())
}

fn is_mine(intent: &Intent, resolve: &IntentsResolve) -> bool {
    match &intent.state {
        State::Settled { outcome, by: Settler::Operator { who, why }, .. } => {
            let happened = matches!(outcome, Outcome::Succeeded { .. });
            happened == resolve.happened.is_some() && *who == resolve.who && *why == resolve.why
        }
        State::Settled { by: Settler::Answer { .. } | Settler::LookUp | Settler::NothingDone, .. }
        | State::Ready
        | State::Sending { .. }
        | State::Waiting { .. }
        | State::Uncertain { .. }
        | State::Overdue { .. } => false,
    }
}

fn refused(resolve: &IntentsResolve, why: &str) -> CliError {
    CliError::Refused(format!("{}: {why}", resolve.name.as_str()))
}
