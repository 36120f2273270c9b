//! Kept connections that send one request after the other: just enough of HTTP/1.1 to cost little beside a server.
//!
//! It knows only answers with a `Content-Length`, which is all that the servers here give.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::child::Child;
use crate::Fault;
use crate::keys::{Keys, Order};
use crate::load::{self, Did, Load, Tally, Usage, Window};

const BODY: &str = r#"{"item":"copper kettle","quantity":2,"gift":0}"#;
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// Which keys are sent where, and what is to be answered.
#[derive(Clone)]
pub(crate) struct Asks {
    keys: Option<Arc<[String]>>,
    /// What `Idempotent-Replayed` must say; `None`: the server knows no such header.
    replayed: Option<&'static str>,
    path: &'static str,
    /// Each connection is given a cookie first.
    session: bool,
}

impl Asks {
    /// A key that nobody used, for each request; `guards`: the server is ours, and says what it replayed.
    pub(crate) fn fresh(guards: bool) -> Self {
        Self { keys: None, replayed: guards.then_some("false"), path: "/orders", session: false }
    }

    /// The same on another path.
    pub(crate) fn to(mut self, path: &'static str) -> Self {
        self.path = path;
        self
    }

    /// The same, each connection with a session of its own.
    pub(crate) fn in_sessions(mut self) -> Self {
        self.session = true;
        self
    }
}

/// Sends `count` fresh requests, and answers what replays them.
pub(crate) async fn remember(address: SocketAddr, fresh: Asks, count: usize) -> Result<Asks, Fault> {
    let mut source = Keys::new(Order::Time);
    let keys: Arc<[String]> = (0..count).map(|_| source.next().to_string()).collect();
    let mut running = tokio::task::JoinSet::new();
    for part in 0..8 {
        let (keys, fresh) = (keys.clone(), fresh.clone());
        running.spawn(async move {
            let mut connection = Connection::open(address, &fresh).await?;
            for key in keys.iter().skip(part).step_by(8) {
                match connection.post(key, &fresh).await {
                    Ok(Did::Done) => {}
                    Ok(did) => return Err(format!("a first request was answered {did:?}").into()),
                    Err(error) => return Err(error),
                }
            }
            Ok::<_, Fault>(())
        });
    }
    while let Some(part) = running.join_next().await {
        part??;
    }
    Ok(Asks { keys: Some(keys), replayed: fresh.replayed.map(|_| "true"), ..fresh })
}

/// Runs the load; the usage is the server's.
pub(crate) async fn run(
    address: SocketAddr,
    usage: impl Fn() -> Result<Usage, Fault>,
    connections: usize,
    window: Window,
    asks: Asks,
) -> Result<Load, Fault> {
    load::tasks(connections, window, usage, || caller(address, window, asks.clone(), None)).await
}

/// The same, each connection with one request in each of these spans.
pub(crate) async fn run_paced(
    server: &Child,
    connections: usize,
    window: Window,
    pace: Duration,
) -> Result<Load, Fault> {
    let (address, asks) = (server.address(), Asks::fresh(true));
    load::tasks(connections, window, || server.usage(), || caller(address, window, asks.clone(), Some(pace))).await
}

async fn caller(address: SocketAddr, window: Window, asks: Asks, pace: Option<Duration>) -> Tally {
    let mut tally = Tally::default();
    let mut source = Keys::new(Order::Time);
    let mut fresh;
    let mut connection = match Connection::open(address, &asks).await {
        Ok(connection) => connection,
        Err(fault) => {
            tally.note(&window, Instant::now(), Did::Failed(fault.to_string()));
            return tally;
        }
    };
    let mut pace = pace.map(tokio::time::interval);
    while window.open() {
        if let Some(pace) = &mut pace {
            pace.tick().await;
        }
        let key = if let Some(keys) = &asks.keys {
            &keys[source.below(keys.len())]
        } else {
            fresh = source.next().to_string();
            &fresh
        };
        let begun = Instant::now();
        match connection.post(key, &asks).await {
            Ok(did) => tally.note(&window, begun, did),
            Err(fault) => {
                tally.note(&window, begun, Did::Failed(fault.to_string()));
                return tally;
            }
        }
    }
    tally
}

