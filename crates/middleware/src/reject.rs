//! The table: which decision, fault or limit becomes which problem, with which status and Retry-After.
//!
//! It is the only place that chooses a status. The wording of types and titles belongs to `core::wire`.

use std::time::Duration;

use counterfoil_core::action::Refused;
use counterfoil_core::wire::{PROBLEM_MEDIA_TYPE, Problem, ProblemType};
use counterfoil_core::{Digest, Timestamp, Why};
use counterfoil_store::ErrorKind;
use http::{HeaderValue, Response, StatusCode, header};

use crate::body::Body;
use crate::operation::Matched;
use crate::principal::PrincipalFault;
use crate::replay::{Replayed, mark};
use crate::settings::Terms;

/// Bounds of Retry-After where it is the rest of a lease.
const RETRY_MIN: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(30);
/// Retry-After where room comes back soon.
const RETRY_SOON: Duration = Duration::from_secs(1);
/// Retry-After where something has to be mended or another instance has to take over.
const RETRY_LATER: Duration = Duration::from_secs(5);

/// Why a guarded request gets an answer of ours.
#[derive(Debug)]
pub(crate) enum Rejection {
    MissingKey,
    MalformedKey(counterfoil_core::Error),
    /// The key's carriers contradict each other, or one is not whole.
    MalformedCarrier {
        why: &'static str,
    },
    MalformedPath {
        why: String,
    },
    MalformedBody {
        why: String,
    },
    /// The request asks to leave HTTP, which cannot be guarded.
    Upgrade,
    BodyTooLarge {
        limit: usize,
    },
    /// It came in a TLS handshake's early data, which an attacker may send again (RFC 8470).
    TooEarly,
    /// It would run, and is older than the receipts that could tell whether it has.
    TooOld {
        first_sent: Timestamp,
        age_max: Duration,
    },
    Principal(PrincipalFault),
    Mismatch,
    InProgress {
        remaining: Duration,
    },
    Unknown {
        since: Timestamp,
        why: Why,
    },
    Expired {
        until: Timestamp,
    },
    NotKept {
        status: u16,
        location: Option<HeaderValue>,
    },
    /// The caller's own attempt became doubtful.
    Doubt(Doubt),
    /// The run's end was refused, and the record says nothing that could be replayed.
    Late(Refused),
    NotSent,
    Store(ErrorKind),
    Unreadable,
    TooManyWaiting,
    TooManyRunning,
    Stopping,
}

/// How the caller's own attempt became doubtful.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Doubt {
    TimedOut,
    Panicked,
    Broken,
    Truncated,
    Stopped,
    /// A server behind the proxy answered with a status that may come from something in between.
    Answered {
        status: u16,
    },
    /// The store's answer to a commit was lost.
    Unanswered,
    /// A coupled operation answered without committing its receipt.
    AnsweredWithoutSettle,
    /// The answer of an application that settles by its permit did not come whole.
    CutOff,
    /// What it committed is not known yet: its transaction is open, or the store does not answer.
    Unconcluded,
    /// What it committed is not known: the record is gone, or was in doubt before.
    Unsettled,
}

/// One row of the table: the type, another status than its usual one, Retry-After, and what to say.
struct Row {
    kind: ProblemType,
    status: Option<u16>,
    retry_after: Option<Duration>,
    detail: String,
}

impl Row {
    fn new(kind: ProblemType, detail: impl Into<String>) -> Self {
        Self { kind, status: None, retry_after: None, detail: detail.into() }
    }

    const fn retry(mut self, after: Duration) -> Self {
        self.retry_after = Some(after);
        self
    }

    const fn status(mut self, status: u16) -> Self {
        self.status = Some(status);
        self
    }
}

