//! Coupled operations: the handler puts effect and receipt into one transaction, and the record decides the answer.
//!
//! Nothing is claimed before the handler runs, so a crash at any point leaves nothing or everything (PROTOCOL section
//! 6, row 1). The transaction itself belongs to the store.

use std::fmt::Display;
use std::ops::ControlFlow;
use std::sync::{Arc, OnceLock};

use counterfoil_core::{Claim, Policy, Receipt, Timestamp, Why};
#[cfg(feature = "postgres")]
use counterfoil_store::postgres::{Effecting, PostgresStore, tokio_postgres::Transaction};
use counterfoil_store::sqlite::{Executed, Handle, Origin};
use counterfoil_store::{Applied, Begun, Ended, Permit, RecordStore as _, SqliteStore, StoreError};
use http::{Request, Response, StatusCode};
use tokio::sync::oneshot;
use tokio::time::Instant;
use tower::Service;

use crate::body::{Body, BoxError};
use crate::end::Again;
use crate::job::{About, Job};
use crate::layer::{Shared, Slot};
use crate::metrics::{self, End};
use crate::reject::{Doubt, Rejection};
use crate::remember::Answered;
use crate::replay::{Replayed, Told, mark};
use crate::run::{Deliver, HandlerEnd, Led, deliver, handler, late, race};
use crate::service::answer;

/// A request extension of coupled operations: the way to put effect and receipt into one transaction.
///
/// A handler calls [`Coupled::execute`] and answers what that answers; or it claims and completes in a transaction of its own
/// and answers [`Coupled::told`] or [`Coupled::committed`]. An answer of 2xx or 3xx without it is an error of
/// the program: nobody knows then whether the effect happened, and the caller is told so.
#[derive(Clone)]
pub struct Coupled(Arc<Inner>);

struct Inner {
    claim: Claim,
    policy: Policy,
    about: About,
    settled: OnceLock<Settled>,
}

/// A doubt that the store could not be told of, with the lease where it was granted already.
struct Owed(Option<Permit>);

/// What the record says once effect and receipt are committed.
struct Settled {
    receipt: Receipt,
    expires_at: Timestamp,
    replayed: Replayed,
}

/// On an answer that [`Coupled::execute`] made.
#[derive(Clone, Copy)]
struct FromRecord;

impl std::fmt::Debug for Coupled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Coupled").field(&self.0.about.digest).finish()
    }
}

impl Coupled {
    /// Runs `effect` at most once for this request's key, in the writer's transaction: the receipt that it answers is
    /// committed with it, or nothing is. `store` must be the one behind the layer's gate.
    ///
    /// The answer is the receipt's, made now or before, or the problem document that the record or the store leads
    /// to. The effect must be short and wait for nothing: everybody in its batch waits with it.
    ///
    /// # Errors
    /// What `effect` answered as its error: it was rolled back, and the key is free.
    pub async fn execute<E, F>(&self, store: &SqliteStore, effect: F) -> Result<Response<Body>, E>
    where
        E: Send + 'static,
        F: FnOnce(&Handle<'_>) -> Result<Receipt, E> + Send + 'static,
    {
        let executed = store.execute(self.0.claim.clone(), &self.0.policy, effect).await;
        self.executed(store.now().at, executed)
    }

    /// [`Coupled::execute`] in a transaction of the store's own on PostgreSQL. No more effects run at once than the store has
    /// connections; one that waits holds up nobody else. The transaction ends with the operation's `attempt_limit` at the
    /// latest. A deadlock or a serialization failure is a 503, and nothing is run again by itself.
    ///
    /// # Errors
    /// The same.
    #[cfg(feature = "postgres")]
    pub async fn execute_on_postgres<E, F>(&self, store: &PostgresStore, effect: F) -> Result<Response<Body>, E>
    where
        E: Send + 'static,
        F: for<'t> FnOnce(&'t mut Transaction<'_>) -> Effecting<'t, E> + Send + 'static,
    {
        let executed = store.execute(self.0.claim.clone(), &self.0.policy, effect).await;
        self.executed(store.now().at, executed)
    }

    /// What to claim in a transaction of the handler's own (`begin_in` of the store behind the layer's gate). The answer is
    /// [`Coupled::told`] or, once that transaction is committed, [`Coupled::committed`].
    #[must_use]
    pub fn claim(&self) -> Claim {
        self.0.claim.clone()
    }

    /// On what terms it is claimed there.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.0.policy
    }

    /// The answer that a claim in the handler's own transaction came to, other than the right to run.
    #[must_use]
    pub fn told(&self, begun: Begun) -> Response<Body> {
        let inner = &self.0;
        if let Begun::Replay { receipt, expires_at } = begun {
            return inner.settle(Settled { receipt, expires_at, replayed: Replayed::Yes });
        }
        metrics::decided(&inner.about.matched.label, &begun);
        let mut answer = answer(begun, &inner.about);
        answer.extensions_mut().insert(FromRecord);
        answer
    }

