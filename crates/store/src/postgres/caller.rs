//! The same promise in a transaction that the caller owns, on a connection of the caller's own: claim, effect and receipt
//! are committed by one COMMIT, or none of them is (PROTOCOL section 6, row 1).
//!
//! Nothing here is durable before that COMMIT returned. What does not belong here: writes in transactions of the store's
//! own (`claim`, `put`), and when an action may run (core).

use std::sync::Arc;

use counterfoil_core::action::{Completed, Refused, Write, complete, decide, release};
use counterfoil_core::claim::Draft;
use counterfoil_core::{Claim, Decision, Effect, Identity, LeaseId, Now, Policy, Receipt, Record, State, Timestamp};
use tokio_postgres::Transaction;

use super::claim::{self, CLOCK, Outcome, Written};
use super::fault::{self, Intent};
use super::put::{self, PUT};
use super::{Inner, PostgresStore, rows};
use crate::error::{ErrorKind, StoreError};
use crate::gate::{Begun, Ended, HELD_FOR, Permit, random, stays};
use crate::seam::{Expected, New, Note, NoteKind, Swap, Swapped};

/// How often a call looks again because what stands, or the quarantine, was changed meanwhile.
const ROUNDS_MAX: usize = 16;

/// With the id of the store that the transaction really is on.
const CLAIM_HERE: &str = "SELECT c.*, s.id FROM counterfoil.store AS s, counterfoil.claim($1, $2, $3, $4, $5, $6, $7, $8, \
    $9, $10, $11, $12, $13, $14, $15, $16, $17) AS c";

const DOING: &str = "the caller's transaction could not be written to";

