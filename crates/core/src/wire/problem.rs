//! Problem documents (RFC 9457): one table of types with their usual status and title.
//! Nothing here chooses a problem; `middleware/reject.rs` does.

use serde_json::{Map, Value, json};

/// The media type of a problem document.
pub const PROBLEM_MEDIA_TYPE: &str = "application/problem+json";

/// What a document's `type` begins with; the type's name follows.
pub const PROBLEM_TYPE_PREFIX: &str = "urn:counterfoil:problem:";

/// The stable types. Their text is the last part of `urn:counterfoil:problem:…`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub enum ProblemType {
    /// The operation needs a key and none came.
    MissingKey,
    /// The key cannot be read.
    MalformedKey,
    /// The path cannot be normalised.
    MalformedPath,
    /// The body does not parse under the rule that the operation names.
    MalformedBody,
    /// No principal is known.
    Unauthenticated,
    /// The principal may not do this.
    Forbidden,
    /// Somebody runs this action.
    InProgress,
    /// Nobody knows whether this action happened.
    OutcomeUnknown,
    /// It is done, but its answer was not kept.
    ResultNotKept,
    /// The key was used and its receipt has expired.
    ExpiredKey,
    /// The request is older than the receipts that could recognise it.
    TooOld,
    /// The body is larger than allowed.
    BodyTooLarge,
    /// The key names an action with other parameters.
    Mismatch,
    /// Early data cannot be guarded (RFC 8470).
    TooEarly,
    /// An upgrade on a guarded route.
    NotSupported,
    /// The upstream certainly did not get the request.
    UpstreamUnreachable,
    /// Who is calling cannot be found out now.
    PrincipalUnavailable,
    /// Receipts cannot be read or written.
    StoreUnavailable,
    /// Too many callers wait for the same action.
    TooManyWaiting,
    /// Too many actions run.
    TooManyRunning,
    /// The stored record cannot be decoded.
    RecordUnreadable,
    /// The stored record was written by a newer version.
    StoreNewer,
}

impl ProblemType {
    /// Every type, by usual status.
    pub const ALL: [Self; 22] = [
        Self::MissingKey,
        Self::MalformedKey,
        Self::MalformedPath,
        Self::MalformedBody,
        Self::Unauthenticated,
        Self::Forbidden,
        Self::InProgress,
        Self::OutcomeUnknown,
        Self::ResultNotKept,
        Self::ExpiredKey,
        Self::TooOld,
        Self::BodyTooLarge,
        Self::Mismatch,
        Self::TooEarly,
        Self::NotSupported,
        Self::UpstreamUnreachable,
        Self::PrincipalUnavailable,
        Self::StoreUnavailable,
        Self::TooManyWaiting,
        Self::TooManyRunning,
        Self::RecordUnreadable,
        Self::StoreNewer,
    ];

    /// Its name, usual status, and title.
    const fn row(self) -> (&'static str, u16, &'static str) {
        match self {
            Self::MissingKey => ("missing-key", 400, "this operation needs an Idempotency-Key"),
            Self::MalformedKey => ("malformed-key", 400, "the Idempotency-Key cannot be read"),
            Self::MalformedPath => ("malformed-path", 400, "the path cannot be normalised"),
            Self::MalformedBody => ("malformed-body", 400, "the body cannot be compared"),
            Self::Unauthenticated => ("unauthenticated", 401, "the caller is not known"),
            Self::Forbidden => ("forbidden", 403, "the caller may not do this"),
            Self::InProgress => ("in-progress", 409, "this action is in progress"),
            Self::OutcomeUnknown => ("outcome-unknown", 409, "nobody knows whether this action happened"),
            Self::ResultNotKept => ("result-not-kept", 409, "this action is done, and its answer was not kept"),
            Self::ExpiredKey => ("expired-key", 410, "this key was used, and its receipt has expired"),
            Self::TooOld => ("too-old", 412, "this request is too old to be recognised"),
            Self::BodyTooLarge => ("body-too-large", 413, "the body is too large"),
            Self::Mismatch => ("mismatch", 422, "this key names an action with other parameters"),
            Self::TooEarly => ("too-early", 425, "send this again after the handshake"),
            Self::NotSupported => ("not-supported", 501, "this cannot be guarded"),
            Self::UpstreamUnreachable => ("upstream-unreachable", 502, "the upstream did not get the request"),
            Self::PrincipalUnavailable => ("principal-unavailable", 503, "who is calling cannot be found out now"),
            Self::StoreUnavailable => ("store-unavailable", 503, "receipts cannot be read or written"),
            Self::TooManyWaiting => ("too-many-waiting", 503, "too many callers wait"),
            Self::TooManyRunning => ("too-many-running", 503, "too many actions run"),
            Self::RecordUnreadable => ("record-unreadable", 503, "the stored record cannot be read"),
            Self::StoreNewer => ("store-newer", 503, "the stored record is from a newer version"),
        }
    }

    /// Its stable name: `mismatch`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.row().0
    }

    /// The status that it usually has.
    #[must_use]
    pub const fn status(self) -> u16 {
        self.row().1
    }

    /// One sentence for a person, the same for every occurrence.
    #[must_use]
    pub const fn title(self) -> &'static str {
        self.row().2
    }
}

/// A problem document.
#[derive(Clone, PartialEq, Debug)]
pub struct Problem {
    /// Its stable type.
    pub kind: ProblemType,
    /// The status that it is sent with.
    pub status: u16,
    /// What happened here and the next step; it never holds the key.
    pub detail: String,
    /// Further members, such as the identity's digest.
    pub members: Vec<(&'static str, String)>,
}

impl Problem {
    /// A problem with its usual status.
    #[must_use]
    pub fn new(kind: ProblemType, detail: impl Into<String>) -> Self {
        Self { kind, status: kind.status(), detail: detail.into(), members: Vec::new() }
    }

    /// The same problem with another status.
    #[must_use]
    pub const fn with_status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    /// The same problem with a further member.
    #[must_use]
    pub fn with_member(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.members.push((name, value.into()));
        self
    }

    /// The document as JSON. A further member never takes the place of a standard one.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        let mut members: Map<String, Value> =
            self.members.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
        members.insert("type".into(), json!(format!("{PROBLEM_TYPE_PREFIX}{}", self.kind.name())));
        members.insert("title".into(), json!(self.kind.title()));
        members.insert("status".into(), json!(self.status));
        members.insert("detail".into(), json!(self.detail));
        Value::Object(members).to_string().into_bytes()
    }
}
