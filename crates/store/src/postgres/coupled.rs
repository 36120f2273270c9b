//! Claim, effect and receipt in one transaction of the store's own (PROTOCOL section 6, row 1): nothing or everything.
//!
//! What does not belong here: the loop (`within`), and transactions of the caller's own (`caller`).

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;

use counterfoil_core::{Claim, Identity, LeaseId, Policy, Receipt, Record, State};
use tokio::time::{Instant, timeout_at};
use tokio_postgres::types::Type;
use tokio_postgres::{IsolationLevel, Transaction};

use super::caller::Here;
use super::fault::{self, Intent};
use super::pool::{Lent, Param};
use super::{Inner, PostgresStore, claim, put};
use crate::error::{Applied, ErrorKind, StoreError};
use crate::gate::{Begun, Ended};
use crate::sqlite::{Executed, Origin};
use crate::within::{self, Step, changed};

/// An effect at work in the transaction that it was given.
pub type Effecting<'t, E> = Pin<Box<dyn Future<Output = Result<Receipt, E>> + Send + 't>>;

/// The pause before a lost COMMIT is asked about again.
const ASK_PAUSE: Duration = Duration::from_millis(25);

/// How long a connection is kept for its ROLLBACK.
const ROLL_BACK_MAX: Duration = Duration::from_secs(1);

/// Writes anew what a lost COMMIT wrote, so that this commit waits for all that the first should have waited for.
const ANEW: &str = "UPDATE counterfoil.record AS r SET version = r.version
  WHERE r.scope = $1 AND r.operation = $2 AND r.key = $3 AND r.lease = $4";

const DOING: &str = "effect and receipt could not be committed";

impl PostgresStore {
    /// Runs `effect` at most once for `claim`, in a transaction of the store's own at READ COMMITTED: the receipt that it
    /// answers is committed with what it wrote, or nothing is. The effect may use savepoints, and must not end the
    /// transaction. It has until the policy's `attempt_limit`, then it is undone. The policy's `effect` is taken to be
    /// [coupled](counterfoil_core::Effect::Coupled).
    ///
    /// It holds one of the store's connections, so no more effects run at once than the store has of them, and the store's
    /// role needs the rights that the effect needs. Goes on where the caller is dropped; call it within a tokio runtime.
    ///
    /// ```no_run
    /// use counterfoil_core::{Claim, Policy, Receipt};
    /// use counterfoil_store::postgres::{PostgresStore, tokio_postgres};
    /// use counterfoil_store::sqlite::Executed;
    ///
    /// # async fn order(store: &PostgresStore, claim: Claim) -> Result<(), Box<dyn std::error::Error>> {
    /// let policy = Policy::default();
    /// let done = store.execute(claim, &policy, |tx| {
    ///     Box::pin(async move {
    ///         tx.execute("INSERT INTO orders (item) VALUES ('pot')", &[]).await?;
    ///         Ok::<_, tokio_postgres::Error>(Receipt::new(201, "made"))
    ///     })
    /// });
    /// let Executed::Done { receipt, .. } = done.await? else { return Err("not now".into()) };
    /// # drop(receipt);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Busy`] after a deadlock, a serialization failure or an effect over its limit: nothing happened, nothing
    /// is run again by itself, and the key is free. [`ErrorKind::Misuse`] where the effect panicked or ended its
    /// transaction. Where the error says that the write is of unknown fate, the answer to COMMIT was lost and could not be
    /// asked for again.
    pub async fn execute<E, F>(&self, claim: Claim, policy: &Policy, effect: F) -> Result<Executed<E>, StoreError>
    where
        E: Send + 'static,
        F: for<'t> FnOnce(&'t mut Transaction<'_>) -> Effecting<'t, E> + Send + 'static,
    {
        let (inner, policy) = (self.inner.clone(), policy.clone());
        // On the caller's runtime: an effect that blocks its thread keeps nobody's lease from being renewed.
        let running = tokio::spawn(async move { inner.execute(claim, &policy, effect).await });
        let done = running.await.unwrap_or_else(|error| Err(super::cut_short(Intent::Writes).caused_by(error)));
        self.inner.tell(done.as_ref().err());
        done
    }
}

/// What became of the transaction.
enum Ran<E> {
    /// It was committed or undone, and the server said so.
    Ended(Executed<E>),
    /// It is to be undone with its connection.
    Left(Executed<E>),
    /// COMMIT was sent, and its answer is not known.
    Unheard { lease: LeaseId, error: StoreError },
}

