//! What each planted fault makes of the values that cross the seam, as functions of the fault and the value.
//! When they are applied belongs to the parent.

use std::time::Duration;

use counterfoil_core::{Body, Identity, Key, Operation, Receipt, Record, Scope, State, Timestamp};

use super::Fault;
use crate::seam::{Expected, New};

pub(super) const MILLISECOND: Duration = Duration::from_millis(1);

/// The identity that the store keeps.
pub(super) fn identity(fault: Fault, identity: &Identity) -> Identity {
    if fault != Fault::JoinsIdentity {
        return identity.clone();
    }
    let values: String = identity.scope.parts().map(|(_, value)| value).collect();
    let joined = format!("{values}{}{}", identity.operation.as_str(), identity.key.as_str());
    match (Operation::new(joined), Key::new("joined")) {
        (Ok(operation), Ok(key)) => Identity::new(Scope::single_tenant(), operation, key),
        (Err(_), _) | (_, Err(_)) => identity.clone(),
    }
}

/// The guard that the store judges.
pub(super) fn expected(fault: Fault, expected: Expected, stands: Option<&Record>) -> Expected {
    let all = stands.map_or(Expected::Absent, Expected::record);
    match (fault, expected, stands) {
        (Fault::IgnoresLease, Expected::Record { version, .. }, Some(stands)) if version == stands.version => all,
        (Fault::IgnoresVersion, Expected::Record { lease, .. }, Some(stands)) if lease == stands.lease.id => all,
        (Fault::IgnoresAbsence, Expected::Absent, _) => all,
        _ => expected,
    }
}

/// What the store writes.
pub(super) fn new(
    fault: Fault,
    new: New,
    expected: Expected,
    now: Timestamp,
    quarantine_before: Option<Timestamp>,
) -> New {
    match (fault, new) {
        (Fault::IgnoresQuarantine, New::Claim(draft)) => New::put(draft.at(now, None)),
        (Fault::QuarantinesInsertsOnly, New::Claim(draft)) if expected != Expected::Absent => {
            New::put(draft.at(now, None))
        }
        (Fault::TimesFromElsewhere, New::Claim(draft)) => New::put(draft.at(now.minus(MILLISECOND), quarantine_before)),
        (Fault::ForgetsGenerations, New::Put(record)) if record.keyed.is_some() && is_spent(&record) => New::Delete,
        (_, New::Put(record)) => New::put(put(fault, Record::clone(&record))),
        (_, new) => new,
    }
}

fn is_spent(record: &Record) -> bool {
    matches!(record.state, State::Spent { .. })
}

fn put(fault: Fault, mut record: Record) -> Record {
    if let Some(keyed) = &mut record.keyed
        && fault == Fault::ForgetsDoubts
    {
        keyed.doubt = false;
    }
    if fault == Fault::ForgetsHolders {
        record.lease.holder = None;
    }
    if let State::Done { receipt, .. } = &mut record.state {
        *receipt = kept(fault, receipt);
    }
    record
}

fn kept(fault: Fault, receipt: &Receipt) -> Receipt {
    let mut kept = receipt.clone();
    match (fault, &receipt.body) {
        (Fault::KeepsText, Body::Kept(body)) => {
            kept.body = Body::Kept(String::from_utf8_lossy(body).into_owned().into());
        }
        (Fault::CutsBodies, Body::Kept(body)) => kept.body = Body::Kept(body.slice(..body.len().min(65_536))),
        (Fault::ForgetsNotKept, Body::NotKept) => kept.body = Body::Kept(Vec::new().into()),
        (Fault::FoldsHeaders, _) => {
            let mut headers = kept.headers.to_vec();
            headers.sort();
            headers.dedup_by(|one, other| one.0 == other.0);
            kept.headers = headers.into();
        }
        _ => {}
    }
    kept
}
