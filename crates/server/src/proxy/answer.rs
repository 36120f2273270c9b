//! The body of an upstream's answer, with the tasks that feed it and the times that it may take; and the body of a
//! request, with the time of its last piece.

use std::future::Future as _;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use counterfoil_middleware::{Body, BoxError};
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::AbortHandle;
use tokio::time::{Instant, Sleep};

use super::headers;
use super::witness::Witness;

/// The tasks that drive one connection, as an executor for the HTTP library.
#[derive(Clone, Default)]
pub(super) struct Tasks(Arc<Mutex<Vec<AbortHandle>>>);

impl<F> hyper::rt::Executor<F> for Tasks
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    fn execute(&self, task: F) {
        let task = tokio::spawn(task);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(task.abort_handle());
    }
}

/// A connection's tasks and its place; dropped, the tasks end and the connection closes.
pub(super) struct Driver {
    pub(super) tasks: Tasks,
    pub(super) _place: OwnedSemaphorePermit,
}

impl Drop for Driver {
    fn drop(&mut self) {
        let tasks = self.tasks.0.lock().unwrap_or_else(PoisonError::into_inner);
        tasks.iter().for_each(AbortHandle::abort);
    }
}

/// How long an answer's body may take.
pub(super) enum Pace {
    /// Until then, unless so many more bytes came.
    Until(Pin<Box<Sleep>>, usize),
    /// As long as no pause is longer.
    Pauses(Duration, Option<Pin<Box<Sleep>>>),
    /// As long as it likes.
    Any,
}

impl Pace {
    fn is_over(&mut self, cx: &mut Context<'_>) -> bool {
        match self {
            Self::Until(until, _) => until.as_mut().poll(cx).is_ready(),
            Self::Pauses(span, pause) => {
                let span = *span;
                let pause = pause.get_or_insert_with(|| Box::pin(tokio::time::sleep(span)));
                pause.as_mut().poll(cx).is_ready()
            }
            Self::Any => false,
        }
    }

    /// Notes a piece that came.
    fn came(&mut self, bytes: usize) {
        match self {
            Self::Until(_, left) => match left.checked_sub(bytes) {
                Some(rest) => *left = rest,
                None => *self = Self::Any,
            },
            Self::Pauses(_, pause) => *pause = None,
            Self::Any => {}
        }
    }
}

/// An answer's body with the tasks that feed it.
pub(super) struct Driven {
    pub(super) body: Incoming,
    pub(super) pace: Pace,
    pub(super) witness: Witness,
    pub(super) driver: Option<Driver>,
}

impl Driven {
    fn late(&mut self) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        self.driver = None;
        Poll::Ready(Some(Err("the answer did not go on in time".into())))
    }
}

impl http_body::Body for Driven {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        // A limit holds also for an answer that never pauses.
        if matches!(self.pace, Pace::Until(..)) && self.pace.is_over(cx) {
            return self.late();
        }
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        match &polled {
            Poll::Pending if self.pace.is_over(cx) => return self.late(),
            Poll::Ready(Some(Ok(frame))) => {
                let bytes = frame.data_ref().map_or(0, Bytes::len);
                self.pace.came(bytes);
            }
            Poll::Ready(None) if self.witness.is_cut() => {
                return Poll::Ready(Some(Err("the answer was cut off".into())));
            }
            Poll::Pending | Poll::Ready(Some(Err(_)) | None) => {}
        }
        polled.map_ok(without_permit).map_err(BoxError::from)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Takes a permit out of trailers.
fn without_permit(mut frame: Frame<Bytes>) -> Frame<Bytes> {
    if let Some(trailers) = frame.trailers_mut() {
        headers::remove_permit(trailers);
    }
    frame
}

/// When something last went on.
#[derive(Clone, Debug)]
pub(super) struct Progress(Arc<Mutex<Last>>);

#[derive(Clone, Copy, Debug)]
struct Last {
    at: Instant,
    /// Something else is waited for, which has a limit of its own.
    paused: bool,
}

impl Progress {
    pub(super) fn new() -> Self {
        Self(Arc::new(Mutex::new(Last { at: Instant::now(), paused: false })))
    }

    /// Notes that it went on.
    pub(super) fn note(&self) {
        self.set(false);
    }

    fn set(&self, paused: bool) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Last { at: Instant::now(), paused };
    }

    fn last(&self) -> Last {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until nothing went on for `span`.
    pub(super) async fn rested(&self, span: Duration) {
        loop {
            let (last, now) = (self.last(), Instant::now());
            let since = if last.paused { now } else { last.at };
            if since + span <= now {
                return;
            }
            tokio::time::sleep_until(since + span).await;
        }
    }
}

/// A request's body that notes each piece that the connection took, and that it waits while none comes.
pub(super) struct Noted {
    pub(super) body: Body,
    pub(super) progress: Progress,
}

impl http_body::Body for Noted {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        self.progress.set(polled.is_pending());
        polled.map_ok(without_permit).map_err(BoxError::from)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
