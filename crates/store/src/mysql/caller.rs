//! The same promise in a transaction that the caller owns, on a connection of the caller's own: claim, effect and receipt
//! are committed by one COMMIT, or none of them is (PROTOCOL section 6, row 1).
//!
//! Nothing here is durable before that COMMIT returned. What does not belong here: the loop (`within`), and writes in
//! transactions of the store's own (`claim`, `put`).

use std::sync::Arc;

use counterfoil_core::{Claim, Policy, Receipt, Timestamp};
use mysql_async::prelude::Queryable as _;
use mysql_async::{Params, Row, Transaction, Value};

use super::claim::{self, CLAIM, Outcome, Whose, Written};
use super::fault::{self, Failed, Intent};
use super::list::CLOCK;
use super::put::{self, PUT};
use super::{Inner, MysqlStore, rows};
use crate::error::{ErrorKind, StoreError};
use crate::gate::{Begun, Ended, Permit};
use crate::seam::{New, Note, Swap, Swapped};
use crate::within::{self, Within, changed};

const DOING: &str = "the caller's transaction could not be written to";

impl MysqlStore {
    /// Claims inside `tx`, one round trip for a new action. Make the effect in the same transaction, end it with
    /// [`MysqlStore::complete_in`], and commit: effect and receipt are then durable together. Rolled back, neither
    /// happened, and the key is free. Committed without an end, the lease lapses and the next claim takes over.
    ///
    /// Any other answer leaves `tx` usable. While it is open, everybody else is told *in progress*: on MariaDB nobody waits
    /// for it, on MySQL at most a second. The policy's `effect` is taken to be [coupled](counterfoil_core::Effect::Coupled).
    ///
    /// ```no_run
    /// use counterfoil_core::{Claim, Policy, Receipt};
    /// use counterfoil_store::{Begun, Ended};
    /// use counterfoil_store::mysql::MysqlStore;
    /// use counterfoil_store::mysql::mysql_async::prelude::Queryable as _;
    /// use counterfoil_store::mysql::mysql_async::{Conn, TxOpts};
    ///
    /// # type Failed = Box<dyn std::error::Error>;
    /// async fn order(store: &MysqlStore, conn: &mut Conn, claim: &mut Claim) -> Result<Receipt, Failed> {
    ///     let mut tx = conn.start_transaction(TxOpts::default()).await?;
    ///     match store.begin_in(&mut tx, claim, &Policy::default()).await? {
    ///         Begun::Execute(mut permit) => {
    ///             tx.query_drop("INSERT INTO orders (item) VALUES ('pot')").await?;
    ///             let receipt = Receipt::new(201, "made");
    ///             match store.complete_in(&mut tx, &mut permit, &receipt).await? {
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
    /// [`ErrorKind::Misuse`] where `tx` is on another database. [`ErrorKind::Busy`] after a deadlock, which undoes the whole
    /// transaction on the server: what is sent in it from then on is committed by itself. So whatever the error, roll `tx`
    /// back at once.
    pub async fn begin_in(
        &self,
        tx: &mut Transaction<'_>,
        claim: &mut Claim,
        policy: &Policy,
    ) -> Result<Begun, StoreError> {
        within::begin(&mut Here { inner: &self.inner, tx }, claim, policy).await
    }

    /// Writes the result inside `tx`. Where it is refused, roll `tx` back: somebody else has the key.
    ///
    /// # Errors
    /// As [`MysqlStore::begin_in`].
    pub async fn complete_in(
        &self,
        tx: &mut Transaction<'_>,
        permit: &mut Permit,
        receipt: &Receipt,
    ) -> Result<Ended, StoreError> {
        within::complete(&mut Here { inner: &self.inner, tx }, permit, receipt).await
    }

    /// Gives the key back inside `tx`: the effect certainly did not happen.
    ///
    /// # Errors
    /// As [`MysqlStore::begin_in`].
    pub async fn release_in(&self, tx: &mut Transaction<'_>, permit: &mut Permit) -> Result<Ended, StoreError> {
        within::release(&mut Here { inner: &self.inner, tx }, permit).await
    }
}

/// The transaction, and the store that it is about.
struct Here<'h, 't> {
    inner: &'h Arc<Inner>,
    tx: &'h mut Transaction<'t>,
}

impl Here<'_, '_> {
    async fn row(&mut self, statement: &str, values: Vec<Value>) -> Result<Row, Failed> {
        let parameters = if values.is_empty() { Params::Empty } else { Params::Positional(values) };
        let rows: Vec<Row> = self.tx.exec(statement, parameters).await.map_err(|error| fault::within(error, DOING))?;
        rows.into_iter().next().ok_or_else(|| Failed::Other(changed()))
    }
}

impl Within for Here<'_, '_> {
    async fn promise(&mut self, span: i64) -> Result<(), StoreError> {
        self.inner.know(span).await
    }

    async fn claim(&mut self, swap: &Swap) -> Result<Option<Swapped>, StoreError> {
        let New::Claim(draft) = &swap.new else { return Err(changed()) };
        let quarantine = self.inner.quarantine();
        let written = match quarantine {
            None => Written::Counted(draft.clone()),
            Some(before) => {
                let told = self.row(CLOCK, Vec::new()).await.map_err(|failed| failed.told(DOING))?;
                Written::of(draft, before, rows::time(&told, 0)?)
            }
        };
        let values = claim::values(self.inner, swap, &written, quarantine, Whose::Callers)?;
        let row = match self.row(CLAIM, values).await {
            Ok(row) => row,
            // Nobody waits here, and the transaction goes on.
            Err(Failed::Locked) if !self.inner.undoes_all => {
                return Ok(Some(Swapped::Held { now: self.inner.pace.now() }));
            }
            Err(failed) => return Err(failed.told(DOING)),
        };
        if rows::get::<String>(&row, 9)? != self.inner.id {
            let detail = "the transaction is on another database than the store: connect to the same one";
            return Err(StoreError::not_applied(ErrorKind::Misuse, detail));
        }
        match claim::outcome(self.inner, swap, written, &row)? {
            Outcome::Answer(swapped) => Ok(Some(swapped)),
            Outcome::Quarantine(before) => {
                self.inner.set_quarantine_seen(before);
                Ok(None)
            }
        }
    }

    async fn put(&mut self, swap: &Swap) -> Result<Swapped, StoreError> {
        let values = put::values(self.inner, swap, None)?;
        let row = self.row(PUT, values).await.map_err(|failed| failed.told(DOING))?;
        put::outcome(self.inner, swap, &row)
    }

    fn now(&self) -> Timestamp {
        self.inner.pace.now().at
    }

    async fn alarm(&mut self, note: Note) -> Result<(), StoreError> {
        let inner = self.inner.clone();
        self.inner.run(Intent::Writes, async move { inner.note(&note).await }).await
    }
}
