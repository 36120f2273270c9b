//! What befalls the service until it is healed, and what a power cut and an old backup leave of its keys.
//!
//! What does not belong here: how a hook asks for it (`control.rs`).

use super::{Asked, Fault, Orders, Record, Told, problem};

/// What lasts until it is healed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Outage {
    Hold,
    Limit,
    FailBefore,
    FailAfter,
    StoreDown,
}

impl Outage {
    /// What a hook asks for by this name; nothing for `heal`.
    pub(super) fn named(name: &str) -> Option<Self> {
        match name {
            "hold" => Some(Self::Hold),
            "limit" => Some(Self::Limit),
            "fail-before" => Some(Self::FailBefore),
            "fail-after" => Some(Self::FailAfter),
            "store-down" => Some(Self::StoreDown),
            "heal" => None,
            other => panic!("no outage is called {other}"),
        }
    }
}

impl Orders {
    /// What is refused before anything runs; with a fault, what is refused is remembered.
    pub(super) fn refused(&self, name: Option<&String>, asked: &Asked) -> Option<Told> {
        let known = ["application/json", "application/x-www-form-urlencoded", "multipart/form-data"];
        let outage = self.book().outage;
        let (told, remembers) = match outage {
            _ if !known.iter().any(|kind| asked.kind.starts_with(kind)) => {
                (problem(415, "media-type"), Fault::MediaTypeRemembered)
            }
            Some(Outage::Limit) => (problem(429, "limited"), Fault::LimitRemembered),
            Some(Outage::FailBefore) => (problem(500, "failed"), Fault::FailureKept),
            Some(Outage::StoreDown) if self.is(Fault::StoreDownRuns) => return Some(self.run(asked)),
            Some(Outage::StoreDown) => return Some(problem(503, "store-down")),
            Some(Outage::Hold | Outage::FailAfter) | None => return None,
        };
        if let (true, Some(name)) = (self.is(remembers), name) {
            self.remember(name, asked, &told);
        }
        Some(told)
    }

    /// Keeps an answer to a request that never ran.
    pub(super) fn remember(&self, name: &str, asked: &Asked, told: &Told) {
        let mut book = self.book();
        let (fingerprint, at) = (self.fingerprint(asked), book.clock);
        let record = Record { fingerprint, told: Some(told.clone()), replays: 0, at };
        book.records.entry(name.to_owned()).or_insert(record);
    }

    /// Waits until nothing holds what would have an effect.
    pub(super) async fn while_held(&self) {
        self.until(|book| book.outage != Some(Outage::Hold)).await;
    }

    /// What an effect is answered with.
    pub(super) fn failed_after(&self, told: Told) -> Told {
        if self.book().outage == Some(Outage::FailAfter) { problem(500, "failed") } else { told }
    }

    pub(super) fn power_cut(&self) {
        if self.is(Fault::PowerCutForgets) {
            self.book().records.clear();
        }
    }

    pub(super) fn back_up(&self) {
        let mut book = self.book();
        book.backup = book.records.clone();
    }

    /// The effects are elsewhere, and stay.
    pub(super) fn restore(&self) {
        let mut book = self.book();
        if !self.is(Fault::RestoreKeeps) {
            book.records = book.backup.clone();
        }
    }
}
