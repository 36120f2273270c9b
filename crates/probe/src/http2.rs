//! One exchange over HTTP/2 (RFC 9113): frames go out when a case says so, once, and a stream is reset where it is cut.
//!
//! The connection is driven here and by no task of its own, so that it is known what has gone out. What does not belong
//! here: how a server is reached (`wire.rs`).

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::Bytes;
use h2::client::{ResponseFuture, SendRequest};
use h2::{Ping, Reason, SendStream};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Barrier;
use tokio::time::timeout;

use crate::address::Address;
use crate::answer::{BODY_BYTES_MAX, too_long};
use crate::case::Loss;
use crate::exchange::Answer;
use crate::wire::{Carried, Connection, Outgoing, Stream, Wire};

/// Headers that belong to one connection of HTTP/1.1 and have no place in HTTP/2.
const OF_HTTP1: [&str; 2] = ["host", "connection"];

/// What is known of the bytes below the frames.
#[derive(Clone, Copy, Debug, Default)]
struct Traffic {
    /// Whether bytes wait to be written.
    blocked: bool,
    /// The first bytes that came in this turn.
    read_at: Option<Instant>,
}

/// A stream whose traffic is noted.
struct Watched {
    stream: Stream,
    traffic: Arc<Mutex<Traffic>>,
}

/// The side of a connection that makes progress.
struct Driver {
    connection: h2::client::Connection<Watched, Bytes>,
    traffic: Arc<Mutex<Traffic>>,
}

/// A connection of HTTP/2.
pub(crate) struct Link {
    requests: SendRequest<Bytes>,
    driver: Driver,
}

/// A request whose last part has not gone out.
struct Begun {
    link: Box<Link>,
    answer: ResponseFuture,
    stream: SendStream<Bytes>,
    /// Nothing where the request is over already.
    last: Option<Bytes>,
}

/// The headers as HTTP/2 has them.
pub(crate) fn told(headers: &[(String, String)]) -> Vec<(String, String)> {
    let authority = headers.iter().filter(|(name, _)| name == "host");
    let authority = authority.map(|(_, value)| (":authority".to_owned(), value.clone()));
    let others = headers.iter().filter(|(name, _)| !OF_HTTP1.contains(&name.as_str())).cloned();
    authority.chain(others).collect()
}

/// Whether the other side speaks HTTP/2: it must answer a ping.
pub(crate) async fn answers(stream: Stream) -> Result<(), String> {
    Link::open(stream).await?.driver.ping().await
}

/// Sends a request, once, and reads its answer. With a barrier the last frame waits for all others.
pub(crate) async fn carry(
    wire: &Wire,
    to: &Address,
    outgoing: &Outgoing,
    barrier: Option<&Barrier>,
    kept: Option<Box<Link>>,
) -> (Carried, Option<Connection>) {
    let mut carried = Carried::begun();
    let late = || format!("no answer within {} s", wire.answer_within.as_secs());
    let begun = timeout(wire.answer_within, begin(wire, to, outgoing, barrier.is_some(), kept)).await;
    if let Some(barrier) = barrier {
        barrier.wait().await;
    }
    let begun = match begun.unwrap_or_else(|_| Err(late())) {
        Ok(begun) => begun,
        Err(fault) => return (Carried { fault: Some(fault), ..carried }, None),
    };
    match timeout(wire.answer_within, finish(begun, outgoing.lose, &mut carried)).await {
        Ok(Ok(link)) => (carried, link.map(Connection::Http2)),
        Ok(Err(fault)) => (Carried { fault: Some(fault), ..carried }, None),
        Err(_) => (Carried { fault: Some(late()), ..carried }, None),
    }
}

/// Sends all but the last frame.
async fn begin(
    wire: &Wire,
    to: &Address,
    outgoing: &Outgoing,
    barrier: bool,
    kept: Option<Box<Link>>,
) -> Result<Begun, String> {
    let request = request(to, &outgoing.head)?;
    let mut link = match kept {
        Some(link) => link,
        None => Box::new(Link::open(wire.connect(to).await?).await?),
    };
    let Link { requests, driver } = &mut *link;
    driver.until(|context| requests.poll_ready(context)).await?.map_err(|error| broke(&error))?;
    let body = Bytes::copy_from_slice(&outgoing.body);
    let (first, last) = match outgoing.lose {
        Loss::RequestHead => (Bytes::new(), Some(Bytes::new())),
        Loss::RequestBody => (body.slice(..body.len() / 2), Some(Bytes::new())),
        Loss::Nothing | Loss::Reply | Loss::ReplyMidway | Loss::Caller if barrier => {
            let at = body.len().saturating_sub(1);
            (body.slice(..at), Some(body.slice(at..)))
        }
        Loss::Nothing | Loss::Reply | Loss::ReplyMidway | Loss::Caller => {
            (Bytes::new(), Some(body).filter(|body| !body.is_empty()))
        }
    };
    let (answer, mut stream) = requests.send_request(request, last.is_none()).map_err(|error| broke(&error))?;
    driver.flush().await?;
    driver.send(&mut stream, first, false).await?;
    Ok(Begun { link, answer, stream, last })
}

