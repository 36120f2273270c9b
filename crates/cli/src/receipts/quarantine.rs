//! `receipts quarantine`: keeps keys from running that a restored store may have forgotten. Where it is judged belongs to
//! the store.

use counterfoil_core::Timestamp;
use serde_json::json;

use crate::args::Quarantine;
use crate::error::CliError;
use crate::instant::Moment;
use crate::{instant, print, settings};

pub(super) async fn run(arguments: &Quarantine) -> Result<(), CliError> {
    let store = settings::open(&arguments.place).await?;
    let about = store.records().about().await?;
    let stands = match arguments.before {
        Some(before) => {
            let before = match before {
                Moment::Now => about.now.at,
                Moment::At(instant) => instant,
            };
            // An earlier instant would let keys run that the standing quarantine holds back.
            if about.quarantine_before.is_some_and(|stands| before < stands) {
                return Err(CliError::Refused("a later quarantine stands already: lift it first".to_owned()));
            }
            store.records().set_quarantine(Some(before)).await?;
            Some(before)
        }
        None if arguments.lift => {
            if let Some(before) = about.quarantine_before {
                let until = about.promised_until.unwrap_or(before);
                if about.now.at < until && !arguments.nothing_older_can_come {
                    return Err(CliError::Refused(format!(
                        "a forgotten receipt may have been promised until {}: wait until then, or say --nothing-older-can-come if no client can still send such a key",
                        instant::print(until)
                    )));
                }
                store.records().set_quarantine(None).await?;
            }
            None
        }
        None => about.quarantine_before,
    };
    store.close().await;
    tell(arguments, stands)
}

fn tell(arguments: &Quarantine, before: Option<Timestamp>) -> Result<(), CliError> {
    if arguments.json {
        return print::data(&json!({ "quarantine_before": before.map(instant::print) }).to_string());
    }
    print::human(&match before {
        Some(before) => format!(
            "quarantine: keys dated before {}, or not at all, do not run and are shown as unknown (quarantined)",
            instant::print(before)
        ),
        None => "no quarantine stands".to_owned(),
    });
    Ok(())
}
