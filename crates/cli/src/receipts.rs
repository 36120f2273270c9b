//! `receipts`: what an operator sees and settles. Rules belong to core, writing to the gate.

mod find;
mod list;
mod quarantine;
mod resolve;
pub(crate) mod result;
mod show;
mod view;

use counterfoil_store::seam::Swept;
use serde_json::json;

use crate::args::{Clock, Receipts};
use crate::error::CliError;
use crate::{instant, print, settings};

/// Rows of one sweep.
const SWEEP_ROWS: usize = 1000;

pub(crate) async fn run(command: Receipts) -> Result<(), CliError> {
    match command {
        Receipts::List(list) => list::list(&list).await,
        Receipts::Show(show) => show::run(&show).await,
        Receipts::Resolve(resolve) => resolve::run(&resolve).await,
        Receipts::Sweep(arguments) => sweep(&arguments).await,
        Receipts::Export(export) => list::export(&export).await,
        Receipts::Quarantine(quarantine) => quarantine::run(&quarantine).await,
        Receipts::Clock(Clock::Accept(place)) => accept_clock(&place).await,
    }
}

async fn sweep(arguments: &crate::args::Sweep) -> Result<(), CliError> {
    let store = settings::open(&arguments.place).await?;
    let mut all = Swept::default();
    loop {
        let swept = store.records().sweep(SWEEP_ROWS).await?;
        all.expired += swept.expired;
        all.spent += swept.spent;
        all.stopped |= swept.stopped;
        if !swept.more || swept.stopped {
            break;
        }
    }
    store.close().await;
    if arguments.json {
        print::data(&json!({ "expired": all.expired, "spent": all.spent, "stopped": all.stopped }).to_string())?;
    }
    if all.stopped {
        let text = "the clock is in doubt, so nothing is swept: set it right, then `counterfoil receipts clock accept`";
        return Err(CliError::Refused(text.to_owned()));
    }
    print::human(&format!(
        "{} expired receipts and {} refused keys past their time were swept",
        all.expired, all.spent
    ));
    Ok(())
}

async fn accept_clock(place: &crate::args::Place) -> Result<(), CliError> {
    let store = settings::open(place).await?;
    let sqlite = store.sqlite().ok_or_else(|| CliError::Refused("this store has a clock of its own".to_owned()))?;
    let doubt = sqlite.clock_doubt();
    let now = sqlite.clock_accept().await?;
    match doubt {
        Some(doubt) => print::human(&format!("accepted: {doubt}")),
        None => print::human("the clock was not in doubt"),
    }
    print::human(&format!("the store's time is {}", instant::print(now.at)));
    store.close().await;
    Ok(())
}
