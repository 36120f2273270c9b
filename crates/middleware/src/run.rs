//! A run: claim, handler, end. A caller that hangs up cancels none of it.
//!
//! A run that never waits costs no task: it has one of its own from its first pause on. A handler that outlasts its time
//! limit keeps running, and keeps its place among those that run: the action is in doubt then, and a completion of the
//! same lease still settles it. One that blocks its thread is not cut off; its lease is renewed from another thread, and
//! its result counts. What an answer means belongs to `remember`, writing the end to `end`.

use std::fmt::Display;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;

use bytes::Bytes;
use counterfoil_core::Effect;
use counterfoil_store::seam::Seen;
use counterfoil_store::{Begun, Permit, StoreError};
use http::{Request, Response};
use tokio::sync::oneshot;
use tokio::time::Instant;
use tower::{Service, ServiceExt as _};

use crate::body::{Body, BoxError};
use crate::child::ChildKeys;
use crate::drain::Drain;
use crate::end::Run;
use crate::fault::Fault;
use crate::job::{About, Job};
use crate::layer::{Shared, Slot};
use crate::metrics::{self, Counted};
use crate::permit::PermitText;
use crate::reject::{Doubt, Rejection};
use crate::remember::{Answered, Failed};

/// What a led job came to, for the caller that may have gone.
pub(crate) enum Led<S> {
    Answered(Response<Body>),
    Decided(Box<Job<S>>, Begun),
    Failed(Box<Job<S>>, StoreError),
}

/// How a handler ended.
pub(crate) type HandlerEnd = Result<Answered, Failed>;

/// Claims on what was seen, and runs where the claim is granted.
pub(crate) async fn lead<S, R>(
    shared: Arc<Shared>,
    mut job: Box<Job<S>>,
    seen: Seen,
    slot: Slot,
    reply: oneshot::Sender<Led<S>>,
) where
    S: Service<Request<Body>, Response = Response<R>> + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Display + Send + 'static,
    R: http_body::Body<Data = Bytes> + Send + 'static,
    R::Error: Into<BoxError>,
{
    // Counted from before the claim, so that the run's limit ends no later than the record says.
    let policy = &job.about.matched.terms.policy;
    let limit = Instant::now() + policy.attempt_limit;
    let led = match shared.gate.begin_on(&mut job.claim, policy, seen).await {
        Ok(Begun::Execute(mut permit)) => {
            let (service, mut request, claim, about) = job.split(limit);
            metrics::executed(&about.matched.label);
            let text = (permit.policy().effect == Effect::Coupled).then(|| PermitText::of(&permit)).flatten();
            let couples = text.is_some();
            if let Some(text) = text {
                request.extensions_mut().insert(text);
            }
            let keys = (permit.policy().effect == Effect::KeyedUpstream)
                .then(|| ChildKeys::new(shared.gate.wire(&mut permit), &about.matched.terms));
            let barred = keys.as_ref().and_then(ChildKeys::barred);
            if let Some(keys) = keys {
                request.extensions_mut().insert(keys);
            }
            let handler = handler(&shared, &about, service, request);
            let run = Box::new(Run { shared, claim, about, slot: Some(slot), deliver: Some(deliver(reply)) });
            // In a box, so that it adds nothing to the size of every run.
            if let Some(barred) = barred {
                let answer = run.refuse(&barred);
                return Box::pin(run.release(Some(*permit), answer)).await;
            }
            return if couples {
                Box::pin(run.couple(permit, handler, limit)).await
            } else {
                run.own(permit, handler, limit).await
            };
        }
        Ok(begun) => Led::Decided(job, begun),
        Err(error) => Led::Failed(job, error),
    };
    drop(slot);
    // A caller that has gone needs no answer.
    let _ = reply.send(led);
}

/// Hands an answer to the caller, if it is still there.
pub(crate) type Deliver = Box<dyn FnOnce(Response<Body>) + Send + Sync>;

pub(crate) fn deliver<S: Send + 'static>(reply: oneshot::Sender<Led<S>>) -> Deliver {
    Box::new(move |answer| {
        // A caller that has gone needs no answer.
        let _ = reply.send(Led::Answered(answer));
    })
}

