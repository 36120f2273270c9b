//! The built-in files: each reads without a complaint, says where it is from, and each of its rules can hold.
//! What the verdicts are is in `verdicts`.

use counterfoil_client::profiles::{all, builtin, parse, text};
use counterfoil_core::Timestamp;
use counterfoil_core::profile::{Carrier, Encoding, Generator, reading};

use crate::verdicts::example;

const IDS: [&str; 15] = [
    "adyen",
    "aws-ec2",
    "checkout",
    "counterfoil",
    "gocardless",
    "ietf",
    "increase",
    "modern-treasury",
    "mollie",
    "oasis",
    "paypal-orders",
    "resend",
    "square-payments",
    "stripe-v1",
    "stripe-v2",
];

#[test]
fn every_file_is_read_under_its_own_name() {
    for id in IDS {
        let read = parse(text(id).unwrap()).unwrap_or_else(|complaints| panic!("{id}: {complaints}"));
        assert_eq!(read.id, id);
        assert_eq!(builtin(id), Some(&read));
    }
    assert_eq!(all().iter().map(|profile| profile.id.as_str()).collect::<Vec<_>>(), IDS);
    assert_eq!(builtin("nobody"), None);
    let files = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/profiles")).unwrap();
    assert_eq!(files.count(), IDS.len(), "every file is built in");
}

#[test]
fn every_promise_says_where_it_is_from() {
    for profile in all() {
        assert!(!profile.sources.is_empty(), "{}", profile.id);
        for source in &profile.sources {
            assert!(source.at.len() > 8 && source.checked.starts_with("2026-"), "{}: {source:?}", profile.id);
        }
    }
}

#[test]
fn every_rule_fits_an_answer_of_its_own() {
    for profile in all() {
        for rule in &profile.answers {
            let found = reading(&example(rule), profile, false);
            assert_eq!(found.rule.as_deref(), Some(rule.name.as_str()), "{}: hidden behind another rule", profile.id);
            assert_eq!(found.resource.is_some(), rule.resource.is_some(), "{}: {}", profile.id, rule.name);
        }
    }
}

#[test]
fn a_key_can_be_drawn_that_passes_the_profile_s_own_rule() {
    for profile in all() {
        let key = profile.key.draw([0x5a; 16], Timestamp::from_millis(1_790_000_000_000));
        assert_eq!(profile.key.lint(key.as_str()), Ok(key), "{}", profile.id);
    }
}

#[test]
fn keys_travel_as_each_provider_says() {
    let check = |id: &str, carrier: &str, most: usize, generate: Generator| {
        let key = &builtin(id).unwrap().key;
        let found = match &key.carrier {
            Carrier::Header { name, encoding: Encoding::Raw, first_sent: None } => name.clone(),
            Carrier::Header { name, encoding: Encoding::Raw, first_sent: Some(first) } => format!("{name} and {first}"),
            Carrier::Header { name, encoding: Encoding::Quoted, .. } => format!("{name}, quoted"),
            Carrier::Member(name) => format!("member {name}"),
            Carrier::Parameter(name) => format!("parameter {name}"),
        };
        assert_eq!((found.as_str(), key.bytes_max, key.generate), (carrier, most, generate), "{id}");
    };
    check("adyen", "idempotency-key", 64, Generator::Uuid4);
    check("aws-ec2", "parameter ClientToken", 64, Generator::Uuid7);
    check("checkout", "cko-idempotency-key", 255, Generator::Uuid4);
    check("counterfoil", "idempotency-key, quoted", 255, Generator::Uuid7);
    check("gocardless", "idempotency-key", 255, Generator::Uuid4);
    check("ietf", "idempotency-key, quoted", 255, Generator::Uuid7);
    check("increase", "idempotency-key", 200, Generator::Uuid7);
    check("modern-treasury", "idempotency-key", 255, Generator::Uuid7);
    check("mollie", "idempotency-key", 255, Generator::Uuid4);
    check("oasis", "repeatability-request-id and repeatability-first-sent", 255, Generator::Uuid7);
    check("paypal-orders", "paypal-request-id", 108, Generator::Uuid7);
    check("resend", "idempotency-key", 255, Generator::Uuid7);
    check("square-payments", "member idempotency_key", 45, Generator::Uuid7);
    check("stripe-v1", "idempotency-key", 255, Generator::Uuid4);
    check("stripe-v2", "idempotency-key", 255, Generator::Uuid7);
}
