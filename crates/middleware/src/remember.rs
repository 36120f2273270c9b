//! What the handler's end says about the action: kept, released, or in doubt; and the receipt of a kept answer.
//! The list of statuses belongs to `core::policy`, the list of headers to `replay`.

use std::any::Any;
use std::fmt::Display;

use bytes::Bytes;
use counterfoil_core::policy::{Answerer, Outcome, Remember};
use counterfoil_core::wire::{IDEMPOTENCY_REMEMBER, PROBLEM_MEDIA_TYPE};
use counterfoil_core::{Digest, Receipt, receipt};
use http::{HeaderMap, HeaderName, Response, StatusCode, header, response};

use crate::body::{Body, BoxError, Gathered, Resumed, gather, whole};
use crate::fault::Fault;
use crate::reject::Doubt;
use crate::replay;

/// A handler's answer, read as far as it may be kept.
pub(crate) struct Answered {
    parts: response::Parts,
    said: Option<bool>,
    body: AnswerBody,
}

enum AnswerBody {
    Whole {
        bytes: Bytes,
        trailers: Option<HeaderMap>,
    },
    /// Too long to be kept, or a stream of events.
    Long(Body),
    Broken,
}

/// Why a handler gave no answer.
pub(crate) enum Failed {
    Panicked,
    Fault(Fault),
}

/// What becomes of the action.
pub(crate) enum Verdict {
    Keep {
        receipt: Receipt,
        answer: Response<Body>,
    },
    Release {
        answer: Response<Body>,
    },
    /// The request was certainly not sent.
    NotSent,
    Doubt(Doubt),
}

impl Answered {
    /// Reads an answer, at most `limit` bytes of it, and nothing of a stream of events.
    pub(crate) async fn read(answer: Response<Body>, limit: usize) -> Self {
        let (mut parts, mut body) = answer.into_parts();
        let said = said(&mut parts.headers);
        if is_event_stream(&parts.headers) {
            return Self { parts, said, body: AnswerBody::Long(body) };
        }
        let body = match gather(std::pin::Pin::new(&mut body), limit).await {
            Gathered::Whole { bytes, trailers } => AnswerBody::Whole { bytes, trailers },
            Gathered::Over { read } => AnswerBody::Long(Body::new(Resumed::new(read, body))),
            Gathered::Broken(error) => {
                tracing::warn!(%error, "a guarded answer broke off");
                AnswerBody::Broken
            }
        };
        Self { parts, said, body }
    }

    fn judge(self, remember: &Remember, answerer: Answerer, configured: &[HeaderName]) -> Verdict {
        let Self { parts, said, body } = self;
        let status = parts.status.as_u16();
        let problem = if remember.in_progress.problems.is_empty() { None } else { problem(&parts.headers, &body) };
        let kept = |body| Receipt { status, headers: replay::kept(&parts.headers, configured), body };
        let (kept, body) = match body {
            // Copied: the piece that came is part of a connection's buffer, which would be kept as long.
            AnswerBody::Whole { bytes, trailers } => {
                (kept(receipt::Body::Kept(Bytes::copy_from_slice(&bytes))), whole(bytes, trailers))
            }
            AnswerBody::Long(body) => (kept(receipt::Body::NotKept), body),
            AnswerBody::Broken => return Verdict::Doubt(Doubt::Truncated),
        };
        let answer = Response::from_parts(parts, body);
        match remember.judge(status, problem.as_deref(), answerer, said) {
            Outcome::Keep => Verdict::Keep { receipt: kept, answer },
            Outcome::Release => Verdict::Release { answer },
            Outcome::Doubt => Verdict::Doubt(Doubt::Answered { status }),
        }
    }

    /// Whether its body broke off.
    pub(crate) const fn is_broken(&self) -> bool {
        matches!(self.body, AnswerBody::Broken)
    }

    /// The status that was answered.
    pub(crate) const fn status(&self) -> StatusCode {
        self.parts.status
    }

