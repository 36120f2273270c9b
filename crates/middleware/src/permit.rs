//! Coupled operations of an application behind the proxy: the request carries a permit, the application settles it in a
//! transaction of its own, and what it committed is the answer, whatever it said (PROTOCOL section 6, row 2).
//!
//! What follows from what stands belongs to core (`action::conclude`), the lock to the gate; a handler in this process has
//! `coupled`.

use std::ops::ControlFlow;
use std::time::Duration;

use counterfoil_core::action::{Concluded, Heard, Refused};
use counterfoil_core::wire::IDEMPOTENCY_PERMIT;
use counterfoil_store::gate::{Conclusion, Renewal};
use counterfoil_store::{Begun, Permit};
use http::{HeaderName, HeaderValue, Response};
use tokio::time::Instant;

use crate::body::Body;
use crate::end::{Again, Run};
use crate::metrics::{self, End};
use crate::reject::{Doubt, Rejection};
use crate::remember::{Answered, Failed};
use crate::replay::{Replayed, Told, mark};
use crate::run::{Handler, HandlerEnd, race};
use crate::service::answer;

/// What is said to be left of another attempt's run, where that could not be read.
const OTHERS_REST: Duration = Duration::from_secs(1);

/// A request extension of coupled operations behind a proxy: the permit that the application shows to
/// `counterfoil.hold` and `counterfoil.settle`. Whoever forwards the request passes it on, and nothing else in that header.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PermitText(HeaderValue);

impl PermitText {
    /// The header that carries it.
    pub const HEADER: HeaderName = HeaderName::from_static(IDEMPOTENCY_PERMIT);

    pub(crate) fn of(permit: &Permit) -> Option<Self> {
        let mut value = HeaderValue::try_from(permit.text()).ok()?;
        value.set_sensitive(true);
        Some(Self(value))
    }

    /// The header's value, not shown by `Debug`.
    #[must_use]
    pub const fn value(&self) -> &HeaderValue {
        &self.0
    }
}

/// What the application itself said.
#[expect(clippy::large_enum_variant, reason = "made once for a run and moved into its answer")]
enum Said {
    Answer(Answered),
    NotSent,
    Doubt(Doubt),
}

impl Said {
    fn of(ended: Result<HandlerEnd, Doubt>) -> (Heard, Self) {
        match ended {
            Ok(Ok(answered)) if answered.is_broken() => (Heard::Nothing, Self::Doubt(Doubt::CutOff)),
            Ok(Ok(answered)) => {
                let status = answered.status();
                let failed = status.is_client_error() || status.is_server_error();
                (if failed { Heard::Failure } else { Heard::Success }, Self::Answer(answered))
            }
            Ok(Err(failed)) => match failed.doubt() {
                None => (Heard::NotSent, Self::NotSent),
                Some(Doubt::TimedOut) => (Heard::Nothing, Self::Doubt(Doubt::TimedOut)),
                Some(_) => (Heard::Nothing, Self::Doubt(Doubt::CutOff)),
            },
            Err(doubt) => (Heard::Nothing, Self::Doubt(doubt)),
        }
    }
}

impl Run {
    /// Runs the handler to its end or limit, and concludes.
    pub(crate) async fn couple(self: Box<Self>, permit: Box<Permit>, mut handler: Handler, limit: Instant) {
        if self.shared.drain.is_ending() {
            let answer = self.refuse(&Rejection::Stopping);
            return Box::pin(self.release(Some(*permit), answer)).await;
        }
        let renewal = self.shared.gate.keep(*permit);
        let ended = race(&mut handler, limit, &self.shared.drain).await;
        // Whoever is late is not listened to any more: what it commits decides.
        drop(handler);
        if let Ok(Err(failed)) = &ended {
            Failed::tell(failed, self.about.digest);
        }
        let (heard, said) = Said::of(ended);
        Box::pin(self.conclude(renewal, heard, said)).await;
    }

    async fn conclude(mut self: Box<Self>, renewal: Renewal, heard: Heard, said: Said) {
        let hold = self.about.matched.terms.hold;
        let Some(mut permit) = self.stop(renewal).await else {
            let answer = self.refuse(&Rejection::Doubt(Doubt::Unconcluded));
            return self.answer(answer);
        };
        match self.shared.gate.conclude(&mut permit, heard, hold).await {
            Ok(Conclusion::Concluded(concluded)) => {
                self.tell_concluded(&concluded);
                self.wake();
                let answer = self.concluded(concluded, said).await;
                self.answer(answer);
            }
            Ok(Conclusion::Locked) => self.conclude_later(permit, heard).await,
            Err(error) => {
                self.tell_store(&error);
                self.conclude_later(permit, heard).await;
            }
        }
    }

