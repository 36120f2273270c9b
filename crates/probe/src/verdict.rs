//! What a case found: the words of the results, and how bad a deviation is.
//!
//! What does not belong here: how a verdict is reached (`judge.rs`), and how it is shown (`report/`).

use serde::{Deserialize, Serialize};

/// How bad a deviation is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Wording, a missing link, another status than asked for.
    Minor,
    /// A caller that follows the contract gets stuck or is told something wrong.
    Major,
    /// An effect too many or too few, or somebody else's result.
    Critical,
}

/// What a case found.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// As the contract says.
    Conforms,
    /// Not as the contract says.
    Deviates(Severity),
    /// The answer to a question to which there is no wrong one.
    Yes,
    /// The answer to a question to which there is no wrong one.
    No,
    /// The answer to a question to which there is no wrong one; the result says which.
    Value,
    /// The question could not be put: a race was not reached, a budget was spent.
    Inconclusive,
    /// What is needed to see the answer was not given.
    Unobservable,
    /// The question does not exist under the contract, or for this kind of body or place of the key.
    NotApplicable,
    /// A request that only prepares was not answered as it must be.
    SetupFailed,
    /// A case that this one builds on failed.
    DependsOnFailed,
    /// The probe itself failed.
    HarnessError,
    /// More effects than requests: something on the way repeats them.
    IntermediaryRetried,
    /// Not run, because it may do harm and was not asked for by name.
    SkippedUnsafe,
}

impl Verdict {
    /// The word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Conforms => "conforms",
            Self::Deviates(Severity::Critical) => "deviates (critical)",
            Self::Deviates(Severity::Major) => "deviates (major)",
            Self::Deviates(Severity::Minor) => "deviates (minor)",
            Self::Yes => "yes",
            Self::No => "no",
            Self::Value => "value",
            Self::Inconclusive => "inconclusive",
            Self::Unobservable => "unobservable",
            Self::NotApplicable => "not-applicable",
            Self::SetupFailed => "setup-failed",
            Self::DependsOnFailed => "depends-on-failed",
            Self::HarnessError => "harness-error",
            Self::IntermediaryRetried => "intermediary-retried",
            Self::SkippedUnsafe => "skipped-unsafe",
        }
    }

    /// Whether the target has answered the question.
    #[must_use]
    pub const fn is_answer(self) -> bool {
        match self {
            Self::Conforms | Self::Deviates(_) | Self::Yes | Self::No | Self::Value => true,
            Self::Inconclusive
            | Self::Unobservable
            | Self::NotApplicable
            | Self::SetupFailed
            | Self::DependsOnFailed
            | Self::HarnessError
            | Self::IntermediaryRetried
            | Self::SkippedUnsafe => false,
        }
    }

    /// Whether cases that build on this one say nothing.
    #[must_use]
    pub const fn voids(self) -> bool {
        match self {
            Self::Deviates(Severity::Critical | Severity::Major)
            | Self::SetupFailed
            | Self::DependsOnFailed
            | Self::HarnessError
            | Self::IntermediaryRetried => true,
            Self::Conforms
            | Self::Deviates(Severity::Minor)
            | Self::Yes
            | Self::No
            | Self::Value
            | Self::Inconclusive
            | Self::Unobservable
            | Self::NotApplicable
            | Self::SkippedUnsafe => false,
        }
    }
}
