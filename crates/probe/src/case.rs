//! What a case is: the format of `cases/*.toml`.
//!
//! What does not belong here: the cases themselves (`catalogue.rs`), and what a rule means (`judge.rs`).

use std::collections::BTreeMap;

use serde::Deserialize;

pub use self::look::Fact;
pub use self::request::{
    Along, Body, Credential, Http, KeyForm, KeyPlace, Loss, Media, Otherwise, Request, To, Wanted,
};
pub use self::step::{Hook, State, Step};
use crate::verdict::Severity;

mod look;
mod request;
mod step;

/// Which contract a target is held against.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Contract {
    /// draft-ietf-httpapi-idempotency-key-header.
    Ietf,
    /// Stripe's API v1, as it is documented.
    StripeV1,
    /// The client token of Amazon EC2's actions.
    Ec2,
}

impl Contract {
    /// Its name in files and arguments.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ietf => "ietf",
            Self::StripeV1 => "stripe-v1",
            Self::Ec2 => "ec2",
        }
    }
}

/// How strongly a contract asks for what a case looks at.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A promise that callers rely on.
    Required,
    /// Good to have.
    Optional,
    /// Information only: there is no wrong answer.
    Check,
}

impl Kind {
    /// Its name in files and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Required => "required",
            Self::Optional => "optional",
            Self::Check => "check",
        }
    }
}

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
    /// Contracts under which there is no such question.
    #[serde(default)]
    pub not_under: Vec<Contract>,
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

    /// How many requests one run sends at most.
    #[must_use]
    pub fn sends_max(&self) -> u32 {
        self.steps.iter().map(|step| step.most().0).sum::<u32>().saturating_mul(self.rounds)
    }

    /// How many effects one run makes on a target that keeps no promise.
    #[must_use]
    pub fn effects_max(&self) -> u32 {
        self.steps.iter().map(|step| step.most().1).sum::<u32>().saturating_mul(self.rounds)
    }

    /// The requests that its steps send.
    pub(crate) fn sends(&self) -> impl Iterator<Item = &Request> {
        self.steps.iter().flat_map(Step::sends)
    }

    /// The commands that it runs.
    pub(crate) fn hooks(&self) -> impl Iterator<Item = Hook> {
        self.steps.iter().filter_map(|step| if let Step::Hook(hook) = step { Some(*hook) } else { None })
    }
}