    /// The answer that a receipt is once the handler's own transaction was committed with it; `ended` is what
    /// `complete_in` answered. Where COMMIT failed, answer 5xx and not this: what stands is then looked up and told.
    #[must_use]
    pub fn committed(&self, receipt: Receipt, ended: &Ended) -> Response<Body> {
        match ended {
            Ended::Written { expires_at: Some(expires_at) } => {
                self.0.settle(Settled { receipt, expires_at: *expires_at, replayed: Replayed::No })
            }
            Ended::Written { expires_at: None } | Ended::Refused(_) => {
                let mut answer = self.0.about.refuse(&Rejection::Doubt(Doubt::Unanswered));
                answer.extensions_mut().insert(FromRecord);
                answer
            }
        }
    }

    fn executed<E>(&self, now: Timestamp, executed: Result<Executed<E>, StoreError>) -> Result<Response<Body>, E> {
        let inner = &self.0;
        let rejection = match executed {
            Ok(Executed::Done { receipt, expires_at, origin }) => {
                let replayed = match origin {
                    Origin::Fresh => Replayed::No,
                    Origin::Replayed => Replayed::Yes,
                };
                return Ok(inner.settle(Settled { receipt, expires_at, replayed }));
            }
            Ok(Executed::EffectFailed(error)) => return Err(error),
            Ok(Executed::Mismatch) => Rejection::Mismatch,
            Ok(Executed::InProgress { until }) => Rejection::InProgress { remaining: until.since(now) },
            Ok(Executed::Unknown { since, why }) => Rejection::Unknown { since, why },
            Ok(Executed::Expired { until }) => Rejection::Expired { until },
            Err(error) => inner.failed(&error),
        };
        let mut answer = inner.about.refuse(&rejection);
        answer.extensions_mut().insert(FromRecord);
        Ok(answer)
    }
}

impl Inner {
    /// Remembers what the record says, and answers it. The first word stands: the record does not change after it.
    fn settle(&self, settled: Settled) -> Response<Body> {
        match settled.replayed {
            Replayed::No => metrics::ended(&self.about.matched.label, End::Completed),
            Replayed::Yes => metrics::replayed(&self.about.matched.label),
        }
        self.answer(self.settled.get_or_init(|| settled))
    }

    fn answer(&self, settled: &Settled) -> Response<Body> {
        let mut answer = match self.about.tell(&settled.receipt) {
            Told::Answer(mut answer) => {
                mark(&mut answer, settled.replayed, Some(settled.expires_at));
                answer
            }
            Told::NotKept { status, location } => self.about.refuse(&Rejection::NotKept { status, location }),
            Told::Unreadable => self.about.refuse(&Rejection::Unreadable),
        };
        answer.extensions_mut().insert(FromRecord);
        answer
    }

    fn failed(&self, error: &StoreError) -> Rejection {
        tracing::warn!(digest = %self.about.digest, %error, "a coupled effect could not be committed");
        metrics::store_failed(error);
        match error.applied {
            Applied::No => Rejection::Store(error.kind),
            Applied::Unknown => Rejection::Doubt(Doubt::Unanswered),
        }
    }
}

/// Runs the handler, where a look found nothing against it: the transaction itself looks again.
pub(crate) async fn lead<S, R>(shared: Arc<Shared>, job: Box<Job<S>>, slot: Slot, reply: oneshot::Sender<Led<S>>)
where
    S: Service<Request<Body>, Response = Response<R>> + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Display + Send + 'static,
    R: http_body::Body<Data = bytes::Bytes> + Send + 'static,
    R::Error: Into<BoxError>,
{
    let policy = job.about.matched.terms.policy.clone();
    let limit = Instant::now() + policy.attempt_limit;
    let (service, mut request, claim, about) = job.split(limit);
    metrics::executed(&about.matched.label);
    let inner = Arc::new(Inner { claim, policy, about, settled: OnceLock::new() });
    request.extensions_mut().insert(Coupled(inner.clone()));
    let mut handler = handler(&shared, &inner.about, service, request);
    let deliver: Deliver = deliver(reply);
    let ended = match race(&mut handler, limit, &shared.drain).await {
        Ok(ended) => ended,
        Err(doubt) => {
            deliver(inner.about.refuse(&Rejection::Doubt(doubt)));
            // It keeps its place: handlers that never end are bounded like all others.
            Box::pin(late(handler, &shared.drain)).await;
            return shared.waiters.wake(inner.about.digest);
        }
    };
    let (answer, owed) = inner.conclude(&shared, ended).await;
    shared.waiters.wake(inner.about.digest);
    let Some(owed) = owed else {
        drop(slot);
        return deliver(answer);
    };
    deliver(answer);
    // The place among those that run is kept, which bounds how many do this.
    Box::pin(inner.tell_later(&shared, owed)).await;
    drop(slot);
}

