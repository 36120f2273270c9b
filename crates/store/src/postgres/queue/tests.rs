//! What goes together in one statement.

use std::collections::VecDeque;

use counterfoil_core::{Identity, Key, Operation, Scope};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::{Entry, distinct};
use crate::seam::{Expected, New, Swap};

fn entry(key: &str) -> Entry {
    let identity = Identity::new(Scope::single_tenant(), Operation::new("pay").unwrap(), Key::new(key).unwrap());
    let swap = Swap { identity, expected: Expected::Absent, new: New::Delete, not_after: None, note: None };
    Entry { swap, reply: oneshot::channel().0, deadline: Instant::now(), tries: 0, skips: false }
}

fn keys<'e>(entries: impl IntoIterator<Item = &'e Entry>) -> String {
    entries.into_iter().map(|entry| entry.swap.identity.key.as_str()).collect()
}

fn check(waiting: &str, most: usize, taken: &str, left: &str) {
    let mut queue: VecDeque<Entry> = waiting.chars().map(|key| entry(&key.to_string())).collect();
    let batch = distinct(&mut queue, most);
    assert_eq!((keys(&batch).as_str(), keys(&queue).as_str()), (taken, left), "{waiting} at most {most}");
}

#[test]
fn a_batch_holds_each_identity_once_and_in_order() {
    for (waiting, most, taken, left) in [
        ("", 4, "", ""),
        ("c", 4, "c", ""),
        ("cab", 4, "abc", ""),
        ("cab", 2, "ac", "b"),
        ("caacb", 4, "abc", "ac"),
        ("aaaa", 4, "a", "aaa"),
        ("aabb", 1, "a", "abb"),
    ] {
        check(waiting, most, taken, left);
    }
}
