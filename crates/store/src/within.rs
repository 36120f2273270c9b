//! The promise in a transaction that the caller owns, on whichever server: claim, effect and receipt are committed by one
//! COMMIT, or none of them is (PROTOCOL section 6, row 1).
//!
//! Here is the loop and nothing else: decide, write in the caller's transaction, again where it lost. What does not belong
//! here: statements and drivers (each store's `caller`), and when an action may run (core).

use std::sync::Arc;
use std::time::Duration;

use counterfoil_core::action::{Completed, Refused, Write, complete as completed, decide, release as released};
use counterfoil_core::claim::Draft;
use counterfoil_core::{Claim, Decision, Effect, Expiry, LeaseId, Now, Policy, Receipt, Record, State, Timestamp};

use crate::error::{ErrorKind, StoreError};
use crate::gate::{Begun, Ended, HELD_FOR, Permit, random, stays};
use crate::seam::{Expected, New, Note, NoteKind, Swap, Swapped};

/// How often a call looks again because what stands, or the quarantine, was changed meanwhile.
const ROUNDS_MAX: usize = 16;

/// What a store must be able to do inside somebody's open transaction.
pub(crate) trait Within: Send {
    /// Makes the store know that a receipt may be promised for so long, in milliseconds, in a transaction of its own: the
    /// caller's may be long, and that row is everybody's.
    fn promise(&mut self, span: i64) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Sends one claim; `None`: it was decided under another quarantine, which is known now.
    fn claim(&mut self, swap: &Swap) -> impl Future<Output = Result<Option<Swapped>, StoreError>> + Send;

    /// Sends any other write.
    fn put(&mut self, swap: &Swap) -> impl Future<Output = Result<Swapped, StoreError>> + Send;

    /// The server's time, as last known.
    fn now(&self) -> Timestamp;

    /// Writes an alarm in a transaction of its own, because the caller's is rolled back.
    fn alarm(&mut self, note: Note) -> impl Future<Output = Result<(), StoreError>> + Send;
}

/// What a claim comes to on what stands.
pub(crate) enum Step {
    Answer(Begun),
    /// It may run, in the place of this.
    Claim {
        expected: Expected,
        version: u64,
        claimed_at: Option<Timestamp>,
    },
}

/// Claims inside the transaction.
pub(crate) async fn begin(tx: &mut impl Within, claim: &mut Claim, policy: &Policy) -> Result<Begun, StoreError> {
    let policy = Policy { effect: Effect::Coupled, ..policy.clone() };
    tx.promise(promised(&policy)).await?;
    let mut step = Step::Claim { expected: Expected::Absent, version: 1, claimed_at: None };
    for _ in 0..ROUNDS_MAX {
        let Step::Claim { expected, version, claimed_at } = step else { break };
        let lease = LeaseId::from_bytes(random()?);
        let draft = Draft { version, claimed_at, ..Draft::new(claim, &policy, lease, None) };
        let identity = claim.identity().clone();
        let swap = Swap { identity, expected, new: New::claim(draft), not_after: None, note: None };
        step = match tx.claim(&swap).await? {
            None => Step::Claim { expected, version, claimed_at },
            Some(Swapped::Won { record: Some(record), now }) => return Ok(begun(claim, policy, record, now)),
            Some(Swapped::Lost { stands, now }) => {
                let step = judged(claim, stands.as_deref(), now);
                if matches!(step, Step::Claim { .. }) {
                    stays(stands.as_deref(), claim, &policy)?;
                }
                step
            }
            Some(Swapped::Held { .. }) => return Ok(Begun::InProgress { remaining: HELD_FOR }),
            Some(Swapped::Won { record: None, .. } | Swapped::TooLate { .. }) => break,
        };
        if let Step::Answer(begun) = step {
            return Ok(begun);
        }
    }
    Err(changed())
}

/// The longest that a receipt under `policy` is promised, a refusal of the expired key included, in milliseconds.
pub(crate) fn promised(policy: &Policy) -> i64 {
    let refusal = match policy.expiry {
        Expiry::NewAction => Duration::ZERO,
        Expiry::Refuse(span) => span,
    };
    i64::try_from(policy.retention.saturating_add(refusal).as_millis()).unwrap_or(i64::MAX)
}

/// Writes the result inside the transaction.
pub(crate) async fn complete(
    tx: &mut impl Within,
    permit: &mut Permit,
    receipt: &Receipt,
) -> Result<Ended, StoreError> {
    let (lease, policy) = (permit.lease(), permit.policy().clone());
    let mut stands = Some(permit.record().clone());
    for _ in 0..ROUNDS_MAX {
        let now = tx.now();
        let done = completed(stands.as_deref(), lease, receipt.clone(), policy.retention, policy.expiry, now);
        let done = match done {
            Ok(Completed::Write(done)) => Arc::new(done),
            Ok(Completed::Already) => {
                return Ok(Ended::Written { expires_at: stands.as_deref().and_then(Record::sweep_at) });
            }
            Err(refused) => return Ok(self::refused(tx, permit, refused, receipt.status, now).await),
        };
        match put(tx, permit, stands.as_deref(), New::Put(done.clone())).await? {
            Ok(()) => {
                let expires_at = done.sweep_at();
                permit.moved(done);
                return Ok(Ended::Written { expires_at });
            }
            Err(other) => stands = other,
        }
    }
    Err(changed())
}

