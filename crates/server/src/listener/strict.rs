//! An HTTP/1.1 connection on which nothing ambiguous is read: at the first byte that must not be there, the HTTP
//! library gets a byte that no message may hold, answers 400, and closes. The rules belong to `framing`.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::framing::Framing;

/// Refused by every parser of header lines and of chunk sizes.
const POISON: u8 = 0;

/// A stream whose reads are looked at.
pub(super) struct Strict<T> {
    stream: T,
    framing: Framing,
    faulty: bool,
    /// The connection has left HTTP.
    switched: Arc<AtomicBool>,
}

impl<T> Strict<T> {
    pub(super) const fn new(stream: T, switched: Arc<AtomicBool>) -> Self {
        Self { stream, framing: Framing::new(), faulty: false, switched }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Strict<T> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.faulty {
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, "not HTTP/1.1 as it should be")));
        }
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        if self.switched.load(Ordering::Acquire) {
            return Poll::Ready(Ok(()));
        }
        let read = buffer.filled().get(before..).unwrap_or_default();
        if let Err(fault) = self.framing.feed(read) {
            tracing::info!(why = fault.why, "a request that could be read in two ways was refused");
            self.faulty = true;
            buffer.set_filled(before + fault.at);
            buffer.put_slice(&[POISON]);
        }
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Strict<T> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
