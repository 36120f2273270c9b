//! Stored bytes of intents: a fixture of each state, and everything that can be wrong with bytes.
//! What an intent means is tested in `intent`; every step of its walks goes through bytes as well.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

use super::*;
use crate::codec::CHECKSUM_BYTES;
use crate::intent::tests::World;

const FIXTURE: &str = "src/intent/bytes/v1.hex";

/// One intent of each state and kind of history, by the script that leads there.
const SCRIPTS: [&str; 13] = [
    "look",
    "begin",
    "begin unsent",
    "begin lost",
    "begin +60s look",
    "begin again",
    "begin stored",
    "begin lost +20m look",
    "begin ok",
    "begin no?",
    "begin found",
    "begin stored +1h never",
    "begin again +20m look",
];

fn fixtures() -> Vec<(String, Intent)> {
    let documented = Promise::Documented(std::time::Duration::from_mins(20));
    let mut all: Vec<(String, Intent)> = SCRIPTS
        .iter()
        .map(|script| {
            let mut world = World::new(documented);
            world.run(script);
            (script.replace(' ', ","), world.intent)
        })
        .collect();
    let (_, ready) = all[0].clone();
    let name = |name: &str| name.to_owned();
    let carriers = [
        Carrier::Header { name: name("k"), encoding: Encoding::Quoted, first_sent: Some(name("first")) },
        Carrier::Member(name("k")),
        Carrier::Parameter(name("k")),
    ];
    let windows = [Promise::ForEver, Promise::Given(std::time::Duration::from_secs(1)), Promise::Assumed];
    for (at, (carrier, window)) in carriers.into_iter().zip(windows).enumerate() {
        let mut intent = ready.clone();
        intent.request.carrier = carrier;
        intent.request.scope = None;
        intent.request.headers.push(Header {
            name: name("x"),
            value: Value::Secret(Secret { prefix: name("Basic "), source: SecretSource::File(name("f")) }),
        });
        intent.terms.window = window;
        intent.resource = Some(name("po_1"));
        intent.alarm = true;
        all.push((format!("variant-{at}"), intent));
    }
    for why in REASONS {
        let mut intent = ready.clone();
        intent.state = State::Overdue { since: intent.created_at, why };
        all.push((format!("overdue-{}", why.as_str()), intent));
    }
    all
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

/// What version 1 wrote is read for ever. `COUNTERFOIL_BLESS=1` rewrites the file, which only a new format may need.
#[test]
#[expect(clippy::disallowed_methods, reason = "whether to rewrite the fixture is asked of the environment")]
fn stored_intents_of_format_1_are_read_and_written_alike() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(FIXTURE);
    let found: String = fixtures().iter().map(|(name, intent)| format!("{name} {}\n", hex(&encode(intent)))).collect();
    if std::env::var("COUNTERFOIL_BLESS").is_ok_and(|bless| bless == "1") {
        std::fs::write(&path, &found).unwrap();
    }
    assert_eq!(found, std::fs::read_to_string(&path).unwrap());
    for (name, intent) in fixtures() {
        assert_eq!(decode(&encode(&intent)), Ok(intent), "{name}");
    }
}

fn sealed(fields: &[u8]) -> Vec<u8> {
    [fields, &Sha256::digest(fields)[..CHECKSUM_BYTES]].concat()
}

#[test]
fn bytes_that_no_version_wrote_are_corrupt_and_never_absent() {
    for (name, intent) in fixtures() {
        let bytes = encode(&intent);
        let fields = &bytes[..bytes.len() - CHECKSUM_BYTES];
        for cut in 0..bytes.len() {
            assert!(matches!(decode(&bytes[..cut]), Err(crate::Error::IntentCorrupt(_))), "{name} cut at {cut}");
        }
        for cut in 1..fields.len() {
            let found = decode(&sealed(&fields[..cut]));
            assert!(matches!(found, Err(crate::Error::IntentCorrupt(_))), "{name}: fields cut at {cut}");
        }
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 0x80;
            assert!(decode(&changed).is_err(), "{name} with byte {at} changed");
        }
        for at in 1..fields.len() {
            let mut changed = fields.to_vec();
            changed[at] ^= 0xff;
            assert_ne!(decode(&sealed(&changed)).as_ref(), Ok(&intent), "{name} at {at}: a byte that nobody reads");
        }
        let longer = [fields, &[0]].concat();
        assert_eq!(decode(&sealed(&longer)), Err(crate::Error::IntentCorrupt("trailing bytes")), "{name}");
    }
}

#[test]
fn a_newer_format_says_so() {
    let (_, intent) = fixtures().remove(0);
    let mut bytes = encode(&intent);
    bytes[0] = FORMAT_NEWEST + 1;
    let newer = crate::Error::IntentNewer { found: FORMAT_NEWEST + 1, known: FORMAT_NEWEST };
    assert_eq!(decode(&bytes), Err(newer));
}
