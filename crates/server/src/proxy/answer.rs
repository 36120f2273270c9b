//! The body of an upstream's answer, with the connection that feeds it and the times that it may take; and the body of
//! a request, with the time of its last piece.

use std::future::Future as _;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use counterfoil_middleware::{Body, BoxError};
use http_body::{Body as _, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::time::{Instant, Sleep};

use super::headers;
use super::link::Link;
use super::reach::Place;

/// The longest answer, in bytes, that is looked for as a whole with its header.
const AT_HAND_MAX: u64 = 64 * 1024;

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

/// An answer's body with the connection that feeds it.
pub(super) struct Driven {
    body: Incoming,
    pace: Pace,
    /// None once the answer is whole, and the connection rests or is closed.
    fed: Option<(Link, Place)>,
    /// A piece that was looked for early.
    ahead: Option<hyper::Result<Frame<Bytes>>>,
    /// Why it goes no further.
    broken: Option<BoxError>,
}

impl Driven {
    pub(super) const fn new(body: Incoming, pace: Pace, link: Link, place: Place) -> Self {
        Self { body, pace, fed: Some((link, place)), ahead: None, broken: None }
    }

    /// As a body: the bytes themselves where all of them came with the header, else the stream. A connection is free as
    /// soon as its answer is whole.
    pub(super) async fn at_hand(mut self) -> Body {
        if self.body.is_end_stream() && !self.is_cut() {
            return Body::empty();
        }
        if self.body.size_hint().exact().is_some_and(|size| size <= AT_HAND_MAX) {
            let looked = std::future::poll_fn(|cx| Poll::Ready(self.poll_piece(cx))).await;
            if let Poll::Ready(Some(piece)) = looked {
                match piece.map(Frame::into_data) {
                    Ok(Ok(whole)) if self.body.is_end_stream() && !self.is_cut() => return Body::from(whole),
                    Ok(Ok(piece)) => self.ahead = Some(Ok(Frame::data(piece))),
                    Ok(Err(trailers)) => self.ahead = Some(Ok(trailers)),
                    Err(error) => self.ahead = Some(Err(error)),
                }
            }
        }
        Body::new(self)
    }

    /// Breaks off, once what came until then had its chance to go on to the caller: whoever sends a header and a body
    /// may do so when the body pauses, and drops both where it breaks.
    fn broken(&mut self, why: BoxError, cx: &Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        self.fed = None;
        self.broken = Some(why);
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn is_cut(&self) -> bool {
        self.fed.as_ref().is_some_and(|(link, _)| link.witness.is_cut())
    }

    /// The answer is whole.
    fn end(&mut self) {
        if let Some((link, place)) = self.fed.take() {
            place.leave(link);
        }
    }

    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<hyper::Result<Frame<Bytes>>>> {
        if let Some(ahead) = self.ahead.take() {
            return Poll::Ready(Some(ahead));
        }
        // It asks for a piece, which makes the connection read one.
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        let Some((link, _)) = &mut self.fed else { return polled };
        if polled.is_ready() {
            return polled;
        }
        link.drive(cx);
        Pin::new(&mut self.body).poll_frame(cx)
    }
}

impl http_body::Body for Driven {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        const LATE: &str = "the answer did not go on in time";
        if let Some(why) = self.broken.take() {
            return Poll::Ready(Some(Err(why)));
        }
        // A limit holds also for an answer that never pauses.
        if matches!(self.pace, Pace::Until(..)) && self.pace.is_over(cx) {
            return self.broken(LATE.into(), cx);
        }
        match self.poll_piece(cx) {
            Poll::Pending if self.pace.is_over(cx) => self.broken(LATE.into(), cx),
            Poll::Pending => Poll::Pending,
            Poll::Ready(Some(Ok(frame))) => {
                let bytes = frame.data_ref().map_or(0, Bytes::len);
                self.pace.came(bytes);
                Poll::Ready(Some(Ok(without_permit(frame))))
            }
            Poll::Ready(Some(Err(error))) => self.broken(error.into(), cx),
            Poll::Ready(None) if self.is_cut() => self.broken("the answer was cut off".into(), cx),
            Poll::Ready(None) => {
                self.end();
                Poll::Ready(None)
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.ahead.is_none() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let ahead = self.ahead.iter().flatten().next().and_then(Frame::data_ref).map_or(0, |piece| piece.len() as u64);
        let rest = self.body.size_hint();
        let mut size = SizeHint::new();
        size.set_lower(rest.lower().saturating_add(ahead));
        if let Some(upper) = rest.upper() {
            size.set_upper(upper.saturating_add(ahead));
        }
        size
    }
}

impl Drop for Driven {
    fn drop(&mut self) {
        // Whoever knows the length does not ask for more than the last piece.
        if self.broken.is_none() && self.body.is_end_stream() {
            self.end();
        }
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
    /// There is no more to come.
    over: bool,
}

impl Progress {
    pub(super) fn new() -> Self {
        Self(Arc::new(Mutex::new(Last { at: Instant::now(), paused: false, over: false })))
    }

    /// Notes that it went on.
    pub(super) fn note(&self) {
        self.set(false, false);
    }

    fn set(&self, paused: bool, over: bool) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Last { at: Instant::now(), paused, over };
    }

    /// Whether the last piece was taken.
    pub(super) fn is_over(&self) -> bool {
        self.last().over
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
    body: Body,
    progress: Progress,
}

impl Noted {
    pub(super) fn new(body: Body, progress: &Progress) -> Self {
        progress.set(false, body.is_end_stream());
        Self { body, progress: progress.clone() }
    }

    /// How far the connection has come with it.
    pub(super) fn progress(&self) -> Progress {
        self.progress.clone()
    }
}

impl http_body::Body for Noted {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        let over = matches!(polled, Poll::Ready(None | Some(Err(_)))) || self.body.is_end_stream();
        self.progress.set(polled.is_pending(), over);
        polled.map_ok(without_permit).map_err(BoxError::from)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
