//! What the probe is told, as it is written in a file or in arguments; every field may be left out.
//!
//! What does not belong here: what follows from it (`target.rs`).

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::case::Contract;
use crate::fact::Value;
use crate::hook::Hook;
use crate::place::Place;

/// What the provider itself says of one field of the contract sheet.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Documented {
    /// The value.
    pub value: Value,
    /// The page that says so.
    pub from: String,
    /// The day on which it was read, as YYYY-MM-DD.
    pub date: String,
}

/// What the probe is told. A field that is `None` or empty was not told.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Settings {
    /// The operation, such as `http://127.0.0.1:9000/orders`.
    pub url: Option<String>,
    /// The method; POST where nothing is said.
    pub method: Option<String>,
    /// The contract that it is held against; `ietf` where nothing is said.
    pub contract: Option<Contract>,
    /// A body that the target accepts: JSON, or pairs as `a=1&b=2` where the media type is of pairs; where nothing is
    /// said `{}`, or no pairs.
    pub body: Option<String>,
    /// Its media type; `application/json` where nothing is said. `application/x-www-form-urlencoded` and
    /// `multipart/form-data` are of pairs.
    pub content_type: Option<String>,
    /// More headers, each `Name: value`.
    pub header: Vec<String>,
    /// The header that says who is calling, `Name: value`; the value may be `env:VARIABLE`.
    pub credential: Option<String>,
    /// JSON pointer to the value that is changed to make another request, or the name of a pair.
    pub vary: Option<String>,
    /// Where the id of the result stands: a JSON pointer into the answer, or `header:NAME`.
    pub id: Option<String>,
    /// What is asked for the number of effects.
    pub count_url: Option<String>,
    /// JSON pointer to a number or an array in its answer; the whole answer where nothing is said.
    pub count: Option<String>,
    /// A shell command that prints the number of effects.
    pub count_command: Option<String>,
    /// What is asked for the number of requests that reached the operation.
    pub requests_url: Option<String>,
    /// JSON pointer to a number or an array in its answer; the whole answer where nothing is said.
    pub requests: Option<String>,
    /// A shell command that prints that number.
    pub requests_command: Option<String>,
    /// Further places by name, each as `URL` or `METHOD URL`; `{{key}}` and `{{id}}` stand for the key and for the id of
    /// what was made.
    pub also: BTreeMap<Place, String>,
    /// A body that the target refuses; made from `vary` where nothing is said.
    pub invalid: Option<String>,
    /// A body that the target declines for its own reasons, such as a card without money.
    pub declined: Option<String>,
    /// A member with its documented default, `/name=value`.
    pub default_member: Option<String>,
    /// Where the key stands: `header:NAME`, `query:NAME` or `body:NAME`; the contract says it where nothing is said.
    pub key: Option<String>,
    /// Only these cases, by the beginning of the id, by row or by group.
    pub case: Vec<String>,
    /// That a target beyond this machine may be tried.
    pub i_own_this_api: bool,
    /// The most effects that may be risked.
    pub max_effects: Option<u32>,
    /// The most requests.
    pub max_requests: Option<u32>,
    /// The most seconds that new cases are begun in.
    pub max_seconds: Option<u64>,
    /// The most requests in a second; unlimited on loopback where nothing is said.
    pub rate: Option<u32>,
    /// Seconds that an answer may take.
    pub answer_within: Option<u64>,
    /// Milliseconds between the last answer and the count of effects.
    pub settle_ms: Option<u64>,
    /// Milliseconds for which "still under way" is borne before it counts as the answer.
    pub patience_ms: Option<u64>,
    /// HTTP/2: by ALPN over TLS, and without asking first where there is none.
    pub http2: bool,
    /// A PEM file with authorities to believe beside the system's.
    pub ca: Option<String>,
    /// What the provider documents, by field of the sheet, such as `retention.span`.
    pub documented: BTreeMap<String, Documented>,
    /// Shell commands by what they do to the target.
    pub hook: BTreeMap<Hook, String>,
    /// Seconds for which the target says that it keeps a key.
    pub window: Option<u64>,
    /// The credential of another principal, written as `credential` is.
    pub second_credential: Option<String>,
    /// Another credential of the same principal, written as `credential` is.
    pub same_tenant_credential: Option<String>,
    /// The credential of a principal whose name goes on where that of `credential` ends, such as `Tenant: a:b` beside
    /// `Tenant: a`.
    pub nested_credential: Option<String>,
    /// The header that names another account, `Name: value`.
    pub account_header: Option<String>,
}

/// The entries of both; ours where a name stands in both.
fn table<K: Ord, V>(ours: BTreeMap<K, V>, mut below: BTreeMap<K, V>) -> BTreeMap<K, V> {
    below.extend(ours);
    below
}

impl Settings {
    /// Reads a file's text; nothing unknown is allowed.
    ///
    /// # Errors
    /// What is wrong, with its line.
    pub fn parse(text: &str) -> Result<Self, String> {
        toml::from_str(text).map_err(|error| error.to_string())
    }

    /// These settings, with `below` where they say nothing.
    #[must_use]
    pub fn over(self, below: Self) -> Self {
        let list = |ours: Vec<String>, theirs: Vec<String>| if ours.is_empty() { theirs } else { ours };
        Self {
            url: self.url.or(below.url),
            method: self.method.or(below.method),
            contract: self.contract.or(below.contract),
            body: self.body.or(below.body),
            content_type: self.content_type.or(below.content_type),
            header: list(self.header, below.header),
            credential: self.credential.or(below.credential),
            vary: self.vary.or(below.vary),
            id: self.id.or(below.id),
            count_url: self.count_url.or(below.count_url),
            count: self.count.or(below.count),
            count_command: self.count_command.or(below.count_command),
            requests_url: self.requests_url.or(below.requests_url),
            requests: self.requests.or(below.requests),
            requests_command: self.requests_command.or(below.requests_command),
            also: table(self.also, below.also),
            invalid: self.invalid.or(below.invalid),
            declined: self.declined.or(below.declined),
            default_member: self.default_member.or(below.default_member),
            key: self.key.or(below.key),
            case: list(self.case, below.case),
            i_own_this_api: self.i_own_this_api || below.i_own_this_api,
            max_effects: self.max_effects.or(below.max_effects),
            max_requests: self.max_requests.or(below.max_requests),
            max_seconds: self.max_seconds.or(below.max_seconds),
            rate: self.rate.or(below.rate),
            answer_within: self.answer_within.or(below.answer_within),
            settle_ms: self.settle_ms.or(below.settle_ms),
            patience_ms: self.patience_ms.or(below.patience_ms),
            http2: self.http2 || below.http2,
            ca: self.ca.or(below.ca),
            documented: table(self.documented, below.documented),
            hook: table(self.hook, below.hook),
            window: self.window.or(below.window),
            second_credential: self.second_credential.or(below.second_credential),
            same_tenant_credential: self.same_tenant_credential.or(below.same_tenant_credential),
            nested_credential: self.nested_credential.or(below.nested_credential),
            account_header: self.account_header.or(below.account_header),
        }
    }
}
