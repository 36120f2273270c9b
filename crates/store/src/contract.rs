//! What every store must guarantee, as a suite that any backend can be put through.
//!
//! [`check`] gives each case a store of its own and answers with what was violated, by the case's name, so that a
//! suite can be tried on stores with [planted] faults as well. Rules of records are core's and are not tested here.

mod child_keys;
mod claims;
mod content;
mod history;
mod kit;
mod lasting;
mod late;
pub mod planted;
mod quarantine;
mod reading;
mod subject;
mod sweep;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use counterfoil_core::Identity;

use self::kit::{Held, Trial, Verdict};
use crate::error::StoreError;
use crate::seam::{Answer, RecordStore};

pub use self::subject::{InMemory, OnTestClock};

/// How long a case may take. A store that answers nothing is a violation too.
const CASE_LIMIT: Duration = Duration::from_mins(2);

/// How much of what a case saw is told.
const WHAT_CHARS_MAX: usize = 2_000;

/// Something that makes stores to be put through the suite.
pub trait Maker: Send + Sync {
    /// Makes a new and empty store, on a clock that only the suite moves.
    ///
    /// # Errors
    /// [`StoreError`] where none can be made: each case then counts as violated.
    fn fresh(&self) -> Answer<'_, Box<dyn Subject>>;
}

/// One store in the hands of the suite. `None` says that the backend cannot do it; the report then names the case as
/// not applicable.
pub trait Subject: Send + Sync {
    /// The store.
    fn store(&self) -> std::sync::Arc<dyn RecordStore>;

    /// Time passes on the store's clock.
    fn advance(&self, by: Duration) -> Answer<'_, ()>;

    /// The wall clock under the store is stepped; `None` where its clock is a server's own.
    fn step_wall(&self, millis: i64) -> Option<Answer<'_, ()>>;

    /// Closes the store and opens it again, as a restarted process does; `None` where nothing survives that.
    fn reopen(&mut self) -> Option<Answer<'_, ()>>;

    /// Damages the stored bytes of a record; `None` where the store keeps no bytes.
    fn damage<'a>(&'a self, identity: &'a Identity) -> Option<Answer<'a, ()>>;
}

/// What the suite found where nothing is violated.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// The cases that hold.
    pub holds: Vec<&'static str>,
    /// The cases that the backend cannot be put through, with what it lacks.
    pub not_applicable: Vec<(&'static str, &'static str)>,
}

/// A guarantee that a store does not keep.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// The case that refused it.
    pub case: &'static str,
    /// What was seen.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.case, self.what)
    }
}

/// Puts the stores that `make` makes through every case.
///
/// Call it on a runtime with several threads: some cases are races.
///
/// # Errors
/// Every violation, at most one of each case.
pub async fn check(make: &dyn Maker) -> Result<Report, Vec<Violation>> {
    let mut report = Report::default();
    let mut violations = Vec::new();
    for case in CASES {
        match tokio::time::timeout(CASE_LIMIT, case.on(make)).await {
            Ok(Ok(Verdict::Holds)) => report.holds.push(case.name),
            Ok(Ok(Verdict::NotApplicable(lacks))) => report.not_applicable.push((case.name, lacks)),
            Ok(Err(broken)) => {
                let what = broken.to_string().chars().take(WHAT_CHARS_MAX).collect();
                violations.push(Violation { case: case.name, what });
            }
            Err(_) => {
                let what = format!("no answer within {CASE_LIMIT:?}");
                violations.push(Violation { case: case.name, what });
            }
        }
    }
    if violations.is_empty() { Ok(report) } else { Err(violations) }
}

/// The names of all cases, in the order in which they run.
pub fn names() -> impl Iterator<Item = &'static str> {
    CASES.iter().map(|case| case.name)
}

type Run = for<'a> fn(&'a mut Trial) -> Pin<Box<dyn Future<Output = Held> + Send + 'a>>;

struct Case {
    name: &'static str,
    run: Run,
}

impl Case {
    async fn on(&self, make: &dyn Maker) -> Held {
        let mut trial = Trial::new(make.fresh().await.map_err(|error: StoreError| error.to_string())?);
        (self.run)(&mut trial).await
    }
}

macro_rules! cases {
    ($($name:literal => $case:path,)*) => {
        &[$(Case { name: $name, run: |trial| Box::pin($case(trial)) }),*]
    };
}

static CASES: &[Case] = cases! {
    "insert-wins-once" => claims::insert_wins_once,
    "take-over-wins-once" => claims::take_over_wins_once,
    "version-or-lease-alone-never-wins" => claims::version_or_lease_alone_never_wins,
    "version-restarts-after-absent" => claims::version_restarts_after_absent,
    "too-late-writes-nothing" => claims::too_late_writes_nothing,
    "draft-times-are-spans" => claims::draft_times_are_spans,
    "repeated-write-finds-itself" => claims::repeated_write_finds_itself,
    "late-calls-touch-nobody" => late::late_calls_touch_nobody,
    "reads-see-what-was-answered" => reading::reads_see_what_was_answered,
    "losing-writes-are-never-seen" => reading::losing_writes_are_never_seen,
    "list-is-complete-and-stable" => reading::list_is_complete_and_stable,
    "find-by-key-and-digest" => reading::find_by_key_and_digest,
    "about-counts" => reading::about_counts,
    "history-is-in-the-same-write" => history::history_is_in_the_same_write,
    "history-is-ordered-and-bounded" => history::history_is_ordered_and_bounded,
    "sweep-leaves-unsettled" => sweep::sweep_leaves_unsettled,
    "retention-ends-at-its-instant" => sweep::retention_ends_at_its_instant,
    "spent-stays-until-its-time" => sweep::spent_stays_until_its_time,
    "sweep-changes-no-decision" => sweep::sweep_changes_no_decision,
    "sweep-is-bounded" => sweep::sweep_is_bounded,
    "sweep-repeats-its-condition" => sweep::sweep_repeats_its_condition,
    "generations-are-kept-for-ever" => child_keys::generations_are_kept_for_ever,
    "generations-survive-their-ends" => child_keys::generations_survive_their_ends,
    "child-keys-survive" => child_keys::child_keys_survive,
    "quarantine-judges-claims" => quarantine::quarantine_judges_claims,
    "quarantine-judges-take-overs" => quarantine::quarantine_judges_take_overs,
    "states-survive" => content::states_survive,
    "bytes-survive" => content::bytes_survive,
    "large-bodies-survive" => content::large_bodies_survive,
    "identity-parts-are-apart" => content::identity_parts_are_apart,
    "reopened-store-remembers" => lasting::reopened_store_remembers,
    "damage-is-no-absence" => lasting::damage_is_no_absence,
    "doubted-clock-forgets-nothing" => lasting::doubted_clock_forgets_nothing,
};
