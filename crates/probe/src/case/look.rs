//! What a case looks at when its steps are done.
//!
//! What does not belong here: how a fact is seen (`fact.rs`).

use serde::Deserialize;

/// What is looked at.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(tag = "see", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Fact {
    /// How many effects were made, between two marks or in the whole round.
    Effects {
        /// The mark after which they count.
        since: Option<String>,
        /// The mark up to which they count.
        until: Option<String>,
    },
    /// The status of an answer.
    Status {
        /// The exchange.
        of: String,
    },
    /// What an answer is beside an earlier one: `replay`, `new-effect`, `refused 422`, `failed 500`, `no-answer`.
    Relation {
        /// The earlier and the later exchange.
        of: [String; 2],
    },
    /// Whether two answers have the same status.
    SameStatus {
        /// The two.
        of: [String; 2],
    },
    /// Whether two answers have the same bytes.
    SameBody {
        /// The two.
        of: [String; 2],
    },
    /// Which of these headers differ between two answers.
    HeadersDiffer {
        /// The two.
        of: [String; 2],
        /// The names.
        among: Vec<String>,
    },
    /// Headers that two later answers share and the first has not.
    Marker {
        /// The first and two later exchanges.
        of: [String; 3],
    },
    /// Whether an answer shows the result of an earlier one.
    Discloses {
        /// The earlier and the later exchange.
        of: [String; 2],
    },
    /// How an error is described: `problem+json`, `link`, `json`, `text`, `none`.
    Problem {
        /// The exchange.
        of: String,
    },
    /// Whether two refusals can be told apart by status or machine-readable code.
    Distinguishable {
        /// The two.
        of: [String; 2],
    },
    /// Whether the request's key stands in the answer's headers or body.
    Echo {
        /// The exchange.
        of: String,
    },
    /// The length of the longest key that was taken.
    Longest {
        /// The exchanges.
        of: Vec<String>,
    },
    /// The value of a header of the first refusal, or `none`.
    RefusalHeader {
        /// The exchange, or the exchanges that share the name.
        of: String,
        /// The header.
        name: String,
    },
    /// Where an answer links to a description, or `none`.
    Link {
        /// The exchange.
        of: String,
    },
    /// Whether an answer's body holds one of these texts, in any capitals.
    Mentions {
        /// The exchange.
        of: String,
        /// The texts in small letters.
        any: Vec<String>,
    },
    /// The statuses of answers that are no success.
    Refusals {
        /// The exchange, or the exchanges that share the name.
        of: String,
    },
    /// How many of the answers are successes.
    Successes {
        /// The exchange, or the exchanges that share the name.
        of: String,
    },
}

impl Fact {
    /// The exchanges that it looks at.
    pub(crate) fn exchanges(&self) -> Vec<&str> {
        match self {
            Self::Effects { .. } => Vec::new(),
            Self::Status { of }
            | Self::Problem { of }
            | Self::Echo { of }
            | Self::RefusalHeader { of, .. }
            | Self::Link { of }
            | Self::Mentions { of, .. }
            | Self::Refusals { of }
            | Self::Successes { of } => vec![of],
            Self::Relation { of }
            | Self::SameStatus { of }
            | Self::SameBody { of }
            | Self::HeadersDiffer { of, .. }
            | Self::Discloses { of }
            | Self::Distinguishable { of } => of.iter().map(String::as_str).collect(),
            Self::Marker { of } => of.iter().map(String::as_str).collect(),
            Self::Longest { of } => of.iter().map(String::as_str).collect(),
        }
    }
}
