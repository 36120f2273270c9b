//! What a case is: the format of `cases/*.toml`.
//!
//! What does not belong here: the cases themselves (`catalogue.rs`), what a step does (`run.rs`), what a fact sees (`fact.rs`), what a rule means (`judge.rs`).

use std::collections::BTreeMap;

use serde::Deserialize;

pub use crate::contract::{Contract, Kind};
use crate::hook::{Hook, Span};
use crate::verdict::Severity;

mod body;
mod request;

pub use body::Body;
pub use request::{Credential, FirstSent, KeyForm, KeyPlace, Loss, Request};

/// One question to a target, as data.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Case {
    /// Stable name, such as `seq/one-effect`.
    pub id: String,
    /// Its place in the table of all cases, such as `B1`; the letter is the group.
    pub row: String,
    /// The question in words.
    pub asks: String,
    /// How strongly it is asked for, where the contract says anything.
    pub kind: Kind,
    /// Where the rule is written.
    pub clause: String,
    /// Cases without whose success this one says nothing.
    #[serde(default)]
    pub depends_on: Vec<String>,
    /// How effects must be seen at least: 0 answers only, 1 the id in an answer, 2 a count apart from answers.
    pub observer: u8,
    /// How many effects it makes in one round on a target that keeps its promise.
    pub effects: u32,
    /// How often the steps run, each time with new keys.
    #[serde(default = "one")]
    pub rounds: u32,
    /// Whether it may run without being named.
    #[serde(default = "yes")]
    pub safe: bool,
    /// Whether everything else is void where it fails.
    #[serde(default)]
    pub control: bool,
    /// What is done.
    pub steps: Vec<Step>,
    /// What is then looked at, by name.
    pub facts: BTreeMap<String, Fact>,
    /// The fact that is the answer where no rule applies.
    pub answer: String,
    /// Which facts are fields of the contract sheet.
    #[serde(default)]
    pub sheet: BTreeMap<String, String>,
    /// What the draft wants.
    #[serde(default)]
    pub ietf: Vec<Rule>,
    /// What Stripe's API v1 promises.
    #[serde(default)]
    pub stripe_v1: Vec<Rule>,
    /// What EC2's client token promises.
    #[serde(default)]
    pub ec2: Vec<Rule>,
}

const fn one() -> u32 {
    1
}

const fn yes() -> bool {
    true
}

/// One thing that is done.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", rename_all_fields = "kebab-case", deny_unknown_fields)]
pub enum Step {
    /// One request, and its answer awaited.
    Send(Request),
    /// One request; the next step does not wait for its answer.
    Start(Request),
    /// Awaits what `start` began.
    Finish {
        /// The name of the request.
        of: String,
    },
    /// Awaits what `start` began, for as long as the settings' patience; then it goes on beside it.
    Await {
        /// The name of the request.
        of: String,
    },
    /// All at once: each request but its last byte is sent, then all last bytes.
    Together {
        /// Each of them.
        sends: Vec<Request>,
        /// How often each of them is sent.
        times: u32,
    },
    /// The same request again and again, until the answer has another status than these.
    Until {
        /// The request.
        send: Request,
        /// Statuses that mean "not yet".
        not: Vec<u16>,
        /// At most so many requests, spread over the patience that the settings say.
        tries: u32,
    },
    /// Nothing, for so long.
    Wait {
        /// Milliseconds.
        ms: u64,
    },
    /// Effects are counted here, so that a fact can say "since" and "until".
    Mark {
        /// The name of this point.
        r#as: String,
    },
    /// A hook of the settings runs, and the target is awaited.
    Hook {
        /// Which one.
        run: Hook,
        /// How far the clock is moved.
        seconds: Option<Span>,
        /// What `start` began, which must be under way.
        during: Option<String>,
    },
}

/// A status, or a class of them such as `2xx`.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(untagged)]
pub enum Wanted {
    /// A number: a status, a count, a length.
    Number(u64),
    /// Yes or no.
    Truth(bool),
    /// A class such as `2xx`, or a text.
    Text(String),
}