/// Sends the last frame, or cuts the request, and reads the answer. Gives the connection where another request may follow.
async fn finish(begun: Begun, lose: Loss, carried: &mut Carried) -> Result<Option<Box<Link>>, String> {
    let Begun { mut link, answer, mut stream, last } = begun;
    let driver = &mut link.driver;
    if matches!(lose, Loss::RequestHead | Loss::RequestBody) {
        driver.leave(&mut stream).await?;
        return Ok(None);
    }
    if let Some(last) = last {
        driver.send(&mut stream, last, true).await?;
    }
    carried.sent_whole_at = Some(Instant::now());
    if lose == Loss::Caller {
        driver.leave(&mut stream).await?;
        return Ok(None);
    }
    let answer = driver.answer(answer, lose == Loss::ReplyMidway, carried).await?;
    let whole = answer.whole;
    carried.answer = Some(answer);
    if !whole {
        // The answer stands; whether the other side still listens is nothing to it.
        let _ = driver.reset(&mut stream).await;
    }
    Ok(whole.then_some(link))
}

impl Link {
    async fn open(stream: Stream) -> Result<Self, String> {
        let traffic = Arc::<Mutex<Traffic>>::default();
        let watched = Watched { stream, traffic: Arc::clone(&traffic) };
        let mut builder = h2::client::Builder::new();
        builder.enable_push(false);
        let (requests, connection) = builder.handshake(watched).await.map_err(|error| broke(&error))?;
        Ok(Self { requests, driver: Driver { connection, traffic } })
    }
}

impl Driver {
    /// Goes on until all that was asked for has gone out.
    async fn flush(&mut self) -> Result<(), String> {
        poll_fn(|context| match Pin::new(&mut self.connection).poll(context) {
            // A server that closes in order may have answered before.
            Poll::Ready(Ok(())) => Poll::Ready(Ok(())),
            Poll::Ready(Err(error)) => Poll::Ready(Err(broke(&error))),
            Poll::Pending if note(&self.traffic, |traffic| traffic.blocked) => Poll::Pending,
            Poll::Pending => Poll::Ready(Ok(())),
        })
        .await
    }

