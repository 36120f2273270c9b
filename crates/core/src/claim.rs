//! "May I run this?": an identity, what was asked, and the lease that would be taken.
//! The answer is `action::decide`; drawing the lease's random id belongs to `store::gate`.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method};

use crate::fingerprint::{BodyError, Fingerprint, Parts, Rule};
use crate::identity::{Identity, Key};
use crate::policy::{Effect, Expiry, Policy};
use crate::record::{Holder, Keyed, Lease, LeaseId, Record, State, Why};
use crate::time::Timestamp;

/// What was asked, owned: the parts that any rule can make a fingerprint of.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Asked {
    /// The method, as sent; `None`: it was no HTTP request.
    pub method: Option<Method>,
    /// The normalised path.
    pub path: Arc<str>,
    /// The query without its question mark, as sent.
    pub query: String,
    /// All headers; the lines of one name in order.
    pub headers: HeaderMap,
    /// The whole body. A body that is not available is an error of the caller's, never an empty one here.
    pub body: Bytes,
}

impl fmt::Debug for Asked {
    /// Sizes instead of headers and body: they are the caller's secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asked")
            .field("method", &self.method)
            .field("path", &self.path)
            .field("query_bytes", &self.query.len())
            .field("header_lines", &self.headers.len())
            .field("body_bytes", &self.body.len())
            .finish()
    }
}

impl Asked {
    /// What a plain function was asked: its arguments as bytes.
    #[must_use]
    pub fn bytes(body: impl Into<Bytes>) -> Self {
        Self { body: body.into(), ..Self::default() }
    }

    fn fingerprint(&self, rule: &Rule, operation: &str) -> Result<Fingerprint, BodyError> {
        let headers: Vec<(&str, &[u8])> =
            self.headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
        rule.fingerprint(&Parts {
            method: self.method.as_ref().map_or("", Method::as_str),
            operation,
            path: &self.path,
            query: &self.query,
            headers: &headers,
            body: &self.body,
        })
    }
}

/// A question to a store: identity, the parts asked for, and their fingerprint under today's rule.
#[derive(Clone, Debug)]
pub struct Claim {
    identity: Identity,
    asked: Asked,
    fingerprint: Fingerprint,
    /// Fingerprints under other records' rules; `None` where the parts do not parse under the rule.
    learned: Vec<(Rule, Option<Fingerprint>)>,
    dated: Option<Timestamp>,
}

impl Claim {
    /// A claim of `identity` for what was `asked`, compared under `rule`.
    ///
    /// # Errors
    /// [`BodyError`] where the body does not parse under a rule that the operation names.
    pub fn new(identity: Identity, asked: Asked, rule: &Rule) -> Result<Self, BodyError> {
        let fingerprint = asked.fingerprint(rule, identity.operation.as_str())?;
        let dated = dated(&identity.key);
        Ok(Self { identity, asked, fingerprint, learned: Vec::new(), dated })
    }

    /// The same claim, known by its carrier to have been sent first at `at` (`Repeatability-First-Sent`).
    #[must_use]
    pub const fn first_sent(mut self, at: Timestamp) -> Self {
        self.dated = Some(at);
        self
    }

    /// Whose action it is.
    #[must_use]
    pub const fn identity(&self) -> &Identity {
        &self.identity
    }

    /// The fingerprint under today's rule.
    #[must_use]
    pub const fn fingerprint(&self) -> &Fingerprint {
        &self.fingerprint
    }

    /// When the key says it was first used: the carrier's time or a UUIDv7's own; `None` where it cannot be dated.
    #[must_use]
    pub const fn dated(&self) -> Option<Timestamp> {
        self.dated
    }

    /// Computes the fingerprint under a record's `rule`, outside any writer or transaction. Parts that do not parse
    /// under it can only be a mismatch.
    pub fn learn(&mut self, rule: &Rule) {
        if self.under(rule).is_none() {
            let fingerprint = self.asked.fingerprint(rule, self.identity.operation.as_str()).ok();
            self.learned.push((rule.clone(), fingerprint));
        }
    }

    /// Whether this claim asks what `recorded` says was asked; `None` until the rule was [learned](Self::learn).
    #[must_use]
    pub fn matches(&self, recorded: &Fingerprint) -> Option<bool> {
        self.under(recorded.rule()).map(|mine| mine == Some(recorded))
    }

    fn under(&self, rule: &Rule) -> Option<Option<&Fingerprint>> {
        if self.fingerprint.rule() == rule {
            return Some(Some(&self.fingerprint));
        }
        self.learned.iter().find(|(learned, _)| learned == rule).map(|(_, fingerprint)| fingerprint.as_ref())
    }
}

