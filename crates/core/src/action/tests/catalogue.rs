//! All states that a record can be in, by name, and the claims to try on them. What comes out belongs to the tables.

use std::time::Duration;

use crate::claim::{Asked, Claim};
use crate::identity::{Identity, Key, Operation, Scope};
use crate::policy::Effect;
use crate::receipt::Receipt;
use crate::record::tests::{AUTHORS, EFFECTS, WHYS, at, keyed};
use crate::record::{Author, Holder, Keyed, Lease, LeaseId, Record, State, Why};
use crate::time::{Now, Timestamp};

pub(super) const NOW: Timestamp = at(1_000);
pub(super) const MINE: LeaseId = LeaseId::from_bytes([1; 16]);
pub(super) const OTHERS: LeaseId = LeaseId::from_bytes([2; 16]);
pub(super) const HOME: Holder = Holder::from_bytes([3; 16]);
pub(super) const ELSEWHERE: Holder = Holder::from_bytes([4; 16]);
pub(super) const LEASE: Duration = Duration::from_secs(30);
pub(super) const ATTEMPT: Duration = Duration::from_secs(60);
/// The age at which a lease of [`LEASE`] is over, to the instant.
pub(super) const OVER: u64 = 30;

/// A state by name.
pub(super) struct Case {
    pub(super) name: String,
    pub(super) record: Option<Record>,
}

/// A clock that was stepped: leases go on, retention stands where everything was still promised.
pub(super) const FROZEN: Now = Now { at: NOW, expiry_at: at(0) };

pub(super) const fn effect_name(effect: Effect) -> &'static str {
    match effect {
        Effect::Other => "other",
        Effect::Coupled => "coupled",
        Effect::KeyedUpstream => "keyed",
    }
}

const fn author_name(author: Author) -> &'static str {
    match author {
        Author::Owner => "owner",
        Author::Operator => "operator",
    }
}

/// A record whose lease was taken `age` seconds ago.
pub(super) fn record(effect: Effect, state: State, age: u64) -> Record {
    let renewed_at = NOW.minus(Duration::from_secs(age));
    Record {
        version: 7,
        fingerprint: claim("json", SAME).fingerprint().clone(),
        effect,
        keyed: keyed(effect),
        claimed_at: renewed_at.minus(Duration::from_secs(5)),
        lease: Lease {
            id: MINE,
            holder: Some(HOME),
            renewed_at,
            span: LEASE,
            until: renewed_at.plus(LEASE),
            attempt_until: renewed_at.plus(ATTEMPT),
        },
        state,
    }
}

pub(super) fn receipt() -> Receipt {
    Receipt::new(201, "made").with_header("location", "/orders/1")
}

pub(super) fn done(author: Author, expires_at: Timestamp, refuse_until: Option<Timestamp>) -> State {
    let completed_at = at(900);
    State::Done { receipt: receipt(), author, completed_at, expires_at, refuse_until }
}

pub(super) fn unknown(why: Why) -> State {
    State::Unknown { since: at(990), why }
}

/// A lease that was ended because its process is gone.
pub(super) fn ended(mut record: Record) -> Record {
    record.lease = Lease { holder: None, span: Duration::ZERO, until: NOW.min(record.lease.until), ..record.lease };
    record
}

/// A lease in a store that cannot tell processes apart.
pub(super) fn unheld(mut record: Record) -> Record {
    record.lease.holder = None;
    record
}

/// Every state, settled ones on both sides of each of their boundaries.
pub(super) fn states() -> Vec<Case> {
    let mut states = vec![Case { name: "absent".to_owned(), record: None }];
    let mut add = |name: String, record: Record| states.push(Case { name, record: Some(record) });
    for effect in EFFECTS {
        let name = effect_name(effect);
        add(format!("running.{name}"), record(effect, State::Running, OVER - 1));
        add(format!("lapsed.{name}"), record(effect, State::Running, OVER));
        add(format!("ended.{name}"), ended(record(effect, State::Running, 1)));
    }
    for why in WHYS {
        add(format!("unknown.{}", why.as_str()), record(Effect::Other, unknown(why), OVER));
    }
    let (live, over) = (NOW.plus(Duration::from_millis(1)), NOW);
    for author in AUTHORS {
        let name = author_name(author);
        let mut settled = |word: &str, expires_at, refuse_until| {
            add(format!("{word}.{name}"), record(Effect::Other, done(author, expires_at, refuse_until), 100));
        };
        settled("done", live, None);
        settled("done-refuse", live, Some(live.plus(LEASE)));
        settled("over", over, None);
        settled("refused", over, Some(live));
        settled("past", over.minus(LEASE), Some(over));
    }
    add("spent".to_owned(), record(Effect::Other, State::Spent { until: live }, 100));
    add("spent-past".to_owned(), record(Effect::Other, State::Spent { until: over }, 100));
    states.extend(keyed_states());
    states
}

/// The same record, an earlier run of whose generation is in doubt; its child key is sent for this much longer.
pub(super) fn doubted(record: Record, open_for: Duration) -> Record {
    let since = NOW.plus(open_for).since(record.claimed_at);
    let keyed = record.keyed.map(|keyed| {
        let spare = keyed.window - keyed.sends_for();
        Keyed { doubt: true, window: since + spare, ..keyed }
    });
    Record { keyed, ..record }
}

/// What only actions with child keys can be in: in doubt, with the window open to the last instant or closed at it, and
/// spent for ever.
fn keyed_states() -> Vec<Case> {
    let mut states = Vec::new();
    let keyed = |state, age| record(Effect::KeyedUpstream, state, age);
    let mut add =
        |name: &str, record: Record| states.push(Case { name: format!("{name}.keyed"), record: Some(record) });
    let instant = Duration::from_millis(1);
    let (live, over) = (NOW.plus(instant), NOW);
    for (name, open_for) in [("doubted", instant), ("closed", Duration::ZERO)] {
        add(name, doubted(keyed(State::Running, OVER - 1), open_for));
        add(&format!("lapsed-{name}"), doubted(keyed(State::Running, OVER), open_for));
        add(&format!("unknown-{name}"), doubted(keyed(unknown(Why::WindowClosed), OVER), open_for));
        add(&format!("spent-{name}"), doubted(keyed(State::Spent { until: Timestamp::MIN }, OVER), open_for));
    }
    for (name, expires_at, refuse_until) in
        [("done", live, None), ("over", over, None), ("refused", over, Some(live)), ("past", over, Some(over))]
    {
        add(name, keyed(done(Author::Owner, expires_at, refuse_until), 100));
    }
    add("spent", keyed(State::Spent { until: Timestamp::MIN }, 100));
    add("spent-refused", keyed(State::Spent { until: live }, 100));
    add("spent-past", keyed(State::Spent { until: over }, 100));
    states
}

pub(super) const SAME: &str = r#"{"quantity":2}"#;
pub(super) const DIFFERENT: &str = r#"{"quantity":3}"#;

pub(super) fn identity() -> Identity {
    let scope = Scope::principal("north").unwrap();
    Identity::new(scope, Operation::new("web-order").unwrap(), Key::new("intent-a").unwrap())
}

/// A claim under today's `rule`.
pub(super) fn claim(rule: &str, body: &'static str) -> Claim {
    Claim::new(identity(), Asked::bytes(body), &rule.parse().unwrap()).unwrap()
}

/// A claim under another rule than the record's, which has learned the record's.
pub(super) fn learned(body: &'static str) -> Claim {
    let mut claim = claim("bytes", body);
    claim.learn(&"json".parse().unwrap());
    claim
}