struct Connection {
    stream: TcpStream,
    sent: String,
    read: Vec<u8>,
    /// A header line with the session's cookie, or nothing.
    cookie: String,
}

impl Connection {
    async fn open(address: SocketAddr, asks: &Asks) -> Result<Self, Fault> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let mut connection =
            Self { stream, sent: String::new(), read: Vec::with_capacity(4096), cookie: String::new() };
        if asks.session {
            connection.sent.push_str("GET /session HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n");
            let answer = connection.ask().await?;
            let cookie = answer.lines().find_map(|line| line.strip_prefix("set-cookie: ")?.split(';').next());
            let cookie = cookie.ok_or("the server gave no session")?;
            connection.cookie = format!("cookie: {cookie}\r\n");
        }
        Ok(connection)
    }

    async fn post(&mut self, key: &str, asks: &Asks) -> Result<Did, Fault> {
        use std::fmt::Write as _;
        self.sent.clear();
        write!(
            self.sent,
            "POST {} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\
             idempotency-key: \"{key}\"\r\n{}\r\n{BODY}",
            asks.path,
            BODY.len(),
            self.cookie
        )?;
        let answer = self.ask().await?;
        Ok(Answer::read(answer.as_bytes())?.ok_or("the answer is not whole")?.judge(asks))
    }

    /// Sends what is to be sent, and reads the whole answer.
    async fn ask(&mut self) -> Result<&str, Fault> {
        self.stream.write_all(self.sent.as_bytes()).await?;
        self.read.clear();
        loop {
            if self.stream.read_buf(&mut self.read).await? == 0 {
                return Err("the server closed the connection".into());
            }
            if Answer::read(&self.read)?.is_some() {
                return Ok(str::from_utf8(&self.read)?);
            }
            if self.read.len() > ANSWER_BYTES_MAX {
                return Err("the answer is too long".into());
            }
        }
    }
}

/// What is looked at of an answer.
#[derive(Debug, PartialEq, Eq)]
struct Answer<'a> {
    status: u16,
    replayed: Option<&'a str>,
    whole: &'a str,
}

impl<'a> Answer<'a> {
    /// `None`: more must be read.
    fn read(bytes: &'a [u8]) -> Result<Option<Self>, Fault> {
        let text = str::from_utf8(bytes)?;
        let Some((head, body)) = text.split_once("\r\n\r\n") else { return Ok(None) };
        let mut lines = head.split("\r\n");
        let status = lines.next().and_then(|line| line.get(9..12)).and_then(|status| status.parse().ok());
        let status = status.ok_or("the answer has no status")?;
        let mut length = None;
        let mut replayed = None;
        for (name, value) in lines.filter_map(|line| line.split_once(": ")) {
            if name.eq_ignore_ascii_case("content-length") {
                length = value.parse().ok();
            } else if name.eq_ignore_ascii_case("idempotent-replayed") {
                replayed = Some(value);
            }
        }
        let length: usize = length.ok_or("the answer has no content length")?;
        Ok((body.len() >= length).then_some(Self { status, replayed, whole: text }))
    }

    fn judge(&self, asks: &Asks) -> Did {
        if self.status == 201 && self.replayed == asks.replayed {
            Did::Done
        } else if self.status == 503 {
            Did::Busy
        } else {
            Did::Failed(self.whole.to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_whole() {
        let whole = "HTTP/1.1 201 Created\r\nIdempotent-Replayed: true\r\ncontent-length: 2\r\n\r\n{}";
        for end in 0..whole.len() {
            assert!(matches!(Answer::read(&whole.as_bytes()[..end]), Ok(None)), "{end}");
        }
        let answer = Answer::read(whole.as_bytes()).unwrap().unwrap();
        assert_eq!((answer.status, answer.replayed), (201, Some("true")));
        let check = |replayed, done: bool| {
            let asks = Asks { replayed, ..Asks::fresh(false) };
            assert_eq!(matches!(answer.judge(&asks), Did::Done), done, "{replayed:?}");
        };
        check(Some("true"), true);
        check(Some("false"), false);
        check(None, false);
        assert!(Answer::read(b"HTTP/1.1 200 OK\r\n\r\n").is_err());
    }
}
