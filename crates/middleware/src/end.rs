//! The end of a run: what is written to the store, what is answered, and what goes on in the background where the store
//! fails or the handler is late. What an answer means belongs to `remember`, how a handler is run to `run`.

use std::ops::ControlFlow;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use counterfoil_core::action::Refused;
use counterfoil_core::{Claim, Receipt, State, Why};
use counterfoil_store::gate::Renewal;
use counterfoil_store::{Begun, Ended, Permit, StoreError};
use http::Response;
use tokio::time::Instant;

use crate::body::Body;
use crate::drain::Drain;
use crate::job::About;
use crate::layer::{Shared, Slot};
use crate::metrics::{self, End};
use crate::reject::{Doubt, Rejection};
use crate::remember::{Verdict, judge};
use crate::replay::{Replayed, mark, say};
use crate::run::{Deliver, Handler, HandlerEnd, late};
use crate::service::answer;

/// The first and the longest pause between two tries to store an end.
const STORE_AGAIN_FIRST: Duration = Duration::from_millis(200);
const STORE_AGAIN_LAST: Duration = Duration::from_secs(5);

/// The pauses between tries to store an end.
pub(crate) struct Again(Duration);

impl Again {
    pub(crate) const fn new() -> Self {
        Self(STORE_AGAIN_FIRST)
    }

    /// Rests, each time longer, until the drain ends what is left.
    pub(crate) async fn rest(&mut self, drain: &Drain) {
        let pause = self.0;
        self.0 = (pause * 2).min(STORE_AGAIN_LAST);
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = drain.ending() => {}
        }
    }
}

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
    Doubted,
}

impl Wanted {
    const fn end(&self) -> End {
        match self {
            Self::Completed(_) => End::Completed,
            Self::Released => End::Released,
            Self::Doubted => End::Doubted,
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
    pub(crate) async fn settle(self: Box<Self>, renewal: Renewal, verdict: Verdict) {
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
                let answer = self.refuse(&Rejection::Doubt(doubt));
                Box::pin(self.doubt(permit, answer)).await;
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
                // An earlier run is in doubt, and cannot be asked for again: what this one heard settles nothing.
                if let State::Unknown { since, why } = permit.record().state {
                    answer = self.refuse(&Rejection::Unknown { since, why });
                }
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
        let mut permit = self.stop(renewal).await;
        let mut told = self.tell_doubt(permit.as_mut()).await;
        self.wake();
        let answer = self.refuse(&Rejection::Doubt(doubt));
        // It keeps its place: handlers that never end are bounded like all others.
        self.deliver(answer);
        let drain = self.shared.drain.clone();
        let mut ending = pin!(late(handler, &drain));
        let mut again = Again::new();
        let ended = loop {
            if told {
                break ending.await;
            }
            // Only the rest is cut short, never a write.
            tokio::select! {
                ended = &mut ending => break ended,
                () = again.rest(&drain) => told = self.tell_doubt(permit.as_mut()).await,
            }
        };
        let Some(ended) = ended else { return self.doubt_later(permit, told).await };
        match (self.judge(ended), permit) {
            (Verdict::Keep { receipt, .. }, Some(permit)) => self.complete_late(permit, receipt).await,
            (Verdict::Keep { .. } | Verdict::Release { .. } | Verdict::NotSent | Verdict::Doubt(_), permit) => {
                tracing::warn!(digest = %self.about.digest, "a late handler ended without a result: the action stays in doubt");
                self.doubt_later(permit, told).await;
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

    /// Puts the action in doubt and answers. The store is told again in the background where it failed.
    async fn doubt(mut self: Box<Self>, mut permit: Option<Permit>, answer: Response<Body>) {
        let told = self.tell_doubt(permit.as_mut()).await;
        self.wake();
        if told {
            self.answer(answer);
        } else {
            self.deliver(answer);
        }
        self.doubt_later(permit, told).await;
    }

    /// Tells the store of a doubt that it was not told of yet. The lease is not renewed: should it lapse meanwhile, that
    /// says the same.
    async fn doubt_later(&mut self, permit: Option<Permit>, told: bool) {
        if let Some(permit) = permit.filter(|_| !told) {
            Box::pin(self.store_later(permit, Wanted::Doubted, false)).await;
        }
    }

    /// Says that nobody knows; false where the store has to be told again. Without a permit the lease lapses, which says
    /// the same later.
    async fn tell_doubt(&self, permit: Option<&mut Permit>) -> bool {
        let Some(permit) = permit else { return true };
        match self.shared.gate.doubt(permit, Why::Doubted).await {
            Ok(ended) => {
                self.tell_end(End::Doubted, ended);
                true
            }
            Err(error) => {
                self.tell_store(&error);
                false
            }
        }
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
        let mut again = Again::new();
        loop {
            let last = self.shared.drain.is_ending() || until.is_some_and(|until| Instant::now() >= until);
            permit = if renewing && !last {
                let renewal = self.shared.gate.keep(permit);
                again.rest(&self.shared.drain).await;
                let Some(permit) = self.stop(renewal).await else { return };
                permit
            } else {
                again.rest(&self.shared.drain).await;
                permit
            };
            let ended = match &wanted {
                Wanted::Completed(receipt) => self.shared.gate.complete(&mut permit, receipt).await,
                Wanted::Released => self.shared.gate.release(&mut permit).await,
                Wanted::Doubted => self.shared.gate.doubt(&mut permit, Why::Doubted).await,
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

    /// Answers although the end is not stored yet.
    fn unrecorded(&mut self, mut answer: Response<Body>) {
        metrics::unrecorded(&self.about.matched.label);
        say(answer.headers_mut(), "unrecorded");
        self.deliver(answer);
    }

    /// Leaves the place among those that run, and answers.
    pub(crate) fn answer(&mut self, answer: Response<Body>) {
        drop(self.slot.take());
        self.deliver(answer);
    }

    fn deliver(&mut self, answer: Response<Body>) {
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
