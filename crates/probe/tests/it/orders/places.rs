//! What the service has beside its operations: what was made is changed and deleted, results are looked up and actions
//! cancelled by their keys, and it describes itself.
//!
//! What does not belong here: operations with an effect.

use hyper::{Method, Uri};
use serde_json::{Value, json};

use super::{Fault, Orders, Told, problem};

impl Orders {
    /// The answer of a place that is no operation.
    pub(super) fn beside(&self, method: &Method, uri: &Uri) -> Option<Told> {
        let steps: Vec<&str> = uri.path().split('/').skip(1).collect();
        let json = |status: u16, body: Value| {
            Some(Told { status, kind: "application/json", headers: Vec::new(), body: body.to_string() })
        };
        match (method.as_str(), steps.as_slice()) {
            ("GET", ["openapi.json"]) => {
                let name = if self.is(Fault::DescriptionSilent) { "X-Other" } else { "Idempotency-Key" };
                json(200, json!({"parameters": [{"in": "header", "name": name}]}))
            }
            ("GET", ["keys", key]) => self.looked_up(key).or_else(|| Some(problem(404, "unknown-key"))),
            ("POST", ["keys", key, "cancel"]) => {
                if !self.is(Fault::CancelIgnored) {
                    self.book().cancelled.insert((*key).to_owned());
                }
                json(200, json!({}))
            }
            ("PATCH", ["orders", id]) => {
                self.book().changed.insert((*id).to_owned());
                json(200, json!({}))
            }
            ("DELETE", ["orders", id]) => {
                let made = json!({"id": id.parse::<u64>().unwrap_or_default()}).to_string();
                if self.is(Fault::DeletedRunsAgain) {
                    self.book().records.retain(|_, record| record.told.as_ref().is_none_or(|told| told.body != made));
                }
                json(200, json!({}))
            }
            _ => None,
        }
    }

    fn looked_up(&self, key: &str) -> Option<Told> {
        let book = self.book();
        let found = book.records.iter().find(|(name, _)| name.ends_with(key) && !self.is(Fault::LookupEmpty));
        found.and_then(|(_, record)| record.told.clone())
    }

    /// The body of a replay: what it was, whatever became of it since.
    pub(super) fn shown(&self, told: &Told, changed: &std::collections::HashSet<String>) -> String {
        let mut body: Value = serde_json::from_str(&told.body).unwrap_or_default();
        let id = body.get("id").map(Value::to_string).unwrap_or_default();
        if self.is(Fault::ReplayShowsCurrent) && changed.contains(&id) {
            body["changed"] = true.into();
            return body.to_string();
        }
        told.body.clone()
    }
}
