//! What a hook means for a round: the target comes back, effects outlast it, and what should be under way was.
//!
//! What does not belong here: the command itself (`hook.rs`).

use std::time::{Duration, Instant};

use super::{Open, Runner, Stop, harness};
use crate::case::Otherwise;
use crate::exchange::Answer;
use crate::hook::{Hook, Span};

/// How long a target may take to listen again.
const BACK_WITHIN: Duration = Duration::from_secs(30);
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

impl Runner {
    pub(super) async fn hook(
        &mut self,
        open: &mut Open<'_>,
        run: Hook,
        seconds: Option<Span>,
        during: Option<&str>,
    ) -> Result<(), Stop> {
        // Counting takes time, in which what is under way could end: then the last count has to do.
        let before = match (run, during) {
            // What counts may be ill as well, and is no reason not to heal.
            (Hook::Heal, _) => None,
            (_, None) => self.counted().await?,
            (_, Some(_)) => open.round.marks.last().and_then(|mark| mark.count),
        };
        let seconds = self.target.means.seconds(seconds);
        self.clock_moved = self.clock_moved.saturating_add(seconds);
        // A connection to what was ended is of no use.
        open.kept = None;
        let began = Instant::now();
        let ran = self.target.means.run(run, seconds, self.clock_moved).await;
        // What failed may have done a part of its work.
        open.ill = run.lasts() || (open.ill && (run != Hook::Heal || ran.is_err()));
        ran.map_err(|why| Stop::Unmet(Otherwise::SetupFailed, why))?;
        self.is_back().await?;
        if let Some(name) = during {
            self.was_under_way(open, name, began).await?;
        }
        match (before, self.counted().await?) {
            // A backup may hold the effects too.
            (Some(before), Some(after)) if after < before && run != Hook::Restore => {
                let why =
                    format!("the effects did not outlast the hook: {before} were counted before it, {after} after");
                Err(Stop::Unmet(Otherwise::SetupFailed, why))
            }
            _ => Ok(()),
        }
    }

    /// Waits until the target takes connections.
    async fn is_back(&self) -> Result<(), Stop> {
        let begun = Instant::now();
        loop {
            match self.wire.connect(&self.target.address).await {
                Ok(_) => return Ok(()),
                Err(why) if begun.elapsed() >= BACK_WITHIN => {
                    return Err(Stop::Unmet(Otherwise::SetupFailed, format!("after the hook, {why}")));
                }
                Err(_) => tokio::time::sleep(BETWEEN_LOOKS).await,
            }
        }
    }

    /// Ends what was started, and judges whether the hook met it under way.
    async fn was_under_way(&self, open: &mut Open<'_>, name: &str, began: Instant) -> Result<(), Stop> {
        let Some((at, task)) = open.started.remove(name) else { return Ok(()) };
        let (carried, _) = task.await.map_err(|error| harness(&error))?;
        let unsent = carried.sent_whole_at.is_none_or(|sent| sent > began);
        // A success that came later was on its way too; a failure may come from what stands before the target.
        let answered = carried.first_byte_at.is_some_and(|first| first < began)
            || carried.answer.as_ref().is_some_and(Answer::is_success);
        if let Some(exchange) = open.round.exchanges.get_mut(at) {
            self.finish(exchange, carried)?;
        }
        let why = match (unsent, answered) {
            (true, _) => "the request had not gone out when the hook ran",
            (false, true) => "the target had answered before the hook did its work; a slower operation is needed",
            (false, false) => return Ok(()),
        };
        Err(Stop::Unmet(Otherwise::Inconclusive, why.to_owned()))
    }
}
