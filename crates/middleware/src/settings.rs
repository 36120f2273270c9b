//! What the layer is told: one plain structure, and no second way to set anything.
//! How a configuration file spells it belongs to the server; what an operation promises to `core::policy`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use counterfoil_core::policy::{Answerer, Remember};
use counterfoil_core::wire::ProblemType;
use counterfoil_core::{Effect, Hold, Keyed, Operation, Policy, Rule};
use http::HeaderName;

use crate::child::ChildKeyHeader;
use crate::cors::Cors;
use crate::error::Error;
use crate::operation::Pattern;
use crate::principal::Principal;
use crate::replay;

/// The most bytes of a guarded request's body.
const REQUEST_BODY_MAX: usize = 1024 * 1024;
/// The most bytes of an answer that is kept.
const KEPT_ANSWER_MAX: usize = 1024 * 1024;
/// The most actions that run at once.
const RUNNING_MAX: usize = 512;
/// The most callers that wait for one action.
const WAITERS_PER_KEY_MAX: usize = 64;
/// The most callers that wait at all.
const WAITERS_MAX: usize = 1024;

/// Everything that a layer is told.
#[derive(Clone)]
pub struct Settings {
    /// Who is calling.
    pub principal: Arc<dyn Principal>,
    /// The listed operations.
    pub operations: Vec<OperationRule>,
    /// What becomes of requests that match none of them.
    pub unlisted: Unlisted,
    /// Whether the layer answers `GET /.well-known/idempotency` with what it promises. The document names every listed
    /// operation and is shown to everybody.
    pub publish_contract: bool,
    /// Who answers: the guarded handler itself, or a server behind a proxy.
    pub answerer: Answerer,
    /// Whether a key may also travel in `Repeatability-Request-ID` with `Repeatability-First-Sent` (OASIS Repeatable
    /// Requests 1.0).
    pub repeatability: bool,
    /// Which pages of other origins may read replays and problem documents.
    pub cors: Cors,
    /// Headers that are replayed beside the usual ones.
    pub replayed_headers: Vec<HeaderName>,
    /// The most bytes of a guarded request's body; over it the answer is 413.
    pub request_body_max: usize,
    /// The most bytes of an answer that is kept; a longer one is delivered, and a duplicate learns that it is done.
    pub kept_answer_max: usize,
    /// The most actions that run at once; over it the answer is 503.
    pub running_max: usize,
    /// The most callers that wait for one action; over it the answer is 503.
    pub waiters_per_key_max: usize,
    /// The most callers that wait at all; over it the answer is 503.
    pub waiters_max: usize,
}

impl Settings {
    /// The usual settings: no listed operation, every POST and PATCH with a key guarded, 1 MiB for request bodies and
    /// kept answers, 512 running, 64 waiting for one action and 1,024 in all; no contract published.
    pub fn new(principal: impl Principal) -> Self {
        Self {
            principal: Arc::new(principal),
            operations: Vec::new(),
            unlisted: Unlisted::GuardKeyed(Box::default()),
            publish_contract: false,
            answerer: Answerer::Handler,
            repeatability: false,
            cors: Cors::default(),
            replayed_headers: Vec::new(),
            request_body_max: REQUEST_BODY_MAX,
            kept_answer_max: KEPT_ANSWER_MAX,
            running_max: RUNNING_MAX,
            waiters_per_key_max: WAITERS_PER_KEY_MAX,
            waiters_max: WAITERS_MAX,
        }
    }

    /// Refuses limits that let nothing through, and headers that must not be replayed.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let limits = [
            ("running_max", self.running_max),
            ("waiters_per_key_max", self.waiters_per_key_max),
            ("waiters_max", self.waiters_max),
        ];
        for (setting, limit) in limits {
            if limit == 0 {
                return Err(Error::Zero { setting });
            }
        }
        match self.replayed_headers.iter().find(|name| replay::is_never_replayed(name)) {
            Some(name) => Err(Error::NeverReplayed { name: name.to_string() }),
            None => Ok(()),
        }
    }
}

