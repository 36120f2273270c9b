//! `intents purge`: settled intents whose window is over go. When that is belongs to `core::intent`.

use counterfoil_core::intent::{Intent, Name, State};
use counterfoil_core::{Now, Timestamp};
use counterfoil_store::sqlite::Missing;
use serde_json::json;

use super::walk;
use crate::args::IntentsPurge;
use crate::error::CliError;
use crate::{journal, print};

/// How many were left, and why.
#[derive(Default)]
struct Left {
    unsettled: usize,
    window: usize,
    alarm: usize,
    younger: usize,
}

impl Left {
    /// Whether an intent may go; else it is counted.
    fn lets_go(&mut self, intent: &Intent, older_than: Timestamp, now: Now) -> bool {
        let State::Settled { at, .. } = &intent.state else {
            self.unsettled += 1;
            return false;
        };
        let counted = if intent.alarm {
            &mut self.alarm
        } else if intent.purge_from().is_none_or(|from| now.at < from) {
            &mut self.window
        } else if older_than < *at {
            &mut self.younger
        } else {
            return true;
        };
        *counted += 1;
        false
    }
}

pub(super) async fn run(purge: &IntentsPurge) -> Result<(), CliError> {
    let journal = journal::open(&purge.place, Missing::Refuse).await?;
    let mut left = Left::default();
    let mut going: Vec<(Name, u64)> = Vec::new();
    walk(&journal, |row, now| {
        match row {
            Ok(intent) if left.lets_go(&intent, now.at.minus(purge.older_than), now) => {
                going.push((intent.request.name.clone(), intent.version));
            }
            // Nobody knows what one that cannot be read stands for.
            Ok(_) | Err(_) => {}
        }
        Ok(true)
    })
    .await?;
    let mut purged = 0_usize;
    for (name, version) in going {
        // One that was written since is left.
        if journal.intents().forget(&name, version).await? {
            purged += 1;
        }
    }
    journal.close().await;
    let Left { unsettled, window, alarm, younger } = left;
    if purge.json {
        print::data(
            &json!({ "purged": purged, "unsettled": unsettled, "in_window": window, "alarm": alarm, "younger": younger })
                .to_string(),
        )?;
    }
    print::human(&format!(
        "{purged} intents were removed; left: {unsettled} not settled, {window} inside their window, {alarm} with an \
         alarm, {younger} not old enough"
    ));
    Ok(())
}
