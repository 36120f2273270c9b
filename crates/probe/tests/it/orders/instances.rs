//! The two instances of a service, which share what they know: where they listen, and connections that a kill ends.
//!
//! What does not belong here: what is answered.

use std::sync::Arc;

use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpListener;

use super::{Fault, Orders};

/// What a killed process answers with.
#[derive(Debug, thiserror::Error)]
#[error("killed")]
pub(super) struct Killed;

impl Orders {
    pub(crate) async fn start(fault: Fault) -> Self {
        Self::holding(fault, None).await
    }

    pub(crate) async fn holding(fault: Fault, held: Option<(u64, u32)>) -> Self {
        let [first, second] =
            [TcpListener::bind("127.0.0.1:0").await.unwrap(), TcpListener::bind("127.0.0.1:0").await.unwrap()];
        let (address, at) = (first.local_addr().unwrap(), second.local_addr().unwrap());
        let orders = Self { fault, book: Arc::default(), address, second: at, held, changed: Arc::default() };
        orders.clone().listen(first, 0);
        orders.clone().listen(second, 1);
        orders
    }

    fn listen(self, listener: TcpListener, instance: u64) {
        tokio::spawn(async move {
            // Connections of the two instances have numbers of their own.
            let mut number = instance;
            while let Ok((stream, _)) = listener.accept().await {
                number += 2;
                let (service, connection) = (self.clone(), number);
                let answer = service_fn(move |request| {
                    let service = service.clone();
                    async move { service.answer(request, connection).await }
                });
                tokio::spawn(async move {
                    // HTTP/2 without TLS begins with `PRI`, and no method does.
                    let mut begins = [0; 3];
                    let http2 = stream.peek(&mut begins).await.is_ok_and(|_| begins == *b"PRI");
                    let stream = TokioIo::new(stream);
                    match http2 {
                        true => http2::Builder::new(TokioExecutor::new()).serve_connection(stream, answer).await,
                        false => http1::Builder::new().serve_connection(stream, answer).await,
                    }
                });
            }
        });
    }

    pub(crate) fn second_url(&self, path: &str) -> String {
        format!("http://{}{path}", self.second)
    }
}
