//! One request over HTTP/2 on a connection of its own: it is driven here, so that it is known when bytes have gone out.
//!
//! What does not belong here: how a connection is made (`wire.rs`).

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Instant;

use bytes::Bytes;
use h2::client::{Connection as Driver, SendRequest};
use tokio::sync::Barrier;
use tokio::time::timeout;

use super::{Carried, Connection, Line, Outgoing, Wire};
use crate::answer::BODY_BYTES_MAX;
use crate::case::Loss;
use crate::exchange::Answer;
use crate::target::Address;

/// A connection of HTTP/2. Nothing drives it but a request that it carries.
pub(crate) struct Two {
    send: SendRequest<Bytes>,
    driver: Driver<Box<dyn Line>, Bytes>,
    ended: bool,
}

impl Two {
    pub(super) async fn begin(line: Box<dyn Line>) -> Result<Self, String> {
        let mut builder = h2::client::Builder::new();
        let begun = builder.enable_push(false).handshake(line).await;
        let (send, driver) = begun.map_err(|error| format!("HTTP/2 did not begin: {error}"))?;
        let mut two = Self { send, driver, ended: false };
        two.flush().await;
        Ok(two)
    }

    /// Writes out what there is to write, as far as the socket takes it.
    async fn flush(&mut self) {
        poll_fn(|context| {
            if !self.ended {
                self.ended = Pin::new(&mut self.driver).poll(context).is_ready();
            }
            Poll::Ready(())
        })
        .await;
    }

    /// Awaits something that the connection brings.
    async fn bring<T>(&mut self, what: impl Future<Output = Result<T, h2::Error>>) -> Result<T, String> {
        let mut what = pin!(what);
        poll_fn(|context| {
            for _ in 0..2 {
                if let Poll::Ready(done) = what.as_mut().poll(context) {
                    return Poll::Ready(
                        done.map_err(|error| format!("the connection ended before the answer: {error}")),
                    );
                }
                if self.ended {
                    return Poll::Ready(Err("the connection ended before the answer".to_owned()));
                }
                self.ended = Pin::new(&mut self.driver).poll(context).is_ready();
                if !self.ended {
                    return Poll::Pending;
                }
            }
            Poll::Pending
        })
        .await
    }
}

/// A request on its way.
struct Way {
    answer: h2::client::ResponseFuture,
    rest: Option<(h2::SendStream<Bytes>, Bytes)>,
}

impl Wire {
    /// Sends a request over HTTP/2, once, and reads its answer. With a barrier its end waits for all others.
    pub(super) async fn carry_two(
        &self,
        to: &Address,
        head: &http::Request<()>,
        outgoing: &Outgoing,
        barrier: Option<&Barrier>,
        kept: Option<Connection>,
    ) -> (Carried, Option<Connection>) {
        let mut carried = Carried::begun();
        let opened = match kept {
            Some(Connection::Two(two)) if !two.ended => Ok(Connection::Two(two)),
            Some(_) | None => self.connect(to, true).await,
        };
        let begun = match opened {
            Ok(Connection::Two(mut two)) => {
                begin(&mut two, head, outgoing, barrier.is_some()).await.map(|way| (two, way))
            }
            Ok(Connection::One(_)) => Err("the connection is not HTTP/2".to_owned()),
            Err(fault) => Err(fault),
        };
        if let Some(barrier) = barrier {
            barrier.wait().await;
        }
        let (mut two, way) = match begun {
            Ok((two, Some(way))) => (two, way),
            Ok((_, None)) => return (carried, None),
            Err(fault) => {
                carried.fault = Some(fault);
                return (carried, None);
            }
        };
        if let Err(fault) = end(&mut two, way.rest).await {
            carried.fault = Some(fault);
            return (carried, None);
        }
        if outgoing.lose == Loss::RequestBody {
            return (carried, None);
        }
        carried.sent_whole_at = Some(Instant::now());
        if outgoing.lose == Loss::Caller {
            return (carried, None);
        }
        let half = outgoing.lose == Loss::ReplyMidway;
        match timeout(self.answer_within, read(&mut two, way.answer, &mut carried.first_byte_at, half)).await {
            Ok(Ok(answer)) => {
                let reusable = answer.whole && !two.ended;
                carried.answer = Some(answer);
                (carried, reusable.then_some(Connection::Two(two)))
            }
            Ok(Err(fault)) => {
                carried.fault = Some(fault);
                (carried, None)
            }
            Err(_) => {
                carried.fault = Some(format!("no answer within {} s", self.answer_within.as_secs()));
                (carried, None)
            }
        }
    }
}

/// Sends all that may go out before the barrier. Nothing comes back where the head was lost: it stays unsent.
async fn begin(
    two: &mut Two,
    head: &http::Request<()>,
    outgoing: &Outgoing,
    race: bool,
) -> Result<Option<Way>, String> {
    if outgoing.lose == Loss::RequestHead {
        return Ok(None);
    }
    let broke = |error: h2::Error| format!("the connection broke while sending: {error}");
    let mut body = Bytes::from(outgoing.body.clone());
    let send = two.send.clone();
    let mut send = two.bring(send.ready()).await?;
    let at_once = body.is_empty() && !race;
    let (answer, mut stream) = send.send_request(head.clone(), at_once).map_err(broke)?;
    if outgoing.lose == Loss::RequestBody {
        let half = body.split_to(body.len() / 2);
        stream.send_data(half, false).map_err(broke)?;
        two.flush().await;
        return Ok(Some(Way { answer, rest: None }));
    }
    let last = if race { body.split_off(body.len().saturating_sub(1)) } else { body.split_off(0) };
    if !body.is_empty() {
        stream.send_data(body, false).map_err(broke)?;
    }
    two.flush().await;
    Ok(Some(Way { answer, rest: (!at_once).then_some((stream, last)) }))
}

async fn end(two: &mut Two, rest: Option<(h2::SendStream<Bytes>, Bytes)>) -> Result<(), String> {
    if let Some((mut stream, last)) = rest {
        let broke = |error: h2::Error| format!("the connection broke while sending: {error}");
        stream.send_data(last, true).map_err(broke)?;
        two.flush().await;
    }
    Ok(())
}

/// Reads an answer; `half` stops in the middle of its body.
async fn read(
    two: &mut Two,
    answer: h2::client::ResponseFuture,
    first_byte: &mut Option<Instant>,
    half: bool,
) -> Result<Answer, String> {
    let (parts, mut stream) = two.bring(answer).await?.into_parts();
    *first_byte = Some(Instant::now());
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let headers = parts.headers.iter().map(|(name, value)| (name.as_str().to_owned(), text(value.as_bytes())));
    let headers = headers.collect();
    let (mut body, mut whole) = (Vec::new(), true);
    while let Some(piece) = two.bring(async { stream.data().await.transpose() }).await? {
        if body.len().saturating_add(piece.len()) > BODY_BYTES_MAX {
            return Err(format!("the answer has more than {BODY_BYTES_MAX} bytes"));
        }
        if half {
            body.extend_from_slice(piece.get(..piece.len() / 2).unwrap_or_default());
            whole = false;
            break;
        }
        body.extend_from_slice(&piece);
        // A window that cannot be given back ends the stream, which the next piece tells.
        drop(stream.flow_control().release_capacity(piece.len()));
    }
    Ok(Answer { status: parts.status.as_u16(), headers, body: text(&body), whole })
}
