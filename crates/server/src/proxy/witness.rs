//! Watches the bytes of a connection for the one question that decides about a key: can the upstream have acted on the
//! request? A connection carries one request at a time, and each is judged by its own bytes. What follows from it
//! belongs to `exchange`.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::frames::{Frame, Frames};
use super::line::AnyLine;

/// What the wire shows. It holds the line open as long as the connection does.
pub(super) struct Witness(Arc<Mutex<Watch>>);

struct Watch {
    line: AnyLine,
    seen: Seen,
    /// HTTP/2 only: without it a single byte counts as the request.
    frames: Option<Both>,
    /// HTTP/2: the stream of the request before this one.
    before: u32,
    /// HTTP/2: the last stream that the upstream may have processed (RFC 9113 section 6.8).
    last: Option<u32>,
}

/// The frames of both directions.
struct Both {
    ours: Frames,
    theirs: Frames,
}

/// What was seen of one request.
#[derive(Debug, Default)]
struct Seen {
    /// HTTP/1.1: a byte was handed to the system. HTTP/2: a request was begun, on this stream.
    sent: Option<u32>,
    /// HTTP/2: the request is whole.
    whole: bool,
    /// The upstream began to answer.
    answered: bool,
    /// HTTP/2: the answer is whole.
    ended: bool,
    /// A side broke the stream off.
    reset: bool,
    /// The upstream refused the stream unprocessed (RFC 9113 section 8.7).
    refused: bool,
}

impl Witness {
    /// Begins with the next request: nothing of it was sent.
    pub(super) fn begin(&self) {
        let mut watch = self.watch();
        watch.before = watch.seen.sent.unwrap_or(watch.before);
        watch.seen = Seen::default();
    }

    /// Whether the upstream certainly did not act on the request.
    pub(super) fn is_unsent(&self) -> bool {
        let watch = self.watch();
        let Some(stream) = watch.seen.sent else { return true };
        let passed_over = watch.last.is_some_and(|last| last < stream);
        !watch.seen.answered && (watch.seen.refused || passed_over)
    }

    /// Whether an answer that seems to be at its end is not whole. The HTTP library takes a stream that was cut off
    /// with NO_ERROR for one that ended.
    pub(super) fn is_cut(&self) -> bool {
        let watch = self.watch();
        watch.frames.is_some() && !watch.seen.ended
    }

    /// Whether an HTTP/2 connection may carry another request: both sides have said all of this one, and the upstream
    /// takes more.
    pub(super) fn is_over(&self) -> bool {
        let watch = self.watch();
        watch.seen.whole && watch.seen.ended && !watch.seen.reset && watch.last.is_none()
    }

    /// Whether the line stands and nothing waits to be read at this moment.
    pub(super) fn is_quiet(&self) -> bool {
        self.watch().line.is_quiet()
    }

    fn watch(&self) -> MutexGuard<'_, Watch> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A line that is watched.
pub(super) struct Watched(Witness);

impl Watched {
    pub(super) fn new(line: AnyLine, two: bool) -> (Self, Witness) {
        let frames = two.then(|| Both { ours: Frames::after_preface(), theirs: Frames::new() });
        let watch = Arc::new(Mutex::new(Watch { line, seen: Seen::default(), frames, before: 0, last: None }));
        (Self(Witness(watch.clone())), Witness(watch))
    }
}

impl Watch {
    fn wrote(&mut self, bytes: &[u8]) {
        let (seen, before) = (&mut self.seen, self.before);
        let Some(frames) = &mut self.frames else {
            // No HTTP/1.1 message has stream 0, and no GOAWAY comes here.
            if !bytes.is_empty() {
                seen.sent = Some(0);
            }
            return;
        };
        frames.ours.feed(bytes, |frame| match frame {
            Frame::Headers { stream } if stream > before => seen.sent = seen.sent.or(Some(stream)),
            Frame::End { stream } => seen.whole |= seen.sent == Some(stream),
            Frame::Reset { stream, .. } => seen.reset |= seen.sent == Some(stream),
            Frame::Headers { .. } | Frame::GoAway { .. } => {}
        });
    }

    fn read(&mut self, bytes: &[u8]) {
        let (seen, lowest) = (&mut self.seen, &mut self.last);
        let Some(frames) = &mut self.frames else { return };
        frames.theirs.feed(bytes, |frame| match frame {
            Frame::Headers { stream } => seen.answered |= seen.sent == Some(stream),
            Frame::End { stream } => seen.ended |= seen.sent == Some(stream),
            Frame::Reset { stream, refused } if seen.sent == Some(stream) => {
                seen.reset = true;
                seen.refused |= refused;
            }
            Frame::Reset { .. } => {}
            Frame::GoAway { last } => *lowest = Some(lowest.map_or(last, |before| before.min(last))),
        });
    }
}

impl AsyncRead for Watched {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let mut watch = self.0.watch();
        let before = buffer.filled().len();
        ready!(Pin::new(&mut watch.line).poll_read(cx, buffer))?;
        watch.read(buffer.filled().get(before..).unwrap_or_default());
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Watched {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let mut watch = self.0.watch();
        let count = ready!(Pin::new(&mut watch.line).poll_write(cx, bytes))?;
        watch.wrote(bytes.get(..count).unwrap_or_default());
        Poll::Ready(Ok(count))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut watch = self.0.watch();
        let count = ready!(Pin::new(&mut watch.line).poll_write_vectored(cx, pieces))?;
        let mut left = count;
        for piece in pieces {
            let taken = left.min(piece.len());
            watch.wrote(piece.get(..taken).unwrap_or_default());
            left -= taken;
        }
        Poll::Ready(Ok(count))
    }

    fn is_write_vectored(&self) -> bool {
        self.0.watch().line.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0.watch().line).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0.watch().line).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests;