    /// The answer as it is, for an operation whose record decides.
    pub(crate) fn into_answer(self) -> Result<Response<Body>, Doubt> {
        let body = match self.body {
            AnswerBody::Whole { bytes, trailers } => whole(bytes, trailers),
            AnswerBody::Long(body) => body,
            AnswerBody::Broken => return Err(Doubt::Truncated),
        };
        Ok(Response::from_parts(self.parts, body))
    }
}

impl Failed {
    /// The end of a handler whose time was over.
    pub(crate) fn late() -> Self {
        Self::Fault(Fault::TimedOut("the handler's time was over".to_owned()))
    }

    pub(crate) const fn is_broken(&self) -> bool {
        matches!(self, Self::Fault(Fault::Broken(_)))
    }

    /// What a service's error says: a fault, boxed or not, tells it; every other error tells nothing.
    pub(crate) fn error<E: Display + 'static>(error: E) -> Self {
        let text = error.to_string();
        let mut error = Some(error);
        let any: &mut dyn Any = &mut error;
        if let Some(fault) = any.downcast_mut::<Option<Fault>>().and_then(Option::take) {
            return Self::Fault(fault);
        }
        let boxed = any.downcast_mut::<Option<BoxError>>().and_then(Option::take);
        match boxed.map(|error| error.downcast::<Fault>()) {
            Some(Ok(fault)) => Self::Fault(*fault),
            Some(Err(_)) | None => Self::Fault(Fault::Broken(text)),
        }
    }

    /// Says so in the log.
    pub(crate) fn tell(&self, digest: Digest) {
        match self {
            Self::Panicked => tracing::error!(%digest, "a handler panicked"),
            Self::Fault(fault) => tracing::warn!(%digest, %fault, "a handler failed"),
        }
    }

    /// The doubt that it leaves; `None`: the request was certainly not sent.
    pub(crate) const fn doubt(&self) -> Option<Doubt> {
        match self {
            Self::Panicked => Some(Doubt::Panicked),
            Self::Fault(Fault::NotSent(_)) => None,
            Self::Fault(Fault::TimedOut(_)) => Some(Doubt::TimedOut),
            Self::Fault(Fault::Broken(_)) => Some(Doubt::Broken),
        }
    }
}

/// Judges how a handler ended.
pub(crate) fn judge(
    ended: Result<Answered, Failed>,
    remember: &Remember,
    answerer: Answerer,
    configured: &[HeaderName],
) -> Verdict {
    match ended {
        Ok(answered) => answered.judge(remember, answerer, configured),
        Err(failed) => failed.doubt().map_or(Verdict::NotSent, Verdict::Doubt),
    }
}

/// The type of the problem document that an answer is (RFC 9457 section 3.1.1); `None` where it is none, or was not kept.
fn problem(headers: &HeaderMap, body: &AnswerBody) -> Option<String> {
    let AnswerBody::Whole { bytes, .. } = body else { return None };
    if !is_of(headers, PROBLEM_MEDIA_TYPE.as_bytes()) {
        return None;
    }
    let document: serde_json::Value = serde_json::from_slice(bytes).ok()?;
    document.get("type")?.as_str().map(str::to_owned)
}

/// Takes off what the answer itself says about being remembered.
fn said(headers: &mut HeaderMap) -> Option<bool> {
    let said = headers.remove(IDEMPOTENCY_REMEMBER)?;
    let said = said.as_bytes().trim_ascii();
    if said.eq_ignore_ascii_case(b"yes") {
        Some(true)
    } else if said.eq_ignore_ascii_case(b"no") {
        Some(false)
    } else {
        tracing::warn!("an answer's idempotency-remember is neither yes nor no, and was ignored");
        None
    }
}

/// Whether an answer is a stream of events, which may never end: it is not kept from its first byte.
#[must_use]
pub fn is_event_stream(headers: &HeaderMap) -> bool {
    is_of(headers, b"text/event-stream")
}

fn is_of(headers: &HeaderMap, media_type: &[u8]) -> bool {
    let Some(value) = headers.get(header::CONTENT_TYPE) else { return false };
    let essence = value.as_bytes().split(|byte| *byte == b';').next().unwrap_or_default();
    essence.trim_ascii().eq_ignore_ascii_case(media_type)
}

#[cfg(test)]
mod tests;