impl Inner {
    async fn execute<E, F>(
        self: &Arc<Self>,
        mut claim: Claim,
        policy: &Policy,
        effect: F,
    ) -> Result<Executed<E>, StoreError>
    where
        F: for<'t> FnOnce(&'t mut Transaction<'_>) -> Effecting<'t, E> + Send,
    {
        // A replay writes nothing and takes no lock.
        let seen = self.read(claim.identity().clone()).await?;
        if let Step::Answer(begun) = within::judged(&mut claim, seen.record.as_deref(), seen.now) {
            return self.told(begun);
        }
        // Before a connection is held, of which there may be one.
        self.know(within::promised(policy)).await?;
        let call = Instant::now() + self.options.call_timeout;
        let mut lent = self.lend(call).await?;
        let ran = self.transact(&mut lent, &mut claim, policy, effect).await;
        match ran? {
            Ran::Left(answer) => Ok(answer),
            Ran::Ended(answer) => {
                lent.is_whole_again();
                Ok(answer)
            }
            Ran::Unheard { lease, error } => {
                drop(lent);
                self.ask_again(claim.identity(), lease, error).await
            }
        }
    }

    async fn transact<E, F>(
        self: &Arc<Self>,
        lent: &mut Lent,
        claim: &mut Claim,
        policy: &Policy,
        effect: F,
    ) -> Result<Ran<E>, StoreError>
    where
        F: for<'t> FnOnce(&'t mut Transaction<'_>) -> Effecting<'t, E> + Send,
    {
        let now = Instant::now();
        let (call, limit) = (now + self.options.call_timeout, now + policy.attempt_limit);
        let (client, warned) = lent.for_a_transaction()?;
        let starting = client.build_transaction().isolation_level(IsolationLevel::ReadCommitted).read_only(false);
        let mut tx = in_time(call, starting.start()).await?;
        let mut here = Here::new(self, &tx);
        let mut permit = match timed(call, within::begin(&mut here, claim, policy)).await? {
            Begun::Execute(permit) => permit,
            other => return Ok(undone(tx, self.told(other)?).await),
        };
        let begun = here.xact;
        let receipt = match timeout_at(limit, carry_out(&mut tx, effect)).await {
            Err(_) => return Err(over_its_limit()),
            Ok(Err(misuse)) => return Err(misuse),
            Ok(Ok(Err(error))) => return Ok(undone(tx, Executed::EffectFailed(error)).await),
            Ok(Ok(Ok(receipt))) => receipt,
        };
        let call = Instant::now() + self.options.call_timeout;
        let mut here = Here::new(self, &tx);
        here.xact = begun;
        let expires_at = match timed(call, within::complete(&mut here, &mut permit, &receipt)).await? {
            Ended::Written { expires_at: Some(expires_at) } => expires_at,
            Ended::Written { expires_at: None } | Ended::Refused(_) => return Err(changed()),
        };
        warned.store(false, Ordering::Release);
        let done = Executed::Done { receipt, expires_at, origin: Origin::Fresh };
        let lease = permit.lease();
        let error = match timeout_at(call, tx.commit()).await {
            // That it stands here is known, and not that it will after a fail-over.
            Ok(Ok(())) if warned.load(Ordering::Acquire) => return Err(fault::not_replicated(DOING)),
            Ok(Ok(())) => return Ok(Ran::Ended(done)),
            Ok(Err(error)) => fault::failed(error, Intent::Writes, DOING),
            Err(_) => fault::timed_out(Intent::Writes, DOING),
        };
        match error.applied {
            Applied::No => Err(error),
            Applied::Unknown => Ok(Ran::Unheard { lease, error }),
        }
    }

    /// Asks what a lost COMMIT came to. The transaction holds its identity's lock until it ends, so whoever gets that lock
    /// sees what it came to.
    pub(super) async fn ask_again<E>(
        self: &Arc<Self>,
        identity: &Identity,
        lease: LeaseId,
        lost: StoreError,
    ) -> Result<Executed<E>, StoreError> {
        let deadline = Instant::now() + self.options.call_timeout;
        loop {
            if let Ok(Some(stands)) = self.look_behind(identity, lease, deadline).await {
                return match stands.map(|record| (record.lease.id, record.state)) {
                    Some((id, State::Done { receipt, expires_at, .. })) if id == lease => {
                        Ok(Executed::Done { receipt, expires_at, origin: Origin::Fresh })
                    }
                    _ => Err(StoreError { applied: Applied::No, kind: ErrorKind::Unavailable, ..lost }),
                };
            }
            if Instant::now() + ASK_PAUSE >= deadline {
                return Err(lost);
            }
            tokio::time::sleep(ASK_PAUSE).await;
        }
    }

