//! What the probe is told, as it is written in a file or in arguments; every field may be left out.
//!
//! What does not belong here: what follows from it (`target.rs`).

use serde::Deserialize;

pub use self::also::Also;
use crate::case::Contract;

mod also;

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
    /// A body that the target accepts; `{}` where nothing is said.
    pub body: Option<String>,
    /// Instead of a body the fields of a form, each `NAME=VALUE` or `NAME=@FILE`, sent as `multipart/form-data`.
    pub form: Vec<String>,
    /// Its media type; what the body looks like where nothing is said.
    pub content_type: Option<String>,
    /// More headers, each `Name: value`.
    pub header: Vec<String>,
    /// The header that says who is calling, `Name: value`; the value may be `env:VARIABLE`.
    pub credential: Option<String>,
    /// JSON pointer to the value that is changed to make another request.
    pub vary: Option<String>,
    /// Where the id of the result stands: a JSON pointer into the answer, or `header:NAME`.
    pub id: Option<String>,
    /// What is asked for the number of effects.
    pub count_url: Option<String>,
    /// JSON pointer to a number or an array in its answer; the whole answer where nothing is said.
    pub count: Option<String>,
    /// A shell command that prints the number of effects.
    pub count_command: Option<String>,
    /// What is asked for the number of requests that reached the target, as its own side counts them.
    pub requests_url: Option<String>,
    /// JSON pointer to a number or an array in its answer; the whole answer where nothing is said.
    pub requests: Option<String>,
    /// A shell command that prints the number of requests that reached the target.
    pub requests_command: Option<String>,
    /// Whether requests go over HTTP/2: by ALPN over TLS, by prior knowledge without.
    pub http2: bool,
    /// Another operation, for keys that are used for both.
    pub other_url: Option<String>,
    /// The same operation at another instance of the target.
    pub second_url: Option<String>,
    /// The credential of another caller, written as `credential` is.
    pub second_credential: Option<String>,
    /// A shell command that ends the target in order and starts it again.
    pub restart_command: Option<String>,
    /// A shell command that ends the target with SIGKILL and starts it again.
    pub kill_command: Option<String>,
    /// A shell command that moves the target's clock forward, by `$1` seconds.
    pub clock_command: Option<String>,
    /// A shell command that puts the target into the state that `$1` names.
    pub state_command: Option<String>,
    /// Seconds for which the target says that it keeps a key.
    pub window: Option<u64>,
    /// What else the target has, in a table of its own.
    pub also: Also,
    /// A body that the target refuses; made from `vary` where nothing is said.
    pub invalid: Option<String>,
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
    /// A PEM file with authorities to believe beside the system's.
    pub ca: Option<String>,
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
            form: list(self.form, below.form),
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
            http2: self.http2 || below.http2,
            other_url: self.other_url.or(below.other_url),
            second_url: self.second_url.or(below.second_url),
            second_credential: self.second_credential.or(below.second_credential),
            restart_command: self.restart_command.or(below.restart_command),
            kill_command: self.kill_command.or(below.kill_command),
            clock_command: self.clock_command.or(below.clock_command),
            state_command: self.state_command.or(below.state_command),
            window: self.window.or(below.window),
            also: if self.also == Also::default() { below.also } else { self.also },
            invalid: self.invalid.or(below.invalid),
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
            ca: self.ca.or(below.ca),
        }
    }
}
