//! A fault upstream: it follows a script on every connection, byte by byte, and counts connections, requests and effects.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// What happens next on a connection. After the last step the other side's bytes are read to their end.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Reads a header (HTTP/1.1) and counts a request.
    Head,
    /// Reads so many bytes more.
    Read(usize),
    /// Reads the preface and a whole request (HTTP/2) and counts it.
    Two,
    /// Reads another whole request (HTTP/2) and counts it.
    TwoMore,
    /// Waits until every other connection has ended.
    Alone,
    /// Does what it was asked: an effect.
    Act,
    /// Sends these bytes.
    Send(Vec<u8>),
    /// Sends the same byte for ever, at short intervals.
    Drip(u8),
    /// Closes in order.
    Close,
    /// Closes with a reset.
    Reset,
}

pub(crate) fn send(bytes: impl AsRef<[u8]>) -> Step {
    Step::Send(bytes.as_ref().to_vec())
}

/// A running fault upstream.
pub(crate) struct Faulty {
    pub(crate) address: SocketAddr,
    counts: Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    connections: AtomicUsize,
    requests: AtomicUsize,
    /// The connection that each effect was asked for on, from 0.
    effects: Mutex<Vec<usize>>,
    /// Connections whose script is at its end.
    played: AtomicUsize,
    /// Connections that have ended.
    ended: AtomicUsize,
    /// What each connection brought behind its script, once it has ended.
    rests: Mutex<Vec<String>>,
    asked: Notify,
    connected: Notify,
    rested: Notify,
    left: Notify,
}

impl Counts {
    async fn alone(&self) {
        loop {
            let mut rested = std::pin::pin!(self.rested.notified());
            rested.as_mut().enable();
            if self.connections.load(Ordering::SeqCst) == self.ended.load(Ordering::SeqCst) + 1 {
                return;
            }
            rested.await;
        }
    }
}

impl Faulty {
    pub(crate) async fn start(script: Vec<Step>) -> Self {
        Self::on(TcpListener::bind("127.0.0.1:0").await.unwrap(), vec![script])
    }

    /// Each connection follows the script of its number, and those after the last script follow that one.
    pub(crate) fn on(listener: TcpListener, scripts: Vec<Vec<Step>>) -> Self {
        let address = listener.local_addr().unwrap();
        let counts = Arc::new(Counts::default());
        let count = counts.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let number = count.connections.fetch_add(1, Ordering::SeqCst);
                count.connected.notify_waiters();
                let script = scripts.get(number).or(scripts.last()).cloned().unwrap_or_default();
                let count = count.clone();
                tokio::spawn(serve(stream, script, number, count));
            }
        });
        Self { address, counts }
    }

    /// The number of the connection, from 0, that each effect so far was asked for on.
    pub(crate) fn effects(&self) -> Vec<usize> {
        self.counts.effects.lock().unwrap().clone()
    }

    /// Connections and requests so far.
    pub(crate) fn counts(&self) -> (usize, usize) {
        (self.counts.connections.load(Ordering::SeqCst), self.counts.requests.load(Ordering::SeqCst))
    }

    /// Waits until every connection so far is at the end of its script, or was broken off before.
    pub(crate) async fn rested(&self) {
        loop {
            let mut rested = std::pin::pin!(self.counts.rested.notified());
            rested.as_mut().enable();
            if self.counts.played.load(Ordering::SeqCst) >= self.counts.connections.load(Ordering::SeqCst) {
                return;
            }
            rested.await;
        }
    }

    /// What each connection that has ended brought behind its script.
    pub(crate) fn rests(&self) -> Vec<String> {
        self.counts.rests.lock().unwrap().clone()
    }

    /// Waits until so many connections have come.
    pub(crate) async fn connected(&self, connections: usize) {
        loop {
            let mut connected = std::pin::pin!(self.counts.connected.notified());
            connected.as_mut().enable();
            if self.counts.connections.load(Ordering::SeqCst) >= connections {
                return;
            }
            connected.await;
        }
    }

    /// Waits for a request that nobody waited for yet.
    pub(crate) async fn asked(&self) {
        self.counts.asked.notified().await;
    }

    /// Waits for the end of a connection that nobody waited for yet.
    pub(crate) async fn left(&self) {
        self.counts.left.notified().await;
    }
}

async fn serve(mut stream: TcpStream, script: Vec<Step>, number: usize, counts: Arc<Counts>) {
    // A connection that the other side breaks off ends its script.
    let open = play(&mut stream, &script, number, &counts).await.unwrap_or(false);
    counts.played.fetch_add(1, Ordering::SeqCst);
    counts.rested.notify_waiters();
    let mut rest = Vec::new();
    if open {
        // It ends as the other side likes.
        drop(stream.read_to_end(&mut rest).await);
    }
    counts.rests.lock().unwrap().push(String::from_utf8_lossy(&rest).into_owned());
    drop(stream);
    counts.ended.fetch_add(1, Ordering::SeqCst);
    counts.rested.notify_waiters();
    counts.left.notify_one();
}

