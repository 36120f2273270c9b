//! An intent as a program reads it, as of now. Keys and bodies only where they are asked for; secrets are references.

use bytes::Bytes;
use counterfoil_core::intent::{AttemptEnd, Intent, Outcome, Promise, SecretSource, Settler, State, Value as Written};
use counterfoil_core::{Body, Now, Receipt, Timestamp};
use serde_json::{Map, Value, json};

use crate::instant;
use crate::receipts::result::to_base64;

/// The intent as JSON.
pub(super) fn json(intent: &Intent, now: Now, whole: bool) -> Map<String, Value> {
    let mut members = Map::new();
    let mut put = |name: &str, value: Value| {
        members.insert(name.to_owned(), value);
    };
    let request = &intent.request;
    put("name", json!(request.name.as_str()));
    put("state", json!(intent.state.as_str()));
    put("version", json!(intent.version));
    put("alarm", json!(intent.alarm));
    put("created_at", at(intent.created_at));
    put("method", json!(request.method.as_str()));
    put("origin", json!(request.origin));
    put("profile", json!({ "id": request.profile.id, "version": request.profile.version }));
    if whole {
        put("key", json!(request.key.as_str()));
        put("target", json!(request.target));
        put(
            "headers",
            Value::Array(request.headers.iter().map(|one| json!([one.name, written(&one.value)])).collect()),
        );
        body(&mut put, &request.body);
    }
    put("window", window(intent));
    put("in_doubt_since", intent.doubt.map_or(Value::Null, at));
    put("deadline", intent.deadline.map_or(Value::Null, |deadline| at(deadline.until)));
    let last = intent.last_start().filter(|_| intent.terms.window != Promise::ForEver);
    put("last_start", last.map_or(Value::Null, at));
    put("window_left_s", last.map_or(Value::Null, |last| json!(last.since(now.at).as_secs())));
    put("resource", json!(intent.resource));
    put("attempted", json!(intent.attempted));
    put("attempts", attempts(intent));
    state(&mut put, intent, whole);
    members
}

fn at(instant: Timestamp) -> Value {
    json!(instant::print(instant))
}

/// A header's value; of a secret only its reference.
fn written(value: &Written) -> String {
    match value {
        Written::Plain(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Written::Secret(secret) => match &secret.source {
            SecretSource::Env(name) => format!("{}env:{name}", secret.prefix),
            SecretSource::File(path) => format!("{}file:{path}", secret.prefix),
        },
    }
}

fn body(put: &mut impl FnMut(&str, Value), bytes: &Bytes) {
    match std::str::from_utf8(bytes) {
        Ok(text) => put("body", json!(text)),
        Err(_) => put("body_base64", json!(to_base64(bytes))),
    }
}

fn window(intent: &Intent) -> Value {
    let (kind, span) = match intent.terms.window {
        Promise::Documented(span) => ("documented", Some(span)),
        Promise::ForEver => ("for-ever", None),
        Promise::Given(span) => ("given", Some(span)),
        Promise::Assumed => ("assumed", Some(counterfoil_core::intent::ASSUMED_WINDOW)),
    };
    json!({ "kind": kind, "seconds": span.map(|span| span.as_secs()) })
}

fn attempts(intent: &Intent) -> Value {
    let shown = intent.attempts.iter().map(|attempt| {
        let (end, ended_at, status, verdict) = match &attempt.end {
            None => ("under-way", None, None, None),
            Some(AttemptEnd::Answered { at, status, verdict }) => ("answered", Some(*at), Some(*status), Some(verdict)),
            Some(AttemptEnd::NotSent { at }) => ("not-sent", Some(*at), None, None),
            Some(AttemptEnd::Uncertain { at }) => ("uncertain", Some(*at), None, None),
            Some(AttemptEnd::Lapsed) => ("lapsed", None, None, None),
        };
        json!({
            "number": attempt.number,
            "started_at": at(attempt.started_at),
            "until": at(attempt.until),
            "end": end,
            "ended_at": ended_at.map(at),
            "status": status,
            "verdict": verdict,
        })
    });
    Value::Array(shown.collect())
}

fn state(put: &mut impl FnMut(&str, Value), intent: &Intent, whole: bool) {
    match &intent.state {
        State::Ready => {}
        State::Sending { lease, .. } => put("until", at(lease.until)),
        State::Waiting { until } | State::Uncertain { until } => put("next_try", at(*until)),
        State::Overdue { since, why } => {
            put("overdue_since", at(*since));
            put("why", json!(why.as_str()));
        }
        State::Settled { outcome, by, at: settled } => {
            put("settled_at", at(*settled));
            put("settled_by", settler(by));
            let (Outcome::Succeeded { answer } | Outcome::Refused { answer }) = outcome;
            if let Some(answer) = answer {
                put("answer", shown(answer, whole));
            }
        }
    }
}

/// Who settled it.
fn settler(by: &Settler) -> Value {
    match by {
        Settler::Answer { number, .. } => json!({ "kind": "answer", "attempt": number }),
        Settler::LookUp => json!({ "kind": "look-up" }),
        Settler::Operator { who, why } => json!({ "kind": "operator", "who": who, "why": why }),
        Settler::NothingDone => json!({ "kind": "nothing-done" }),
    }
}

fn shown(answer: &Receipt, whole: bool) -> Value {
    let mut members = Map::new();
    members.insert("status".to_owned(), json!(answer.status));
    if whole {
        let headers = answer.headers.iter().map(|(name, value)| json!([name, String::from_utf8_lossy(value)]));
        members.insert("headers".to_owned(), Value::Array(headers.collect()));
        if let Body::Kept(bytes) = &answer.body {
            body(
                &mut |name, value| {
                    members.insert(name.to_owned(), value);
                },
                bytes,
            );
        }
    }
    Value::Object(members)
}