impl Inner {
    /// The answer to a handler's end: the record's where it is settled, whatever the handler said.
    async fn conclude(&self, shared: &Shared, ended: HandlerEnd) -> (Response<Body>, Option<Owed>) {
        let answer = match (ended, self.settled.get()) {
            (Ok(answered), Some(settled)) => match answered.into_answer() {
                Ok(answer) if answer.extensions().get::<FromRecord>().is_some() => answer,
                Ok(_) | Err(_) => self.answer(settled),
            },
            (Err(failed), Some(settled)) => {
                failed.tell(self.about.digest);
                self.answer(settled)
            }
            // Rare: in boxes, so that they add nothing to the size of every run.
            (Ok(answered), None) => return Box::pin(self.unsettled(shared, answered)).await,
            (Err(failed), None) => {
                failed.tell(self.about.digest);
                let rejection = failed.doubt().map_or(Rejection::NotSent, Rejection::Doubt);
                Box::pin(self.look_again(shared, rejection)).await
            }
        };
        (answer, None)
    }

    /// The handler answered and committed nothing: a refusal leaves nothing, and a success is not believed.
    async fn unsettled(&self, shared: &Shared, answered: Answered) -> (Response<Body>, Option<Owed>) {
        let status = answered.status();
        if status.is_client_error() || status.is_server_error() {
            let answer = match answered.into_answer() {
                Ok(answer) if answer.extensions().get::<FromRecord>().is_some() => answer,
                Ok(mut own) => {
                    mark(&mut own, Replayed::No, None);
                    // Where the handler failed, its COMMIT may have gone through all the same.
                    if status.is_server_error() { self.look_first(shared, own).await } else { own }
                }
                Err(doubt) => self.look_again(shared, Rejection::Doubt(doubt)).await,
            };
            return (answer, None);
        }
        let owed = self.without_settle(shared, status).await;
        (self.about.refuse(&Rejection::Doubt(Doubt::AnsweredWithoutSettle)), owed)
    }

    /// What stands answers where it is a result, because a commit whose reply was lost is one; else `rejection` does.
    async fn look_again(&self, shared: &Shared, rejection: Rejection) -> Response<Body> {
        self.look_first(shared, self.about.refuse(&rejection)).await
    }

    /// The same with an answer that is made already.
    async fn look_first(&self, shared: &Shared, otherwise: Response<Body>) -> Response<Body> {
        match shared.gate.look(&mut self.claim.clone()).await {
            Ok(ControlFlow::Break(begun @ Begun::Replay { .. })) => answer(begun, &self.about),
            Ok(_) => otherwise,
            Err(error) => {
                metrics::store_failed(&error);
                otherwise
            }
        }
    }

    /// Makes the record say that nobody knows.
    async fn without_settle(&self, shared: &Shared, status: StatusCode) -> Option<Owed> {
        tracing::error!(
            digest = %self.about.digest, operation = %self.about.matched.label, %status,
            "a coupled operation answered without executing: its handler must call `Coupled::execute`"
        );
        metrics::answered_without_settle(&self.about.matched.label);
        self.tell_doubt(shared, Owed(None)).await
    }

    /// Tells the store of the doubt again and again, until it is told or the drain ends.
    async fn tell_later(&self, shared: &Shared, mut owed: Owed) {
        let mut again = Again::new();
        loop {
            let last = shared.drain.is_ending();
            again.rest(&shared.drain).await;
            owed = match self.tell_doubt(shared, owed).await {
                None => return shared.waiters.wake(self.about.digest),
                Some(owed) => owed,
            };
            if last {
                tracing::error!(digest = %self.about.digest, "a doubt was given up unrecorded: the action may run again");
                return;
            }
        }
    }

    /// What is still owed once the store was told.
    async fn tell_doubt(&self, shared: &Shared, Owed(permit): Owed) -> Option<Owed> {
        let mut permit = match permit {
            Some(permit) => permit,
            None => match shared.gate.begin(&mut self.claim.clone(), &self.policy).await {
                Ok(Begun::Execute(permit)) => *permit,
                Ok(other) => {
                    // Somebody else's record stands, and it is not ours to change.
                    metrics::decided(&self.about.matched.label, &other);
                    return None;
                }
                Err(error) => return self.owed(&error, None),
            },
        };
        match shared.gate.doubt(&mut permit, Why::AnsweredWithoutSettle).await {
            Ok(_) => None,
            Err(error) => self.owed(&error, Some(permit)),
        }
    }

    fn owed(&self, error: &StoreError, permit: Option<Permit>) -> Option<Owed> {
        tracing::error!(digest = %self.about.digest, %error, "the doubt about a coupled operation could not be stored");
        metrics::store_failed(error);
        Some(Owed(permit))
    }
}
