//! The published contract: what a caller may rely on, as one JSON document that is made once. Showing it asks for no
//! principal and no store.
//!
//! It repeats what the settings say and decides nothing; the statuses of problems come from `reject`. Its members are
//! described in `docs/reference/contract.md`, and a schema stands beside that page.

mod layout;

use std::collections::BTreeMap;
use std::iter;
use std::time::Duration;

use bytes::Bytes;
use counterfoil_core::identity::KEY_BYTES_MAX;
use counterfoil_core::policy::{Answerer, Outcome};
use counterfoil_core::wire::{
    IDEMPOTENCY_EXPIRES, IDEMPOTENCY_KEY, IDEMPOTENCY_STATUS, IDEMPOTENT_REPLAYED, PROBLEM_MEDIA_TYPE,
    PROBLEM_TYPE_PREFIX, ProblemType, REPEATABILITY_FIRST_SENT, REPEATABILITY_REQUEST_ID, REPEATABILITY_RESULT,
    list_items,
};
use counterfoil_core::{Effect, Expiry};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use serde::{Serialize, Serializer};
use serde_json::Number;
use sha2::{Digest as _, Sha256};

use crate::body::Body;

use crate::error::Error;
use crate::operation::Operations;
use crate::reject;
use crate::replay::say;
use crate::settings::{Duplicates, KeyNeed, OperationRule, Settings, Terms, Unlisted};

/// Where the contract is published (RFC 8615). Compared as it comes: another spelling of the path passes.
pub const CONTRACT_PATH: &str = "/.well-known/idempotency";

/// What the document says of its own form; it changes where a member changes its meaning or goes away.
const VERSION: u32 = 1;

/// It changes only with a new start, and a client that asks again within minutes learns nothing.
const CACHE_CONTROL: &str = "public, max-age=300";

/// The document and its headers, ready to be shown.
pub(crate) struct Contract {
    document: Bytes,
    etag: HeaderValue,
}

impl Contract {
    /// The contract of these settings; nothing where they publish none.
    pub(crate) fn of(settings: &Settings, operations: &Operations) -> Result<Option<Self>, Error> {
        if !settings.publish_contract {
            return Ok(None);
        }
        let unwritable = |why: String| Error::Contract { why };
        let document = Document::of(settings, operations);
        let document = layout::json(&document).map_err(|error| unwritable(error.to_string()))?;
        let digest: String = Sha256::digest(&document).iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        let etag = format!("\"{digest}\"").try_into().map_err(|_| unwritable("its tag is no header".to_owned()))?;
        Ok(Some(Self { document: document.into(), etag }))
    }

    /// The answer where the contract is asked for; `keyed` says that the request carries a key.
    pub(crate) fn answer<B>(&self, request: &Request<B>, keyed: bool) -> Option<Response<Body>> {
        let (method, path) = (request.method(), request.uri().path());
        if path != CONTRACT_PATH || (method != Method::GET && method != Method::HEAD) {
            return None;
        }
        let mut answer = if self.is_known(request.headers()) {
            let mut answer = Response::new(Body::empty());
            *answer.status_mut() = StatusCode::NOT_MODIFIED;
            answer
        } else {
            let shown = if method == Method::HEAD { Body::empty() } else { Body::from(self.document.clone()) };
            let mut answer = Response::new(shown);
            let headers = answer.headers_mut();
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
            headers.insert(header::CONTENT_LENGTH, self.document.len().into());
            answer
        };
        let headers = answer.headers_mut();
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(CACHE_CONTROL));
        headers.insert(header::ETAG, self.etag.clone());
        if keyed {
            say(headers, "ignored");
        }
        Some(answer)
    }

    /// Whether the asker has this document: compared weakly, a list or `*` (RFC 9110 section 13.1.2).
    fn is_known(&self, headers: &HeaderMap) -> bool {
        let lines = headers.get_all(header::IF_NONE_MATCH).iter().map(HeaderValue::as_bytes);
        list_items(lines).any(|tag| tag == b"*" || tag.strip_prefix(b"W/").unwrap_or(tag) == self.etag.as_bytes())
    }
}

#[derive(Serialize)]
struct Document<'s> {
    contract: u32,
    /// In the order in which they are tried: the first one that matches is the request's.
    operations: Vec<Listed<'s>>,
    unlisted: Others,
    limits: Limits,
    markers: Markers,
    problem_documents: ProblemDocuments,
}

#[derive(Serialize)]
struct Listed<'s> {
    name: &'s str,
    #[serde(rename = "match")]
    pattern: &'s str,
    #[serde(flatten)]
    promise: Promise,
}

