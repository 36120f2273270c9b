//! Rules and answers as tables, on a profile made here. What real providers say is tested where their files are.

mod keys;
mod reading;
mod recipes;

use super::*;
use crate::identity::KEY_BYTES_MAX;

/// A profile that says nothing but where its key stands, changed by `change`.
pub(crate) fn profile(change: impl FnOnce(&mut Profile)) -> Profile {
    let mut profile = Profile {
        id: "test".to_owned(),
        version: 1,
        title: "Test".to_owned(),
        sources: Vec::new(),
        notes: Vec::new(),
        key: KeyRule {
            carrier: Carrier::Header { name: "idempotency-key".to_owned(), encoding: Encoding::Raw, first_sent: None },
            bytes_min: 1,
            bytes_max: KEY_BYTES_MAX,
            length_said: false,
            format: Format::Any,
            generate: Generator::Uuid7,
        },
        methods: Vec::new(),
        scope: Vec::new(),
        window: None,
        wait_min: Duration::ZERO,
        marker: None,
        advice: None,
        remembers: Vec::new(),
        answers: Vec::new(),
        lookup: None,
        cancel: None,
    };
    change(&mut profile);
    profile
}
