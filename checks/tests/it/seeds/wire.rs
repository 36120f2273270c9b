//! One request on one connection, as the fixtures' client sends it.

use std::net::SocketAddr;

use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::{
    Order,
    http::{FAILS, TENANT},
};

/// What came back.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: String,
}

impl Answer {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(given, _)| given == name).map(|(_, value)| value.as_str())
    }

    /// Whether it is that problem document (RFC 9457).
    pub(super) fn is_problem(&self, kind: &str) -> bool {
        let problem: Option<Value> = serde_json::from_str(&self.body).ok();
        let named = problem.and_then(|problem| problem["type"].as_str().map(|name| name.ends_with(kind)));
        self.header("content-type") == Some("application/problem+json") && named == Some(true)
    }
}

/// Posts an order, and reads until the other end closes.
pub(super) async fn post(address: SocketAddr, order: &Order) -> Answer {
    let fails = if order.fails { format!("{FAILS}: 1\r\n") } else { String::new() };
    let request = format!(
        "POST /{operation} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{TENANT}: {tenant}\r\n{fails}\
         Idempotency-Key: \"{key}\"\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}",
        operation = order.operation,
        tenant = order.tenant,
        key = order.key,
        length = order.body.len(),
        body = order.body,
    );
    let mut connection = TcpStream::connect(address).await.expect("somebody listens");
    connection.write_all(request.as_bytes()).await.expect("it is sent");
    let mut answer = String::new();
    connection.read_to_string(&mut answer).await.expect("it is answered");
    let (head, body) = answer.split_once("\r\n\r\n").expect("an answer has a head");
    let mut lines = head.split("\r\n");
    let status = lines.next().and_then(|line| line.split(' ').nth(1)).and_then(|status| status.parse().ok());
    let header = |line: &str| {
        let (name, value) = line.split_once(':').expect("a header has a name");
        (name.to_ascii_lowercase(), value.trim().to_owned())
    };
    let answer = Answer {
        status: status.expect("an answer has a status"),
        headers: lines.map(header).collect(),
        body: body.to_owned(),
    };
    assert_eq!(answer.header("transfer-encoding"), None, "a short answer comes in one piece");
    answer
}
