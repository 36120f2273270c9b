//! Sends one request and prints the answer as `curl -i` does, for `demo --once`.

use std::net::SocketAddr;

use bytes::Bytes;
use http::{Method, Request, header};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use crate::error::CliError;

/// An order to place: key and body.
#[derive(Clone, Copy)]
pub(super) struct Order {
    pub(super) key: &'static str,
    pub(super) body: &'static str,
}

/// Places an order, or lists them where there is none to place.
pub(super) async fn send(address: SocketAddr, order: Option<Order>) -> Result<String, CliError> {
    let failed = |error: &dyn std::error::Error| CliError::Internal(format!("the demo's own request failed: {error}"));
    let stream = TcpStream::connect(address).await.map_err(|error| failed(&error))?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(|error| failed(&error))?;
    let driver = tokio::spawn(connection);
    let mut request = Request::builder().uri("/orders").header(header::HOST, address.to_string());
    if let Some(order) = order {
        request = request.method(Method::POST).header(header::CONTENT_TYPE, "application/json");
        request = request.header(counterfoil_core::wire::IDEMPOTENCY_KEY, order.key);
    }
    let body = Bytes::from_static(order.map_or(b"", |order| order.body.as_bytes()));
    let request = request.body(Full::new(body)).map_err(|error| failed(&error))?;
    let answer = sender.send_request(request).await.map_err(|error| failed(&error))?;
    let (parts, body) = answer.into_parts();
    let body = body.collect().await.map_err(|error| failed(&error))?.to_bytes();
    driver.abort();
    let mut text = format!("{:?} {}\n", parts.version, parts.status);
    for (name, value) in &parts.headers {
        text.push_str(&format!("{name}: {}\n", String::from_utf8_lossy(value.as_bytes())));
    }
    text.push_str(&format!("\n{}\n", String::from_utf8_lossy(&body).trim_end()));
    Ok(text)
}