/// What a case is where a step's `want` is not met.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Otherwise {
    /// The case could not be set up.
    #[default]
    SetupFailed,
    /// The question could not be put in this way.
    Inconclusive,
}

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
    /// Whether the place of the key is named in an answer's body, however it is written.
    Names {
        /// The exchange.
        of: String,
    },
    /// The length of the longest key that was taken.
    Longest {
        /// The exchanges.
        of: Vec<String>,
    },
    /// The value of a header in the answers that are no success, or `none`.
    RefusalHeader {
        /// The exchange, or the exchanges that share the name.
        of: String,
        /// The header's name, in lower case.
        name: String,
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
    /// What the window is counted from: `first-use` or `last-use`.
    Basis {
        /// The first and the last exchange of a key that was used in between.
        used: [String; 2],
        /// The first and the last exchange of one that was not.
        unused: [String; 2],
    },
}

/// What a contract wants of the facts.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Rule {
    /// How bad it is where it does not hold.
    pub severity: Severity,
    /// One of these sets of facts must hold as a whole.
    pub any: Vec<BTreeMap<String, Vec<Wanted>>>,
}

impl Case {
    /// The letter of its group.
    #[must_use]
    pub fn group(&self) -> &str {
        self.row.get(..1).unwrap_or_default()
    }

    /// Whether `asked` names it: the beginning of its id, its row, or its group.
    #[must_use]
    pub fn is_named(&self, asked: &str) -> bool {
        self.id.starts_with(asked) || self.row.eq_ignore_ascii_case(asked) || self.group().eq_ignore_ascii_case(asked)
    }

    /// What a contract wants; empty where it says nothing.
    #[must_use]
    pub fn rules(&self, contract: Contract) -> &[Rule] {
        match contract {
            Contract::Ietf => &self.ietf,
            Contract::StripeV1 => &self.stripe_v1,
            Contract::Ec2 => &self.ec2,
        }
    }

    /// How strongly a contract asks: a check where it says nothing.
    #[must_use]
    pub fn kind_under(&self, contract: Contract) -> Kind {
        if self.rules(contract).is_empty() { Kind::Check } else { self.kind }
    }

    /// How many requests that may have an effect one run sends at most.
    #[must_use]
    pub fn sends_max(&self) -> u32 {
        let each = |step: &Step| match step {
            Step::Send(_) | Step::Start(_) => 1,
            Step::Together { sends, times } => u32::try_from(sends.len()).unwrap_or(u32::MAX).saturating_mul(*times),
            Step::Until { tries, .. } => *tries,
            Step::Finish { .. } | Step::Await { .. } | Step::Wait { .. } | Step::Mark { .. } | Step::Hook { .. } => 0,
        };
        self.steps.iter().map(each).sum::<u32>().saturating_mul(self.rounds)
    }

    /// The requests that its steps send.
    pub(crate) fn sends(&self) -> impl Iterator<Item = &Request> {
        self.steps.iter().flat_map(|step| match step {
            Step::Send(send) | Step::Start(send) | Step::Until { send, .. } => std::slice::from_ref(send),
            Step::Together { sends, .. } => sends,
            Step::Finish { .. } | Step::Await { .. } | Step::Wait { .. } | Step::Mark { .. } | Step::Hook { .. } => &[],
        })
    }
}

impl Step {
    pub(crate) fn mark(&self) -> Option<&str> {
        if let Self::Mark { r#as } = self { Some(r#as) } else { None }
    }
}

impl Fact {
    /// The exchanges that it looks at.
    pub(crate) fn exchanges(&self) -> Vec<&str> {
        match self {
            Self::Effects { .. } => Vec::new(),
            Self::Status { of }
            | Self::Problem { of }
            | Self::Echo { of }
            | Self::Names { of }
            | Self::Refusals { of }
            | Self::RefusalHeader { of, .. }
            | Self::Successes { of } => vec![of],
            Self::Relation { of }
            | Self::SameStatus { of }
            | Self::SameBody { of }
            | Self::HeadersDiffer { of, .. }
            | Self::Discloses { of }
            | Self::Distinguishable { of } => of.iter().map(String::as_str).collect(),
            Self::Marker { of } => of.iter().map(String::as_str).collect(),
            Self::Longest { of } => of.iter().map(String::as_str).collect(),
            Self::Basis { used, unused } => used.iter().chain(unused).map(String::as_str).collect(),
        }
    }
}
