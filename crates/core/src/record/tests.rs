//! Records to test with: by hand for tables, by chance for properties; and what a record is at a time.
//! What happens to records is tested in `action`, their bytes in `record/bytes`.

use ::bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::fingerprint::Rule;
use crate::receipt::Body;
use crate::record::Author;

pub(crate) const EFFECTS: [Effect; 3] = [Effect::Other, Effect::Coupled, Effect::KeyedUpstream];
pub(crate) const WHYS: [Why; 5] =
    [Why::Lapsed, Why::Doubted, Why::AnsweredWithoutSettle, Why::WindowClosed, Why::Quarantined];
pub(crate) const AUTHORS: [Author; 2] = [Author::Owner, Author::Operator];

/// Seconds since the epoch.
pub(crate) const fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(seconds * 1000)
}

fn rules() -> impl Strategy<Value = Rule> {
    prop::sample::select(vec![
        "bytes",
        "json",
        "json;ignore=/sent_at",
        "form",
        "multipart",
        "json;choose=/a;headers=x-b",
    ])
    .prop_map(|text| text.parse().unwrap())
}

/// Any fingerprint.
pub(crate) fn fingerprints() -> impl Strategy<Value = Fingerprint> {
    (rules(), any::<[u8; 32]>()).prop_map(|(rule, digest)| Fingerprint::from_parts(rule, digest))
}

fn octets(len_max: usize) -> impl Strategy<Value = Bytes> {
    vec(any::<u8>(), 0..len_max).prop_map(Bytes::from)
}

fn receipts() -> impl Strategy<Value = Receipt> {
    let body = prop_oneof![octets(40).prop_map(Body::Kept), Just(Body::NotKept)];
    (any::<u16>(), vec(("[a-z-]{0,12}", octets(12)), 0..4), body).prop_map(|(status, headers, body)| Receipt {
        status,
        headers: headers.into(),
        body,
    })
}

/// Windows that have closed, that close within the times that are drawn, and that never do.
fn keyeds() -> impl Strategy<Value = Keyed> {
    let window = prop_oneof![Just(0), 300_000..320_000_u64, any::<u64>()].prop_map(Duration::from_millis);
    let attempt_limit = prop_oneof![Just(0), 1..5_000_u64].prop_map(Duration::from_millis);
    (any::<u32>(), window, attempt_limit, any::<bool>()).prop_map(|(generation, window, attempt_limit, doubt)| Keyed {
        generation,
        window,
        attempt_limit,
        doubt,
    })
}

/// What a record of `effect` keeps for child keys, its window a day.
pub(crate) fn keyed(effect: Effect) -> Option<Keyed> {
    let (window, attempt_limit) = (Duration::from_hours(24), Duration::from_secs(60));
    (effect == Effect::KeyedUpstream).then_some(Keyed { generation: 3, window, attempt_limit, doubt: false })
}

fn leases<T: Strategy<Value = Timestamp> + Clone>(times: T) -> impl Strategy<Value = Lease> {
    let span = prop_oneof![Just(0), 1..100_000_u64, any::<u64>()].prop_map(Duration::from_millis);
    let holder = prop::option::of(any::<[u8; 16]>().prop_map(Holder::from_bytes));
    let id = any::<[u8; 16]>().prop_map(LeaseId::from_bytes);
    (id, holder, times.clone(), span, times.clone(), times).prop_map(
        |(id, holder, renewed_at, span, until, attempt_until)| Lease {
            id,
            holder,
            renewed_at,
            span,
            until,
            attempt_until,
        },
    )
}

fn states<T: Strategy<Value = Timestamp> + Clone + 'static>(times: T) -> impl Strategy<Value = State> {
    prop_oneof![
        Just(State::Running),
        (times.clone(), prop::sample::select(WHYS.to_vec())).prop_map(|(since, why)| State::Unknown { since, why }),
        (
            receipts(),
            prop::sample::select(AUTHORS.to_vec()),
            times.clone(),
            times.clone(),
            prop::option::of(times.clone())
        )
            .prop_map(|(receipt, author, completed_at, expires_at, refuse_until)| State::Done {
                receipt,
                author,
                completed_at,
                expires_at,
                refuse_until,
            }),
        times.prop_map(|until| State::Spent { until }),
    ]
}

/// Any record whose instants are drawn from `times` and whose fingerprint from `asked`.
pub(crate) fn records<T, F>(times: T, asked: F) -> impl Strategy<Value = Record>
where
    T: Strategy<Value = Timestamp> + Clone + 'static,
    F: Strategy<Value = Fingerprint>,
{
    let effect = prop::sample::select(EFFECTS.to_vec());
    (1..=u64::MAX, asked, (effect, keyeds()), times.clone(), leases(times.clone()), states(times)).prop_map(
        |(version, fingerprint, (effect, keyed), claimed_at, lease, state)| Record {
            version,
            fingerprint,
            effect,
            keyed: (effect == Effect::KeyedUpstream).then_some(keyed),
            claimed_at,
            lease,
            state,
        },
    )
}

