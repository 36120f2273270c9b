//! The end of a run: what is written to the store, what is answered, and what goes on in the background where the store
//! fails or the handler is late. What an answer means belongs to `remember`, how a handler is run to `run`.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use counterfoil_core::action::Refused;
use counterfoil_core::{Claim, Receipt, Why};
use counterfoil_store::gate::Renewal;
use counterfoil_store::{Begun, Ended, Permit, StoreError};
use http::Response;
use tokio::time::Instant;

use crate::body::Body;
use crate::job::About;
use crate::layer::{Shared, Slot};
use crate::metrics::{self, End};
use crate::reject::{Doubt, Rejection};
use crate::remember::{Verdict, judge};
use crate::replay::{Replayed, mark, say};
use crate::run::{Deliver, Handler, HandlerEnd, late};
use crate::service::answer;

/// The first and the longest pause between two tries to store an end.
pub(crate) const STORE_AGAIN_FIRST: Duration = Duration::from_millis(200);
pub(crate) const STORE_AGAIN_LAST: Duration = Duration::from_secs(5);

/// A claim that was granted, until its end is written. It lives in a box, so that it is not copied from step to step.
pub(crate) struct Run {
    pub(crate) shared: Arc<Shared>,
    pub(crate) claim: Claim,
    pub(crate) about: About,
    pub(crate) slot: Option<Slot>,
    pub(crate) deliver: Option<Deliver>,
}

/// An end that the store has to learn.
enum Wanted {
    Completed(Receipt),
    Released,
}

impl Wanted {
    const fn end(&self) -> End {
        match self {
            Self::Completed(_) => End::Completed,
            Self::Released => End::Released,
        }
    }
}

impl Run {
    pub(crate) fn judge(&self, ended: HandlerEnd) -> Verdict {
        let (terms, settings) = (&self.about.matched.terms, &self.shared.settings);
        if let Err(failed) = &ended {
            failed.tell(self.about.digest);
        }
        judge(ended, &terms.remember, settings.answerer, &settings.replayed_headers)
    }

    /// Stops the renewal, writes the end that the verdict asks for, and answers.
    pub(crate) async fn settle(mut self: Box<Self>, renewal: Renewal, verdict: Verdict) {
        let permit = self.stop(renewal).await;
        match verdict {
            Verdict::Keep { receipt, answer } => self.keep(permit, receipt, answer).await,
            // What is not the usual end is in a box, so that it adds nothing to the size of every run.
            Verdict::Release { answer } => Box::pin(self.release(permit, answer)).await,
            Verdict::NotSent => {
                let answer = self.refuse(&Rejection::NotSent);
                Box::pin(self.release(permit, answer)).await;
            }
            Verdict::Doubt(doubt) => {
                // Whatever comes late has nobody left to come from.
                let _ = Box::pin(self.doubt(permit)).await;
                self.wake();
                let answer = self.refuse(&Rejection::Doubt(doubt));
                self.answer(answer);
            }
        }
    }

    /// Gives the key back and answers. The store is told again in the background where it failed.
    pub(crate) async fn release(mut self: Box<Self>, permit: Option<Permit>, mut answer: Response<Body>) {
        mark(&mut answer, Replayed::No, None);
        let Some(mut permit) = permit else { return self.unrecorded(answer) };
        match self.shared.gate.release(&mut permit).await {
            Ok(ended) => {
                self.tell_end(End::Released, ended);
                self.wake();
                self.answer(answer);
            }
            Err(error) => {
                self.tell_store(&error);
                self.unrecorded(answer);
                Box::pin(self.store_later(permit, Wanted::Released, true)).await;
            }
        }
    }

    /// Puts the action in doubt and says so; then waits for the handler, whose late completion still settles it.
    pub(crate) async fn leave(mut self: Box<Self>, renewal: Renewal, doubt: Doubt, handler: Handler) {
        let permit = self.stop(renewal).await;
        let permit = self.doubt(permit).await;
        self.wake();
        let answer = self.refuse(&Rejection::Doubt(doubt));
        // It keeps its place: handlers that never end are bounded like all others.
        if let Some(deliver) = self.deliver.take() {
            deliver(answer);
        }
        let Some(ended) = late(handler, &self.shared.drain).await else { return };
        match (self.judge(ended), permit) {
            (Verdict::Keep { receipt, .. }, Some(permit)) => self.complete_late(permit, receipt).await,
            (Verdict::Keep { .. } | Verdict::Release { .. } | Verdict::NotSent | Verdict::Doubt(_), _) => {
                tracing::warn!(digest = %self.about.digest, "a late handler ended without a result: the action stays in doubt");
            }
        }
    }

    pub(crate) async fn stop(&self, renewal: Renewal) -> Option<Permit> {
        // Without its permit nothing can be written, and the lease lapses.
        renewal.stop().await.inspect_err(|error| self.tell_store(error)).ok()
    }

