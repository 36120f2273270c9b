//! Stored bytes: a fixture of each state, round trips, and everything that can be wrong with bytes.
//! What a record means is tested in `action`.

use std::fmt::Write as _;

use ::bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;

use sha2::{Digest as _, Sha256};
use std::time::Duration;

use super::*;
use crate::codec::CHECKSUM_BYTES;
use crate::receipt::{Body, Receipt};
use crate::record::tests::{AUTHORS, EFFECTS, WHYS, fingerprints, records};
use crate::record::{Holder, Lease, LeaseId};
use crate::time::Timestamp;

fn ms(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn fixture(effect: Effect, rule: &str, state: State) -> Record {
    Record {
        version: 3,
        fingerprint: Fingerprint::from_parts(rule.parse().unwrap(), [0xab; 32]),
        effect,
        keyed: (effect == Effect::KeyedUpstream).then_some(Keyed::UNWRITTEN),
        claimed_at: ms(1_700_000_000_001),
        lease: Lease {
            id: LeaseId::from_bytes(*b"0123456789abcdef"),
            holder: Some(Holder::from_bytes(*b"fedcba9876543210")),
            renewed_at: ms(1_700_000_010_002),
            span: Duration::from_secs(30),
            until: ms(1_700_000_040_002),
            attempt_until: ms(1_700_000_060_001),
        },
        state,
    }
}

/// One record of each state, author, reason and effect, by name.
fn fixtures() -> Vec<(String, Record)> {
    let mut all = Vec::new();
    for effect in EFFECTS {
        all.push((format!("running-{effect:?}"), fixture(effect, "json;ignore=/sent_at", State::Running)));
    }
    let mut ended = fixture(Effect::Other, "bytes", State::Running);
    ended.lease = Lease { holder: None, span: Duration::ZERO, ..ended.lease };
    all.push(("running-ended".to_owned(), ended));
    for why in WHYS {
        let state = State::Unknown { since: ms(1_700_000_040_002), why };
        all.push((format!("unknown-{}", why.as_str()), fixture(Effect::Other, "bytes", state)));
    }
    let kept =
        Receipt::new(201, &b"{\"id\":1}"[..]).with_header("Location", "/orders/1").with_header("link", &[0xff][..]);
    let not_kept = Receipt { status: 200, headers: std::sync::Arc::default(), body: Body::NotKept };
    for author in AUTHORS {
        for (name, receipt, refuse_until) in
            [("kept", &kept, None), ("not-kept", &not_kept, Some(ms(1_702_678_460_000)))]
        {
            let (completed_at, expires_at) = (ms(1_700_000_060_000), ms(1_700_086_460_000));
            let state = State::Done { receipt: receipt.clone(), author, completed_at, expires_at, refuse_until };
            all.push((format!("done-{author:?}-{name}"), fixture(Effect::Coupled, "json", state)));
        }
    }
    let spent = State::Spent { until: ms(1_702_678_460_000) };
    all.push(("spent".to_owned(), fixture(Effect::Other, "form", spent)));
    all
}

/// One record of each state that keeps child keys.
fn keyed_fixtures() -> Vec<(String, Record)> {
    let states = [
        ("running", State::Running),
        ("unknown", State::Unknown { since: ms(1_700_000_040_002), why: Why::WindowClosed }),
        (
            "done",
            State::Done {
                receipt: Receipt::new(201, "made"),
                author: Author::Owner,
                completed_at: ms(1_700_000_060_000),
                expires_at: ms(1_700_086_460_000),
                refuse_until: None,
            },
        ),
        ("spent", State::Spent { until: Timestamp::MIN }),
    ];
    let mut all = Vec::new();
    for (name, state) in states {
        for (generation, doubt) in [(0, false), (u32::MAX, true)] {
            let (window, attempt_limit) = (Duration::from_hours(24), Duration::from_secs(60));
            let keyed = Some(Keyed { generation, window, attempt_limit, doubt });
            let record = Record { keyed, ..fixture(Effect::KeyedUpstream, "json", state.clone()) };
            all.push((format!("{name}-{generation}-{doubt}"), record));
        }
    }
    all
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

/// What a version wrote is read for ever, and written alike by this one.
#[test]
fn stored_records_are_read_and_written_alike() {
    check("src/record/bytes/v1.hex", 1, &fixtures());
    check("src/record/bytes/v2.hex", 2, &keyed_fixtures());
}

/// `COUNTERFOIL_BLESS=1` rewrites the newest format's file, which only a new format may need.
#[expect(clippy::disallowed_methods, reason = "whether to rewrite the fixture is asked of the environment")]
fn check(path: &str, format: u8, expected: &[(String, Record)]) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    if format == FORMAT_NEWEST && std::env::var("COUNTERFOIL_BLESS").is_ok_and(|bless| bless == "1") {
        let lines = expected.iter().map(|(name, record)| format!("{name} {}\n", hex(&encode(record))));
        std::fs::write(&path, lines.collect::<String>()).unwrap();
    }
    let text = std::fs::read_to_string(&path).unwrap();
    let stored: Vec<(&str, Vec<u8>)> =
        text.lines().map(|line| line.split_once(' ').unwrap()).map(|(name, bytes)| (name, unhex(bytes))).collect();
    assert_eq!(stored.len(), expected.len());
    for ((name, bytes), (expected_name, record)) in stored.iter().zip(expected) {
        assert_eq!((name, bytes[0]), (&expected_name.as_str(), format));
        assert_eq!(decode(bytes).as_ref(), Ok(record), "{name} is read");
        assert_eq!(hex(&encode(record)), hex(bytes), "{name} is written");
    }
}

#[test]
fn every_cut_and_every_changed_byte_is_an_error() {
    for (name, record) in fixtures().into_iter().chain(keyed_fixtures()) {
        let bytes = encode(&record);
        for cut in 0..bytes.len() {
            let cut_short = decode(&bytes[..cut]);
            assert!(matches!(cut_short, Err(Error::Corrupt(_))), "{name} cut at {cut}: {cut_short:?}");
        }
        for at in 0..bytes.len() {
            for mask in [0x01, 0x80, 0xff] {
                let mut changed = bytes.clone();
                changed[at] ^= mask;
                assert!(decode(&changed).is_err(), "{name} with byte {at} changed by {mask:#x}");
            }
        }
        let longer = [bytes.as_slice(), &[0]].concat();
        assert_eq!(decode(&longer), Err(Error::Corrupt("checksum")), "{name} with a byte more");
    }
}

/// Bytes with a checksum that is right, so that the fields themselves are judged.
fn sealed(fields: &[u8]) -> Vec<u8> {
    [fields, &Sha256::digest(fields)[..CHECKSUM_BYTES]].concat()
}

fn unsealed(record: &Record) -> Vec<u8> {
    let bytes = encode(record);
    bytes[..bytes.len() - CHECKSUM_BYTES].to_vec()
}

#[test]
fn a_newer_format_says_so_and_is_never_corrupt() {
    let (_, record) = fixtures().remove(0);
    for found in FORMAT_NEWEST + 1..=u8::MAX {
        let mut bytes = encode(&record);
        bytes[0] = found;
        assert_eq!(decode(&bytes), Err(Error::Newer { found, known: FORMAT_NEWEST }));
        assert_eq!(decode(&[found]), Err(Error::Newer { found, known: FORMAT_NEWEST }), "whatever follows");
    }
    let mut bytes = unsealed(&record);
    bytes[0] = 0;
    assert_eq!(decode(&sealed(&bytes)), Err(Error::Corrupt("format")));
}

#[test]
fn fields_cut_short_or_too_long_are_corrupt_behind_a_right_checksum() {
    for (name, record) in fixtures().into_iter().chain(keyed_fixtures()) {
        let fields = unsealed(&record);
        for cut in 1..fields.len() {
            assert!(matches!(decode(&sealed(&fields[..cut])), Err(Error::Corrupt(_))), "{name} cut at {cut}");
        }
        let longer = [fields.as_slice(), &[0]].concat();
        assert_eq!(decode(&sealed(&longer)), Err(Error::Corrupt("trailing bytes")), "{name}");
    }
}

/// Every field of eight bytes is in turn said to be as long or as many as can be: an answer, and at once.
#[test]
fn absurd_lengths_and_counts_are_refused_without_being_believed() {
    for (name, record) in fixtures().into_iter().chain(keyed_fixtures()) {
        let fields = unsealed(&record);
        for at in 1..fields.len() - 8 {
            for absurd in [u64::MAX, u64::MAX / 2, 1 << 40] {
                let mut changed = fields.clone();
                changed[at..at + 8].copy_from_slice(&absurd.to_be_bytes());
                if changed != fields
                    && let Ok(read) = decode(&sealed(&changed))
                {
                    assert_ne!(read, record, "{name} at {at}: a field that nobody reads");
                }
            }
        }
    }
    let receipt = Receipt { status: 200, headers: std::sync::Arc::default(), body: Body::NotKept };
    let mut counted = Writer(Vec::new());
    counted.receipt(&receipt);
    counted.0[8..16].copy_from_slice(&u64::MAX.to_be_bytes());
    assert!(Reader(&counted.0).receipt().is_err(), "a count of headers that are not there");
}

#[test]
fn words_that_no_version_wrote_are_corrupt() {
    let (_, running) = fixtures().remove(0);
    let fields = unsealed(&running);
    let state_at = fields.len() - 1;
    for word in [0, 5, 255] {
        let mut changed = fields.clone();
        changed[state_at] = word;
        assert_eq!(decode(&sealed(&changed)), Err(Error::Corrupt("state")));
    }
    let check = |word, read: fn(&mut Reader<'_>) -> Option<Error>, parts: &[&[u8]]| {
        assert_eq!(read(&mut Reader(&parts.concat())), Some(Error::Corrupt(word)));
    };
    check("why", |reader| reader.why().err(), &[&[0]]);
    check("why", |reader| reader.why().err(), &[&[6]]);
    check("id", |reader| reader.id().err(), &[&15_u64.to_be_bytes(), &[1; 15]]);
    check("text", |reader| reader.text().err(), &[&1_u64.to_be_bytes(), &[0xff]]);
    check("status", |reader| reader.receipt().err(), &[&0x1_0000_u64.to_be_bytes()]);
}

/// Each rule has one text. Another one was not written by any version, and could not be written back as it stood.
#[test]
fn a_rule_in_another_spelling_is_corrupt() {
    let (_, record) = fixtures().remove(0);
    let fields = unsealed(&record);
    let written = record.fingerprint.rule().as_text();
    let with = |rule: &str| {
        let (head, rest) = fields.split_at(9);
        let tail = &rest[8 + written.len()..];
        decode(&sealed(&[head, &(rule.len() as u64).to_be_bytes(), rule.as_bytes(), tail].concat()))
    };
    assert_eq!(with(&written).as_ref(), Ok(&record));
    for rule in [
        "json;ignore=%2Fsent_at",
        "json;ignore=/sent\0at",
        "json;ignore=/sent%5fat",
        "json;ignore=/b,/a",
        "json;ignore=/a,/a/b",
        "json;headers=X-A",
        "json;headers=a,a",
        "json;headers=a;ignore=/a",
        "json;",
        "sent_at",
        "",
    ] {
        assert_eq!(with(rule), Err(Error::Corrupt("rule")), "{rule:?}");
    }
}

proptest! {
    #[test]
    fn any_record_survives_its_bytes(record in records(any::<i64>().prop_map(Timestamp::from_millis), fingerprints())) {
        prop_assert_eq!(decode(&encode(&record)), Ok(record));
    }

    #[test]
    fn any_bytes_are_answered(bytes in vec(any::<u8>(), 0..300), format in 0..3_u8) {
        prop_assert!(decode(&bytes).is_err());
        let _ = decode(&sealed(&[&[format][..], &bytes].concat()));
    }

    #[test]
    fn any_changed_field_is_answered(
        record in records((0..99_i64).prop_map(Timestamp::from_millis), fingerprints()),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let mut fields = unsealed(&record);
        let at = at.index(fields.len());
        fields[at] = byte;
        if let Ok(read) = decode(&sealed(&fields)) {
            prop_assert_eq!(encode(&read), sealed(&fields), "what can be read is written as it stood");
        }
    }
}

/// Bodies are the caller's bytes, empty and large ones too.
#[test]
fn bodies_of_every_size_survive() {
    for length in [0, 1, 255, 65_536, 1 << 20] {
        let receipt = Receipt::new(200, Bytes::from(vec![7; length]));
        let state =
            State::Done { receipt, author: Author::Owner, completed_at: ms(1), expires_at: ms(2), refuse_until: None };
        let record = fixture(Effect::Other, "bytes", state);
        assert_eq!(decode(&encode(&record)), Ok(record));
    }
}
