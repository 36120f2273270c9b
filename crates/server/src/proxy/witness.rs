//! Watches the bytes of one exchange for the one question that decides about a key: can the upstream have acted on the
//! request? What follows from it belongs to `exchange`.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::frames::{Frame, Frames};

/// What the wire showed so far.
#[derive(Clone, Debug)]
pub(super) struct Witness {
    seen: Arc<Mutex<Seen>>,
    two: bool,
}

#[derive(Debug, Default)]
struct Seen {
    /// HTTP/1.1: a byte was handed to the system. HTTP/2: a request was begun, on this stream.
    sent: Option<u32>,
    /// The upstream began to answer.
    answered: bool,
    /// HTTP/2: the answer is whole.
    ended: bool,
    /// The upstream refused the stream unprocessed (RFC 9113 section 8.7).
    refused: bool,
    /// The last stream that the upstream may have processed (RFC 9113 section 6.8).
    last: Option<u32>,
}

impl Witness {
    /// Whether the upstream certainly did not act on the request.
    pub(super) fn is_unsent(&self) -> bool {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(stream) = seen.sent else { return true };
        let passed_over = seen.last.is_some_and(|last| last < stream);
        !seen.answered && (seen.refused || passed_over)
    }

    /// Whether an answer that seems to be at its end is not whole. The HTTP library takes a stream that was cut off
    /// with NO_ERROR for one that ended.
    pub(super) fn is_cut(&self) -> bool {
        self.two && !self.seen.lock().unwrap_or_else(PoisonError::into_inner).ended
    }

    fn note(&self, change: impl FnOnce(&mut Seen)) {
        change(&mut self.seen.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// The frames of both directions.
struct Both {
    ours: Frames,
    theirs: Frames,
}

/// A stream that is watched.
pub(super) struct Watched<T> {
    stream: T,
    witness: Witness,
    /// HTTP/2 only: without it a single byte counts as the request.
    frames: Option<Both>,
}

impl<T> Watched<T> {
    pub(super) fn new(stream: T, two: bool) -> (Self, Witness) {
        let witness = Witness { seen: Arc::default(), two };
        let frames = two.then(|| Both { ours: Frames::after_preface(), theirs: Frames::new() });
        (Self { stream, witness: witness.clone(), frames }, witness)
    }

    fn wrote(&mut self, bytes: &[u8]) {
        let Some(frames) = &mut self.frames else {
            // No HTTP/1.1 message has stream 0, and no GOAWAY comes here.
            if !bytes.is_empty() {
                self.witness.note(|seen| seen.sent = Some(0));
            }
            return;
        };
        let witness = &self.witness;
        frames.ours.feed(bytes, |frame| match frame {
            Frame::Headers { stream } => witness.note(|seen| seen.sent = seen.sent.or(Some(stream))),
            Frame::End { .. } | Frame::Reset { .. } | Frame::GoAway { .. } => {}
        });
    }

    fn read(&mut self, bytes: &[u8]) {
        let Some(frames) = &mut self.frames else { return };
        let witness = &self.witness;
        frames.theirs.feed(bytes, |frame| {
            witness.note(|seen| match frame {
                Frame::Headers { stream } => seen.answered |= seen.sent == Some(stream),
                Frame::End { stream } => seen.ended |= seen.sent == Some(stream),
                Frame::Reset { stream, refused } => seen.refused |= refused && seen.sent == Some(stream),
                Frame::GoAway { last } => seen.last = Some(seen.last.map_or(last, |before| before.min(last))),
            });
        });
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Watched<T> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        self.read(buffer.filled().get(before..).unwrap_or_default());
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Watched<T> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let count = ready!(Pin::new(&mut self.stream).poll_write(cx, bytes))?;
        self.wrote(bytes.get(..count).unwrap_or_default());
        Poll::Ready(Ok(count))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