/// A listed operation: which requests it is, and on what terms they run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OperationRule {
    /// Its stable name; `None` names it by its pattern.
    pub name: Option<Operation>,
    /// Which requests it is.
    pub pattern: Pattern,
    /// Whether it runs without a key.
    pub key: KeyNeed,
    /// On what terms it runs.
    pub terms: Terms,
}

/// Whether an operation runs without a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KeyNeed {
    /// A request without a key is refused.
    Required,
    /// A request without a key is not guarded.
    Optional,
}

/// On what terms an operation runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Terms {
    /// What it promises. Its attempt limit is the handler's time limit.
    pub policy: Policy,
    /// How two requests are compared.
    pub rule: Rule,
    /// How old an action may be when it is first run here, by the first-sent time of its carrier or the time inside a
    /// UUIDv7; `None`: any. Older ones get 412, as nobody can tell any more whether they ran. Keys without a time pass.
    pub age_max: Option<Duration>,
    /// Which answers are the result.
    pub remember: Remember,
    /// How the upstream wants its key, where the effect is had by one; of no meaning elsewhere.
    pub child_key: ChildKeyHeader,
    /// Whether an application that settles by its permit always holds it first; of no meaning elsewhere.
    pub hold: Hold,
    /// What a duplicate does while the action runs.
    pub duplicates: Duplicates,
    /// Problems that are answered with another status than the usual one.
    pub statuses: BTreeMap<ProblemType, u16>,
}

impl Default for Terms {
    /// The usual policy, comparison by media type, duplicates refused.
    fn default() -> Self {
        Self {
            policy: Policy::default(),
            rule: Rule::auto(),
            age_max: None,
            remember: Remember::default(),
            child_key: ChildKeyHeader::default(),
            hold: Hold::Optional,
            duplicates: Duplicates::Refuse,
            statuses: BTreeMap::new(),
        }
    }
}

impl Terms {
    /// Refuses what cannot be promised. `operation` is who it is about.
    pub(crate) fn check(&self, operation: &str) -> Result<(), Error> {
        if self.policy.effect == Effect::KeyedUpstream {
            self.check_upstream(operation)?;
        }
        let spans = [
            ("lease", self.policy.lease),
            ("attempt_limit", self.policy.attempt_limit),
            ("retention", self.policy.retention),
        ];
        for (setting, span) in spans {
            if span.is_zero() {
                return Err(Error::Zero { setting });
            }
        }
        if self.age_max.is_some_and(|age_max| age_max > self.policy.retention) {
            return Err(Error::AgeMax { operation: operation.to_owned() });
        }
        match self.statuses.iter().find(|(_, status)| !(400..600).contains(*status)) {
            Some((problem, status)) => Err(Error::Status { problem: problem.name(), status: *status }),
            None => Ok(()),
        }
    }
}

impl Terms {
    /// An upstream's promise is only as good as what is known of it.
    fn check_upstream(&self, operation: &str) -> Result<(), Error> {
        let Policy { window, attempt_limit, .. } = self.policy;
        let keyed = Keyed { generation: 0, window, attempt_limit, doubt: false };
        if keyed.sends_for().is_zero() {
            return Err(Error::Window { operation: operation.to_owned() });
        }
        if self.remember.in_progress.is_empty() {
            return Err(Error::InProgress { operation: operation.to_owned() });
        }
        Ok(())
    }
}

/// What a duplicate does while the action runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Duplicates {
    /// It is told to come back.
    Refuse,
    /// It waits at most this long for the end.
    Wait(Duration),
}

/// What becomes of requests that match no listed operation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Unlisted {
    /// Every POST and PATCH that carries a key is guarded on these terms; the operation is the method and the
    /// normalised path.
    GuardKeyed(Box<Terms>),
    /// They pass unguarded.
    PassThrough,
}
