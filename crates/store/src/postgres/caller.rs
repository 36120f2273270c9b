//! The same promise in a transaction that the caller owns, on a connection of the caller's own: claim, effect and receipt
//! are committed by one COMMIT, or none of them is (PROTOCOL section 6, row 1).
//!
//! Nothing here is durable before that COMMIT returned. What does not belong here: the loop (`within`), the drivers
//! (`transaction`), and writes in transactions of the store's own (`claim`, `put`).

use std::sync::Arc;

use counterfoil_core::{Claim, Policy, Receipt, Timestamp};

use super::claim::{self, CLOCK, Outcome, Written};
use super::fault::Intent;
use super::put;
use super::transaction::{CallersTransaction, Sends};
use super::{Inner, PostgresStore, rows};
use crate::error::{ErrorKind, StoreError};
use crate::gate::{Begun, Ended, Permit};
use crate::seam::{New, Note, Swap, Swapped};
use crate::within::{self, Within, changed};

/// With the id of the store that the transaction really is on, and the transaction's own.
const CLAIM_HERE: &str = "SELECT c.*, s.id, pg_current_xact_id()::text FROM counterfoil.store AS s, \
    counterfoil.claim($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17) AS c";

/// With the transaction's id.
const PUT_HERE: &str = "SELECT p.*, pg_current_xact_id()::text FROM counterfoil.put($1, $2, $3, $4, $5, $6, $7, $8, $9, \
    $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20) AS p";

impl PostgresStore {
    /// Claims inside `tx`, one round trip for a new action. Make the effect in the same transaction, end it with
    /// [`PostgresStore::complete_in`], and commit: effect and receipt are then durable together. Rolled back, neither
    /// happened, and the key is free. Committed without an end, the lease lapses and the next claim takes over.
    ///
    /// `tx` is `&tokio_postgres::Transaction`, or with the feature `sqlx` `&mut sqlx::Transaction<Postgres>`. Not a nested one
    /// that may be rolled back alone: the claim is undone with it, and so must the effect be.
    ///
    /// Any other answer leaves `tx` usable. While it is open, everybody else is told *in progress*; nobody waits for it.
    /// The policy's `effect` is taken to be [coupled](counterfoil_core::Effect::Coupled). `synchronous_commit` is raised to `on` for this
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
        tx: impl CallersTransaction,
        claim: &mut Claim,
        policy: &Policy,
    ) -> Result<Begun, StoreError> {
        within::begin(&mut Here::new(&self.inner, tx), claim, policy).await
    }

    /// Writes the result inside `tx`. Where it is refused, roll `tx` back: somebody else has the key.
    ///
    /// # Errors
    /// As [`PostgresStore::begin_in`].
    pub async fn complete_in(
        &self,
        tx: impl CallersTransaction,
        permit: &mut Permit,
        receipt: &Receipt,
    ) -> Result<Ended, StoreError> {
        within::complete(&mut Here::new(&self.inner, tx), permit, receipt).await
    }

    /// Gives the key back inside `tx`: the effect certainly did not happen.
    ///
    /// # Errors
    /// As [`PostgresStore::begin_in`].
    pub async fn release_in(&self, tx: impl CallersTransaction, permit: &mut Permit) -> Result<Ended, StoreError> {
        within::release(&mut Here::new(&self.inner, tx), permit).await
    }
}

/// A transaction of either driver, and the store that it is about.
pub(super) struct Here<'s, T> {
    inner: &'s Arc<Inner>,
    tx: T,
    /// The transaction that was claimed in.
    pub(super) xact: Option<String>,
}

impl<'s, T: Sends> Here<'s, T> {
    pub(super) const fn new(inner: &'s Arc<Inner>, tx: T) -> Self {
        Self { inner, tx, xact: None }
    }
}

impl<T: Sends> Within for Here<'_, T> {
    async fn promise(&mut self, span: i64) -> Result<(), StoreError> {
        self.inner.know(span).await
    }

    async fn claim(&mut self, swap: &Swap) -> Result<Option<Swapped>, StoreError> {
        let inner = self.inner;
        let New::Claim(draft) = &swap.new else { return Err(changed()) };
        let quarantine = match inner.quarantine() {
            None => None,
            Some(before) => {
                let told = self.tx.rows(CLOCK, &[]).await?;
                let now = told.first().map(|row| rows::time(row, 0)).transpose()?;
                Some((before, now.unwrap_or_else(|| inner.pace.now().at)))
            }
        };
        let written = Written::of(draft, quarantine);
        let mut arrays = claim::Arrays::default();
        arrays.push(swap, &written, false)?;
        let before = quarantine.map(|(before, _)| before.as_millis());
        let answer = self.tx.rows(CLAIM_HERE, &arrays.parameters(&before)).await?;
        let row = answer.first().ok_or_else(changed)?;
        if rows::get::<&str>(row, 11)? != inner.id {
            let detail = "the transaction is on another database than the store: connect to the same one";
            return Err(StoreError::not_applied(ErrorKind::Misuse, detail));
        }
        self.xact = rows::get(row, 12)?;
        match claim::outcome(inner, swap, written, row)? {
            Outcome::Answer(swapped) => Ok(Some(swapped)),
            Outcome::Held(at) => Ok(Some(Swapped::Held { now: counterfoil_core::Now::at(at) })),
            Outcome::Quarantine(before) => {
                inner.set_quarantine_seen(before);
                Ok(None)
            }
        }
    }

    async fn put(&mut self, swap: &Swap) -> Result<Swapped, StoreError> {
        let mut arrays = put::Arrays::default();
        arrays.push(swap)?;
        let answer = self.tx.rows(PUT_HERE, &arrays.parameters(&true, &None)).await?;
        let row = answer.first().ok_or_else(changed)?;
        if self.xact.as_deref().is_some_and(|begun| rows::get::<&str>(row, 10).is_ok_and(|here| here != begun)) {
            let detail = "the effect ended its transaction, so effect and receipt were not one: it must do neither";
            return Err(StoreError::unknown(ErrorKind::Misuse, detail));
        }
        put::outcome(self.inner, swap, row)?.ok_or_else(changed)
    }

    fn now(&self) -> Timestamp {
        self.inner.pace.now().at
    }

    async fn alarm(&mut self, note: Note) -> Result<(), StoreError> {
        let inner = self.inner.clone();
        self.inner.run(Intent::Writes, async move { inner.note(&note).await }).await
    }
}