/// Gives the key back inside the transaction.
pub(crate) async fn release(tx: &mut impl Within, permit: &mut Permit) -> Result<Ended, StoreError> {
    let mut stands = Some(permit.record().clone());
    for _ in 0..ROUNDS_MAX {
        let new = match released(stands.as_deref(), permit.lease(), tx.now()) {
            Ok(Write::Delete) => New::Delete,
            Ok(Write::Put(record)) => New::put(record),
            Ok(Write::Claim { .. }) => return Err(changed()),
            Err(refused) => return Ok(Ended::Refused(refused)),
        };
        match put(tx, permit, stands.as_deref(), new).await? {
            Ok(()) => return Ok(Ended::Written { expires_at: None }),
            Err(other) => stands = other,
        }
    }
    Err(changed())
}

/// Writes in the place of what `stands`; the inner error is what stands instead.
async fn put(
    tx: &mut impl Within,
    permit: &Permit,
    stands: Option<&Record>,
    new: New,
) -> Result<Result<(), Option<Arc<Record>>>, StoreError> {
    let expected = stands.map_or(Expected::Absent, Expected::record);
    let swap = Swap { identity: permit.identity().clone(), expected, new, not_after: None, note: None };
    match tx.put(&swap).await? {
        Swapped::Won { .. } => Ok(Ok(())),
        Swapped::Lost { stands, .. } => Ok(Err(stands)),
        Swapped::TooLate { .. } | Swapped::Held { .. } => Err(changed()),
    }
}

/// A completion that came too late: somebody is told of it.
async fn refused(tx: &mut impl Within, permit: &Permit, refused: Refused, status: u16, at: Timestamp) -> Ended {
    let digest = permit.digest();
    tracing::error!(%digest, why = refused.as_str(), status, "a completion came too late and was refused");
    let note = Note {
        identity: permit.identity().clone(),
        at,
        kind: NoteKind::LateCompletion,
        lease: permit.lease(),
        who: "owner".to_owned(),
        why: format!("refused as {}: the run ended with status {status}", refused.as_str()),
    };
    if let Err(error) = tx.alarm(note).await {
        tracing::error!(%digest, %error, "the late completion could not be written to the history");
    }
    Ended::Refused(refused)
}

fn begun(claim: &Claim, policy: Policy, record: Arc<Record>, now: Now) -> Begun {
    match record.state {
        State::Running => Begun::Execute(Box::new(Permit::new(claim.identity().clone(), record, policy))),
        State::Unknown { since, why } => Begun::Unknown { since, why },
        // No claim writes these.
        State::Done { .. } | State::Spent { .. } => Begun::InProgress { remaining: record.lease.until.since(now.at) },
    }
}

/// Decides `claim` on what stands.
pub(crate) fn judged(claim: &mut Claim, stands: Option<&Record>, now: Now) -> Step {
    let (mut decision, mut write) = decide(stands, claim, now);
    if let Decision::NeedsFingerprint(rule) = &decision {
        claim.learn(rule);
        (decision, write) = decide(stands, claim, now);
    }
    let expected = stands.map_or(Expected::Absent, Expected::record);
    match (decision, write) {
        (Decision::Execute | Decision::NeedsFingerprint(_), Some(Write::Claim { version, claimed_at, keyed: _ })) => {
            Step::Claim { expected, version, claimed_at }
        }
        (Decision::Execute | Decision::NeedsFingerprint(_), Some(Write::Put(_) | Write::Delete) | None) => {
            Step::Claim { expected, version: 1, claimed_at: None }
        }
        (Decision::Replay { receipt, expires_at }, _) => Step::Answer(Begun::Replay { receipt, expires_at }),
        (Decision::Mismatch, _) => Step::Answer(Begun::Mismatch),
        (Decision::InProgress { until }, _) => Step::Answer(Begun::InProgress { remaining: until.since(now.at) }),
        // That a lapsed run is unknown is shown by reading it: it need not be written in somebody's transaction.
        (Decision::Unknown { since, why }, _) => Step::Answer(Begun::Unknown { since, why }),
        (Decision::Expired { until }, _) => Step::Answer(Begun::Expired { until }),
    }
}

/// What cannot be judged because it does not hold still.
pub(crate) fn changed() -> StoreError {
    let detail = "the record changed too often while it was claimed: roll back and try again";
    StoreError::not_applied(ErrorKind::Busy, detail)
}
