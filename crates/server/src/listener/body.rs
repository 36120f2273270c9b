//! The body of a caller's request with its time limits, and the count of what an HTTP/2 connection has under way.
//! How large a body may be belongs to the middleware.

use std::future::Future as _;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use counterfoil_middleware::{Body, BoxError};
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;
use tokio::sync::watch;
use tokio::time::Sleep;

const STREAMING: u8 = 1;
const LATE: u8 = 2;
const BROKEN: u8 = 4;

/// What becomes of one request's body, told by whoever reads it to whoever answers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fate(Arc<AtomicU8>);

impl Fate {
    /// From now on the body is streamed: it may take as long as it goes on.
    pub(crate) fn stream(&self) {
        self.set(STREAMING);
    }

    /// It is known to be none.
    pub(super) fn break_off(&self) {
        self.set(BROKEN);
    }

    /// Whether it is streamed.
    pub(crate) fn is_streaming(&self) -> bool {
        self.is(STREAMING)
    }

    /// Whether it was cut because it did not come in time.
    pub(crate) fn is_late(&self) -> bool {
        self.is(LATE)
    }

    /// Whether it broke off, or is none.
    pub(crate) fn is_broken(&self) -> bool {
        self.is(BROKEN)
    }

    fn set(&self, bit: u8) {
        self.0.fetch_or(bit, Ordering::AcqRel);
    }

    fn is(&self, bit: u8) -> bool {
        self.0.load(Ordering::Acquire) & bit != 0
    }
}

/// A caller's body: all of it within one span, unless it streams; then each piece within another.
pub(super) struct CallerBody {
    incoming: Incoming,
    two: bool,
    fate: Fate,
    whole: Pin<Box<Sleep>>,
    idle: Duration,
    rest: Option<Pin<Box<Sleep>>>,
}

impl CallerBody {
    /// `two`: it came over HTTP/2.
    pub(super) fn wrap(incoming: Incoming, two: bool, fate: Fate, whole: Duration, idle: Duration) -> Body {
        if http_body::Body::is_end_stream(&incoming) {
            return Body::empty();
        }
        Body::new(Self { incoming, two, fate, whole: Box::pin(tokio::time::sleep(whole)), idle, rest: None })
    }

    fn is_late(&mut self, cx: &mut Context<'_>) -> bool {
        if !self.fate.is_streaming() {
            return self.whole.as_mut().poll(cx).is_ready();
        }
        let idle = self.idle;
        let rest = self.rest.get_or_insert_with(|| Box::pin(tokio::time::sleep(idle)));
        rest.as_mut().poll(cx).is_ready()
    }
}

impl http_body::Body for CallerBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match Pin::new(&mut self.incoming).poll_frame(cx) {
            Poll::Pending if self.is_late(cx) => {
                self.fate.set(LATE);
                Poll::Ready(Some(Err("the body did not come in time".into())))
            }
            Poll::Pending => Poll::Pending,
            Poll::Ready(Some(Err(error))) => {
                self.fate.set(BROKEN);
                Poll::Ready(Some(Err(error.into())))
            }
            // A body in small pieces is as late as one that rests.
            Poll::Ready(Some(Ok(_))) if !self.fate.is_streaming() && self.is_late(cx) => {
                self.fate.set(LATE);
                Poll::Ready(Some(Err("the body did not come in time".into())))
            }
            Poll::Ready(Some(Ok(frame))) => {
                self.rest = None;
                Poll::Ready(Some(Ok(frame)))
            }
            // The HTTP library takes a stream that was cut off with NO_ERROR for one that ended.
            Poll::Ready(None) if self.two && !self.incoming.is_end_stream() => {
                self.fate.set(BROKEN);
                Poll::Ready(Some(Err("the stream was cut off".into())))
            }
            Poll::Ready(None) => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}

/// How many requests one connection has under way.
#[derive(Clone)]
pub(super) struct Held(Arc<watch::Sender<usize>>);

impl Default for Held {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(0)))
    }
}

impl Held {
    /// One more, until what is returned is dropped.
    pub(super) fn enter(&self) -> Place {
        self.0.send_modify(|count| *count += 1);
        Place(self.clone())
    }

    /// Whether nothing is under way.
    pub(super) fn is_empty(&self) -> bool {
        *self.0.borrow() == 0
    }

    /// Waits until nothing was under way for `span`.
    pub(super) async fn rested(&self, span: Duration) {
        let mut count = self.0.subscribe();
        loop {
            // The sender is held here.
            let _ = count.wait_for(|count| *count == 0).await;
            if tokio::time::timeout(span, count.wait_for(|count| *count > 0)).await.is_err() {
                return;
            }
        }
    }
}

/// One request under way.
pub(super) struct Place(Held);

impl Place {
    /// Stays until `body` is gone.
    pub(super) fn hold(self, body: Body) -> Body {
        Body::new(Holding { body, _place: self })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.0.send_modify(|count| *count = count.saturating_sub(1));
    }
}

struct Holding {
    body: Body,
    _place: Place,
}

impl http_body::Body for Holding {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        Pin::new(&mut self.body).poll_frame(cx).map_err(BoxError::from)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests;
