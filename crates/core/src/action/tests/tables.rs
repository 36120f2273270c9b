//! Reads a table and compares each cell with what the rules answer. Which states and events there are belongs to
//! `catalogue`, what should come out to the tables themselves.

use std::collections::BTreeSet;

use crate::action::tests::catalogue::Case;
use crate::action::{Decision, Write};
use crate::policy::Effect;
use crate::record::{Author, Keyed, Record, State};

/// Compares `table` with the answers of `event`, which is called for every state and every column.
///
/// The first line names the columns and must be `columns` in order; every state must have exactly one line.
pub(super) fn check(table: &str, columns: &[&str], states: &[Case], event: impl Fn(&Case, &str) -> String) {
    let mut lines = table.lines().filter(|line| !line.trim().is_empty());
    let head: Vec<&str> = lines.next().unwrap_or_default().split_whitespace().skip(1).collect();
    assert_eq!(head, columns, "the table must have a column for every event");
    let mut judged = BTreeSet::new();
    let mut faults = Vec::new();
    for line in lines {
        let mut cells = line.split_whitespace();
        let name = cells.next().unwrap_or_default();
        let Some(state) = states.iter().find(|state| state.name == name) else { panic!("no state {name}") };
        assert!(judged.insert(name), "two lines for {name}");
        let cells: Vec<&str> = cells.collect();
        assert_eq!(cells.len(), columns.len(), "the line of {name} must have a cell for every column");
        for (column, expected) in columns.iter().zip(cells) {
            let found = event(state, column);
            if found != expected {
                faults.push(format!("{name} x {column}: expected {expected}, found {found}"));
            }
        }
    }
    let missing: Vec<&str> =
        states.iter().map(|state| state.name.as_str()).filter(|name| !judged.contains(name)).collect();
    assert_eq!(missing, Vec::<&str>::new(), "states without a line");
    assert_eq!(faults, Vec::<String>::new());
}

/// The generation in a cell, where there is one: `#3`, and `#3?` where a run of it is in doubt.
fn generation(keyed: Option<Keyed>) -> String {
    keyed.map_or(String::new(), |keyed| format!("#{}{}", keyed.generation, if keyed.doubt { "?" } else { "" }))
}

/// A decision in a cell: `execute:new` on nothing, `execute:over` in the place of what expired, `execute:takeover` to
/// go on with the same action, each with its generation; `+mark` where the lapse is made visible.
pub(super) fn decided(before: Option<&Record>, (decision, write): (Decision, Option<Write>)) -> String {
    let next = before.map_or(1, |record| record.version + 1);
    let word = match decision {
        Decision::Execute => match write {
            Some(Write::Claim { version, claimed_at, keyed }) => {
                assert_eq!(version, next);
                let generation = generation(keyed);
                match (before, claimed_at) {
                    (None, None) => return format!("execute:new{generation}"),
                    (Some(_), None) => return format!("execute:over{generation}"),
                    (Some(record), Some(first)) => {
                        assert_eq!(first, record.claimed_at);
                        return format!("execute:takeover{generation}");
                    }
                    (None, Some(_)) => panic!("nothing to go on with"),
                }
            }
            other => panic!("executes without a claim: {other:?}"),
        },
        Decision::Replay { receipt, expires_at } => {
            match before.map(|record| &record.state) {
                Some(State::Done { receipt: kept, expires_at: kept_until, .. }) => {
                    assert_eq!((&receipt, expires_at), (kept, *kept_until));
                }
                other => panic!("replays {other:?}"),
            }
            "replay".to_owned()
        }
        Decision::Mismatch => "mismatch".to_owned(),
        Decision::InProgress { .. } => "in-progress".to_owned(),
        Decision::Unknown { since, why } => {
            if let Some(Write::Put(record)) = &write {
                assert_eq!(record.state, State::Unknown { since, why });
            }
            format!("unknown:{}", why.as_str())
        }
        Decision::Expired { .. } => "expired".to_owned(),
        Decision::NeedsFingerprint(_) => "needs-rule".to_owned(),
    };
    match write {
        None => word,
        Some(Write::Put(after)) => {
            same_action(before, &after);
            assert_eq!(before.and_then(|before| before.keyed), after.keyed);
            format!("{word}+mark")
        }
        Some(other) => panic!("{word} writes {other:?}"),
    }
}

/// What a transition wrote, in a cell.
pub(super) fn written(before: Option<&Record>, write: &Write) -> String {
    match write {
        Write::Put(after) => {
            same_action(before, after);
            let word = match &after.state {
                State::Running => "running".to_owned(),
                State::Unknown { why, .. } => format!("unknown:{}", why.as_str()),
                State::Done { author: Author::Owner, .. } => "done".to_owned(),
                State::Done { author: Author::Operator, .. } => "done:operator".to_owned(),
                State::Spent { .. } => "spent".to_owned(),
            };
            word + &generation(after.keyed)
        }
        Write::Delete => "absent".to_owned(),
        Write::Claim { .. } => panic!("only a claim claims"),
    }
}

/// Every write raises the version by one and leaves identity, lease id, effect and first claim alone.
fn same_action(before: Option<&Record>, after: &Record) {
    let Some(before) = before else { panic!("a record out of nothing: {after:?}") };
    assert_eq!(after.version, before.version + 1);
    assert_eq!(after.lease.id, before.lease.id);
    assert_eq!(after.lease.attempt_until, before.lease.attempt_until);
    assert_eq!(after.fingerprint, before.fingerprint);
    assert_eq!(after.effect, before.effect);
    assert_eq!(after.claimed_at, before.claimed_at);
    assert_eq!(after.keyed.is_some(), after.effect == Effect::KeyedUpstream);
    let spans = |record: &Record| record.keyed.map(|keyed| (keyed.window, keyed.attempt_limit));
    assert_eq!(spans(after), spans(before));
}