/// Carries out `work` whether or not the caller stays: on this task as long as it does not wait, and in a task of its
/// own from its first pause on. Both happen in one poll, so that no caller can go away in between.
pub(crate) async fn detached(mut work: Pin<Box<dyn Future<Output = ()> + Send>>) {
    // A panic drops the work, and with it the caller's end of the reply.
    let first = poll_fn(|context| Poll::Ready(catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context)))));
    if let Ok(Poll::Pending) = first.await {
        tokio::spawn(work);
    }
}

/// A handler at work. Its panic is an end like any other.
pub(crate) type Handler = Pin<Box<dyn Future<Output = HandlerEnd> + Send>>;

/// The handler, not yet begun.
pub(crate) fn handler<S, R>(shared: &Shared, about: &About, service: S, request: Request<Body>) -> Handler
where
    S: Service<Request<Body>, Response = Response<R>> + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Display + Send + 'static,
    R: http_body::Body<Data = Bytes> + Send + 'static,
    R::Error: Into<BoxError>,
{
    let (kept_max, label) = (shared.settings.kept_answer_max, about.matched.label.clone());
    Box::pin(async move {
        let running = Counted::new(metrics::RUNNING);
        let began = Instant::now();
        let mut handling = pin!(handle(service, request, kept_max));
        let ended = poll_fn(|context| {
            let polled = catch_unwind(AssertUnwindSafe(|| handling.as_mut().poll(context)));
            polled.unwrap_or(Poll::Ready(Err(Failed::Panicked)))
        });
        let ended = ended.await;
        metrics::handled(&label, began.elapsed());
        drop(running);
        ended
    })
}

async fn handle<S, R>(mut service: S, request: Request<Body>, kept_max: usize) -> HandlerEnd
where
    S: Service<Request<Body>, Response = Response<R>>,
    S::Error: Display + 'static,
    R: http_body::Body<Data = Bytes> + Send + 'static,
    R::Error: Into<BoxError>,
{
    // A service that is not ready was not given the request.
    let not_sent = |error: S::Error| Failed::Fault(Fault::NotSent(error.to_string()));
    let ready = service.ready().await.map_err(not_sent)?;
    let answer = ready.call(request).await.map_err(Failed::error)?;
    Ok(Answered::read(answer.map(Body::new), kept_max).await)
}

/// Runs the handler to its end, at most until its limit, and no longer than the drain allows.
pub(crate) async fn race(handler: &mut Handler, limit: Instant, drain: &Drain) -> Result<HandlerEnd, Doubt> {
    tokio::select! {
        biased;
        // Whoever forwards the request ends its connection at the same limit: what broke off then was cut off by it.
        ended = handler => Ok(if is_broken(&ended) && Instant::now() >= limit { Err(Failed::late()) } else { ended }),
        () = tokio::time::sleep_until(limit) => Err(Doubt::TimedOut),
        () = drain.ending() => Err(Doubt::Stopped),
    }
}

fn is_broken(ended: &HandlerEnd) -> bool {
    match ended {
        Ok(answered) => answered.is_broken(),
        Err(failed) => failed.is_broken(),
    }
}

/// Lets a handler that is late go on: its end, or `None` where the drain leaves it behind, still running.
pub(crate) async fn late(mut handler: Handler, drain: &Drain) -> Option<HandlerEnd> {
    tokio::select! {
        ended = &mut handler => return Some(ended),
        () = drain.ending() => {}
    }
    tokio::spawn(handler);
    None
}

impl Run {
    async fn own(self: Box<Self>, permit: Box<Permit>, mut handler: Handler, limit: Instant) {
        if self.shared.drain.is_ending() {
            let answer = self.refuse(&Rejection::Stopping);
            return Box::pin(self.release(Some(*permit), answer)).await;
        }
        let renewal = self.shared.gate.keep(*permit);
        let ended = match race(&mut handler, limit, &self.shared.drain).await {
            Ok(ended) => ended,
            Err(doubt) => return Box::pin(self.leave(renewal, doubt, handler)).await,
        };
        let verdict = self.judge(ended);
        self.settle(renewal, verdict).await;
    }
}
