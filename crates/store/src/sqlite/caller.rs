//! The same promise in a transaction that the caller owns: on a connection of its own to the store's file, begun
//! IMMEDIATE, committed by the caller.
//!
//! Nothing here is durable before that COMMIT returned. What does not belong here: the writer's own transaction
//! (`coupled`).

use std::sync::Arc;

use counterfoil_core::action::{Completed, Write, complete, release};
use counterfoil_core::{Claim, Policy, Receipt, Record, State};
use rusqlite::{Transaction, TransactionState};

use super::coupled::{Executed, Origin, Runner, Step, changed, coupled, done, fresh, step};
use super::fault::failed;
use super::rows::{self, Guarded};
use super::swap::note;
use super::{SqliteStore, meta};
use crate::error::{Applied, ErrorKind, StoreError};
use crate::gate::{Begun, Ended, Permit, stays};
use crate::seam::{Note, NoteKind};

/// How SQLite numbers `synchronous = FULL`.
const FULL: i64 = 2;

impl SqliteStore {
    /// Runs `effect` at most once for `claim`, inside `tx`. Commit `tx` to make effect and receipt durable together;
    /// roll it back, and neither happened. `tx` can be used further whatever is answered.
    ///
    /// An effect that fails is undone alone. It must neither commit nor roll back. A claim whose record was made under
    /// another rule computes its fingerprint here, while `tx` holds the file: read first, where bodies are large.
    ///
    /// # Errors
    /// [`ErrorKind::Misuse`] where `tx` is not on this store's file, not begun IMMEDIATE, or its connection not at
    /// `synchronous = FULL`; else the store could not be read or written: roll `tx` back.
    pub fn execute_in<E>(
        &self,
        tx: &Transaction<'_>,
        claim: &mut Claim,
        policy: &Policy,
        effect: impl FnOnce(&Transaction<'_>) -> Result<Receipt, E>,
    ) -> Result<Executed<E>, StoreError> {
        let policy = coupled(policy);
        let (before, running) = match self.claimed(tx, claim, &policy)? {
            Claimed::Answer(answer) => return Ok(answer),
            Claimed::Run { before, running } => (before, running),
        };
        tx.execute_batch("SAVEPOINT counterfoil_effect").map_err(failed("cannot begin the effect"))?;
        let outcome = effect(tx);
        let end = match outcome {
            Ok(_) => "RELEASE counterfoil_effect",
            Err(_) => "ROLLBACK TO counterfoil_effect; RELEASE counterfoil_effect",
        };
        tx.execute_batch(end).map_err(left)?;
        let receipt = match outcome {
            Ok(receipt) => receipt,
            Err(error) => return Ok(Executed::EffectFailed(error)),
        };
        let done = done(&running, &policy, receipt, self.inner.time.now())?;
        self.put(tx, claim, before, &done)?;
        fresh(done)
    }

    /// Claims inside `tx`, for an effect that is not one closure. End it with [`SqliteStore::complete_in`] or
    /// [`SqliteStore::release_in`] in the same transaction; committed without an end, the lease lapses and the next
    /// claim takes over.
    ///
    /// # Errors
    /// As [`SqliteStore::execute_in`].
    pub fn begin_in(&self, tx: &Transaction<'_>, claim: &mut Claim, policy: &Policy) -> Result<Begun, StoreError> {
        let policy = coupled(policy);
        match self.claimed::<std::convert::Infallible>(tx, claim, &policy)? {
            Claimed::Answer(answer) => Ok(self.begun(answer)),
            Claimed::Run { before, running } => {
                self.put(tx, claim, before, &running)?;
                Ok(Begun::Execute(Box::new(Permit::new(claim.identity().clone(), running, policy))))
            }
        }
    }

    /// Writes the result inside `tx`. Where it is refused, roll `tx` back: somebody else has the key.
    ///
    /// # Errors
    /// As [`SqliteStore::execute_in`].
    pub fn complete_in(
        &self,
        tx: &Transaction<'_>,
        permit: &mut Permit,
        receipt: &Receipt,
    ) -> Result<Ended, StoreError> {
        self.check(tx)?;
        let stands = rows::select(tx, permit.identity())?;
        let (now, policy) = (self.inner.time.now().at, permit.policy());
        let completed =
            complete(stands.as_ref(), permit.lease(), receipt.clone(), policy.retention, policy.expiry, now);
        let done = match completed {
            Ok(Completed::Write(done)) => done,
            Ok(Completed::Already) => {
                return Ok(Ended::Written { expires_at: stands.as_ref().and_then(Record::sweep_at) });
            }
            Err(refused) => {
                tracing::error!(digest = %permit.digest(), why = refused.as_str(), "a completion came too late");
                let why = format!("refused as {}: the run ended with status {}", refused.as_str(), receipt.status);
                let kind = NoteKind::LateCompletion;
                let (identity, lease) = (permit.identity().clone(), permit.lease());
                note(tx, &Note { identity, at: now, kind, lease, who: "owner".to_owned(), why })?;
                return Ok(Ended::Refused(refused));
            }
        };
        if !rows::put(tx, permit.identity(), stands.as_ref().map(Guarded::of), &done)? {
            return Err(changed());
        }
        promise(tx, &done)?;
        let expires_at = done.sweep_at();
        permit.moved(Arc::new(done));
        Ok(Ended::Written { expires_at })
    }

    /// Gives the key back inside `tx`: the effect certainly did not happen.
    ///
    /// # Errors
    /// As [`SqliteStore::execute_in`].
    pub fn release_in(&self, tx: &Transaction<'_>, permit: &mut Permit) -> Result<Ended, StoreError> {
        self.check(tx)?;
        let stands = rows::select(tx, permit.identity())?;
        let written = match (release(stands.as_ref(), permit.lease(), self.inner.time.now().at), &stands) {
            (Err(refused), _) => return Ok(Ended::Refused(refused)),
            (Ok(Write::Delete), Some(stands)) => rows::delete(tx, permit.identity(), Guarded::of(stands))?,
            (Ok(Write::Put(next)), Some(stands)) => rows::replace(tx, permit.identity(), Guarded::of(stands), &next)?,
            (Ok(Write::Claim { .. }), _) | (Ok(Write::Delete | Write::Put(_)), None) => false,
        };
        if written { Ok(Ended::Written { expires_at: None }) } else { Err(changed()) }
    }

    /// That `tx` keeps what the store promises.
    pub(super) fn check(&self, tx: &Transaction<'_>) -> Result<(), StoreError> {
        let misuse = |detail: &str| Err(StoreError::not_applied(ErrorKind::Misuse, detail));
        self.inner.trusted()?;
        if !tx.path().is_some_and(|path| self.inner.place.is(path.as_ref())) {
            return misuse("the transaction is not on the store's file: open the connection on the same path");
        }
        let doing = failed("cannot look at the caller's transaction");
        if tx.transaction_state(Some("main")).map_err(&doing)? != TransactionState::Write {
            return misuse("the transaction may not write yet: begin it IMMEDIATE");
        }
        let level: i64 = tx.query_row("PRAGMA main.synchronous", [], |row| row.get(0)).map_err(&doing)?;
        if level < FULL {
            return misuse("the connection may lose commits: set PRAGMA synchronous = FULL when it is opened");
        }
        Ok(())
    }

    fn claimed<E>(&self, tx: &Transaction<'_>, claim: &mut Claim, policy: &Policy) -> Result<Claimed<E>, StoreError> {
        self.check(tx)?;
        let stands = meta::read(tx)?;
        self.inner.adopt(&stands.mark);
        let (quarantine, now) = (stands.quarantine_before, self.inner.time.now());
        let runner = Runner::draw(self.inner.holder())?;
        let record = rows::select(tx, claim.identity())?;
        let before = record.as_ref().map(Guarded::of);
        let mut next = step(record.as_ref(), claim, policy, runner, now, quarantine);
        if let Step::Learn(rule) = &next {
            claim.learn(rule);
            next = step(record.as_ref(), claim, policy, runner, now, quarantine);
        }
        match next {
            Step::Answer(answer) => Ok(Claimed::Answer(answer)),
            Step::Show(record, answer) => {
                self.put(tx, claim, before, &record)?;
                Ok(Claimed::Answer(answer))
            }
            Step::Run(running) => {
                stays(record.as_ref(), claim, policy)?;
                match running.state {
                    State::Unknown { since, why } => {
                        self.put(tx, claim, before, &running)?;
                        Ok(Claimed::Answer(Executed::Unknown { since, why }))
                    }
                    State::Running | State::Done { .. } | State::Spent { .. } => {
                        Ok(Claimed::Run { before, running: Arc::new(running) })
                    }
                }
            }
            // One record has one rule.
            Step::Learn(_) => Err(changed()),
        }
    }

    fn put(
        &self,
        tx: &Transaction<'_>,
        claim: &Claim,
        before: Option<Guarded>,
        record: &Record,
    ) -> Result<(), StoreError> {
        if !rows::put(tx, claim.identity(), before, record)? {
            return Err(changed());
        }
        promise(tx, record)
    }

    fn begun(&self, answer: Executed<std::convert::Infallible>) -> Begun {
        match answer {
            Executed::Done { receipt, expires_at, origin: Origin::Fresh | Origin::Replayed } => {
                Begun::Replay { receipt, expires_at }
            }
            Executed::EffectFailed(never) => match never {},
            Executed::Mismatch => Begun::Mismatch,
            Executed::InProgress { until } => Begun::InProgress { remaining: until.since(self.inner.time.now().at) },
            Executed::Unknown { since, why } => Begun::Unknown { since, why },
            Executed::Expired { until } => Begun::Expired { until },
        }
    }
}

/// What a claim inside a caller's transaction comes to.
enum Claimed<E> {
    Answer(Executed<E>),
    Run { before: Option<Guarded>, running: Arc<Record> },
}

/// The effect ended the caller's transaction.
fn left(error: rusqlite::Error) -> StoreError {
    StoreError {
        applied: Applied::Unknown,
        ..failed("the effect left its transaction, without a receipt: it must neither commit nor roll back")(error)
    }
}

/// Remembers how long a receipt was promised at most.
fn promise(tx: &Transaction<'_>, record: &Record) -> Result<(), StoreError> {
    let span = record.promised_ms().unwrap_or(0);
    if span > meta::read(tx)?.longest_ms { meta::set_longest(tx, span) } else { Ok(()) }
}
