//! Tests of the fingerprint: the request they ask with, and the one `check` that all tables use.
//!
//! What does not belong here: the tables themselves (one file per kind of body).

mod forms;
mod json;
mod parts;
mod properties;
mod reports;
mod rules;
mod uploads;
mod vectors;

use super::{BodyError, Fingerprint, Parts, Rule};

/// A request that owns its parts.
#[derive(Clone, Debug)]
struct Ask {
    method: String,
    operation: String,
    path: String,
    query: String,
    headers: Vec<(String, Vec<u8>)>,
    body: Vec<u8>,
}

impl Ask {
    fn new(media: &str, body: impl AsRef<[u8]>) -> Ask {
        let ask = Ask {
            method: "POST".into(),
            operation: "create-order".into(),
            path: "/orders".into(),
            query: String::new(),
            headers: Vec::new(),
            body: body.as_ref().to_vec(),
        };
        if media.is_empty() { ask } else { ask.with("content-type", media) }
    }

    fn json(body: impl AsRef<[u8]>) -> Ask {
        Ask::new("application/json", body)
    }

    fn form(body: impl AsRef<[u8]>) -> Ask {
        Ask::new("application/x-www-form-urlencoded", body)
    }

    fn with(mut self, name: &str, value: impl AsRef<[u8]>) -> Ask {
        self.headers.push((name.into(), value.as_ref().to_vec()));
        self
    }

    fn under(&self, rule: &Rule) -> Result<Fingerprint, BodyError> {
        let headers: Vec<(&str, &[u8])> =
            self.headers.iter().map(|(name, value)| (name.as_str(), value.as_slice())).collect();
        rule.fingerprint(&Parts {
            method: &self.method,
            operation: &self.operation,
            path: &self.path,
            query: &self.query,
            headers: &headers,
            body: &self.body,
        })
    }
}

fn rule(text: &str) -> Rule {
    text.parse().unwrap()
}

/// How a second request relates to the one that the record was made for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Is {
    Same,
    Different,
}

/// Judges `second` as the gate does: under the rule that is stored with the first one's fingerprint.
fn relation(text: &str, first: &Ask, second: &Ask) -> Is {
    let rule = rule(text);
    let stored = first.under(&rule).unwrap();
    let reread = Fingerprint::from_parts(stored.rule().as_text().parse().unwrap(), *stored.digest());
    assert_eq!(reread, stored, "the stored text gives the same rule");
    assert_eq!(first.under(stored.rule()).unwrap(), stored, "an honest retry is equal");
    match second.under(stored.rule()) {
        Ok(fingerprint) if fingerprint == stored => Is::Same,
        Ok(_) | Err(_) => Is::Different,
    }
}

/// Both ways round: a relation does not depend on which request came first.
fn check(text: &str, first: &Ask, second: &Ask, expected: Is) {
    assert_eq!(relation(text, first, second), expected, "{text}: {first:?} then {second:?}");
    if second.under(&rule(text)).is_ok() {
        assert_eq!(relation(text, second, first), expected, "{text}: {second:?} then {first:?}");
    }
}
