//! The two instances of a service, which share what they know: where they listen, and connections that a kill ends.
//!
//! What does not belong here: what is answered.

use std::sync::Arc;

use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
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
                let serving = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), answer);
                tokio::spawn(serving);
            }
        });
    }

    pub(crate) fn second_url(&self, path: &str) -> String {
        format!("http://{}{path}", self.second)
    }
}
