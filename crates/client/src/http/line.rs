//! The connection of one attempt: its bytes are watched, and everything that drives it ends with it. What the bytes say
//! belongs to `core::sent`.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use counterfoil_core::sent::Sent;
use counterfoil_store::points;
use hyper::rt::Executor;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::task::JoinSet;

/// A byte stream.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// Any byte stream.
pub(super) type AnyStream = Box<dyn Stream>;

/// What was seen on the wire.
pub(super) struct Witness(Arc<Mutex<Sent>>);

impl Witness {
    /// Whether the peer certainly did not act on the request.
    pub(super) fn is_unsent(&self) -> bool {
        lock(&self.0).is_unsent()
    }

    /// Whether an answer that seems to be at its end is not whole.
    pub(super) fn is_cut(&self) -> bool {
        lock(&self.0).is_cut()
    }
}

/// A stream that is watched.
pub(super) struct Watched {
    stream: AnyStream,
    sent: Arc<Mutex<Sent>>,
    begun: bool,
}

impl Watched {
    pub(super) fn new(stream: AnyStream, sent: Sent) -> (Self, Witness) {
        let sent = Arc::new(Mutex::new(sent));
        (Self { stream, sent: sent.clone(), begun: false }, Witness(sent))
    }
}

impl AsyncRead for Watched {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        lock(&self.sent).read(buffer.filled().get(before..).unwrap_or_default());
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Watched {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let count = ready!(Pin::new(&mut self.stream).poll_write(cx, bytes))?;
        lock(&self.sent).wrote(bytes.get(..count).unwrap_or_default());
        if count > 0 && !std::mem::replace(&mut self.begun, true) {
            points::pass("client.on-wire");
        }
        Poll::Ready(Ok(count))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// The tasks that drive one HTTP/2 connection. They hold it open, so they end with whoever made them.
#[derive(Default)]
pub(super) struct Drivers(Arc<Mutex<JoinSet<()>>>);

/// Hands tasks to [`Drivers`].
#[derive(Clone)]
pub(super) struct Hand(Arc<Mutex<JoinSet<()>>>);

impl Drivers {
    pub(super) fn hand(&self) -> Hand {
        Hand(self.0.clone())
    }
}

impl Drop for Drivers {
    fn drop(&mut self) {
        lock(&self.0).abort_all();
    }
}

impl<F> Executor<F> for Hand
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    fn execute(&self, task: F) {
        lock(&self.0).spawn(async move {
            task.await;
        });
    }
}

/// A panic of another thread leaves nothing half done: every critical section is one call.
fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
