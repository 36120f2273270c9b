//! The ends of a run, and the operator's word: complete, release, doubt, resolve.
//! The rules of each belong to `core::action`.

use std::sync::Arc;

use counterfoil_core::action::{self, Completed, Confirmation, Refused, Verdict, Write};
use counterfoil_core::{Identity, Receipt, Record, State, Timestamp, Why};

use crate::error::{ErrorKind, StoreError};
use crate::gate::{Gate, Permit};
use crate::points;
use crate::seam::{Expected, New, Note, NoteKind, Swap, Swapped};

/// What became of an end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    /// It is written.
    Written {
        /// Until when the receipt is promised, where there is one.
        expires_at: Option<Timestamp>,
    },
    /// It came too late and changed nothing. A completion then decides again with its own claim, and never runs again.
    Refused(Refused),
}

/// Who settles something, and why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Signed {
    /// Who.
    pub who: String,
    /// And why.
    pub why: String,
}

impl Gate {
    /// Writes the result. Stop and await the [renewal](crate::gate::Renewal) first.
    ///
    /// # Errors
    /// [`StoreError`] where the store gave no answer: the same permit may complete again.
    pub async fn complete(&self, permit: &mut Permit, receipt: &Receipt) -> Result<Ended, StoreError> {
        points::pass("gate.complete.before-write");
        let (lease, policy) = (permit.lease(), permit.policy().clone());
        let change = |record: Option<&Record>, now: Timestamp| match action::complete(
            record,
            lease,
            receipt.clone(),
            policy.retention,
            policy.expiry,
            now,
        )? {
            Completed::Write(record) => Ok(Some(New::put(record))),
            Completed::Already => Ok(None),
        };
        match self.change(permit, change).await? {
            Ok(stands) => {
                points::pass("gate.complete.written");
                Ok(Ended::Written { expires_at: stands.as_deref().and_then(Record::sweep_at) })
            }
            Err(refused) => {
                Box::pin(self.alarm(permit, refused, receipt.status)).await;
                Ok(Ended::Refused(refused))
            }
        }
    }

    /// Gives the key back: the effect certainly did not happen.
    ///
    /// # Errors
    /// [`StoreError`] where the store gave no answer: the lease then lapses.
    pub async fn release(&self, permit: &mut Permit) -> Result<Ended, StoreError> {
        points::pass("gate.release.before-write");
        let ended = self.give_back(permit).await?;
        // The key is free, and a lost copy of the claim that was repeated finds it so: nobody would run under it.
        if let (Ended::Written { .. }, Some(lasting)) = (ended, permit.copies_for()) {
            self.abandon(permit.identity().clone(), vec![permit.lease()], lasting);
        }
        Ok(ended)
    }

    async fn give_back(&self, permit: &mut Permit) -> Result<Ended, StoreError> {
        let lease = permit.lease();
        let change = |record: Option<&Record>, now| match action::release(record, lease, now)? {
            Write::Delete => Ok(Some(New::Delete)),
            Write::Put(record) => Ok(Some(New::put(record))),
            Write::Claim { .. } => Ok(None),
        };
        match self.change(permit, change).await? {
            Ok(_) => Ok(Ended::Written { expires_at: None }),
            // A lapsed lease that somebody marked meanwhile is still ours: renew it, then give it back.
            Err(Refused::Unknown) => match Box::pin(self.renew(permit)).await? {
                Ok(()) => match Box::pin(self.change(permit, change)).await? {
                    Ok(_) => Ok(Ended::Written { expires_at: None }),
                    Err(refused) => Ok(Ended::Refused(refused)),
                },
                Err(refused) => Ok(Ended::Refused(refused)),
            },
            Err(refused) => Ok(Ended::Refused(refused)),
        }
    }

    /// Says that nobody knows whether the effect happened.
    ///
    /// # Errors
    /// [`StoreError`] where the store gave no answer: the lease then lapses, which says the same later.
    pub async fn doubt(&self, permit: &mut Permit, why: Why) -> Result<Ended, StoreError> {
        points::pass("gate.doubt.before-write");
        let lease = permit.lease();
        let change =
            |record: Option<&Record>, now| Ok(action::doubt(record, lease, why, now)?.map(Arc::new).map(New::Put));
        match self.change(permit, change).await? {
            Ok(_) => Ok(Ended::Written { expires_at: None }),
            Err(refused) => Ok(Ended::Refused(refused)),
        }
    }

    /// Settles a record in doubt by an operator's word. `expected` is the version and lease that the operator saw.
    /// The history keeps who and why in the same write.
    ///
    /// # Errors
    /// [`StoreError`] where the store gave no answer, and [`ErrorKind::Misuse`] for an expectation of absence.
    pub async fn resolve(
        &self,
        identity: &Identity,
        expected: Expected,
        verdict: &Verdict,
        confirmed: Confirmation,
        by: &Signed,
    ) -> Result<Result<(), Refused>, StoreError> {
        let Expected::Record { version, lease } = expected else {
            return Err(StoreError::not_applied(ErrorKind::Misuse, "there is nothing to resolve where nothing stands"));
        };
        let seen = self.store().read(identity).await?;
        let write = action::resolve(seen.record.as_deref(), version, lease, verdict.clone(), confirmed, seen.now);
        let new = match write {
            Ok(Write::Put(record)) => New::put(record),
            Ok(Write::Delete | Write::Claim { .. }) => New::Delete,
            Err(refused) => return Ok(Err(refused)),
        };
        let kind = match verdict {
            Verdict::Happened { .. } => NoteKind::ResolvedHappened,
            Verdict::DidNotHappen => NoteKind::ResolvedDidNotHappen,
            Verdict::SendAnew => NoteKind::ResolvedSendAnew,
        };
        let note =
            Note { identity: identity.clone(), at: seen.now.at, kind, lease, who: by.who.clone(), why: by.why.clone() };
        let swap = Swap {
            identity: identity.clone(),
            expected,
            new: new.clone(),
            not_after: None,
            note: Some(Arc::new(note)),
        };
        match self.send(swap, &mut false).await? {
            Swapped::Won { .. } => Ok(Ok(())),
            // A repeat of our own write whose reply was lost finds what it wrote.
            Swapped::Lost { stands, .. } if is_written(stands.as_deref(), &new) => Ok(Ok(())),
            Swapped::Lost { .. } | Swapped::TooLate { .. } | Swapped::Held { .. } => Ok(Err(Refused::Changed)),
        }
    }

    /// A completion that came too late may contradict what an operator said: it is written down and told.
    async fn alarm(&self, permit: &Permit, refused: Refused, status: u16) {
        let digest = permit.digest();
        tracing::error!(%digest, why = refused.as_str(), status, "a completion came too late and was refused");
        let note = Note {
            identity: permit.identity().clone(),
            at: self.store().now().at,
            kind: NoteKind::LateCompletion,
            lease: permit.lease(),
            who: "owner".to_owned(),
            why: format!("refused as {}: the run ended with status {status}", refused.as_str()),
        };
        if let Err(error) = self.store().note(note).await {
            tracing::error!(%digest, %error, "the late completion could not be written to the history");
        }
    }
}

fn is_written(stands: Option<&Record>, new: &New) -> bool {
    match (stands, new) {
        (Some(stands), New::Put(record)) => {
            *stands == **record && matches!(stands.state, State::Done { .. } | State::Spent { .. })
        }
        (None | Some(_), New::Delete | New::Claim(_)) | (None, New::Put(_)) => false,
    }
}
