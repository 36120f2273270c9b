//! A transport that answers by a script, and remembers what was sent. Rules are tested in the core, bytes in `transport`.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use counterfoil_client::{Heard, Outgoing, Sending, Transport};
use counterfoil_core::Receipt;
use tokio::time::Instant;

/// One answer of a script.
#[derive(Clone)]
pub(crate) enum Reply {
    /// That.
    Heard(Heard),
    /// None, ever: the attempt hangs.
    Never,
}

/// Answers in order, and at the end always with the last one.
#[derive(Clone)]
pub(crate) struct Provider {
    script: Arc<Mutex<VecDeque<Reply>>>,
    sent: Arc<Mutex<Vec<Outgoing>>>,
}

impl Provider {
    pub(crate) fn new(script: impl IntoIterator<Item = Reply>) -> Self {
        Self { script: Arc::new(Mutex::new(script.into_iter().collect())), sent: Arc::default() }
    }

    /// The keys that were sent, in order.
    pub(crate) fn keys(&self) -> Vec<String> {
        let sent = self.sent.lock().unwrap();
        sent.iter().map(|request| request.headers["idempotency-key"].to_str().unwrap().to_owned()).collect()
    }

    /// What was sent, in order.
    pub(crate) fn sent(&self) -> Vec<Outgoing> {
        self.sent.lock().unwrap().clone()
    }
}

impl Transport for Provider {
    fn send(&self, request: Outgoing, _: Instant) -> Sending<'_> {
        self.sent.lock().unwrap().push(request);
        let mut script = self.script.lock().unwrap();
        let reply = if script.len() > 1 { script.pop_front() } else { script.front().cloned() };
        Box::pin(async move {
            match reply.unwrap() {
                Reply::Heard(heard) => heard,
                Reply::Never => std::future::pending().await,
            }
        })
    }
}

pub(crate) fn answered(status: u16, body: &str) -> Reply {
    Reply::Heard(Heard::Answered(Receipt::new(status, body.to_owned()).with_header("idempotent-replayed", "false")))
}

pub(crate) fn lost() -> Reply {
    Reply::Heard(Heard::Uncertain("the connection broke off".to_owned()))
}

pub(crate) fn not_sent() -> Reply {
    Reply::Heard(Heard::NotSent("nobody listens".to_owned()))
}
