//! One request by the command `curl`, and its answer.
//!
//! What does not belong here: what is asked of whom.

use std::process::Command;

use serde_json::Value;

/// A request's key and JSON body; none of what is empty.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sent<'a> {
    /// The value of `Idempotency-Key`, as written.
    pub(super) key: &'a str,
    pub(super) body: &'a str,
    /// Further header lines.
    pub(super) headers: &'a [&'a str],
}

/// An answer.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    head: String,
    pub(super) body: String,
}

impl Answer {
    /// A header's value; empty where there is none.
    pub(super) fn header(&self, name: &str) -> &str {
        let lines = self.head.lines().filter_map(|line| line.split_once(':'));
        let mut values = lines.filter(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim());
        values.next().unwrap_or_default()
    }

    /// A text in the body, which is a JSON object.
    pub(super) fn member(&self, name: &str) -> String {
        let body: Value = serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"));
        let value = body.get(name).unwrap_or_else(|| panic!("no {name}: {self:?}"));
        value.as_str().map_or_else(|| value.to_string(), str::to_owned)
    }

    /// Passes where it has `status`, and says whether it was replayed as `replayed` does.
    #[track_caller]
    pub(super) fn is(&self, status: u16, replayed: &str) -> &Self {
        assert_eq!((self.status, self.header("idempotent-replayed")), (status, replayed), "{self:?}");
        self
    }

    /// Passes where it is the problem document `kind` with `status`.
    #[track_caller]
    pub(super) fn is_problem(&self, status: u16, kind: &str) -> &Self {
        assert_eq!((self.status, self.header("content-type")), (status, "application/problem+json"), "{self:?}");
        let (found, said) = (self.member("type"), self.member("status"));
        assert!(found.ends_with(kind) && said == status.to_string(), "wanted {kind}: {self:?}");
        self
    }
}

pub(super) fn post(url: &str, key: &str) -> Answer {
    curl("POST", url, Sent { key, body: "{}", headers: &[] })
}

pub(super) fn get(url: &str) -> Answer {
    curl("GET", url, Sent::default())
}

pub(super) fn curl(method: &str, url: &str, sent: Sent<'_>) -> Answer {
    try_curl(method, url, sent).unwrap_or_else(|error| panic!("{method} {url}: {error}"))
}

/// The same, where no answer may come.
pub(super) fn try_curl(method: &str, url: &str, sent: Sent<'_>) -> Result<Answer, String> {
    let mut command = Command::new("curl");
    command.args(["--silent", "--show-error", "--include", "--max-time", "60", "--noproxy", "*", "--request", method]);
    if !sent.key.is_empty() {
        command.args(["--header", &format!("Idempotency-Key: {}", sent.key)]);
    }
    if !sent.body.is_empty() {
        command.args(["--header", "Content-Type: application/json", "--data", sent.body]);
    }
    for header in sent.headers {
        command.args(["--header", header]);
    }
    let output = command.arg(url).output().expect("curl runs: install curl");
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let text = String::from_utf8(output.stdout).expect("the answer is text");
    let (head, body) = text.split_once("\r\n\r\n").expect("an answer has a head");
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("an answer has a status");
    Ok(Answer { status, head: head.to_owned(), body: body.to_owned() })
}
