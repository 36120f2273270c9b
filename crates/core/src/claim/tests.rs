//! When a key says it was first used, what a claim knows of its parameters, and what a draft becomes.
//! What a claim is answered is tested in `action`.

use super::*;
use crate::identity::{Operation, Scope};
use crate::record::tests::at;

/// The example of RFC 9562, appendix A.6: 2022-02-22T19:22:22Z.
const V7: &str = "017F22E2-79B0-7CC3-98C4-DC0C0C07398F";
const V7_AT: Timestamp = at(1_645_557_742);

fn claim_of(key: &str, rule: &str, body: &'static str) -> Claim {
    let scope = Scope::principal("north").unwrap();
    let identity = Identity::new(scope, Operation::new("web-order").unwrap(), Key::new(key).unwrap());
    Claim::new(identity, Asked::bytes(body), &rule.parse().unwrap()).unwrap()
}

#[test]
fn keys_are_dated() {
    let rows = [
        (V7, Some(V7_AT)),
        ("017f22e2-79b0-7cc3-98c4-dc0c0c07398f", Some(V7_AT)),
        ("00000000-0000-7000-8000-000000000000", Some(at(0))),
        ("ffffffff-ffff-7fff-bfff-ffffffffffff", Some(Timestamp::from_millis(0xffff_ffff_ffff))),
        // Other spellings of 128 bits are tokens that look like a UUIDv7 once in 64 times by chance.
        ("017F22E279B07CC398C4DC0C0C07398F", None),
        ("{017F22E2-79B0-7CC3-98C4-DC0C0C07398F}", None),
        ("urn:uuid:017F22E2-79B0-7CC3-98C4-DC0C0C07398F", None),
        // Version 7 in another variant.
        ("017F22E2-79B0-7CC3-18C4-DC0C0C07398F", None),
        ("017F22E2-79B0-7CC3-D8C4-DC0C0C07398F", None),
        // RFC 9562, appendix A.1 to A.5: versions 1, 4 and 6 (1 and 6 hold a time, but promise no order).
        ("C232AB00-9414-11EC-B3C8-9F6BDECED846", None),
        ("919108F7-52D1-4320-9BAC-F847DB4148A8", None),
        ("1EC9414C-232A-6B00-B3C8-9F6BDECED846", None),
        ("00000000-0000-0000-0000-000000000000", None),
        ("017F22E2-79B0-7CC3-98C4-DC0C0C07398", None),
        ("017F22E2-79B0-7CC3-98C4-DC0C0C07398F ", None),
        ("order-1234", None),
    ];
    for (key, expected) in rows {
        assert_eq!(claim_of(key, "bytes", "x").dated(), expected, "{key}");
    }
}

#[test]
fn the_carrier_s_date_comes_before_the_key_s() {
    assert_eq!(claim_of(V7, "bytes", "x").first_sent(at(7)).dated(), Some(at(7)));
    assert_eq!(claim_of("order-1234", "bytes", "x").first_sent(at(7)).dated(), Some(at(7)));
}

#[test]
fn a_claim_matches_only_under_a_rule_that_it_learned() {
    let recorded = claim_of("k", "json", r#"{"a":1,"b":2}"#).fingerprint().clone();
    let check = |rule: &str, body: &'static str, unlearned: Option<bool>, learned: bool| {
        let mut claim = claim_of("k", rule, body);
        assert_eq!(claim.matches(&recorded), unlearned, "{rule} {body}");
        claim.learn(recorded.rule());
        assert_eq!(claim.matches(&recorded), Some(learned), "{rule} {body}");
        claim.learn(recorded.rule());
        assert_eq!(claim.learned.len(), usize::from(unlearned.is_none()), "learned once");
    };
    check("json", r#"{"b":2.0,"a":1}"#, Some(true), true);
    check("json", r#"{"a":1}"#, Some(false), false);
    check("bytes", r#"{"b":2,"a":1}"#, None, true);
    check("bytes", r#"{"a":1}"#, None, false);
    check("bytes", "not json", None, false);
    check("json;ignore=/b", r#"{"a":1,"b":2}"#, None, true);
}

#[test]
fn a_body_that_its_own_rule_cannot_read_is_no_claim() {
    let identity = claim_of("k", "bytes", "x").identity().clone();
    assert!(Claim::new(identity, Asked::bytes("not json"), &"json".parse().unwrap()).is_err());
}

fn draft(dated: Option<Timestamp>) -> Draft {
    let policy = Policy { effect: Effect::Coupled, ..Policy::default() };
    let draft = Draft::new(
        &claim_of("k", "bytes", "x"),
        &policy,
        LeaseId::from_bytes([1; 16]),
        Some(Holder::from_bytes([2; 16])),
    );
    Draft { dated, ..draft }
}

#[test]
fn a_draft_becomes_a_running_record_with_times_from_the_store_s_now() {
    let record = draft(None).at(at(100), None);
    assert_eq!((record.version, record.effect, &record.state), (1, Effect::Coupled, &State::Running));
    assert_eq!(record.claimed_at, at(100));
    let expected = Lease {
        id: LeaseId::from_bytes([1; 16]),
        holder: Some(Holder::from_bytes([2; 16])),
        renewed_at: at(100),
        span: Duration::from_secs(30),
        until: at(130),
        attempt_until: at(160),
    };
    assert_eq!(record.lease, expected);
    let takeover = Draft { version: 5, claimed_at: Some(at(3)), ..draft(None) }.at(at(100), None);
    assert_eq!((takeover.version, takeover.claimed_at, takeover.lease), (5, at(3), expected));
}

#[test]
fn under_quarantine_only_a_key_shown_to_be_younger_runs() {
    let (now, before) = (at(10_000), at(9_000));
    let rows = [
        (None, false),
        (Some(at(8_999)), false),
        (Some(Timestamp::from_millis(8_999_999)), false),
        (Some(at(9_000)), true),
        (Some(at(10_000)), true),
        (Some(at(10_600)), true),
        // A date that lies ahead is no date: by chance, or of a clock that cannot be believed.
        (Some(Timestamp::from_millis(10_600_001)), false),
        (Some(Timestamp::MAX), false),
    ];
    for (dated, runs) in rows {
        let record = draft(dated).at(now, Some(before));
        assert_eq!(record.state == State::Running, runs, "{dated:?}");
        assert!(draft(dated).at(now, None).state == State::Running, "no quarantine: {dated:?}");
    }
}

#[test]
fn a_quarantined_record_is_unknown_with_nobody_running_it() {
    // What the store forgot began before the quarantine's instant and may still be sent for one attempt limit.
    for (now, attempt_until) in [(at(9_010), at(9_060)), (at(9_060), at(9_060)), (at(10_000), at(10_000))] {
        let record = draft(None).at(now, Some(at(9_000)));
        assert_eq!(record.state, State::Unknown { since: now, why: Why::Quarantined });
        assert_eq!((record.lease.holder, record.lease.until), (None, now));
        assert_eq!(record.lease.attempt_until, attempt_until);
    }
}