    /// Goes on until something has come.
    async fn until<T>(&mut self, mut what: impl FnMut(&mut Context<'_>) -> Poll<T>) -> Result<T, String> {
        poll_fn(|context| {
            note(&self.traffic, |traffic| traffic.read_at = None);
            let ended = Pin::new(&mut self.connection).poll(context);
            match (what(context), ended) {
                (Poll::Ready(came), _) => Poll::Ready(Ok(came)),
                (Poll::Pending, Poll::Ready(ended)) => Poll::Ready(Err(over(ended))),
                (Poll::Pending, Poll::Pending) => Poll::Pending,
            }
        })
        .await
    }

    /// Sends bytes of the body as far and as soon as the other side takes them.
    async fn send(&mut self, stream: &mut SendStream<Bytes>, mut bytes: Bytes, end: bool) -> Result<(), String> {
        if bytes.is_empty() && end {
            stream.send_data(bytes, true).map_err(|error| broke(&error))?;
            return self.flush().await;
        }
        while !bytes.is_empty() {
            stream.reserve_capacity(bytes.len());
            let room = match stream.capacity() {
                0 => match self.until(|context| stream.poll_capacity(context)).await? {
                    Some(room) => room.map_err(|error| broke(&error))?,
                    None => return Err("the stream was closed while sending".to_owned()),
                },
                room => room,
            };
            let part = bytes.split_to(room.min(bytes.len()));
            if !part.is_empty() {
                stream.send_data(part, end && bytes.is_empty()).map_err(|error| broke(&error))?;
                self.flush().await?;
            }
        }
        Ok(())
    }

    /// Waits until the other side has read all that went out before: it answers frames in their order.
    async fn ping(&mut self) -> Result<(), String> {
        let mut pings = self.connection.ping_pong().ok_or("a connection is pinged once")?;
        pings.send_ping(Ping::opaque()).map_err(|error| broke(&error))?;
        self.until(|context| pings.poll_pong(context)).await?.map(drop).map_err(|error| broke(&error))
    }

    /// Gives a request up that the other side has read so far: one that comes together with its reset is never begun.
    async fn leave(&mut self, stream: &mut SendStream<Bytes>) -> Result<(), String> {
        self.ping().await?;
        self.reset(stream).await
    }

    async fn reset(&mut self, stream: &mut SendStream<Bytes>) -> Result<(), String> {
        stream.send_reset(Reason::CANCEL);
        self.flush().await
    }

    /// Reads the answer; `half` stops in the middle of its body.
    async fn answer(
        &mut self,
        mut coming: ResponseFuture,
        half: bool,
        carried: &mut Carried,
    ) -> Result<Answer, String> {
        let response = self.until(|context| Pin::new(&mut coming).poll(context)).await?;
        let (parts, mut body) = response.map_err(|error| broke(&error))?.into_parts();
        carried.first_byte_at = note(&self.traffic, |traffic| traffic.read_at).or_else(|| Some(Instant::now()));
        let header = |(name, value): (&http::HeaderName, &http::HeaderValue)| {
            (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
        };
        let headers = parts.headers.iter().map(header).collect();
        let mut answer = Answer { status: parts.status.as_u16(), headers, body: String::new(), whole: false };
        let length = answer.header("content-length").and_then(|length| length.parse::<usize>().ok());
        let mut bytes = Vec::new();
        loop {
            match self.until(|context| body.poll_data(context)).await {
                Ok(None) => {
                    answer.whole = true;
                    break;
                }
                Ok(Some(Ok(more))) => {
                    // A window that cannot be given back belongs to a stream that is over.
                    let _ = body.flow_control().release_capacity(more.len());
                    bytes.extend_from_slice(&more);
                }
                // What came until it broke is evidence as well.
                Ok(Some(Err(_))) | Err(_) => break,
            }
            let wanted = length.unwrap_or(bytes.len()) / 2;
            if half && !bytes.is_empty() && bytes.len() >= wanted {
                bytes.truncate(wanted);
                break;
            }
            if bytes.len() > BODY_BYTES_MAX {
                return Err(too_long());
            }
        }
        answer.body = String::from_utf8_lossy(&bytes).into_owned();
        Ok(answer)
    }
}

/// The request of a head that is written for HTTP/1.1.
fn request(to: &Address, head: &[u8]) -> Result<http::Request<()>, String> {
    let head = String::from_utf8_lossy(head);
    let mut lines = head.lines();
    let mut words = lines.next().unwrap_or_default().split(' ');
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let headers: Vec<(&str, &str)> = lines.filter_map(|line| line.split_once(": ")).collect();
    let host = headers.iter().find(|(name, _)| *name == "host").map_or(to.authority.as_str(), |(_, host)| *host);
    let scheme = if to.tls { "https" } else { "http" };
    let mut request =
        http::Request::builder().version(http::Version::HTTP_2).method(method).uri(format!("{scheme}://{host}{path}"));
    for (name, value) in headers.into_iter().filter(|(name, _)| !OF_HTTP1.contains(name)) {
        request = request.header(name, value);
    }
    request.body(()).map_err(|error| format!("no request of HTTP/2: {error}"))
}

fn note<T>(traffic: &Mutex<Traffic>, what: impl FnOnce(&mut Traffic) -> T) -> T {
    what(&mut traffic.lock().unwrap_or_else(PoisonError::into_inner))
}

fn broke(error: &h2::Error) -> String {
    format!("the connection broke: {error}")
}

fn over(ended: Result<(), h2::Error>) -> String {
    match ended {
        Ok(()) => "the connection ended before the answer".to_owned(),
        Err(error) => broke(&error),
    }
}

impl Watched {
    /// Notes whether bytes wait after a write or a flush.
    fn wrote<T>(&self, outcome: Poll<T>) -> Poll<T> {
        note(&self.traffic, |traffic| traffic.blocked = outcome.is_pending());
        outcome
    }
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let before = buffer.filled().len();
        let outcome = Pin::new(&mut self.stream).poll_read(context, buffer);
        if buffer.filled().len() > before {
            note(&self.traffic, |traffic| *traffic.read_at.get_or_insert_with(Instant::now));
        }
        outcome
    }
}

impl AsyncWrite for Watched {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.wrote(outcome)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_flush(context);
        self.wrote(outcome)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
