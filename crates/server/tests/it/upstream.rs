//! An upstream that answers with given bytes and keeps what it was sent.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// What an upstream does once it has the whole request.
#[derive(Clone, Copy)]
pub(crate) enum Play {
    /// It sends these bytes and closes.
    Send(&'static str),
    /// It closes without a byte.
    Close,
    /// It waits until the other side gives up.
    Hang,
    /// It sends an answer with these bytes behind the status, and after two seconds the end of it.
    Slowly(&'static str),
    /// It sends these bytes, then what it gets, until the other side closes.
    Echo(&'static str),
}

/// A running upstream.
pub(crate) struct Upstream {
    pub(crate) address: SocketAddr,
    seen: Arc<Mutex<Vec<String>>>,
    arrived: Arc<Notify>,
    left: Arc<Notify>,
}

impl Upstream {
    pub(crate) async fn start(play: Play) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let arrived = Arc::new(Notify::new());
        let left = Arc::new(Notify::new());
        let (keep, tell, end) = (seen.clone(), arrived.clone(), left.clone());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (keep, tell, end) = (keep.clone(), tell.clone(), end.clone());
                tokio::spawn(async move {
                    answer(stream, play, keep, tell).await;
                    end.notify_one();
                });
            }
        });
        Self { address, seen, arrived, left }
    }

    /// The requests so far, as they came.
    pub(crate) fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }

    /// Waits until a connection has ended that nobody waited for yet.
    pub(crate) async fn left(&self) {
        self.left.notified().await;
    }

    /// Waits for a request that nobody waited for yet.
    pub(crate) async fn arrived(&self) {
        self.arrived.notified().await;
    }
}

async fn answer(mut stream: TcpStream, play: Play, seen: Arc<Mutex<Vec<String>>>, arrived: Arc<Notify>) {
    let request = request(&mut stream).await;
    seen.lock().unwrap().push(request);
    arrived.notify_one();
    match play {
        Play::Send(bytes) => {
            stream.write_all(bytes.as_bytes()).await.unwrap();
            stream.shutdown().await.unwrap();
        }
        Play::Close => {}
        Play::Hang => {
            let mut rest = Vec::new();
            drop(stream.read_to_end(&mut rest).await);
        }
        Play::Slowly(bytes) => {
            stream.write_all(format!("HTTP/1.1 200 OK\r\n{bytes}").as_bytes()).await.unwrap();
            // The pause is what the answer is: longer than the limit that it must outlast.
            let mut pause = tokio::time::interval(Duration::from_secs(2));
            pause.tick().await;
            pause.tick().await;
            drop(stream.write_all(b", and the end").await);
            drop(stream.shutdown().await);
        }
        Play::Echo(bytes) => {
            stream.write_all(bytes.as_bytes()).await.unwrap();
            let (mut from, mut to) = stream.split();
            drop(tokio::io::copy(&mut from, &mut to).await);
        }
    }
}

/// Reads one request, its body by `Content-Length` or chunks.
async fn request(stream: &mut TcpStream) -> String {
    let mut text = String::new();
    let mut buffer = [0; 4096];
    loop {
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            let whole = match length {
                Some(length) => body.len() >= length.parse().unwrap(),
                None if head.contains("transfer-encoding: chunked") => body.ends_with("0\r\n\r\n"),
                None => true,
            };
            if whole {
                return text;
            }
        }
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => return text,
            Ok(count) => text.push_str(std::str::from_utf8(&buffer[..count]).unwrap()),
        }
    }
}
