//! The one body type of the crate, and reading a body up to a limit.
//! What a body means (fingerprint, receipt) belongs to `request` and `remember`.

use std::any::Any;
use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Frame, SizeHint};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};

/// Any error, in a box.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A body broke off.
#[derive(Debug, thiserror::Error)]
#[error("the body broke off: {0}")]
pub struct BodyError(#[source] BoxError);

impl BodyError {
    fn new(error: impl Into<BoxError>) -> Self {
        Self(error.into())
    }
}

/// A request's or answer's body: bytes in hand, or a stream.
pub struct Body(Kind);

enum Kind {
    Whole(Full<Bytes>),
    Streamed(UnsyncBoxBody<Bytes, BodyError>),
}

impl Body {
    /// A body that streams `body`.
    pub fn new<B>(body: B) -> Self
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let mut body = Some(body);
        if let Some(own) = (&mut body as &mut dyn Any).downcast_mut::<Option<Self>>().and_then(Option::take) {
            return own;
        }
        match body {
            Some(body) => Self(Kind::Streamed(body.map_err(BodyError::new).boxed_unsync())),
            None => Self::empty(),
        }
    }

    /// A body without bytes.
    #[must_use]
    pub fn empty() -> Self {
        Self::from(Bytes::new())
    }
}

impl<T: Into<Bytes>> From<T> for Body {
    fn from(bytes: T) -> Self {
        Self(Kind::Whole(Full::new(bytes.into())))
    }
}

impl std::fmt::Debug for Body {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let size = http_body::Body::size_hint(self);
        f.debug_struct("Body").field("at_least", &size.lower()).field("at_most", &size.upper()).finish()
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match &mut self.get_mut().0 {
            Kind::Whole(body) => Pin::new(body).poll_frame(cx).map_err(|never| match never {}),
            Kind::Streamed(body) => Pin::new(body).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Whole(body) => body.is_end_stream(),
            Kind::Streamed(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Whole(body) => body.size_hint(),
            Kind::Streamed(body) => body.size_hint(),
        }
    }
}

/// What reading up to a limit came to.
pub(crate) enum Gathered {
    /// The whole body.
    Whole { bytes: Bytes, trailers: Option<HeaderMap> },
    /// It is longer than the limit; these pieces were read, and the rest is still in the body.
    Over { read: VecDeque<Bytes> },
    /// It broke off.
    Broken(BoxError),
}

/// Reads `body` to its end, or until it is known to be longer than `limit` bytes.
pub(crate) async fn gather<B>(mut body: Pin<&mut B>, limit: usize) -> Gathered
where
    B: http_body::Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    let mut read = VecDeque::new();
    let mut length = 0_usize;
    let mut trailers = None;
    if body.size_hint().lower() > limit as u64 {
        return Gathered::Over { read };
    }
    while let Some(frame) = body.frame().await {
        let frame = match frame {
            Ok(frame) => frame,
            Err(error) => return Gathered::Broken(error.into()),
        };
        match frame.into_data() {
            Ok(data) => {
                length = length.saturating_add(data.len());
                if !data.is_empty() {
                    read.push_back(data);
                }
                if length > limit {
                    return Gathered::Over { read };
                }
            }
            Err(frame) => trailers = frame.into_trailers().ok(),
        }
    }
    let bytes = match read.len() {
        0 | 1 => read.pop_front().unwrap_or_default(),
        _ => {
            let mut joined = Vec::with_capacity(length);
            read.iter().for_each(|piece| joined.extend_from_slice(piece));
            joined.into()
        }
    };
    Gathered::Whole { bytes, trailers }
}

/// The pieces that were read, then the rest.
pub(crate) struct Resumed {
    read: VecDeque<Bytes>,
    rest: Body,
}

impl Resumed {
    pub(crate) const fn new(read: VecDeque<Bytes>, rest: Body) -> Self {
        Self { read, rest }
    }
}

impl http_body::Body for Resumed {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = self.get_mut();
        match this.read.pop_front() {
            Some(piece) => Poll::Ready(Some(Ok(Frame::data(piece)))),
            None => Pin::new(&mut this.rest).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.read.is_empty() && self.rest.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let read = self.read.iter().map(|piece| piece.len() as u64).sum::<u64>();
        let rest = self.rest.size_hint();
        let mut size = SizeHint::new();
        size.set_lower(rest.lower().saturating_add(read));
        if let Some(upper) = rest.upper() {
            size.set_upper(upper.saturating_add(read));
        }
        size
    }
}

/// The whole body again, with its trailers.
pub(crate) fn whole(bytes: Bytes, trailers: Option<HeaderMap>) -> Body {
    match trailers {
        None => Body::from(bytes),
        Some(trailers) => Body::new(Full::new(bytes).with_trailers(std::future::ready(Some(Ok(trailers))))),
    }
}
