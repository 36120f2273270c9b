//! For code that sends through `reqwest-middleware` already: [`IntentLayer`] as one of its middlewares.
//!
//! What does not belong here: which requests are intents (`layer`), and when an attempt follows (`deliver`).

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use counterfoil_core::receipt::Body;
use http::Extensions;
use reqwest::{Request, Response};
use reqwest_middleware::{Error, Middleware, Next};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout_at};

use crate::client::{Client, Wish};
use crate::layer::{Intended, IntentLayer, LayerError, draft, response};
use crate::outcome::Outcome;
use crate::transport::{ANSWER_BYTES_MAX, Heard, Outgoing, Sending, Transport, received};

/// A request with [`Intended`] among its extensions is an intent of the layer's journal; every other one passes as it is.
/// An action without an answer is a [`reqwest_middleware::Error::Middleware`] that holds a
/// [`LayerError<Infallible>`](LayerError): sent again with the same name, the request goes on.
///
/// Put it first. What comes behind it sees each attempt: a middleware there that adds the credential keeps it out of the
/// journal, and one that retries has no place there. Switch off what the client does by itself: build it with
/// `redirect(Policy::none())` and `retry(reqwest::retry::never())`. It cannot tell that nothing was sent, so each of its
/// errors counts as uncertain. A body must be in memory; a streamed one is refused.
#[async_trait::async_trait]
impl Middleware for IntentLayer {
    async fn handle(
        &self,
        request: Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> reqwest_middleware::Result<Response> {
        let Some(intended) = extensions.remove::<Intended>() else { return next.run(request, extensions).await };
        let wish = Wish { window: intended.window, ..Wish::new(draft(intended, kept(request)?)) };
        let (asking, mut asked) = mpsc::channel(1);
        let client = Client::new(self.journal.clone(), Arc::new(Asking(asking)));
        let mut sending = pin!(client.send(&wish, self.patience));
        let outcome = loop {
            tokio::select! {
                biased;
                outcome = &mut sending => break outcome,
                Some(attempt) = asked.recv() => attempt.carry_out(next.clone(), extensions.clone()).await,
            }
        };
        let failed = |error| Error::middleware(LayerError::<Infallible>::Client(error));
        match outcome.map_err(failed)? {
            Outcome::Succeeded { answer: Some(answer) } | Outcome::Refused { answer: Some(answer) } => {
                Ok(response(answer).map_err(failed)?.into())
            }
            outcome => Err(Error::middleware(LayerError::<Infallible>::Outcome(outcome))),
        }
    }
}

/// The request with its body, where that is in memory.
fn kept(request: Request) -> reqwest_middleware::Result<http::Request<Bytes>> {
    let body = match request.body() {
        None => Bytes::new(),
        Some(body) => body.as_bytes().map(Bytes::copy_from_slice).ok_or(Streamed).map_err(Error::middleware)?,
    };
    Ok(http::Request::<reqwest::Body>::try_from(request)?.map(|_| body))
}

#[derive(Debug, thiserror::Error)]
#[error("a streamed body cannot be written down before it is sent: give it as bytes")]
struct Streamed;

/// A transport that has its attempts carried out by whoever holds what comes next.
struct Asking(mpsc::Sender<Attempt>);

struct Attempt {
    outgoing: Outgoing,
    until: Instant,
    reply: oneshot::Sender<Heard>,
}

impl Transport for Asking {
    fn send(&self, outgoing: Outgoing, until: Instant) -> Sending<'_> {
        Box::pin(async move {
            let (reply, heard) = oneshot::channel();
            if Instant::now() >= until || self.0.send(Attempt { outgoing, until, reply }).await.is_err() {
                return Heard::NotSent("the attempt's time limit is over".to_owned());
            }
            heard.await.unwrap_or_else(|_| Heard::Uncertain("the attempt was given up".to_owned()))
        })
    }
}

impl Attempt {
    async fn carry_out(self, next: Next<'_>, mut extensions: Extensions) {
        let heard = match timeout_at(self.until, heard(self.outgoing, next, &mut extensions)).await {
            Ok(Ok(heard)) => heard,
            Ok(Err(error)) => Heard::Uncertain(error.to_string()),
            Err(_) => Heard::Uncertain("no whole answer before the attempt's time limit".to_owned()),
        };
        // Nobody listens any more where the call was dropped.
        drop(self.reply.send(heard));
    }
}

async fn heard(
    outgoing: Outgoing,
    next: Next<'_>,
    extensions: &mut Extensions,
) -> Result<Heard, reqwest_middleware::Error> {
    let mut request = http::Request::new(reqwest::Body::from(outgoing.body));
    *request.method_mut() = outgoing.method;
    *request.uri_mut() = outgoing.url;
    *request.headers_mut() = outgoing.headers;
    let mut answer = next.run(Request::try_from(request)?, extensions).await?;
    let (status, headers) = (answer.status(), answer.headers().clone());
    let mut body = BytesMut::new();
    while let Some(chunk) = answer.chunk().await? {
        if body.len() + chunk.len() > ANSWER_BYTES_MAX {
            return Ok(Heard::Answered(received(status, &headers, Body::NotKept)));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Heard::Answered(received(status, &headers, Body::Kept(body.freeze()))))
}
