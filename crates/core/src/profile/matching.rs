//! Whether an answer fits a rule. What a rule means is in `read`.

use serde_json::Value;

use super::{AnswerRule, BodyMatch, Marker};
use crate::receipt::{Body, Receipt};

/// The largest body that is looked into, in bytes; a larger one fits no rule about bodies.
pub(super) const BODY_LOOKED_INTO_BYTES_MAX: usize = 1 << 20;

/// An answer, its body parsed at most once.
pub(super) struct Seen<'a> {
    pub(super) answer: &'a Receipt,
    json: Option<Value>,
}

impl<'a> Seen<'a> {
    pub(super) fn new(answer: &'a Receipt) -> Self {
        Self { answer, json: body(answer).and_then(|body| serde_json::from_slice(body).ok()) }
    }

    pub(super) fn fits(&self, rule: &AnswerRule) -> bool {
        rule.status.iter().any(|range| range.contains(&self.answer.status))
            && rule.header.as_ref().is_none_or(|(name, value)| self.has(name, value.as_deref()))
            && rule.body.iter().all(|wanted| self.says(wanted))
    }

    /// Whether it carries the marker.
    pub(super) fn is_marked(&self, marker: &Marker) -> bool {
        self.has(&marker.header, marker.value.as_deref())
    }

    /// Whether it has the header, with that value where one is wanted.
    pub(super) fn has(&self, name: &str, wanted: Option<&str>) -> bool {
        let mut lines = self.answer.headers.iter().filter(|(given, _)| given.eq_ignore_ascii_case(name));
        lines.any(|(_, value)| wanted.is_none_or(|wanted| value.trim_ascii().eq_ignore_ascii_case(wanted.as_bytes())))
    }

    /// The text or number at a pointer.
    pub(super) fn at(&self, pointer: &str) -> Option<String> {
        let found = every(self.json.as_ref()?, pointer);
        found.into_iter().find_map(shown)
    }

    fn says(&self, wanted: &BodyMatch) -> bool {
        match wanted {
            BodyMatch::Json { at, is } => {
                let found = self.json.as_ref().map(|json| every(json, at)).unwrap_or_default();
                found.into_iter().filter_map(shown).any(|value| is.contains(&value))
            }
            BodyMatch::Holds(text) => body(self.answer)
                .is_some_and(|body| body.windows(text.len().max(1)).any(|window| window == text.as_bytes())),
        }
    }
}

fn body(answer: &Receipt) -> Option<&[u8]> {
    match &answer.body {
        Body::Kept(bytes) if bytes.len() <= BODY_LOOKED_INTO_BYTES_MAX => Some(bytes),
        Body::Kept(_) | Body::NotKept => None,
    }
}

fn shown(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(said) => Some(said.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// All values at a pointer (RFC 6901), in which the segment `*` stands for every item of an array.
fn every<'v>(root: &'v Value, pointer: &str) -> Vec<&'v Value> {
    let mut found = vec![root];
    for segment in pointer.split('/').skip(1) {
        let segment = segment.replace("~1", "/").replace("~0", "~");
        let step = |value: &'v Value| -> Vec<&'v Value> {
            match value {
                Value::Array(items) if segment == "*" => items.iter().collect(),
                Value::Array(items) => segment.parse::<usize>().ok().and_then(|at| items.get(at)).into_iter().collect(),
                Value::Object(members) => members.get(&segment).into_iter().collect(),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
            }
        };
        found = found.into_iter().flat_map(step).collect();
    }
    found
}
