//! For code that sends through a tower service already: a layer that writes a request down before its first attempt,
//! where the request says under which name. What is not named passes as it is.
//!
//! What does not belong here: when an attempt follows (`deliver`).

use std::fmt::Display;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use counterfoil_core::intent::{Draft, Header, Name, ProfileRef, Value};
use counterfoil_core::receipt::Body;
use counterfoil_core::{Receipt, Scope};
use counterfoil_store::IntentStore;
use http::{HeaderValue, Request, Response};
use tokio::time::{Instant, timeout_at};
use tower::{Layer, Service, ServiceExt as _};

use crate::client::{Client, Wish};
use crate::error::ClientError;
use crate::outcome::Outcome;
use crate::transport::{Heard, Outgoing, Sending, Transport, received};

/// Put into a request's extensions, it makes the request an intent.
#[derive(Clone, Debug)]
pub struct Intended {
    /// What the action is called, unique in its journal.
    pub name: Name,
    /// The provider's contract.
    pub profile: String,
    /// What narrows the scope besides the host and the credential.
    pub scope: Option<Scope>,
    /// How long the provider remembers keys at the least, where its profile does not say.
    pub window: Option<Duration>,
}

impl Intended {
    /// The action `name` under the contract `profile`.
    #[must_use]
    pub fn new(name: Name, profile: &str) -> Self {
        Self { name, profile: profile.to_owned(), scope: None, window: None }
    }
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LayerError<E> {
    /// The inner service failed on a request that is no intent.
    #[error(transparent)]
    Inner(E),
    /// The action has no answer, or none yet: it says whether it may have been done. Sent again with the same name, the
    /// request goes on.
    #[error("the action has no answer: {0:?}")]
    Outcome(Outcome),
    /// A fault of the client's own side.
    #[error(transparent)]
    Client(ClientError),
}

/// Makes requests with [`Intended`] in their extensions into intents of one journal.
///
/// The inner service must send a request once: any retry or redirect of its own belongs switched off. It cannot tell
/// that nothing was sent, so each of its errors counts as uncertain.
#[derive(Clone)]
pub struct IntentLayer {
    pub(crate) journal: Arc<dyn IntentStore>,
    pub(crate) patience: Duration,
}

impl IntentLayer {
    /// Intents go into `journal`, and a call goes on for `patience` beyond the attempt under way.
    pub fn new(journal: Arc<dyn IntentStore>, patience: Duration) -> Self {
        Self { journal, patience }
    }
}

impl<S> Layer<S> for IntentLayer {
    type Service = Intents<S>;

    fn layer(&self, inner: S) -> Intents<S> {
        Intents { journal: self.journal.clone(), patience: self.patience, inner }
    }
}

/// The service of [`IntentLayer`].
#[derive(Clone)]
pub struct Intents<S> {
    journal: Arc<dyn IntentStore>,
    patience: Duration,
    inner: S,
}

impl<S> Service<Request<Bytes>> for Intents<S>
where
    S: Service<Request<Bytes>, Response = Response<Bytes>> + Clone + Send + Sync + 'static,
    S::Future: Send + 'static,
    S::Error: Display + Send + 'static,
{
    type Response = Response<Bytes>;
    type Error = LayerError<S::Error>;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Bytes>, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        // Each attempt makes its own clone ready.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<Bytes>) -> Self::Future {
        let inner = self.inner.clone();
        let Some(intended) = request.extensions_mut().remove::<Intended>() else {
            return Box::pin(async move { inner.oneshot(request).await.map_err(LayerError::Inner) });
        };
        let client = Client::new(self.journal.clone(), Arc::new(Through(inner)));
        let patience = self.patience;
        Box::pin(async move {
            let wish = Wish { window: intended.window, ..Wish::new(draft(intended, request)) };
            match client.send(&wish, patience).await.map_err(LayerError::Client)? {
                Outcome::Succeeded { answer: Some(answer) } | Outcome::Refused { answer: Some(answer) } => {
                    response(answer).map_err(LayerError::Client)
                }
                outcome => Err(LayerError::Outcome(outcome)),
            }
        })
    }
}

pub(crate) fn draft(intended: Intended, request: Request<Bytes>) -> Draft {
    let (head, body) = request.into_parts();
    let headers = head.headers.iter();
    let headers =
        headers.map(|(name, value)| Header { name: name.as_str().to_owned(), value: Value::read(value.as_bytes()) });
    Draft {
        name: intended.name,
        method: head.method,
        url: head.uri.to_string(),
        headers: headers.collect(),
        body,
        scope: intended.scope,
        profile: ProfileRef { id: intended.profile, version: 1 },
    }
}

pub(crate) fn response(answer: Receipt) -> Result<Response<Bytes>, ClientError> {
    let wrong = |_| ClientError::Request(counterfoil_core::Error::Corrupt("an answer that was kept cannot be read"));
    let mut response = Response::builder().status(answer.status);
    for (name, value) in answer.headers.iter() {
        response = response.header(name, HeaderValue::from_bytes(value).map_err(|error| wrong(error.into()))?);
    }
    let body = match answer.body {
        Body::Kept(body) => body,
        Body::NotKept => Bytes::new(),
    };
    response.body(body).map_err(wrong)
}

/// A transport through a service.
struct Through<S>(S);

impl<S> Transport for Through<S>
where
    S: Service<Request<Bytes>, Response = Response<Bytes>> + Clone + Send + Sync + 'static,
    S::Future: Send + 'static,
    S::Error: Display + Send + 'static,
{
    fn send(&self, outgoing: Outgoing, until: Instant) -> Sending<'_> {
        let service = self.0.clone();
        Box::pin(async move {
            if Instant::now() >= until {
                return Heard::NotSent("the attempt's time limit is over".to_owned());
            }
            let mut request = Request::new(outgoing.body);
            *request.method_mut() = outgoing.method;
            *request.uri_mut() = outgoing.url;
            *request.headers_mut() = outgoing.headers;
            match timeout_at(until, service.oneshot(request)).await {
                Ok(Ok(answer)) => {
                    let (head, body) = answer.into_parts();
                    Heard::Answered(received(head.status, &head.headers, Body::Kept(body)))
                }
                Ok(Err(error)) => Heard::Uncertain(error.to_string()),
                Err(_) => Heard::Uncertain("no whole answer before the attempt's time limit".to_owned()),
            }
        })
    }
}