/// The time inside a UUIDv7 (RFC 9562 section 5.7) in its hyphenated form; `None` for any other text. A token of 32
/// hexadecimal digits has no date, because by chance it looks like one.
fn dated(key: &Key) -> Option<Timestamp> {
    let text = key.as_str();
    let uuid = uuid::Uuid::try_parse(text).ok()?;
    if text.len() != uuid::fmt::Hyphenated::LENGTH
        || uuid.get_version_num() != 7
        || uuid.get_variant() != uuid::Variant::RFC4122
    {
        return None;
    }
    let (seconds, nanos) = uuid.get_timestamp()?.to_unix();
    let millis = i64::try_from(seconds).ok()?.checked_mul(1000)?.checked_add(i64::from(nanos / 1_000_000))?;
    Some(Timestamp::from_millis(millis))
}

/// How far ahead of the store's clock a key's date may lie and still be believed.
const AHEAD_MAX: Duration = Duration::from_mins(10);

/// The record that a granted claim writes, its times still spans on the store's own clock.
///
/// This is what makes a claim one round trip: a store turns it into a [`Record`] with [`Draft::at`], in the same
/// write that finds the identity free.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Draft {
    /// The version it gets: 1, or one more than the record that it replaces.
    pub version: u64,
    /// The new lease's random id.
    pub lease: LeaseId,
    /// The process that will hold it.
    pub holder: Option<Holder>,
    /// How long the lease lasts.
    pub span: Duration,
    /// How long the run may last.
    pub attempt_limit: Duration,
    /// What was asked.
    pub fingerprint: Fingerprint,
    /// Where the effect lives.
    pub effect: Effect,
    /// When the key says it was first used.
    pub dated: Option<Timestamp>,
    /// When the action was first claimed, where this take-over continues one.
    pub claimed_at: Option<Timestamp>,
    /// How long the upstream remembers a child key, where the effect is had by one.
    pub window: Duration,
    /// What the record that it replaces kept of child keys, for the run that is claimed.
    pub inherited: Option<Keyed>,
    /// How long a receipt will be promised: no part of the record, but of what a store must know that lets others settle it.
    pub retention: Duration,
    /// What answers after that.
    pub expiry: Expiry,
}

impl Draft {
    /// A first draft for `claim` under `policy`, with the lease id and holder that the caller drew.
    #[must_use]
    pub fn new(claim: &Claim, policy: &Policy, lease: LeaseId, holder: Option<Holder>) -> Self {
        Self {
            version: 1,
            lease,
            holder,
            span: policy.lease,
            attempt_limit: policy.attempt_limit,
            fingerprint: claim.fingerprint().clone(),
            effect: policy.effect,
            dated: claim.dated(),
            claimed_at: None,
            window: policy.window,
            inherited: None,
            retention: policy.retention,
            expiry: policy.expiry,
        }
    }

    /// The record, as written at `now`: Running, or Unknown where the store is in quarantine before an instant that
    /// the key cannot be shown to be younger than. A date more than 10 minutes ahead of `now` shows nothing.
    ///
    /// A quarantined record is about a run that the store has forgotten: such a run began before the quarantine's
    /// instant, and may be sent for one attempt limit after it.
    ///
    /// Every store calls this in the same write that makes the record, so no claim can slip past a quarantine.
    #[must_use]
    pub fn at(&self, now: Timestamp, quarantine_before: Option<Timestamp>) -> Record {
        let quarantine = quarantine_before
            .filter(|before| !self.dated.is_some_and(|dated| *before <= dated && dated <= now.plus(AHEAD_MAX)));
        let (lease, state) = match quarantine {
            None => {
                let (holder, span) = (self.holder, self.span);
                let (until, attempt_until) = (now.plus(span), now.plus(self.attempt_limit));
                (Lease { id: self.lease, holder, renewed_at: now, span, until, attempt_until }, State::Running)
            }
            Some(before) => {
                let (holder, span) = (None, Duration::ZERO);
                let attempt_until = now.max(before.plus(self.attempt_limit));
                let lease = Lease { id: self.lease, holder, renewed_at: now, span, until: now, attempt_until };
                (lease, State::Unknown { since: now, why: Why::Quarantined })
            }
        };
        Record {
            version: self.version,
            fingerprint: self.fingerprint.clone(),
            effect: self.effect,
            keyed: self.keyed(),
            claimed_at: self.claimed_at.unwrap_or(now),
            lease,
            state,
        }
    }

    /// A child key that may have been sent was sent under the window of then, which never grows.
    fn keyed(&self) -> Option<Keyed> {
        let Self { window, attempt_limit, .. } = *self;
        match (self.effect, self.inherited) {
            (Effect::KeyedUpstream, None) => Some(Keyed { generation: 0, window, attempt_limit, doubt: false }),
            (Effect::KeyedUpstream, Some(Keyed { generation, window: was, doubt, .. })) => {
                let window = if doubt { window.min(was) } else { window };
                Some(Keyed { generation, window, attempt_limit, doubt })
            }
            (Effect::Coupled | Effect::Other, _) => None,
        }
    }
}

#[cfg(test)]
mod tests;
