//! Claim, effect and receipt in one transaction (PROTOCOL section 6, row 1): nothing or everything.
//!
//! What does not belong here: when an action may run (core), and the transaction of a caller's own (`caller`).

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use counterfoil_core::action::{Completed, Write, complete, decide};
use counterfoil_core::claim::Draft;
use counterfoil_core::{
    Claim, Decision, Effect, Holder, Identity, LeaseId, Now, Policy, Receipt, Record, Rule, State, Timestamp, Why,
};

use super::Inner;
use super::batch::Batch;
use super::handle::Handle;
use super::job::Rank;
use super::raw;
use super::rows::{self, Guarded};
use super::swap::promised;
use crate::error::{ErrorKind, StoreError};
use crate::gate::{random, stays};
use crate::points;

/// How often a claim is decided again because the record's rule changed meanwhile.
const LESSONS_MAX: usize = 16;

/// Whether a receipt was made now or before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// This call ran the effect.
    Fresh,
    /// An earlier one did.
    Replayed,
}

/// The answer to a claim whose effect is in the store's transaction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Executed<E> {
    /// Effect and receipt are committed.
    Done {
        /// The result.
        receipt: Receipt,
        /// Live before this instant.
        expires_at: Timestamp,
        /// Whether it was made now.
        origin: Origin,
    },
    /// The effect answered an error: it was rolled back alone, and the key is free.
    EffectFailed(E),
    /// The key names an action with other parameters.
    Mismatch,
    /// Somebody runs it.
    InProgress {
        /// Until when their lease lasts.
        until: Timestamp,
    },
    /// Nobody knows whether it happened. It is not run again.
    Unknown {
        /// Since when.
        since: Timestamp,
        /// And why.
        why: Why,
    },
    /// The key was used and its receipt has expired.
    Expired {
        /// Until when it is refused.
        until: Timestamp,
    },
}

/// What a claim comes to on what stands.
pub(super) enum Step<E> {
    /// This, without writing.
    Answer(Executed<E>),
    /// This, and the record shows it from now on.
    Show(Record, Executed<E>),
    /// The claim must learn a rule first.
    Learn(Rule),
    /// It may run with this record, which is Running, or Unknown under a quarantine.
    Run(Record),
}

/// Who would run.
#[derive(Clone, Copy)]
pub(super) struct Runner {
    pub(super) lease: LeaseId,
    pub(super) holder: Option<Holder>,
}

impl Runner {
    /// A fresh lease id for `holder`.
    pub(super) fn draw(holder: Option<Holder>) -> Result<Self, StoreError> {
        Ok(Self { lease: LeaseId::from_bytes(random()?), holder })
    }
}

/// Decides `claim` on `record`.
pub(super) fn step<E>(
    record: Option<&Record>,
    claim: &Claim,
    policy: &Policy,
    runner: Runner,
    now: Now,
    quarantine: Option<Timestamp>,
) -> Step<E> {
    let (decision, write) = decide(record, claim, now);
    let answer = match decision {
        Decision::Execute => None,
        Decision::NeedsFingerprint(rule) => return Step::Learn(rule),
        Decision::Replay { receipt, expires_at } => {
            Some(Executed::Done { receipt, expires_at, origin: Origin::Replayed })
        }
        Decision::Mismatch => Some(Executed::Mismatch),
        Decision::InProgress { until } => Some(Executed::InProgress { until }),
        Decision::Unknown { since, why } => Some(Executed::Unknown { since, why }),
        Decision::Expired { until } => Some(Executed::Expired { until }),
    };
    match (answer, write) {
        (Some(answer), Some(Write::Put(record))) => Step::Show(record, answer),
        (Some(answer), Some(Write::Claim { .. } | Write::Delete) | None) => Step::Answer(answer),
        (None, write) => {
            let draft = Draft::new(claim, policy, runner.lease, runner.holder);
            let draft = match write {
                Some(Write::Claim { version, claimed_at, keyed: inherited }) => {
                    Draft { version, claimed_at, inherited, ..draft }
                }
                Some(Write::Put(_) | Write::Delete) | None => draft,
            };
            Step::Run(draft.at(now.at, quarantine))
        }
    }
}

