//! Watches the bytes of a connection to the upstream. What they say of a request belongs to `core::sent`, what follows
//! from it to `exchange`.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use counterfoil_core::sent::Sent;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::line::AnyLine;

/// What the wire shows. It holds the line open as long as the connection does.
pub(super) struct Witness(Arc<Mutex<Watch>>);

struct Watch {
    line: AnyLine,
    sent: Sent,
}

impl Witness {
    /// Begins with the next request: nothing of it was sent.
    pub(super) fn begin(&self) {
        self.watch().sent.begin();
    }

    /// Whether the upstream certainly did not act on the request.
    pub(super) fn is_unsent(&self) -> bool {
        self.watch().sent.is_unsent()
    }

    /// Whether an answer that seems to be at its end is not whole.
    pub(super) fn is_cut(&self) -> bool {
        self.watch().sent.is_cut()
    }

    /// Whether an HTTP/2 connection may carry another request.
    pub(super) fn is_over(&self) -> bool {
        self.watch().sent.is_over()
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
        let sent = if two { Sent::two() } else { Sent::one() };
        let watch = Arc::new(Mutex::new(Watch { line, sent }));
        (Self(Witness(watch.clone())), Witness(watch))
    }
}

impl AsyncRead for Watched {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let mut watch = self.0.watch();
        let before = buffer.filled().len();
        ready!(Pin::new(&mut watch.line).poll_read(cx, buffer))?;
        watch.sent.read(buffer.filled().get(before..).unwrap_or_default());
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Watched {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let mut watch = self.0.watch();
        let count = ready!(Pin::new(&mut watch.line).poll_write(cx, bytes))?;
        watch.sent.wrote(bytes.get(..count).unwrap_or_default());
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
            watch.sent.wrote(piece.get(..taken).unwrap_or_default());
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
