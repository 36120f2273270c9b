//! Stored records: any bytes are read or refused, what was read is written as it stood, and every rule answers it.
//!
//! An input is the fields of a record without the checksum, which is added, so that a change of a field is not refused
//! for the checksum alone. The bytes as they are must be answered too.

use std::time::Duration;

use counterfoil_core::action::{Write, decide, end_lease, renew, sweep};
use counterfoil_core::record::{decode, encode};
use counterfoil_core::{Asked, Claim, Identity, Key, Now, Operation, Record, Rule, Scope, Timestamp};
use sha2::{Digest as _, Sha256};

use super::shown;

const CHECKSUM_BYTES: usize = 8;
const LEASE: Duration = Duration::from_secs(30);

pub(super) fn check(input: &[u8]) {
    let checksum = Sha256::digest(input);
    let whole = [input, &checksum[..CHECKSUM_BYTES]].concat();
    for bytes in [input, &whole] {
        match decode(bytes) {
            Ok(record) => {
                assert_eq!(shown(&encode(&record)), shown(bytes), "what was read is written as it stood");
                judged(&record);
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
}

/// The rules answer a record with any times in it, at any time.
fn judged(record: &Record) {
    let claim = claim();
    for millis in [i64::MIN, -1, 0, 1_700_000_000_000, i64::MAX] {
        let now = Now::at(Timestamp::from_millis(millis));
        let (decision, _) = decide(Some(record), &claim, now);
        match sweep(record, now) {
            None => {}
            Some(Write::Delete) => assert_eq!(decide(None, &claim, now).0, decision, "a sweep changes no decision"),
            Some(Write::Put(swept)) => {
                assert_eq!(decide(Some(&swept), &claim, now).0, decision, "a sweep changes no decision");
                kept(&swept);
            }
            Some(Write::Claim { .. }) => panic!("a sweep claims nothing"),
        }
        for after in [
            renew(Some(record), record.lease.id, LEASE, now.at).ok(),
            record.lease.holder.and_then(|holder| end_lease(record, holder, now.at)),
        ] {
            after.iter().for_each(kept);
        }
    }
}

fn kept(record: &Record) {
    assert_eq!(decode(&encode(record)).as_ref(), Ok(record), "what a rule made of a record is kept as it is");
}

fn claim() -> Claim {
    let (operation, key) = (Operation::new("create-order"), Key::new("k"));
    let (Ok(operation), Ok(key)) = (operation, key) else { panic!("both are names") };
    let identity = Identity::new(Scope::single_tenant(), operation, key);
    Claim::new(identity, Asked::bytes("{}"), &Rule::bytes()).unwrap_or_else(|error| panic!("any bytes: {error}"))
}
