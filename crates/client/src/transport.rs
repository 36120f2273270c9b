//! What carries one attempt, and what may be said of it afterwards. One HTTP implementation is in `http`; another one
//! must keep the promise of [`Transport::send`], on which every retry rests.

use std::future::Future;
use std::pin::Pin;

use bytes::Bytes;
use counterfoil_core::Receipt;
use counterfoil_core::receipt::Body;
use http::{HeaderMap, Method, StatusCode, Uri};
use tokio::time::Instant;

/// The largest body of an answer that is kept, in bytes. A larger answer is an answer all the same, without its body.
pub const ANSWER_BYTES_MAX: usize = 8 << 20;

/// A request on its way, secrets resolved. It has no `Debug`: nothing may print it.
#[derive(Clone)]
pub struct Outgoing {
    /// The method.
    pub method: Method,
    /// The absolute URL.
    pub url: Uri,
    /// The headers, the key's among them.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

/// What became of an attempt.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Heard {
    /// A whole answer came, whatever it says.
    Answered(Receipt),
    /// Certainly nothing of the request was acted on: no byte of it went out, or the peer said so in its protocol.
    NotSent(String),
    /// Everything else: time-out, reset, an answer that breaks off.
    Uncertain(String),
}

/// The answer of a [`Transport`].
pub type Sending<'a> = Pin<Box<dyn Future<Output = Heard> + Send + 'a>>;

/// Sends one attempt.
pub trait Transport: Send + Sync {
    /// Sends the request **once**: no retry, no redirect, no second connection after the first byte. Nothing is begun
    /// past `until`, and at `until` the connection is dropped, so that nothing more of the request goes out.
    /// [`Heard::NotSent`] is a promise; in doubt the answer is [`Heard::Uncertain`]. Dropping the future drops the
    /// connection.
    fn send(&self, request: Outgoing, until: Instant) -> Sending<'_>;
}

/// An answer as it is read and kept: all of its headers, in their order.
pub(crate) fn received(status: StatusCode, headers: &HeaderMap, body: Body) -> Receipt {
    let headers =
        headers.iter().map(|(name, value)| (name.as_str().to_owned(), Bytes::copy_from_slice(value.as_bytes())));
    Receipt { status: status.as_u16(), headers: headers.collect(), body }
}