impl PostgresStore {
    /// Claims inside `tx`, one round trip for a new action. Make the effect in the same transaction, end it with
    /// [`PostgresStore::complete_in`], and commit: effect and receipt are then durable together. Rolled back, neither
    /// happened, and the key is free. Committed without an end, the lease lapses and the next claim takes over.
    ///
    /// Any other answer leaves `tx` usable. While it is open, everybody else is told *in progress*; nobody waits for it.
    /// The policy's `effect` is taken to be [coupled](Effect::Coupled). `synchronous_commit` is raised to `on` for this
    /// transaction where it is weaker.
    ///
    /// ```no_run
    /// use counterfoil_core::{Claim, Policy, Receipt};
    /// use counterfoil_store::{Begun, Ended};
    /// use counterfoil_store::postgres::PostgresStore;
    /// use counterfoil_store::postgres::tokio_postgres::Client;
    ///
    /// # type Failed = Box<dyn std::error::Error>;
    /// async fn order(store: &PostgresStore, client: &mut Client, claim: &mut Claim) -> Result<Receipt, Failed> {
    ///     let tx = client.transaction().await?;
    ///     match store.begin_in(&tx, claim, &Policy::default()).await? {
    ///         Begun::Execute(mut permit) => {
    ///             tx.execute("INSERT INTO orders (item) VALUES ('pot')", &[]).await?;
    ///             let receipt = Receipt::new(201, "made");
    ///             match store.complete_in(&tx, &mut permit, &receipt).await? {
    ///                 Ended::Written { .. } => tx.commit().await?,
    ///                 Ended::Refused(why) => return Err(format!("rolled back: {why:?}").into()),
    ///             }
    ///             Ok(receipt)
    ///         }
    ///         Begun::Replay { receipt, .. } => Ok(receipt),
    ///         other => Err(format!("not now: {other:?}").into()),
    ///     }
    /// }
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Misuse`] where `tx` is on another database. [`ErrorKind::Busy`] at an isolation level stricter than
    /// READ COMMITTED where somebody else was faster. Whatever the error, roll `tx` back.
    pub async fn begin_in(
        &self,
        tx: &Transaction<'_>,
        claim: &mut Claim,
        policy: &Policy,
    ) -> Result<Begun, StoreError> {
        let policy = Policy { effect: Effect::Coupled, ..policy.clone() };
        let mut step = Step::Claim { expected: Expected::Absent, version: 1, claimed_at: None };
        for _ in 0..ROUNDS_MAX {
            let Step::Claim { expected, version, claimed_at } = step else { break };
            let lease = LeaseId::from_bytes(random()?);
            let draft = Draft { version, claimed_at, ..Draft::new(claim, &policy, lease, None) };
            let identity = claim.identity().clone();
            let swap = Swap { identity, expected, new: New::claim(draft), not_after: None, note: None };
            step = match self.inner.claim_in(tx, &swap).await? {
                None => Step::Claim { expected, version, claimed_at },
                Some(Swapped::Won { record: Some(record), now }) => return Ok(begun(claim, policy, record, now)),
                Some(Swapped::Lost { stands, now }) => {
                    let step = decided(claim, stands.as_deref(), now);
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

    /// Writes the result inside `tx`. Where it is refused, roll `tx` back: somebody else has the key.
    ///
    /// # Errors
    /// As [`PostgresStore::begin_in`].
    pub async fn complete_in(
        &self,
        tx: &Transaction<'_>,
        permit: &mut Permit,
        receipt: &Receipt,
    ) -> Result<Ended, StoreError> {
        let (lease, policy) = (permit.lease(), permit.policy().clone());
        let mut stands = Some(permit.record().clone());
        for _ in 0..ROUNDS_MAX {
            let now = self.inner.pace.now().at;
            let done = complete(stands.as_deref(), lease, receipt.clone(), policy.retention, policy.expiry, now);
            let done = match done {
                Ok(Completed::Write(done)) => done,
                Ok(Completed::Already) => {
                    return Ok(Ended::Written { expires_at: stands.as_deref().and_then(Record::sweep_at) });
                }
                Err(refused) => return Ok(self.refused(permit, refused, receipt.status, now).await),
            };
            let (expires_at, done) = (done.sweep_at(), Arc::new(done));
            match self.inner.put_in(tx, permit.identity(), stands.as_deref(), New::Put(done.clone())).await? {
                Ok(()) => {
                    permit.moved(done);
                    return Ok(Ended::Written { expires_at });
                }
                Err(other) => stands = other,
            }
        }
        Err(changed())
    }

    /// Gives the key back inside `tx`: the effect certainly did not happen.
    ///
    /// # Errors
    /// As [`PostgresStore::begin_in`].
    pub async fn release_in(&self, tx: &Transaction<'_>, permit: &mut Permit) -> Result<Ended, StoreError> {
        let mut stands = Some(permit.record().clone());
        for _ in 0..ROUNDS_MAX {
            let new = match release(stands.as_deref(), permit.lease(), self.inner.pace.now().at) {
                Ok(Write::Delete) => New::Delete,
                Ok(Write::Put(record)) => New::put(record),
                Ok(Write::Claim { .. }) => return Err(changed()),
                Err(refused) => return Ok(Ended::Refused(refused)),
            };
            match self.inner.put_in(tx, permit.identity(), stands.as_deref(), new).await? {
                Ok(()) => return Ok(Ended::Written { expires_at: None }),
                Err(other) => stands = other,
            }
        }
        Err(changed())
    }

    /// A completion that came too late. Its alarm is written in a transaction of its own, because the caller's is rolled
    /// back.
    async fn refused(&self, permit: &Permit, refused: Refused, status: u16, at: Timestamp) -> Ended {
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
        let inner = self.inner.clone();
        if let Err(error) = self.run(Intent::Writes, async move { inner.note(&note).await }).await {
            tracing::error!(%digest, %error, "the late completion could not be written to the history");
        }
        Ended::Refused(refused)
    }
}

/// What a claim comes to on what stands.
enum Step {
    Answer(Begun),
    /// It may run, in the place of this.
    Claim {
        expected: Expected,
        version: u64,
        claimed_at: Option<Timestamp>,
    },
}

fn begun(claim: &Claim, policy: Policy, record: Arc<Record>, now: Now) -> Begun {
    match record.state {
        State::Running => Begun::Execute(Box::new(Permit::new(claim.identity().clone(), record, policy))),
        State::Unknown { since, why } => Begun::Unknown { since, why },
        // No claim writes these.
        State::Done { .. } | State::Spent { .. } => Begun::InProgress { remaining: record.lease.until.since(now.at) },
    }
}

fn decided(claim: &mut Claim, stands: Option<&Record>, now: Now) -> Step {
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

fn changed() -> StoreError {
    let detail = "the record changed too often while it was claimed: roll back and try again";
    StoreError::not_applied(ErrorKind::Busy, detail)
}

impl Inner {
    /// Sends one claim; `None`: it was decided under another quarantine, which is known now.
    async fn claim_in(&self, tx: &Transaction<'_>, swap: &Swap) -> Result<Option<Swapped>, StoreError> {
        let New::Claim(draft) = &swap.new else { return Err(changed()) };
        let quarantine = match self.quarantine() {
            None => None,
            Some(before) => {
                let told = tx.query_typed(CLOCK, &[]).await.map_err(in_transaction)?;
                let now = told.first().map(|row| rows::time(row, 0)).transpose()?;
                Some((before, now.unwrap_or_else(|| self.pace.now().at)))
            }
        };
        let written = Written::of(draft, quarantine);
        let mut arrays = claim::Arrays::default();
        arrays.push(swap, &written, false)?;
        let before = quarantine.map(|(before, _)| before.as_millis());
        let answer = tx.query_typed(CLAIM_HERE, &arrays.parameters(&before)).await.map_err(in_transaction)?;
        let row = answer.first().ok_or_else(changed)?;
        if rows::get::<&str>(row, 11)? != self.id {
            let detail = "the transaction is on another database than the store: connect to the same one";
            return Err(StoreError::not_applied(ErrorKind::Misuse, detail));
        }
        match claim::outcome(self, swap, written, row)? {
            Outcome::Answer(swapped) => Ok(Some(swapped)),
            Outcome::Held(at) => Ok(Some(Swapped::Held { now: Now::at(at) })),
            Outcome::Quarantine(before) => {
                self.set_quarantine_seen(before);
                Ok(None)
            }
        }
    }

    /// Writes in the place of what `stands`; the inner error is what stands instead.
    async fn put_in(
        &self,
        tx: &Transaction<'_>,
        identity: &Identity,
        stands: Option<&Record>,
        new: New,
    ) -> Result<Result<(), Option<Arc<Record>>>, StoreError> {
        let expected = stands.map_or(Expected::Absent, Expected::record);
        let swap = Swap { identity: identity.clone(), expected, new, not_after: None, note: None };
        let mut arrays = put::Arrays::default();
        arrays.push(&swap)?;
        let answer = tx.query_typed(PUT, &arrays.parameters(&true, &None)).await.map_err(in_transaction)?;
        let row = answer.first().ok_or_else(changed)?;
        match put::outcome(self, &swap, row)? {
            Some(Swapped::Won { .. }) => Ok(Ok(())),
            Some(Swapped::Lost { stands, .. }) => Ok(Err(stands)),
            Some(Swapped::TooLate { .. } | Swapped::Held { .. }) | None => Err(changed()),
        }
    }
}

/// Nothing of an open transaction is applied before its COMMIT, however a statement of it fails.
fn in_transaction(error: tokio_postgres::Error) -> StoreError {
    fault::failed(error, Intent::Reads, DOING)
}