    async fn keep(mut self: Box<Self>, permit: Option<Permit>, receipt: Receipt, mut answer: Response<Body>) {
        mark(&mut answer, Replayed::No, None);
        let Some(mut permit) = permit else { return self.unrecorded(answer) };
        match self.shared.gate.complete(&mut permit, &receipt).await {
            Ok(Ended::Written { expires_at }) => {
                self.tell_end(End::Completed, Ended::Written { expires_at });
                mark(&mut answer, Replayed::No, expires_at);
                self.wake();
                self.answer(answer);
            }
            Ok(Ended::Refused(why)) => {
                self.tell_end(End::Completed, Ended::Refused(why));
                self.wake();
                let answer = Box::pin(self.look_again(why)).await;
                self.answer(answer);
            }
            Err(error) => {
                self.tell_store(&error);
                self.unrecorded(answer);
                Box::pin(self.store_later(permit, Wanted::Completed(receipt), true)).await;
            }
        }
    }

    /// A completion was refused: what stands answers, and nothing is run again.
    async fn look_again(&mut self, why: Refused) -> Response<Body> {
        match self.shared.gate.look(&mut self.claim).await {
            Ok(ControlFlow::Break(begun @ Begun::Replay { .. })) => answer(begun, &self.about),
            Ok(_) => self.refuse(&Rejection::Late(why)),
            Err(error) => {
                self.tell_store(&error);
                self.refuse(&Rejection::Late(why))
            }
        }
    }

    /// Says that nobody knows, and gives the permit back for whatever comes late.
    async fn doubt(&self, permit: Option<Permit>) -> Option<Permit> {
        let mut permit = permit?;
        match self.shared.gate.doubt(&mut permit, Why::Doubted).await {
            Ok(ended) => self.tell_end(End::Doubted, ended),
            // The lease lapses, which says the same later.
            Err(error) => self.tell_store(&error),
        }
        Some(permit)
    }

    async fn complete_late(&mut self, mut permit: Permit, receipt: Receipt) {
        tracing::info!(digest = %self.about.digest, status = receipt.status, "a late handler ended with a result");
        match self.shared.gate.complete(&mut permit, &receipt).await {
            Ok(ended) => {
                self.tell_end(End::Completed, ended);
                self.wake();
            }
            Err(error) => {
                self.tell_store(&error);
                // A doubted lease cannot be renewed, and needs no renewal to be completed.
                Box::pin(self.store_later(permit, Wanted::Completed(receipt), false)).await;
            }
        }
    }

    /// Tells the store the end, again and again: until it is written or refused, as long as a receipt would be
    /// promised, or until the drain ends. The place among those that run is kept, which bounds how many do this.
    async fn store_later(&mut self, mut permit: Permit, wanted: Wanted, renewing: bool) {
        let until = Instant::now().checked_add(permit.policy().retention);
        let mut pause = STORE_AGAIN_FIRST;
        loop {
            let last = self.shared.drain.is_ending() || until.is_some_and(|until| Instant::now() >= until);
            permit = if renewing && !last {
                let renewal = self.shared.gate.keep(permit);
                self.rest(pause).await;
                let Some(permit) = self.stop(renewal).await else { return };
                permit
            } else {
                self.rest(pause).await;
                permit
            };
            pause = (pause * 2).min(STORE_AGAIN_LAST);
            let ended = match &wanted {
                Wanted::Completed(receipt) => self.shared.gate.complete(&mut permit, receipt).await,
                Wanted::Released => self.shared.gate.release(&mut permit).await,
            };
            match ended {
                Ok(ended) => {
                    self.tell_end(wanted.end(), ended);
                    return self.wake();
                }
                Err(error) => self.tell_store(&error),
            }
            if last {
                tracing::error!(digest = %self.about.digest, "an end was given up unrecorded: the action will be in doubt");
                return;
            }
        }
    }

    pub(crate) async fn rest(&self, pause: Duration) {
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = self.shared.drain.ending() => {}
        }
    }

    /// Answers although the end is not stored yet.
    fn unrecorded(&mut self, mut answer: Response<Body>) {
        metrics::unrecorded(&self.about.matched.label);
        say(answer.headers_mut(), "unrecorded");
        if let Some(deliver) = self.deliver.take() {
            deliver(answer);
        }
    }

    /// Leaves the place among those that run, and answers.
    pub(crate) fn answer(&mut self, answer: Response<Body>) {
        drop(self.slot.take());
        if let Some(deliver) = self.deliver.take() {
            deliver(answer);
        }
    }

    pub(crate) fn refuse(&self, rejection: &Rejection) -> Response<Body> {
        self.about.refuse(rejection)
    }

    pub(crate) fn wake(&self) {
        self.shared.waiters.wake(self.about.digest);
    }

    fn tell_end(&self, end: End, ended: Ended) {
        match ended {
            Ended::Written { .. } => metrics::ended(&self.about.matched.label, end),
            Ended::Refused(why) => {
                tracing::warn!(digest = %self.about.digest, why = why.as_str(), "the end of a run was refused");
                metrics::refused(&self.about.matched.label, end, why.as_str());
            }
        }
    }

    pub(crate) fn tell_store(&self, error: &StoreError) {
        tracing::warn!(digest = %self.about.digest, %error, "the end of a run could not be stored");
        metrics::store_failed(error);
    }
}
