//! A record as an operator sees it, as of now. Which records are shown belongs to the commands.

use std::time::Duration;

use counterfoil_core::record::{Author, Standing};
use counterfoil_core::{Body, Now, Record, State, Timestamp};
use counterfoil_store::seam::{Listed, Note};
use serde_json::{Map, Value, json};

use super::result::to_base64;
use crate::args::StateName;
use crate::instant;

/// What is shown beside the usual.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shown {
    /// The key itself.
    pub(super) key: bool,
    /// The result's headers and body.
    pub(super) result: bool,
}

/// What a row is as of `now`.
pub(super) fn state(listed: &Listed, now: Now) -> StateName {
    let Ok(record) = &listed.record else { return StateName::Unreadable };
    match record.standing(now) {
        Standing::Absent => StateName::Absent,
        Standing::Running { .. } => StateName::Running,
        Standing::Lapsed => StateName::Lapsed,
        Standing::Unknown { .. } => StateName::Unknown,
        Standing::Done { .. } => StateName::Done,
        Standing::Expired { .. } => StateName::Expired,
    }
}

/// The word of a state.
pub(super) const fn word(state: StateName) -> &'static str {
    match state {
        StateName::Running => "running",
        StateName::Lapsed => "lapsed",
        StateName::Unknown => "unknown",
        StateName::Done => "done",
        StateName::Expired => "expired",
        StateName::Absent => "absent",
        StateName::Unreadable => "unreadable",
    }
}

/// When a record came into its state.
pub(super) fn since(record: &Record, now: Now) -> Timestamp {
    match (record.standing(now), &record.state) {
        (Standing::Unknown { since, .. }, _) => since,
        (Standing::Running { .. }, _) => record.claimed_at,
        (Standing::Lapsed, _) => record.lease.until,
        (_, State::Done { completed_at, expires_at, .. }) => {
            if now.expiry_at < *expires_at {
                *completed_at
            } else {
                *expires_at
            }
        }
        (_, State::Spent { .. } | State::Running | State::Unknown { .. }) => record.claimed_at,
    }
}

/// How long a record has been in its state.
pub(super) fn age(record: &Record, now: Now) -> Duration {
    now.at.since(since(record, now))
}

/// The version with the lease: what `resolve --version` takes.
pub(super) fn version(record: &Record) -> String {
    let lease = record.lease.id.to_string();
    format!("{}:{}", record.version, lease.get(..8).unwrap_or(&lease))
}

/// A row as JSON.
pub(super) fn json(listed: &Listed, now: Now, shown: Shown) -> Map<String, Value> {
    let mut members = Map::new();
    let mut put = |name: &str, value: Value| {
        members.insert(name.to_owned(), value);
    };
    put("digest", json!(listed.identity.digest().to_hex()));
    put("state", json!(word(state(listed, now))));
    put("operation", json!(listed.identity.operation.as_str()));
    let scope = listed.identity.scope.parts().map(|(name, value)| (name.to_owned(), json!(value)));
    put("scope", Value::Object(scope.collect()));
    if shown.key {
        put("key", json!(listed.identity.key.as_str()));
    }
    let record = match &listed.record {
        Ok(record) => record,
        Err(error) => {
            put("error", json!(error.to_string()));
            return members;
        }
    };
    put("version", json!(version(record)));
    put("claimed_at", json!(instant::print(record.claimed_at)));
    put("since", json!(instant::print(since(record, now))));
    put("age_s", json!(age(record, now).as_secs()));
    put("rule", json!(record.fingerprint.rule().as_text()));
    put("lease", lease(record));
    if let Some(keyed) = record.keyed {
        put("generation", json!(keyed.generation));
        put("in_doubt", json!(keyed.doubt));
        put("first_run", json!(record.first_run().map(instant::print)));
        put("sends_until", json!(record.sends_until().map(instant::print)));
    }
    match record.standing(now) {
        Standing::Unknown { why, .. } => put("why", json!(why.as_str())),
        Standing::Expired { until } => put("refused_until", json!(instant::print(until))),
        Standing::Absent | Standing::Running { .. } | Standing::Lapsed | Standing::Done { .. } => {}
    }
    if let State::Done { receipt, author, completed_at, expires_at, .. } = &record.state {
        put("status", json!(receipt.status));
        put("author", json!(author_word(*author)));
        put("completed_at", json!(instant::print(*completed_at)));
        put("expires_at", json!(instant::print(*expires_at)));
        if shown.result {
            let headers = receipt.headers.iter();
            let headers = headers.map(|(name, value)| json!([name, String::from_utf8_lossy(value)]));
            put("headers", Value::Array(headers.collect()));
            match &receipt.body {
                Body::Kept(bytes) => match std::str::from_utf8(bytes) {
                    Ok(text) => put("body", json!(text)),
                    Err(_) => put("body_base64", json!(to_base64(bytes))),
                },
                Body::NotKept => {}
            }
        }
    }
    members
}

fn lease(record: &Record) -> Value {
    let lease = &record.lease;
    json!({
        "id": lease.id.to_string(),
        "holder": lease.holder.map(|holder| holder.to_string()),
        "renewed_at": instant::print(lease.renewed_at),
        "until": instant::print(lease.until),
        "attempt_until": instant::print(lease.attempt_until),
    })
}

pub(super) const fn author_word(author: Author) -> &'static str {
    match author {
        Author::Owner => "owner",
        Author::Operator => "operator",
    }
}

/// A line of the history as JSON.
pub(super) fn note(note: &Note) -> Value {
    json!({
        "at": instant::print(note.at),
        "kind": note.kind.as_str(),
        "lease": note.lease.to_string(),
        "who": note.who,
        "why": note.why,
    })
}