impl Rejection {
    fn row(&self) -> Row {
        use ProblemType as P;
        match self {
            Self::MissingKey => Row::new(P::MissingKey, "send an Idempotency-Key: a new one for a new action, the same one for a retry"),
            Self::MalformedKey(error) => Row::new(P::MalformedKey, error.to_string()),
            Self::MalformedCarrier { why } => Row::new(P::MalformedKey, *why),
            Self::MalformedPath { why } => Row::new(P::MalformedPath, why.clone()),
            Self::MalformedBody { why } => Row::new(P::MalformedBody, why.clone()),
            Self::Upgrade => Row::new(P::NotSupported, "an upgrade cannot be guarded; send it without a key, or without Upgrade"),
            Self::BodyTooLarge { limit } => Row::new(P::BodyTooLarge, format!("at most {limit} bytes are guarded; nothing was run")),
            Self::TooEarly => Row::new(P::TooEarly, "nothing was run; send it again with the same key, when the handshake is over"),
            Self::TooOld { age_max, .. } => Row::new(P::TooOld, format!("it was first sent more than {} s ago and nothing is known of it here: it is not run; look up what became of it, and use a new key for a new action", age_max.as_secs())),
            Self::Principal(PrincipalFault::Unauthenticated { detail, .. }) => Row::new(P::Unauthenticated, detail.clone()),
            Self::Principal(PrincipalFault::Forbidden { detail }) => Row::new(P::Forbidden, detail.clone()),
            Self::Principal(PrincipalFault::Unavailable { detail }) => Row::new(P::PrincipalUnavailable, detail.clone()).retry(RETRY_LATER),
            Self::Mismatch => Row::new(P::Mismatch, "send the parameters that the key was first used with, or a new key for a new action"),
            Self::InProgress { remaining } => Row::new(P::InProgress, "the same action runs now; send it again with the same key")
                .retry((*remaining).clamp(RETRY_MIN, RETRY_MAX)),
            Self::Unknown { .. } => Row::new(P::OutcomeUnknown, "an earlier attempt may or may not have happened, and it is not run again; keep the key, and ask the operator to settle it")
                .retry(RETRY_MAX),
            Self::Expired { .. } => Row::new(P::ExpiredKey, "the key was used, and its result is no longer kept; a new action needs a new key"),
            Self::NotKept { status, .. } => Row::new(P::ResultNotKept, format!("the action is done and was answered with status {status}; it is not run again")),
            Self::Doubt(doubt) => doubt.row(),
            Self::Late(_) => Row::new(P::OutcomeUnknown, "this attempt ended after its right to run; keep the key, and send it again to learn what stands")
                .retry(RETRY_MAX),
            Self::NotSent => Row::new(P::UpstreamUnreachable, "nothing was sent; send it again with the same key").retry(RETRY_SOON),
            Self::Store(kind) => store_row(*kind),
            Self::Unreadable => Row::new(P::RecordUnreadable, "the action is not run; the operator has to mend the record"),
            Self::TooManyWaiting => Row::new(P::TooManyWaiting, "send it again with the same key").retry(RETRY_SOON),
            Self::TooManyRunning => Row::new(P::TooManyRunning, "nothing was run; send it again with the same key").retry(RETRY_SOON),
            Self::Stopping => Row::new(P::TooManyRunning, "this instance is stopping and starts nothing new; send it again with the same key").retry(RETRY_LATER),
        }
    }
}

impl Doubt {
    fn row(self) -> Row {
        let (status, detail) = match self {
            Self::TimedOut => (504, "no answer came within the time limit; the action may still happen".to_owned()),
            Self::Panicked => (502, "the handler failed half-way; the action may have happened".to_owned()),
            Self::Broken => (502, "the connection to the handler broke; the action may have happened".to_owned()),
            Self::Truncated => (502, "the answer broke off; the action may have happened".to_owned()),
            Self::Stopped => (502, "this instance stopped before the end; the action may have happened".to_owned()),
            Self::Answered { status: 504 } => {
                (504, "the answer was a time-out; the action may have happened".to_owned())
            }
            Self::Answered { status } => {
                (502, format!("the answer had status {status}, which says nothing about the action"))
            }
            Self::Unanswered => {
                (502, "the store did not say whether it committed; the action may have happened".to_owned())
            }
            Self::AnsweredWithoutSettle => {
                (502, "the operation answered without its receipt; the action may have happened".to_owned())
            }
            Self::CutOff => {
                (504, "the application's answer did not come whole; the action may still happen".to_owned())
            }
            Self::Unconcluded => {
                (504, "what the application committed is not known yet; the action may still happen".to_owned())
            }
            Self::Unsettled => {
                (502, "the application committed no receipt that stands; the action may have happened".to_owned())
            }
        };
        Row::new(ProblemType::OutcomeUnknown, format!("{detail}. Keep the key, and send it again to learn what stands"))
            .status(status)
            .retry(RETRY_MAX)
    }
}