    /// What stands once nobody's transaction is at `identity`; `None`: somebody's is.
    async fn look_behind(
        self: &Arc<Self>,
        identity: &Identity,
        lease: LeaseId,
        deadline: Instant,
    ) -> Result<Option<Option<Record>>, StoreError> {
        let mut lent = self.lend(deadline).await?;
        lent.begin(DOING, deadline).await?;
        let lock = claim::lock(&identity.digest());
        let parameters: [Param<'_>; 1] = [(&lock, Type::INT8)];
        let statement = "SELECT pg_try_advisory_xact_lock($1)";
        let rows = lent.query(Intent::Reads, DOING, statement, &parameters, deadline).await?;
        let free = rows.first().is_some_and(|row| row.get(0));
        let seen = if free { Some(self.read_by(&mut lent, identity, deadline).await?) } else { None };
        if free {
            lent.query(Intent::Reads, DOING, "SELECT counterfoil.be_durable()", &[], deadline).await?;
            let ((scope, operation, key), lease) = (put::parts(identity), lease.as_bytes().as_slice());
            let parameters: [Param<'_>; 4] =
                [(&scope, Type::BYTEA), (&operation, Type::BYTEA), (&key, Type::BYTEA), (&lease, Type::BYTEA)];
            lent.query(Intent::Reads, DOING, ANEW, &parameters, deadline).await?;
        }
        lent.commit(DOING, deadline).await?;
        Ok(seen.map(|seen| seen.record.map(Arc::unwrap_or_clone)))
    }

    pub(super) fn told<E>(&self, begun: Begun) -> Result<Executed<E>, StoreError> {
        Ok(match begun {
            Begun::Replay { receipt, expires_at } => Executed::Done { receipt, expires_at, origin: Origin::Replayed },
            Begun::Mismatch => Executed::Mismatch,
            Begun::InProgress { remaining } => Executed::InProgress { until: self.pace.now().at.plus(remaining) },
            Begun::Unknown { since, why } => Executed::Unknown { since, why },
            Begun::Expired { until } => Executed::Expired { until },
            Begun::Execute(_) => return Err(changed()),
        })
    }
}

/// Undoes what an answer leaves nothing of.
async fn undone<E>(tx: Transaction<'_>, answer: Executed<E>) -> Ran<E> {
    match timeout_at(Instant::now() + ROLL_BACK_MAX, tx.rollback()).await {
        Ok(Ok(())) => Ran::Ended(answer),
        Ok(Err(_)) | Err(_) => Ran::Left(answer),
    }
}

/// Runs the effect; a panic of it is an error.
async fn carry_out<E, F>(tx: &mut Transaction<'_>, effect: F) -> Result<Result<Receipt, E>, StoreError>
where
    F: for<'t> FnOnce(&'t mut Transaction<'_>) -> Effecting<'t, E> + Send,
{
    let panicked = || {
        let detail = "the effect panicked and was rolled back: mend it";
        StoreError::not_applied(ErrorKind::Misuse, detail)
    };
    let mut effecting = catch_unwind(AssertUnwindSafe(|| effect(tx))).map_err(|_| panicked())?;
    let ended = poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| effecting.as_mut().poll(context))) {
        Ok(Poll::Pending) => Poll::Pending,
        Ok(Poll::Ready(ended)) => Poll::Ready(Ok(ended)),
        Err(_) => Poll::Ready(Err(panicked())),
    });
    ended.await
}

fn over_its_limit() -> StoreError {
    let detail = "the effect outlasted its limit and was undone: make it shorter, or raise the attempt limit";
    StoreError::not_applied(ErrorKind::Busy, detail)
}

/// Nothing of an open transaction is applied before its COMMIT.
async fn in_time<T>(
    deadline: Instant,
    work: impl Future<Output = Result<T, tokio_postgres::Error>>,
) -> Result<T, StoreError> {
    match timeout_at(deadline, work).await {
        Ok(done) => done.map_err(|error| fault::failed(error, Intent::Reads, DOING)),
        Err(_) => Err(fault::timed_out(Intent::Reads, DOING)),
    }
}

async fn timed<T>(deadline: Instant, work: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
    timeout_at(deadline, work).await.unwrap_or_else(|_| Err(fault::timed_out(Intent::Reads, DOING)))
}