/// Follows a script; the answer is whether the connection is still open on this side.
async fn play(stream: &mut TcpStream, script: &[Step], number: usize, counts: &Counts) -> std::io::Result<bool> {
    for step in script {
        match step {
            Step::Head => {
                head(stream).await?;
                counts.requests.fetch_add(1, Ordering::SeqCst);
                counts.asked.notify_one();
            }
            Step::Read(count) => {
                let mut bytes = vec![0; *count];
                stream.read_exact(&mut bytes).await?;
            }
            Step::Two | Step::TwoMore => {
                if matches!(step, Step::Two) {
                    stream.read_exact(&mut [0; 24]).await?;
                }
                two(stream).await?;
                counts.requests.fetch_add(1, Ordering::SeqCst);
                counts.asked.notify_one();
            }
            Step::Alone => counts.alone().await,
            Step::Act => counts.effects.lock().unwrap().push(number),
            Step::Send(bytes) => stream.write_all(bytes).await?,
            Step::Drip(byte) => {
                let mut timer = tokio::time::interval(Duration::from_millis(50));
                loop {
                    timer.tick().await;
                    stream.write_all(&[*byte]).await?;
                }
            }
            Step::Close => {
                stream.shutdown().await?;
                return Ok(false);
            }
            Step::Reset => {
                stream.set_zero_linger()?;
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// Reads to the end of a header, and nothing of what follows it.
async fn head(stream: &mut TcpStream) -> std::io::Result<()> {
    let mut bytes = [0; 4096];
    let mut tail = Vec::new();
    loop {
        let count = stream.peek(&mut bytes).await?;
        if count == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        let before = tail.len();
        tail.extend_from_slice(&bytes[..count]);
        let end = tail.windows(4).position(|four| four == b"\r\n\r\n");
        let taken = end.map_or(count, |at| at + 4 - before);
        stream.read_exact(&mut bytes[..taken]).await?;
        if end.is_some() {
            return Ok(());
        }
        tail.drain(..tail.len().saturating_sub(3));
    }
}

/// Reads frames until a stream is ended by its sender.
async fn two(stream: &mut TcpStream) -> std::io::Result<()> {
    loop {
        let mut header = [0; 9];
        stream.read_exact(&mut header).await?;
        let length = u32::from_be_bytes([0, header[0], header[1], header[2]]);
        let mut payload = vec![0; length as usize];
        stream.read_exact(&mut payload).await?;
        let (kind, ends) = (header[3], header[4] & 1 == 1);
        if kind <= 1 && ends {
            return Ok(());
        }
    }
}

/// HTTP/2 frames for scripts (RFC 9113 section 6).
pub(crate) mod frame {
    pub(crate) const NO_ERROR: u32 = 0;
    pub(crate) const INTERNAL_ERROR: u32 = 2;
    pub(crate) const REFUSED_STREAM: u32 = 7;
    pub(crate) const CANCEL: u32 = 8;
    pub(crate) const ENHANCE_YOUR_CALM: u32 = 11;

    fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
        let mut bytes = (payload.len() as u32).to_be_bytes()[1..].to_vec();
        bytes.extend_from_slice(&[kind, flags]);
        bytes.extend_from_slice(&stream.to_be_bytes());
        bytes.extend_from_slice(payload);
        bytes
    }

    /// What each side begins with.
    pub(crate) fn settings() -> Vec<u8> {
        frame(4, 0, 0, &[])
    }

    /// An answer's header with status 201, on the first stream.
    pub(crate) fn created() -> Vec<u8> {
        frame(1, 4, 1, b"\x48\x03201")
    }

    pub(crate) fn data(bytes: &[u8], ends: bool) -> Vec<u8> {
        frame(0, u8::from(ends), 1, bytes)
    }

    pub(crate) fn reset(code: u32) -> Vec<u8> {
        frame(3, 0, 1, &code.to_be_bytes())
    }

    pub(crate) fn goaway(last: u32, code: u32) -> Vec<u8> {
        frame(7, 0, 0, &[last.to_be_bytes(), code.to_be_bytes()].concat())
    }

    /// What a ping carries.
    pub(crate) const PING: &[u8] = b"are you?";

    /// The frames of the first stream as those of the second.
    pub(crate) fn second(mut bytes: Vec<u8>) -> Vec<u8> {
        bytes[8] = 3;
        bytes
    }

    pub(crate) fn ping() -> Vec<u8> {
        frame(6, 0, 0, PING)
    }

    /// A frame that no stream can get.
    pub(crate) fn nonsense() -> Vec<u8> {
        frame(8, 0, 0, &[0; 3])
    }
}
