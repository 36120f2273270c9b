//! A call that comes late: it knows an identity and a lease, and is judged on what stands.
//!
//! A permit dies with its process, so these calls do by hand what the gate does with one: read, transition, guarded
//! swap. What does not belong here: which calls may succeed (`points.rs` and `owner.rs` say).

use std::sync::Arc;

use counterfoil_core::{
    Expiry, Identity, LeaseId, Receipt, Record, Timestamp, Why, Write,
    action::{self, Completed, Refused},
};
use counterfoil_store::{
    RecordStore, SqliteStore,
    seam::{Expected, New, Swap, Swapped},
};

use super::action::Flow;

/// What comes late.
#[derive(Clone, Debug)]
pub(super) enum Late {
    Complete(Receipt),
    Renew,
    Release,
    Doubt,
}

impl Late {
    pub(super) fn all(receipt: &Receipt) -> [Self; 4] {
        [Self::Complete(receipt.clone()), Self::Renew, Self::Release, Self::Doubt]
    }

    fn judge(&self, record: Option<&Record>, lease: LeaseId, at: Timestamp) -> Result<Option<New>, Refused> {
        let policy = Flow::Complete.policy();
        match self {
            Self::Complete(receipt) => {
                let completed =
                    action::complete(record, lease, receipt.clone(), policy.retention, Expiry::NewAction, at)?;
                Ok(match completed {
                    Completed::Write(record) => Some(New::put(record)),
                    Completed::Already => None,
                })
            }
            Self::Renew => action::renew(record, lease, policy.lease, at).map(|record| Some(New::put(record))),
            Self::Release => action::release(record, lease, at).map(|write| match write {
                Write::Delete => Some(New::Delete),
                Write::Put(_) | Write::Claim { .. } => panic!("a release deletes"),
            }),
            Self::Doubt => action::doubt(record, lease, Why::Doubted, at).map(|record| record.map(New::put)),
        }
    }

    /// Sends it. The inner `Err` says why it was refused.
    pub(super) async fn send(
        &self,
        store: &SqliteStore,
        identity: &Identity,
        lease: LeaseId,
    ) -> Result<Option<Arc<Record>>, Refused> {
        let seen = store.read(identity).await.expect("the store answers");
        let Some(new) = self.judge(seen.record.as_deref(), lease, seen.now.at)? else { return Ok(seen.record) };
        let expected = seen.record.as_deref().map_or(Expected::Absent, Expected::record);
        let swap = Swap { identity: identity.clone(), expected, new, not_after: None, note: None };
        match store.swap(swap).await.expect("the store answers") {
            Swapped::Won { record, .. } => Ok(record),
            lost @ (Swapped::Lost { .. } | Swapped::TooLate { .. } | Swapped::Held { .. }) => {
                panic!("nobody else writes: {lost:?}")
            }
        }
    }
}

/// Sends every late call of `lease` and sees each refused, the record untouched.
pub(super) async fn all_refused(
    store: &SqliteStore,
    identity: &Identity,
    lease: LeaseId,
    wanted: impl Fn(&Late) -> Option<Refused>,
) {
    let before = store.read(identity).await.expect("the store answers").record;
    for late in Late::all(&Receipt::new(201, "late")) {
        let Some(wanted) = wanted(&late) else { continue };
        assert_eq!(late.send(store, identity, lease).await.unwrap_err(), wanted, "{late:?}");
        // The store itself refuses it too, where somebody were to send it without asking.
        let stands = before.as_deref();
        let forged = stands.map_or(Expected::Absent, |record| Expected::Record { version: record.version, lease });
        if forged != stands.map_or(Expected::Absent, Expected::record) {
            let swap =
                Swap { identity: identity.clone(), expected: forged, new: New::Delete, not_after: None, note: None };
            let swapped = store.swap(swap).await.expect("the store answers");
            assert!(matches!(swapped, Swapped::Lost { .. }), "{swapped:?}");
        }
        let after = store.read(identity).await.expect("the store answers").record;
        assert_eq!(after, before, "{late:?} touched the record");
    }
}
