//! A caller that sends given bytes and reads the answer until the other side closes.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// An answer taken apart.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn status(&self) -> u16 {
        self.head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0)
    }

    /// The first value of a header, its name in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (found, value) = line.split_once(':')?;
            found.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    /// The last part of the problem document's type.
    pub(crate) fn problem(&self) -> String {
        let json: serde_json::Value = serde_json::from_str(&self.body).unwrap_or_default();
        json["type"].as_str().unwrap_or_default().rsplit(':').next().unwrap_or_default().to_owned()
    }
}

/// Sends a request line, further lines and a body, and reads to the end.
pub(crate) async fn ask(address: SocketAddr, line: &str, headers: &[&str], body: &str) -> Answer {
    let mut text = format!("{line} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n");
    for header in headers {
        text.push_str(header);
        text.push_str("\r\n");
    }
    if !body.is_empty() {
        text.push_str(&format!("content-length: {}\r\n", body.len()));
    }
    raw(address, &format!("{text}\r\n{body}")).await
}

/// A guarded request with this key.
pub(crate) async fn order(address: SocketAddr, key: &str, body: &str) -> Answer {
    ask(address, "POST /orders", &[&format!("idempotency-key: {key}"), "content-type: application/json"], body).await
}

/// Sends bytes as they are.
pub(crate) async fn raw(address: SocketAddr, text: &str) -> Answer {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    parse(&answer)
}

/// Takes an answer apart.
pub(crate) fn parse(answer: &str) -> Answer {
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((answer, ""));
    Answer { head: head.to_owned(), body: body.to_owned() }
}
