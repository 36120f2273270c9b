//! Which contracts there are, and how strongly one asks.
//!
//! What does not belong here: what a contract wants of a case, which the cases say.

use serde::Deserialize;

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
