//! What happens to a request, from its operation to its answer: the order of judgement, and the loop of a duplicate
//! that waits. Running belongs to `run`; the answers of ours to `reject`.

use std::fmt::Display;
use std::future::Future;
use std::mem;
use std::ops::ControlFlow;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use counterfoil_core::policy::Answerer;
use counterfoil_core::{Claim, Effect, Now};
use counterfoil_store::Begun;
use http::header::ORIGIN;
use http::request::Parts;
use http::{Request, Response};
use tokio::sync::oneshot;
use tokio::time::Instant;
use tower::Service;

use crate::body::{Body, BoxError};
use crate::carrier;
use crate::cors::{self, Cors};
use crate::coupled;
use crate::job::{About, Job};
use crate::layer::{Guard, Shared};
use crate::operation::{Found, Matched};
use crate::reject::{Doubt, Rejection, refuse, reject};
use crate::replay::{Replayed, Told, mark, say};
use crate::request::{admit, admit_again};
use crate::run::{self, Led, detached};
use crate::settings::{Duplicates, Settings};
use crate::wait::Waiting;

impl<S, B, R> Service<Request<B>> for Guard<S>
where
    S: Service<Request<Body>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Display + Send + 'static,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
    R: http_body::Body<Data = Bytes> + Send + 'static,
    R::Error: Into<BoxError>,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let fresh = self.inner.clone();
        let mut ready = mem::replace(&mut self.inner, fresh.clone());
        let settings = &self.shared.settings;
        let keyed = carrier::is_keyed(request.headers(), settings.repeatability);
        let origin = request.headers().get(ORIGIN).cloned();
        let published = self.shared.contract.as_ref();
        if let Some(mut answer) = published.and_then(|contract| contract.answer(&request, keyed)) {
            cors::open(answer.headers_mut(), origin.as_ref(), &settings.cors);
            return Box::pin(std::future::ready(Ok(answer)));
        }
        match self.shared.operations.find(request.method(), request.uri().path(), keyed) {
            Found::Unguarded => {
                let answer = ready.call(request.map(Body::new));
                Box::pin(async move {
                    let mut answer = answer.await?.map(Body::new);
                    if keyed {
                        say(answer.headers_mut(), "ignored");
                        cors::open(answer.headers_mut(), origin.as_ref(), &Cors::default());
                    }
                    Ok(answer)
                })
            }
            Found::Malformed { why, terms } => {
                let mut answer = reject(&Rejection::MalformedPath { why }, &terms, None);
                cors::open(answer.headers_mut(), origin.as_ref(), &settings.cors);
                Box::pin(std::future::ready(Ok(answer)))
            }
            // The run makes its own service ready, so that a duplicate that waits keeps nobody's place.
            Found::Guarded(matched) => {
                let shared = self.shared.clone();
                let told = carrier::is_repeatable(request.headers(), settings.repeatability);
                Box::pin(async move {
                    let mut answer = guard(&shared, fresh, request, matched).await;
                    if told {
                        carrier::tell(&mut answer);
                    }
                    cors::open(answer.headers_mut(), origin.as_ref(), &shared.settings.cors);
                    Ok(answer)
                })
            }
        }
    }
}

async fn guard<S, B, R>(shared: &Arc<Shared>, service: S, request: Request<B>, matched: Box<Matched>) -> Response<Body>
where
    S: Service<Request<Body>, Response = Response<R>> + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Display + Send + 'static,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
    R: http_body::Body<Data = Bytes> + Send + 'static,
    R::Error: Into<BoxError>,
{
    match admit(&shared.settings, &matched, request).await {
        Ok(admitted) => decide(shared, Box::new(Job::new(service, admitted, matched))).await,
        Err(rejection) => refuse(&rejection, &matched, None),
    }
}

/// What one try to run a job came to.
enum Tried<S> {
    Answered(Response<Body>),
    Decided(Box<Job<S>>, Begun),
}

/// Tries until there is an answer: once, or as long as a duplicate may wait.
async fn decide<S, R>(shared: &Arc<Shared>, mut job: Box<Job<S>>) -> Response<Body>
where
    S: Service<Request<Body>, Response = Response<R>> + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Display + Send + 'static,
    R: http_body::Body<Data = Bytes> + Send + 'static,
    R::Error: Into<BoxError>,
{
    let deadline = match job.about.matched.terms.duplicates {
        Duplicates::Refuse => None,
        Duplicates::Wait(span) => Instant::now().checked_add(span),
    };
    let mut waiting: Option<Waiting> = None;
    let mut waited = false;
    loop {
        // Taken before the look, so that an end in between is not missed.
        let woken = waiting.as_ref().map(Waiting::woken);
        let begun = match attempt(shared, job, &mut waited).await {
            Tried::Answered(answer) => return answer,
            Tried::Decided(given_back, begun) => {
                job = given_back;
                begun
            }
        };
        let may_wait = matches!(begun, Begun::InProgress { .. });
        let Some(deadline) = deadline.filter(|deadline| may_wait && Instant::now() < *deadline) else {
            if waited && let Err(refused) = known_still(&shared.settings, &job.parts, &job.claim, &job.about).await {
                return refused;
            }
            crate::metrics::decided(&job.about.matched.label, &begun);
            return answer(begun, &job.about);
        };
        match (&mut waiting, woken) {
            (Some(place), Some(woken)) => {
                place.pause(woken, deadline).await;
                waited = true;
            }
            (place, _) => match shared.waiters.enter(job.about.digest) {
                Some(entered) => *place = Some(entered),
                None => return job.about.refuse(&Rejection::TooManyWaiting),
            },
        }
    }
}

