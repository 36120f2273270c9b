//! The result of a run: every case with its verdict, every exchange, what was left behind, and the exit code.
//!
//! What does not belong here: how it is shown (`report/`).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::exchange::Exchange;
use crate::fact::Value;
use crate::verdict::{Severity, Verdict};

/// Which deviations make a run fail.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum FailOn {
    /// Only critical ones.
    Critical,
    /// Critical and major ones.
    Major,
    /// All.
    #[default]
    Any,
}

/// What one case came to.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CaseResult {
    /// The case's stable name.
    pub id: String,
    /// Its place in the table of all cases.
    pub row: String,
    /// The question.
    pub asks: String,
    /// `required`, `optional` or `check` under the contract.
    pub kind: String,
    /// Where the rule is written.
    pub clause: String,
    /// The verdict.
    pub verdict: Verdict,
    /// The value, or the reason.
    pub why: String,
    /// What the contract wants, in words; empty where it says nothing.
    pub expected: String,
    /// Requests, statuses and effects: `2 sent, 201 ×2, effects 1`.
    pub summary: String,
    /// What was seen, by fact.
    pub facts: BTreeMap<String, String>,
    /// Values for the contract sheet, by field.
    pub sheet: BTreeMap<String, Value>,
    /// In how many rounds they were seen.
    pub observations: u32,
    /// The numbers of its exchanges.
    pub exchanges: Vec<u32>,
}

/// One run against one target.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Run {
    /// The version of this format.
    pub format: u32,
    /// The target.
    pub target: String,
    /// The contract that it was held against.
    pub contract: String,
    /// When the run began, RFC 3339.
    pub began: String,
    /// How effects were seen: 0 answers only, 1 ids, 2 a request, 3 a command.
    pub observer: u8,
    /// The results in order.
    pub results: Vec<CaseResult>,
    /// Every exchange in order; secrets are replaced.
    pub exchanges: Vec<Exchange>,
    /// Effects that were counted over the whole run and stay behind; nothing where they are not counted.
    pub effects_left: Option<u64>,
    /// Ids of results that stay behind, as far as answers told them.
    pub ids_left: Vec<String>,
}

/// The version of the format of [`Run`].
pub(crate) const FORMAT: u32 = 1;

impl Run {
    /// How many cases came to this verdict.
    #[must_use]
    pub fn count(&self, fits: impl Fn(Verdict) -> bool) -> usize {
        self.results.iter().filter(|result| fits(result.verdict)).count()
    }

    /// 0 as declared, 1 deviations, 3 unreachable or setup failed, 4 nothing but inconclusive, 5 the probe failed. Never
    /// 0 where no case gave an answer.
    #[must_use]
    pub fn exit_code(&self, fail_on: FailOn) -> u8 {
        let least = match fail_on {
            FailOn::Critical => Severity::Critical,
            FailOn::Major => Severity::Major,
            FailOn::Any => Severity::Minor,
        };
        let any = |fits: &dyn Fn(Verdict) -> bool| self.results.iter().any(|result| fits(result.verdict));
        if any(&|verdict| matches!(verdict, Verdict::Deviates(severity) if severity >= least)) {
            1
        } else if any(&|verdict| verdict == Verdict::HarnessError) {
            5
        } else if any(&|verdict| matches!(verdict, Verdict::SetupFailed | Verdict::IntermediaryRetried)) {
            3
        } else if any(&Verdict::is_answer_of) {
            0
        } else {
            4
        }
    }
}

impl Verdict {
    fn is_answer_of(verdict: Self) -> bool {
        verdict.is_answer()
    }
}
