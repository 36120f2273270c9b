//! A connection to the upstream that carries one request at a time, and what drives it. Which one carries a request
//! belongs to `pool` and `reach`, what an exchange came to, to `exchange`.

use std::future::Future as _;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use counterfoil_middleware::Fault;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::{TrySendError, http1, http2};
use hyper::rt::Executor as _;
use hyper_util::rt::TokioIo;
use tokio::task::AbortHandle;

use super::answer::Noted;
use super::line::AnyLine;
use super::witness::{Watched, Witness};

/// The most bytes of an answer's header.
const HEADER_BYTES_MAX: usize = 64 * 1024;
/// The most lines of an answer's header.
const HEADER_LINES_MAX: usize = 256;
/// How much of an answer's body may be on its way over HTTP/2, in bytes.
const WINDOW: u32 = 1024 * 1024;

/// The tasks that drive one connection, as an executor for the HTTP library.
#[derive(Clone, Default)]
struct Tasks(Arc<Mutex<Vec<AbortHandle>>>);

impl<F> hyper::rt::Executor<F> for Tasks
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    fn execute(&self, task: F) {
        let task = tokio::spawn(task);
        let mut tasks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A connection outlives the tasks of its requests.
        tasks.retain(|task| !task.is_finished());
        tasks.push(task.abort_handle());
    }
}

/// A connection that hands were shaken on. Dropped, it closes.
pub(super) struct Link {
    pub(super) witness: Witness,
    kind: Kind,
    tasks: Tasks,
}

enum Kind {
    One { sender: http1::SendRequest<Noted>, driver: Driver },
    Two { sender: http2::SendRequest<Noted> },
}

/// Who drives an HTTP/1.1 connection.
enum Driver {
    /// Whoever waits for its answer.
    Here(Box<http1::Connection<TokioIo<Watched>, Noted>>),
    /// A task of its own, or nobody, because it is at its end.
    Elsewhere,
}

impl Link {
    /// Shakes hands; `switch`: for an upgrade.
    pub(super) async fn shake(line: AnyLine, two: bool, switch: bool) -> Result<Self, Fault> {
        let not_sent = |error: hyper::Error| Fault::NotSent(told(&error));
        let (stream, witness) = Watched::new(line, two);
        let stream = TokioIo::new(stream);
        let tasks = Tasks::default();
        let kind = if two {
            let mut builder = http2::Builder::new(tasks.clone());
            builder.max_header_list_size(u32::try_from(HEADER_BYTES_MAX).unwrap_or(u32::MAX));
            builder.initial_stream_window_size(WINDOW).initial_connection_window_size(WINDOW);
            let (sender, connection) = builder.handshake(stream).await.map_err(not_sent)?;
            tasks.execute(async move { ended(&connection.await) });
            Kind::Two { sender }
        } else {
            let mut builder = http1::Builder::new();
            builder.max_buf_size(HEADER_BYTES_MAX).max_headers(HEADER_LINES_MAX);
            let (sender, connection) = builder.handshake(stream).await.map_err(not_sent)?;
            let driver = if switch {
                tasks.execute(async move { ended(&connection.with_upgrades().await) });
                Driver::Elsewhere
            } else {
                Driver::Here(Box::new(connection))
            };
            Kind::One { sender, driver }
        };
        Ok(Self { witness, kind, tasks })
    }

    /// Whether HTTP/2 is spoken on it.
    pub(super) const fn is_two(&self) -> bool {
        matches!(self.kind, Kind::Two { .. })
    }

    /// Sends, and waits for the answer's header.
    pub(super) async fn send(
        &mut self,
        request: Request<Noted>,
    ) -> Result<Response<Incoming>, TrySendError<Request<Noted>>> {
        match &mut self.kind {
            Kind::Two { sender } => sender.try_send_request(request).await,
            Kind::One { sender, driver } => {
                let mut answer = pin!(sender.try_send_request(request));
                std::future::poll_fn(|cx| {
                    driver.drive(cx);
                    answer.as_mut().poll(cx)
                })
                .await
            }
        }
    }

    /// Goes on with what is under way, where that is the caller's to do.
    pub(super) fn drive(&mut self, cx: &mut Context<'_>) {
        match &mut self.kind {
            Kind::One { driver, .. } => driver.drive(cx),
            Kind::Two { .. } => {}
        }
    }

    /// From here on it is driven by a task of its own, for a request that is not sent whole when its answer begins:
    /// nobody may wait for the one to go on with the other.
    pub(super) fn leave(&mut self) {
        if let Kind::One { driver, .. } = &mut self.kind
            && let Driver::Here(connection) = std::mem::replace(driver, Driver::Elsewhere)
        {
            self.tasks.execute(async move { ended(&connection.await) });
        }
    }

    /// Whether it may carry another request: this one and its answer are whole, nothing came behind the answer, and
    /// neither side said that it is the last.
    pub(super) fn is_free(&mut self) -> bool {
        match &mut self.kind {
            Kind::Two { sender } => sender.is_ready() && self.witness.is_over(),
            Kind::One { sender, driver } => {
                // What came is looked at now; nobody waits for what may come.
                driver.drive(&mut Context::from_waker(Waker::noop()));
                matches!(driver, Driver::Here(_)) && sender.is_ready()
            }
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        let tasks = self.tasks.0.lock().unwrap_or_else(PoisonError::into_inner);
        tasks.iter().for_each(AbortHandle::abort);
    }
}

impl Driver {
    fn drive(&mut self, cx: &mut Context<'_>) {
        if let Self::Here(connection) = self
            && let Poll::Ready(end) = Pin::new(connection).poll(cx)
        {
            ended(&end);
            *self = Self::Elsewhere;
        }
    }
}

fn ended(end: &hyper::Result<()>) {
    if let Err(error) = end {
        tracing::debug!(%error, "a connection to the upstream ended");
    }
}

/// The error with its cause, which is where the reason is.
pub(super) fn told(error: &hyper::Error) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}