fn store_row(kind: ErrorKind) -> Row {
    use ProblemType as P;
    match kind {
        ErrorKind::Busy => {
            Row::new(P::StoreUnavailable, "nothing was run; send it again with the same key").retry(RETRY_SOON)
        }
        ErrorKind::Corrupt => {
            Row::new(P::RecordUnreadable, "the action is not run; the operator has to mend the record")
        }
        ErrorKind::StoreNewer => Row::new(P::StoreNewer, "the action is not run; the newer version has to serve it"),
        ErrorKind::Unavailable | ErrorKind::Unknown | ErrorKind::Misuse => unavailable_row(),
        // A kind that was added later is at least no answer.
        _ => unavailable_row(),
    }
}

fn unavailable_row() -> Row {
    Row::new(ProblemType::StoreUnavailable, "nothing was run; send it again with the same key").retry(RETRY_LATER)
}

/// The statuses of the doubt that the caller's own attempt left, which no operation overrides.
const DOUBT_STATUSES: [u16; 2] = [502, 504];

/// The status of a problem, under the operation's own statuses.
fn usual(kind: ProblemType, terms: &Terms) -> u16 {
    terms.statuses.get(&kind).copied().unwrap_or(kind.status())
}

/// Every status that a problem is answered with, in order.
pub(crate) fn statuses(kind: ProblemType, terms: &Terms) -> Vec<u16> {
    let mut statuses = vec![usual(kind, terms)];
    if kind == ProblemType::OutcomeUnknown {
        statuses.extend(DOUBT_STATUSES);
    }
    statuses.sort_unstable();
    statuses.dedup();
    statuses
}

/// The answer for `rejection`, under the operation's own statuses. `digest` names the action where it is known.
pub(crate) fn reject(rejection: &Rejection, terms: &Terms, digest: Option<Digest>) -> Response<Body> {
    let row = rejection.row();
    let status = row.status.unwrap_or_else(|| usual(row.kind, terms));
    let mut problem = Problem::new(row.kind, row.detail).with_status(status);
    if let Some(digest) = digest {
        problem = problem.with_member("action", digest.to_string());
    }
    match rejection {
        Rejection::Unknown { since, why } => {
            problem = problem.with_member("why", why.as_str());
            problem = problem.with_member("since_ms", since.as_millis().to_string());
        }
        Rejection::Expired { until } => problem = problem.with_member("until_ms", until.as_millis().to_string()),
        Rejection::NotKept { status, .. } => problem = problem.with_member("original_status", status.to_string()),
        Rejection::TooOld { first_sent, .. } => {
            problem = problem.with_member("first_sent_ms", first_sent.as_millis().to_string());
        }
        Rejection::Late(refused) => problem = problem.with_member("why", refused.as_str()),
        Rejection::MissingKey
        | Rejection::MalformedKey(_)
        | Rejection::MalformedCarrier { .. }
        | Rejection::TooEarly
        | Rejection::MalformedPath { .. }
        | Rejection::MalformedBody { .. }
        | Rejection::Upgrade
        | Rejection::BodyTooLarge { .. }
        | Rejection::Principal(_)
        | Rejection::Mismatch
        | Rejection::InProgress { .. }
        | Rejection::Doubt(_)
        | Rejection::NotSent
        | Rejection::Store(_)
        | Rejection::Unreadable
        | Rejection::TooManyWaiting
        | Rejection::TooManyRunning
        | Rejection::Stopping => {}
    }
    let mut answer = Response::new(Body::from(problem.to_json()));
    *answer.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(PROBLEM_MEDIA_TYPE));
    if let Some(after) = row.retry_after {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(after.as_millis().div_ceil(1000) as u64));
    }
    if let Rejection::Principal(PrincipalFault::Unauthenticated { challenge: Some(challenge), .. }) = rejection {
        headers.insert(header::WWW_AUTHENTICATE, challenge.clone());
    }
    if let Rejection::NotKept { location: Some(location), .. } = rejection {
        headers.insert(header::LOCATION, location.clone());
    }
    mark(&mut answer, Replayed::No, None);
    answer.extensions_mut().insert(Ours);
    answer
}

/// On an answer that was made here and is not the action's.
#[derive(Clone, Copy)]
pub(crate) struct Ours;

/// [`reject`], told and counted.
pub(crate) fn refuse(rejection: &Rejection, matched: &Matched, digest: Option<Digest>) -> Response<Body> {
    let kind = rejection.row().kind;
    crate::metrics::problem(&matched.label, kind.name());
    if let Some(digest) = digest {
        tracing::info!(%digest, operation = %matched.label, problem = kind.name(), "a guarded request was refused");
    }
    reject(rejection, &matched.terms, digest)
}

#[cfg(test)]
mod tests;