/// The same operation with the effect where this module puts it.
pub(super) fn coupled(policy: &Policy) -> Policy {
    Policy { effect: Effect::Coupled, ..policy.clone() }
}

/// What a job answers: the end, or everything back because a rule must be learned outside the writer.
enum Attempt<E, F> {
    End(Executed<E>),
    Learn(Rule, Box<Claim>, F),
}

impl Inner {
    /// Decides by a read alone where that is possible.
    fn answered<E>(
        &self,
        record: Option<&Record>,
        claim: &mut Claim,
        policy: &Policy,
        now: Now,
    ) -> Option<Executed<E>> {
        // Nothing is written here: no lease id is drawn.
        let nobody = Runner { lease: LeaseId::from_bytes([0; 16]), holder: None };
        let mut step = step(record, claim, policy, nobody, now, None);
        if let Step::Learn(rule) = &step {
            claim.learn(rule);
            step = self::step(record, claim, policy, nobody, now, None);
        }
        match step {
            Step::Answer(answer) => Some(answer),
            Step::Show(..) | Step::Learn(_) | Step::Run(_) => None,
        }
    }

    pub(super) async fn execute<E, F>(
        self: &Arc<Self>,
        claim: Claim,
        policy: &Policy,
        effect: F,
    ) -> Result<Executed<E>, StoreError>
    where
        E: Send + 'static,
        F: FnOnce(&Handle<'_>) -> Result<Receipt, E> + Send + 'static,
    {
        let policy = coupled(policy);
        let (mut claim, mut effect) = (Box::new(claim), effect);
        for _ in 0..LESSONS_MAX {
            let seen = self.read(claim.identity()).await?;
            if let Some(end) = self.answered(seen.record.as_deref(), &mut claim, &policy, seen.now) {
                return Ok(end);
            }
            let (runner, promise) = (Runner::draw(self.holder())?, policy.clone());
            let attempt = self.ask(Rank::Claim, move |batch| run(batch, claim, &promise, runner, effect)).await?;
            match attempt {
                Attempt::End(end) => return Ok(end),
                Attempt::Learn(rule, back, unused) => {
                    (claim, effect) = (back, unused);
                    claim.learn(&rule);
                }
            }
        }
        Err(restless())
    }

    pub(super) fn execute_blocking<E, F>(
        self: &Arc<Self>,
        claim: Claim,
        policy: &Policy,
        effect: F,
    ) -> Result<Executed<E>, StoreError>
    where
        E: Send + 'static,
        F: FnOnce(&Handle<'_>) -> Result<Receipt, E> + Send + 'static,
    {
        let policy = coupled(policy);
        let (mut claim, mut effect) = (Box::new(claim), effect);
        for _ in 0..LESSONS_MAX {
            let seen = self.read_blocking(claim.identity())?;
            if let Some(end) = self.answered(seen.record.as_deref(), &mut claim, &policy, seen.now) {
                return Ok(end);
            }
            let (runner, promise) = (Runner::draw(self.holder())?, policy.clone());
            match self.ask_blocking(Rank::Claim, move |batch| run(batch, claim, &promise, runner, effect))? {
                Attempt::End(end) => return Ok(end),
                Attempt::Learn(rule, back, unused) => {
                    (claim, effect) = (back, unused);
                    claim.learn(&rule);
                }
            }
        }
        Err(restless())
    }
}

fn restless() -> StoreError {
    StoreError::not_applied(ErrorKind::Busy, "the record's rule changed too often while it was claimed: try again")
}

/// Looks again inside the batch, and runs the effect where nothing stands against it.
fn run<E, F>(
    batch: &Batch<'_>,
    claim: Box<Claim>,
    policy: &Policy,
    runner: Runner,
    effect: F,
) -> Result<Attempt<E, F>, StoreError>
where
    F: FnOnce(&Handle<'_>) -> Result<Receipt, E>,
{
    let identity = claim.identity();
    let stands = rows::select(batch.conn, identity)?;
    let before = stands.as_ref().map(Guarded::of);
    let running = match step(stands.as_ref(), &claim, policy, runner, batch.now(), batch.quarantine.get()) {
        Step::Answer(answer) => return Ok(Attempt::End(answer)),
        Step::Learn(rule) => return Ok(Attempt::Learn(rule, claim, effect)),
        Step::Show(record, answer) => {
            write(batch, &claim, before, &record)?;
            return Ok(Attempt::End(answer));
        }
        Step::Run(record) => record,
    };
    stays(stands.as_ref(), &claim, policy)?;
    if let State::Unknown { since, why } = running.state {
        write(batch, &claim, before, &running)?;
        return Ok(Attempt::End(Executed::Unknown { since, why }));
    }
    points::pass("sqlite.coupled.claimed");
    let mut failed = None;
    let settled = batch.alone(|| {
        let receipt = match carry_out(batch, identity, effect)? {
            Ok(receipt) => receipt,
            Err(error) => {
                failed = Some(error);
                return Err(effect_failed());
            }
        };
        points::pass("sqlite.coupled.effect");
        // The claim itself was never stored: this transaction is its whole life.
        let done = done(&running, policy, receipt, batch.now())?;
        write(batch, &claim, before, &done)?;
        Ok(done)
    });
    match (settled, failed) {
        (Ok(done), _) => {
            points::pass("sqlite.coupled.settled");
            promised(batch, &done);
            Ok(Attempt::End(fresh(done)?))
        }
        (Err(_), Some(error)) if !batch.ended() => Ok(Attempt::End(Executed::EffectFailed(error))),
        (Err(error), _) => Err(error),
    }
}

fn effect_failed() -> StoreError {
    StoreError::not_applied(ErrorKind::Unavailable, "the effect failed, and the whole transaction with it: try again")
}

/// Runs the effect on a guarded handle, and looks at what it left.
fn carry_out<E, F>(batch: &Batch<'_>, action: &Identity, effect: F) -> Result<Result<Receipt, E>, StoreError>
where
    F: FnOnce(&Handle<'_>) -> Result<Receipt, E>,
{
    let handle = Handle::new(batch.conn, batch.guard, action, batch.now().at);
    let speaking = batch.guard.effect();
    let outcome = catch_unwind(AssertUnwindSafe(|| effect(&handle)));
    drop(speaking);
    let misuse = |detail: String| Err(StoreError::not_applied(ErrorKind::Misuse, detail));
    let left_running = raw::stop_running(batch.conn);
    match outcome {
        Err(panic) => misuse(format!("the effect panicked and was rolled back: {}", said(&*panic))),
        Ok(outcome) if batch.ended() => match outcome {
            Ok(_) => Err(effect_failed()),
            Err(error) => Ok(Err(error)),
        },
        Ok(Err(error)) => Ok(Err(error)),
        Ok(Ok(_)) if left_running => {
            misuse("the effect left a statement running and was rolled back: drop it before it returns".to_owned())
        }
        Ok(Ok(_)) if raw::violated(batch.conn) => {
            misuse("the effect violates a foreign key and was rolled back: mend it before it returns".to_owned())
        }
        Ok(Ok(receipt)) => Ok(Ok(receipt)),
    }
}

/// What a panic said.
fn said(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&'static str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("it said nothing")
}

/// The record with its receipt.
pub(super) fn done(running: &Record, policy: &Policy, receipt: Receipt, now: Now) -> Result<Record, StoreError> {
    match complete(Some(running), running.lease.id, receipt, policy.retention, policy.expiry, now.at) {
        Ok(Completed::Write(done)) => Ok(done),
        Ok(Completed::Already) | Err(_) => Err(changed()),
    }
}

/// The answer that a fresh receipt is.
pub(super) fn fresh<E>(done: Record) -> Result<Executed<E>, StoreError> {
    match done.state {
        State::Done { receipt, expires_at, .. } => Ok(Executed::Done { receipt, expires_at, origin: Origin::Fresh }),
        State::Running | State::Unknown { .. } | State::Spent { .. } => Err(changed()),
    }
}

fn write(batch: &Batch<'_>, claim: &Claim, before: Option<Guarded>, record: &Record) -> Result<(), StoreError> {
    if rows::put(batch.conn, claim.identity(), before, record)? { Ok(()) } else { Err(changed()) }
}

/// What cannot be while one transaction reads and writes; refused all the same.
pub(super) fn changed() -> StoreError {
    StoreError::not_applied(ErrorKind::Corrupt, "a record changed inside the transaction that read it: check the file")
}
