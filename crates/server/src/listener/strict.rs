//! An HTTP/1.1 connection on which nothing ambiguous is read. In a header, the HTTP library gets bytes that no message
//! may hold, answers 400, and closes; in a body, the connection breaks off, and a request that nothing was done about yet
//! is refused. The rules belong to `framing`.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::framing::Framing;

/// Refused by every parser of headers. The empty line makes the library look at what it has.
const POISON: &[u8] = b"\0\r\n\r\n";

/// What is known of one HTTP/1.1 connection, by whoever reads it and by whoever serves it.
#[derive(Clone, Debug, Default)]
pub(super) struct Known(Arc<Flags>);

#[derive(Debug, Default)]
struct Flags {
    /// It has left HTTP.
    switched: AtomicBool,
    /// The request, from 1, whose body has a fault; 0: none so far.
    broken: AtomicUsize,
    /// The requests that were given on so far.
    begun: AtomicUsize,
}

impl Known {
    /// From now on its bytes are no HTTP any more.
    pub(super) fn switch(&self) {
        self.0.switched.store(true, Ordering::Release);
    }

    /// Counts a request that is given on, and answers whether its body is known to have a fault.
    pub(super) fn begin(&self) -> bool {
        let number = self.0.begun.fetch_add(1, Ordering::AcqRel).saturating_add(1);
        self.0.broken.load(Ordering::Acquire) == number
    }
}

/// A stream whose reads are looked at.
pub(super) struct Strict<T> {
    stream: T,
    framing: Framing,
    /// After a fault: what is still to be given in place of what came.
    faulty: Option<&'static [u8]>,
    known: Known,
}

impl<T> Strict<T> {
    pub(super) const fn new(stream: T, known: Known) -> Self {
        Self { stream, framing: Framing::new(), faulty: None, known }
    }

    /// Gives of what stands in for the rest, and breaks off behind it.
    fn give(&mut self, left: &'static [u8], buffer: &mut ReadBuf<'_>) -> io::Result<()> {
        if left.is_empty() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "not HTTP/1.1 as it should be"));
        }
        let (given, left) = left.split_at(left.len().min(buffer.remaining()));
        buffer.put_slice(given);
        self.faulty = Some(left);
        Ok(())
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Strict<T> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if let Some(left) = self.faulty {
            return Poll::Ready(self.give(left, buffer));
        }
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        if self.known.0.switched.load(Ordering::Acquire) {
            return Poll::Ready(Ok(()));
        }
        let read = buffer.filled().get(before..).unwrap_or_default();
        if let Err(fault) = self.framing.feed(read) {
            tracing::info!(why = fault.why, "a request that could be read in two ways was refused");
            buffer.set_filled(before + fault.at);
            let poison = if fault.in_body {
                self.known.0.broken.store(fault.request, Ordering::Release);
                &[]
            } else {
                POISON
            };
            self.faulty = Some(poison);
            // Nothing at all would be the end of the stream.
            if fault.at == 0 {
                return Poll::Ready(self.give(poison, buffer));
            }
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