fn done(expires_at: i64, refuse_until: Option<i64>) -> State {
    State::Done {
        receipt: Receipt::new(201, "x"),
        author: Author::Owner,
        completed_at: at(0),
        expires_at: at(expires_at),
        refuse_until: refuse_until.map(at),
    }
}

/// The seed's boundary: live at second 59 of 60, gone at 60; a lease and a refusal end in the same way.
#[test]
fn an_end_is_the_first_instant_that_is_over() {
    let rows = [
        (State::Running, 59, "running"),
        (State::Running, 60, "unknown"),
        (done(60, None), 59, "done"),
        (done(60, None), 60, "absent"),
        (done(60, Some(90)), 59, "done"),
        (done(60, Some(90)), 60, "expired"),
        (done(60, Some(90)), 89, "expired"),
        (done(60, Some(90)), 90, "absent"),
        (done(60, Some(60)), 60, "absent"),
        (State::Spent { until: at(90) }, 89, "expired"),
        (State::Spent { until: at(90) }, 90, "absent"),
        (State::Unknown { since: at(0), why: Why::Doubted }, 1_000_000_000, "unknown"),
    ];
    for (state, second, expected) in rows {
        let record = sample(Effect::Other, state, 60);
        assert_eq!(record.standing(Now::at(at(second))).as_str(), expected, "{:?} at {second}", record.state);
    }
    for effect in [Effect::Coupled, Effect::KeyedUpstream] {
        let record = sample(effect, State::Running, 60);
        assert_eq!(record.standing(Now::at(at(59))).as_str(), "running");
        assert_eq!(record.standing(Now::at(at(60))).as_str(), "lapsed");
    }
}

fn sample(effect: Effect, state: State, until: i64) -> Record {
    Record {
        version: 1,
        fingerprint: Fingerprint::from_parts("bytes".parse().unwrap(), [0; 32]),
        effect,
        keyed: keyed(effect),
        claimed_at: at(0),
        lease: Lease {
            id: LeaseId::from_bytes([1; 16]),
            holder: None,
            renewed_at: at(0),
            span: Duration::from_secs(60),
            until: at(until),
            attempt_until: at(until),
        },
        state,
    }
}

#[test]
fn a_lease_is_judged_by_one_clock_and_retention_by_the_other() {
    let frozen = Now { at: at(1_000), expiry_at: at(0) };
    assert_eq!(sample(Effect::Other, State::Running, 60).standing(frozen).as_str(), "unknown");
    assert_eq!(sample(Effect::Other, done(60, None), 60).standing(frozen).as_str(), "done");
    assert_eq!(sample(Effect::Other, State::Spent { until: at(60) }, 60).standing(frozen).as_str(), "expired");
}

proptest! {
    /// What a sweep selects by is exactly where the record's standing first changes.
    #[test]
    fn sweep_at_is_where_a_settled_record_may_change(record in records((0..50_i64).prop_map(at), fingerprints()), now in 0..50_i64) {
        let standing = record.standing(Now::at(at(now)));
        match (&record.state, record.sweep_at()) {
            (State::Running | State::Unknown { .. }, due) => prop_assert_eq!(due, None),
            (State::Done { .. }, Some(due)) => prop_assert_eq!(at(now) < due, standing.as_str() == "done"),
            (State::Spent { .. }, Some(due)) if record.keyed.is_some() => prop_assert_eq!(due, Timestamp::MAX),
            (State::Spent { .. }, Some(due)) => prop_assert_eq!(at(now) < due, standing.as_str() == "expired"),
            (State::Done { .. } | State::Spent { .. }, None) => prop_assert!(false, "never swept"),
        }
    }
}

/// Window 24 h, one run 60 s: the last run begins 5 minutes and 60 s before the window ends. A run that may take longer
/// than that margin is given its own length as the margin.
#[test]
fn a_child_key_is_sent_only_while_the_upstream_remembers_it() {
    let closes = 86_400 - 300 - 60;
    let rows = [
        (60, closes - 1, "lapsed"),
        (60, closes, "unknown"),
        (600, 86_400 - 1_201, "lapsed"),
        (600, 86_400 - 1_200, "unknown"),
    ];
    for (limit, second, expected) in rows {
        let mut record = sample(Effect::KeyedUpstream, State::Running, 60);
        record.keyed = record.keyed.map(|keyed| Keyed { attempt_limit: Duration::from_secs(limit), ..keyed });
        assert_eq!(record.standing(Now::at(at(second))).as_str(), expected, "{limit} {second}");
        assert_eq!(record.closed_at(at(second)).is_some(), expected == "unknown", "{limit} {second}");
    }
    let short =
        Keyed { generation: 0, window: Duration::from_secs(359), attempt_limit: Duration::from_secs(60), doubt: true };
    assert_eq!(short.sends_for(), Duration::ZERO, "no run fits");
}
