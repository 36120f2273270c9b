//! One HTTP request, as a person would try it: by the command `curl`.
//!
//! What does not belong here: what is asked of whom.

use std::process::Command;

use serde_json::Value;

/// An answer as `curl -i` prints it.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: String,
}

impl Answer {
    /// A header's value; empty where there is none.
    pub(crate) fn header(&self, name: &str) -> &str {
        let lines = self.head.lines().filter_map(|line| line.split_once(':'));
        let mut values = lines.filter(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim());
        values.next().unwrap_or_default()
    }

    /// A member of the body, which is a JSON object.
    pub(crate) fn member(&self, name: &str) -> Value {
        let body: Value = serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"));
        body.get(name).cloned().unwrap_or_else(|| panic!("no {name}: {self:?}"))
    }
}

/// Sends `method` to `url`, with `key` and a JSON `body` where they are not empty.
pub(crate) fn curl(method: &str, url: &str, key: &str, body: &str) -> Answer {
    try_curl(method, url, key, body).unwrap_or_else(|error| panic!("{method} {url}: {error}"))
}

/// The same, where no answer may come.
pub(crate) fn try_curl(method: &str, url: &str, key: &str, body: &str) -> Result<Answer, String> {
    let mut command = Command::new("curl");
    command.args(["--silent", "--show-error", "--include", "--max-time", "60", "--noproxy", "*", "--request", method]);
    if !key.is_empty() {
        command.args(["--header", &format!("Idempotency-Key: {key}")]);
    }
    if !body.is_empty() {
        command.args(["--header", "Content-Type: application/json", "--data", body]);
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