    /// Answers that nobody knows yet, and goes on with what was heard until that is concluded.
    async fn conclude_later(mut self: Box<Self>, mut permit: Permit, heard: Heard) {
        let answer = self.refuse(&Rejection::Doubt(Doubt::Unconcluded));
        // It keeps its place: transactions that never end are bounded like all else.
        if let Some(deliver) = self.deliver.take() {
            deliver(answer);
        }
        let hold = self.about.matched.terms.hold;
        let mut again = Again::new();
        loop {
            let last = self.shared.drain.is_ending();
            let renewal = self.shared.gate.keep(permit);
            again.rest(&self.shared.drain).await;
            let Some(stopped) = self.stop(renewal).await else { return };
            permit = stopped;
            match self.shared.gate.conclude(&mut permit, heard, hold).await {
                Ok(Conclusion::Concluded(concluded)) => {
                    self.tell_concluded(&concluded);
                    return self.wake();
                }
                Ok(Conclusion::Locked) => {}
                Err(error) => self.tell_store(&error),
            }
            if last {
                tracing::warn!(digest = %self.about.digest, "a run was left unconcluded: its lease lapses, and is taken over");
                return;
            }
        }
    }

    /// The answer to what the run came to.
    async fn concluded(&mut self, concluded: Concluded, said: Said) -> Response<Body> {
        let rejection = match (concluded, said) {
            (Concluded::Done { receipt, expires_at }, _) => match self.about.tell(&receipt) {
                Told::Answer(mut answer) => {
                    mark(&mut answer, Replayed::No, Some(expires_at));
                    return answer;
                }
                Told::NotKept { status, location } => Rejection::NotKept { status, location },
                Told::Unreadable => Rejection::Unreadable,
            },
            (Concluded::Superseded, _) => return self.others().await,
            (Concluded::InDoubt, _) => Rejection::Doubt(Doubt::Unsettled),
            (Concluded::WithoutSettle, _) => Rejection::Doubt(Doubt::AnsweredWithoutSettle),
            (Concluded::Released | Concluded::Ended, Said::Answer(answered)) => match answered.into_answer() {
                Ok(mut answer) => {
                    mark(&mut answer, Replayed::No, None);
                    return answer;
                }
                Err(_) => Rejection::Doubt(Doubt::CutOff),
            },
            (Concluded::Released | Concluded::Ended, Said::NotSent) => Rejection::NotSent,
            (Concluded::Released | Concluded::Ended, Said::Doubt(doubt)) => Rejection::Doubt(doubt),
        };
        self.refuse(&rejection)
    }

    /// Another attempt has the action: its receipt answers where it is done, and otherwise it is in progress.
    async fn others(&mut self) -> Response<Body> {
        match self.shared.gate.look(&mut self.claim).await {
            Ok(ControlFlow::Break(begun @ (Begun::Replay { .. } | Begun::InProgress { .. }))) => {
                answer(begun, &self.about)
            }
            Ok(ControlFlow::Break(_) | ControlFlow::Continue(_)) => {
                self.refuse(&Rejection::InProgress { remaining: OTHERS_REST })
            }
            Err(error) => {
                self.tell_store(&error);
                self.refuse(&Rejection::InProgress { remaining: OTHERS_REST })
            }
        }
    }

    fn tell_concluded(&self, concluded: &Concluded) {
        let (digest, operation) = (self.about.digest, &self.about.matched.label);
        match concluded {
            Concluded::Done { .. } => metrics::ended(operation, End::Completed),
            Concluded::Released => metrics::ended(operation, End::Released),
            Concluded::Ended => metrics::ended(operation, End::Doubted),
            Concluded::WithoutSettle => {
                tracing::error!(
                    %digest, %operation,
                    "a coupled operation answered success without a receipt: its transaction must call counterfoil.settle"
                );
                metrics::answered_without_settle(operation);
                metrics::ended(operation, End::Doubted);
            }
            Concluded::Superseded => self.tell_refused(Refused::OtherLease),
            Concluded::InDoubt => self.tell_refused(Refused::Unknown),
        }
    }

    fn tell_refused(&self, why: Refused) {
        tracing::warn!(digest = %self.about.digest, why = why.as_str(), "a forwarded run ended without a right to the action");
        metrics::refused(&self.about.matched.label, End::Completed, why.as_str());
    }
}
