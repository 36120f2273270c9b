//! What a key that is known gets: waiting, a mismatch, the result, or nothing where its time is over.
//!
//! What does not belong here: the first run (`shop.rs`).

use serde_json::json;

use super::{Asked, Flaw, LEASE, Record, Shop, Told, WINDOW, problem};

impl Shop {
    /// The answer to a known key. Nothing where the request shall run: then the key is taken.
    pub(super) fn known(&self, name: &str, asked: &Asked) -> Option<Told> {
        let mut book = self.book();
        let now = book.now;
        let fresh = Record { fingerprint: asked.fingerprint.clone(), told: None, at: now, purged: false };
        let record = book.records.get(name).cloned();
        let deleted = record.as_ref().and_then(|record| record.told.as_ref()?.id);
        let deleted = deleted.is_some_and(|id| book.deleted.contains(&id));
        match record.filter(|record| !self.over(record, now)) {
            Some(record) if !(deleted && self.is(Flaw::RunsAfterDelete)) => {
                let answer = self.of(&record, asked, &book.changed);
                if answer.is_none() {
                    book.records.insert(name.to_owned(), fresh);
                }
                answer
            }
            Some(_) | None => {
                let stale = book.records.insert(name.to_owned(), fresh).filter(|_| !deleted);
                let differs = stale.is_some_and(|stale| stale.fingerprint != asked.fingerprint);
                (differs && self.is(Flaw::ExpiredStillCompared)).then(|| problem(422, "mismatch"))
            }
        }
    }

    /// Whether a record's time is over.
    fn over(&self, record: &Record, now: u64) -> bool {
        let age = now - record.at;
        match (&record.told, self.flaw) {
            (None, Flaw::LockExpires) => age >= LEASE,
            (None, Flaw::ExpiresWhileRunning) => age >= WINDOW,
            (None, _) | (Some(_), Flaw::NeverExpires) => false,
            (Some(_), Flaw::ExpiresEarly) => age >= WINDOW / 2,
            (Some(_), _) => age >= WINDOW,
        }
    }

    fn of(&self, record: &Record, asked: &Asked, changed: &std::collections::HashSet<u64>) -> Option<Told> {
        if record.fingerprint != asked.fingerprint {
            return (!self.is(Flaw::ComparesAllAndRuns)).then(|| problem(422, "mismatch"));
        }
        let Some(told) = &record.told else {
            return match self.flaw {
                Flaw::HeldRuns => None,
                Flaw::HeldFails => Some(problem(500, "in-progress")),
                _ => Some(problem(409, "in-progress")),
            };
        };
        match (record.purged, self.flaw) {
            (true, Flaw::PurgedRuns) => return None,
            (true, Flaw::PurgedReplays) | (false, _) => {}
            (true, _) => return Some(problem(410, "result-gone")),
        }
        let shows = told.id.is_some_and(|id| changed.contains(&id)) && self.is(Flaw::ReplayShowsChange);
        let body = json!({"id": told.id, "changed": true}).to_string();
        Some(if shows { Told { body, ..told.clone() } } else { told.clone() })
    }
}