/// Looks, then claims, and runs where the claim is granted. A duplicate is so answered by one read: it takes nobody's
/// place, and what stands is told where nothing may begin.
async fn attempt<S, R>(shared: &Arc<Shared>, mut job: Box<Job<S>>, waited: &mut bool) -> Tried<S>
where
    S: Service<Request<Body>, Response = Response<R>> + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Display + Send + 'static,
    R: http_body::Body<Data = Bytes> + Send + 'static,
    R::Error: Into<BoxError>,
{
    let seen = match shared.gate.look(&mut job.claim).await {
        Ok(ControlFlow::Break(begun)) => return Tried::Decided(job, begun),
        Ok(ControlFlow::Continue(seen)) => seen,
        Err(error) => return Tried::Answered(failed(shared, &error, &job.about)),
    };
    if mem::take(waited)
        && let Err(refused) = known_still(&shared.settings, &job.parts, &job.claim, &job.about).await
    {
        return Tried::Answered(refused);
    }
    if let Some(rejection) = too_old(&job, seen.now) {
        return Tried::Answered(job.about.refuse(&rejection));
    }
    let slot = match shared.enter() {
        Ok(slot) => slot,
        Err(rejection) => return Tried::Answered(job.about.refuse(&rejection)),
    };
    let (terms, digest) = (job.about.matched.terms.clone(), job.about.digest);
    let (reply, led) = oneshot::channel();
    match (terms.policy.effect, shared.settings.answerer) {
        (Effect::Coupled, Answerer::Handler) => {
            detached(Box::pin(coupled::lead(shared.clone(), job, slot, reply))).await
        }
        (Effect::Coupled, Answerer::Upstream) | (Effect::KeyedUpstream | Effect::Other, _) => {
            detached(Box::pin(run::lead(shared.clone(), job, seen, slot, reply))).await;
        }
    }
    match led.await {
        Ok(Led::Answered(answer)) => Tried::Answered(answer),
        Ok(Led::Decided(job, begun)) => Tried::Decided(job, begun),
        Ok(Led::Failed(job, error)) => Tried::Answered(failed(shared, &error, &job.about)),
        // The task was dropped with its runtime, or a store panicked.
        Err(_) => Tried::Answered(reject(&Rejection::Doubt(Doubt::Stopped), &terms, Some(digest))),
    }
}

/// The refusal of a caller who lost the right while it waited: nothing of what stands is told.
async fn known_still(settings: &Settings, parts: &Parts, claim: &Claim, about: &About) -> Result<(), Response<Body>> {
    let known = Box::pin(admit_again(settings, parts, &claim.identity().scope)).await;
    known.map_err(|rejection| refuse(&rejection, &about.matched, None))
}

/// Whether an action that would run is older than its operation allows.
fn too_old<S>(job: &Job<S>, now: Now) -> Option<Rejection> {
    let (age_max, first_sent) = (job.about.matched.terms.age_max?, job.claim.dated()?);
    (now.at.since(first_sent) > age_max).then_some(Rejection::TooOld { first_sent, age_max })
}

fn failed(shared: &Shared, error: &counterfoil_store::StoreError, about: &About) -> Response<Body> {
    about.refuse(&shared.store_failed(error, about.digest))
}

/// The answer to a decision that runs nothing.
pub(crate) fn answer(begun: Begun, about: &About) -> Response<Body> {
    let rejection = match begun {
        Begun::Replay { receipt, expires_at } => match about.tell(&receipt) {
            Told::Answer(mut answer) => {
                mark(&mut answer, Replayed::Yes, Some(expires_at));
                return answer;
            }
            Told::NotKept { status, location } => Rejection::NotKept { status, location },
            Told::Unreadable => Rejection::Unreadable,
        },
        Begun::Mismatch => Rejection::Mismatch,
        Begun::InProgress { remaining } => Rejection::InProgress { remaining },
        Begun::Unknown { since, why } => Rejection::Unknown { since, why },
        Begun::Expired { until } => Rejection::Expired { until },
        // A permit is taken by the run; one that comes here runs nothing, and its lease lapses.
        Begun::Execute(_) => Rejection::Doubt(Doubt::Stopped),
    };
    about.refuse(&rejection)
}