/// What becomes of requests that no operation matches.
#[derive(Serialize)]
struct Others {
    guarded: bool,
    #[serde(flatten)]
    when: Option<Keyed>,
}

/// Which of them are guarded, and on what terms.
#[derive(Serialize)]
struct Keyed {
    methods: [&'static str; 2],
    named_by: &'static str,
    #[serde(flatten)]
    promise: Promise,
}

#[derive(Serialize)]
struct Promise {
    key: KeyFormat,
    scope: Option<Vec<String>>,
    fingerprint: String,
    effect: &'static str,
    retention: Retention,
    after_expiry: AfterExpiry,
    /// How long the upstream remembers the key that it is sent, where the effect is had by one.
    #[serde(skip_serializing_if = "Option::is_none")]
    window: Option<Span>,
    max_age: Option<Span>,
    duplicates: WhileRunning,
    remembered: Remembered,
    #[serde(serialize_with = "by_name")]
    problems: BTreeMap<ProblemType, Vec<u16>>,
}

#[derive(Serialize)]
struct KeyFormat {
    required: bool,
    carriers: Vec<Carrier>,
    spellings: [&'static str; 2],
    characters: &'static str,
    length_min: usize,
    length_max: usize,
}

/// One of the ways in which a key travels.
#[derive(Serialize)]
struct Carrier {
    header: &'static str,
    first_sent: Option<&'static str>,
}

#[derive(Serialize)]
struct Retention {
    seconds: Number,
    from: &'static str,
}

#[derive(Serialize)]
#[serde(tag = "then", rename_all = "kebab-case")]
enum AfterExpiry {
    NewAction,
    Refused { seconds: Number },
}

#[derive(Serialize)]
struct Span {
    seconds: Number,
}

#[derive(Serialize)]
#[serde(tag = "while_running", rename_all = "kebab-case")]
enum WhileRunning {
    Refuse,
    Wait { seconds: Number },
}

#[derive(Serialize)]
#[serde(tag = "decided_by", rename_all = "kebab-case")]
enum Remembered {
    /// The record was committed with the effect, or was not.
    Transaction,
    Status {
        kept: &'static str,
        released: Vec<u16>,
        in_doubt: Vec<u16>,
        answer_may_override: bool,
    },
}

#[derive(Serialize)]
struct Limits {
    request_body_bytes: usize,
    kept_answer_bytes: usize,
}

#[derive(Serialize)]
struct Markers {
    replayed: Marker,
    expires: Marker,
    status: Marker,
    #[serde(skip_serializing_if = "Option::is_none")]
    repeatability: Option<Marker>,
}

#[derive(Serialize)]
struct Marker {
    header: &'static str,
    #[serde(flatten)]
    says: Says,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
enum Says {
    Values([&'static str; 2]),
    Format(&'static str),
}

#[derive(Serialize)]
struct ProblemDocuments {
    media_type: &'static str,
    type_prefix: &'static str,
}

impl<'s> Document<'s> {
    fn of(settings: &'s Settings, operations: &'s Operations) -> Self {
        let rules: BTreeMap<&str, &OperationRule> =
            settings.operations.iter().map(|rule| (rule.pattern.as_str(), rule)).collect();
        let operations = operations.listed().filter_map(|(pattern, name, _)| {
            let rule = rules.get(pattern)?;
            Some(Listed { name, pattern, promise: Promise::of(settings, rule.key, &rule.terms) })
        });
        let when = match &settings.unlisted {
            Unlisted::PassThrough => None,
            Unlisted::GuardKeyed(terms) => Some(Keyed {
                methods: ["POST", "PATCH"],
                named_by: "method-and-path",
                promise: Promise::of(settings, KeyNeed::Optional, terms),
            }),
        };
        Self {
            contract: VERSION,
            operations: operations.collect(),
            unlisted: Others { guarded: when.is_some(), when },
            limits: Limits {
                request_body_bytes: settings.request_body_max,
                kept_answer_bytes: settings.kept_answer_max,
            },
            markers: Markers {
                replayed: Marker { header: IDEMPOTENT_REPLAYED, says: Says::Values(["true", "false"]) },
                expires: Marker { header: IDEMPOTENCY_EXPIRES, says: Says::Format("http-date") },
                status: Marker { header: IDEMPOTENCY_STATUS, says: Says::Values(["ignored", "unrecorded"]) },
                repeatability: settings
                    .repeatability
                    .then_some(Marker { header: REPEATABILITY_RESULT, says: Says::Values(["accepted", "rejected"]) }),
            },
            problem_documents: ProblemDocuments { media_type: PROBLEM_MEDIA_TYPE, type_prefix: PROBLEM_TYPE_PREFIX },
        }
    }
}

impl Promise {
    fn of(settings: &Settings, key: KeyNeed, terms: &Terms) -> Self {
        let policy = &terms.policy;
        let first = Carrier { header: IDEMPOTENCY_KEY, first_sent: None };
        let second = Carrier { header: REPEATABILITY_REQUEST_ID, first_sent: Some(REPEATABILITY_FIRST_SENT) };
        let carriers = iter::once(first).chain(settings.repeatability.then_some(second));
        Self {
            key: KeyFormat {
                required: key == KeyNeed::Required,
                carriers: carriers.collect(),
                spellings: ["quoted", "bare"],
                characters: "printable-ascii",
                length_min: 1,
                length_max: KEY_BYTES_MAX,
            },
            scope: settings.principal.scope_parts(),
            fingerprint: terms.rule.as_text(),
            effect: match policy.effect {
                Effect::Coupled => "coupled",
                Effect::KeyedUpstream => "keyed-upstream",
                Effect::Other => "other",
            },
            retention: Retention { seconds: seconds(policy.retention), from: "completion" },
            after_expiry: match policy.expiry {
                Expiry::NewAction => AfterExpiry::NewAction,
                Expiry::Refuse(span) => AfterExpiry::Refused { seconds: seconds(span) },
            },
            window: (policy.effect == Effect::KeyedUpstream).then(|| Span { seconds: seconds(policy.window) }),
            max_age: terms.age_max.map(|span| Span { seconds: seconds(span) }),
            duplicates: match terms.duplicates {
                Duplicates::Refuse => WhileRunning::Refuse,
                Duplicates::Wait(span) => WhileRunning::Wait { seconds: seconds(span) },
            },
            remembered: Remembered::of(terms, settings.answerer),
            problems: problems(key, terms),
        }
    }
}

impl Remembered {
    /// What the rule itself says of every final status.
    fn of(terms: &Terms, answerer: Answerer) -> Self {
        match terms.policy.effect {
            Effect::Coupled => return Self::Transaction,
            Effect::KeyedUpstream | Effect::Other => {}
        }
        let (mut released, mut in_doubt) = (Vec::new(), Vec::new());
        for status in 200..600 {
            match terms.remember.judge(status, None, answerer, None) {
                Outcome::Keep => {}
                Outcome::Release => released.push(status),
                Outcome::Doubt => in_doubt.push(status),
            }
        }
        Self::Status { kept: "every-other", released, in_doubt, answer_may_override: true }
    }
}

/// The problems that a guarded request may be answered with, each with its statuses. A listed one need not ever occur;
/// one that is not listed does not.
fn problems(key: KeyNeed, terms: &Terms) -> BTreeMap<ProblemType, Vec<u16>> {
    use ProblemType as P;
    let possible = |kind: &ProblemType| match kind {
        P::MissingKey => key == KeyNeed::Required,
        P::TooManyWaiting => terms.duplicates != Duplicates::Refuse,
        P::TooOld => terms.age_max.is_some(),
        // `ExpiredKey` whatever the terms say today: a record keeps what its own claim was promised.
        P::MalformedKey
        | P::MalformedPath
        | P::MalformedBody
        | P::Unauthenticated
        | P::Forbidden
        | P::PrincipalUnavailable
        | P::InProgress
        | P::OutcomeUnknown
        | P::ResultNotKept
        | P::ExpiredKey
        | P::BodyTooLarge
        | P::Mismatch
        | P::TooEarly
        | P::NotSupported
        | P::UpstreamUnreachable
        | P::StoreUnavailable
        | P::TooManyRunning
        | P::RecordUnreadable
        | P::StoreNewer => true,
    };
    let kinds = ProblemType::ALL.into_iter().filter(possible);
    kinds.map(|kind| (kind, reject::statuses(kind, terms))).collect()
}

fn by_name<S: Serializer>(problems: &BTreeMap<ProblemType, Vec<u16>>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(problems.iter().map(|(kind, statuses)| (kind.name(), statuses)))
}

/// Seconds, whole where they are; a part of a millisecond is dropped, which never promises too much.
fn seconds(span: Duration) -> Number {
    let millis = span.subsec_millis();
    let parts = Number::from_f64(span.as_secs() as f64 + f64::from(millis) / 1000.0).filter(|_| millis > 0);
    parts.unwrap_or_else(|| span.as_secs().into())
}

#[cfg(test)]
mod tests;
