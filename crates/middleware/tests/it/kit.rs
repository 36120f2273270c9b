//! A guarded service in one line, requests, and answers read whole. No test stands here.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use counterfoil_core::{Identity, Key, Operation, Scope};
use counterfoil_middleware::{
    Body, Drain, Fault, Guard, GuardLayer, KeyNeed, OperationRule, Settings, SingleTenant, Terms, Unlisted,
};
use counterfoil_store::Gate;
use http::{HeaderMap, Request, Response};
use http_body_util::BodyExt as _;
use serde_json::Value;
use tokio::sync::Notify;
use tower::util::BoxCloneSyncService;
use tower::{Layer as _, ServiceExt as _, service_fn};

use crate::store::Scripted;

pub(crate) type Handler = BoxCloneSyncService<Request<Body>, Response<Body>, Fault>;

pub(crate) fn handler<F, Ended>(run: F) -> Handler
where
    F: Fn(Request<Body>) -> Ended + Clone + Send + Sync + 'static,
    Ended: Future<Output = Result<Response<Body>, Fault>> + Send + 'static,
{
    BoxCloneSyncService::new(service_fn(run))
}

/// A handler that answers 201 and counts its effects.
pub(crate) fn counting(effects: &Arc<AtomicUsize>) -> Handler {
    let effects = effects.clone();
    handler(move |_| {
        let number = effects.fetch_add(1, Ordering::SeqCst) + 1;
        async move { Ok(created(number)) }
    })
}

/// A handler that says when it has begun and ends when it is let go, with 201.
pub(crate) struct Held {
    pub(crate) begun: Arc<Notify>,
    pub(crate) go: Arc<Notify>,
    pub(crate) effects: Arc<AtomicUsize>,
}

impl Held {
    pub(crate) fn new() -> Self {
        Self { begun: Arc::default(), go: Arc::default(), effects: Arc::default() }
    }

    pub(crate) fn handler(&self) -> Handler {
        let (begun, go, effects) = (self.begun.clone(), self.go.clone(), self.effects.clone());
        handler(move |_| {
            let (begun, go, effects) = (begun.clone(), go.clone(), effects.clone());
            async move {
                begun.notify_one();
                go.notified().await;
                Ok(created(effects.fetch_add(1, Ordering::SeqCst) + 1))
            }
        })
    }
}

pub(crate) fn created(number: usize) -> Response<Body> {
    let answer = Response::builder().status(201).header("location", format!("/orders/{number}"));
    answer.body(Body::from(format!("order {number}"))).unwrap()
}

/// One guarded service and what stands behind it.
#[derive(Clone)]
pub(crate) struct House {
    pub(crate) store: Arc<Scripted>,
    pub(crate) drain: Drain,
    handler: Handler,
    guard: Guard<Handler>,
}

impl House {
    pub(crate) fn new(handler: Handler) -> Self {
        Self::with(settings(Terms::default()), handler)
    }

    pub(crate) fn with(settings: Settings, handler: Handler) -> Self {
        Self::over(Scripted::new(), settings, handler)
    }

    /// Another process's guard over the same store and service.
    pub(crate) fn beside(&self, settings: Settings) -> Self {
        Self::over(self.store.clone(), settings, self.handler.clone())
    }

    fn over(store: Arc<Scripted>, settings: Settings, handler: Handler) -> Self {
        let gate = Gate::new(store.clone()).unwrap();
        let layer = GuardLayer::new(gate, settings).unwrap();
        Self { store, drain: layer.drain(), guard: layer.layer(handler.clone()), handler }
    }

    pub(crate) fn send(&self, request: Request<Body>) -> Pin<Box<dyn Future<Output = Answer> + Send>> {
        let answering = self.guard.clone().oneshot(request);
        Box::pin(async move { read(answering.await.unwrap()).await })
    }

    /// The same in a task, for callers beside each other.
    pub(crate) fn sending(&self, request: Request<Body>) -> tokio::task::JoinHandle<Answer> {
        tokio::spawn(self.send(request))
    }

    /// What the guarded service answers or fails with, as it is.
    pub(crate) async fn call(&self, request: Request<Body>) -> Result<Response<Body>, Fault> {
        self.guard.clone().oneshot(request).await
    }
}

/// One listed operation, `create-order`, on these terms; the rest as usual.
pub(crate) fn settings(terms: Terms) -> Settings {
    let rule = OperationRule {
        name: Some(Operation::new("create-order").unwrap()),
        pattern: "POST /orders".parse().unwrap(),
        key: KeyNeed::Required,
        terms,
    };
    Settings { operations: vec![rule], unlisted: Unlisted::GuardKeyed(Box::default()), ..Settings::new(SingleTenant) }
}

/// Where the record of `key` is kept.
pub(crate) fn identity(key: &str) -> Identity {
    let operation = Operation::new("create-order").unwrap();
    Identity::new(Scope::single_tenant(), operation, Key::new(key).unwrap())
}

pub(crate) fn post(key: &str) -> Request<Body> {
    post_body(key, r#"{"item": "tea"}"#)
}

pub(crate) fn post_body(key: &str, body: impl Into<Bytes>) -> Request<Body> {
    let request = Request::post("/orders").header("idempotency-key", key).header("content-type", "application/json");
    request.body(Body::from(body.into())).unwrap()
}

/// An answer, read whole.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

pub(crate) async fn read<B>(answer: Response<B>) -> Answer
where
    B: http_body::Body<Data = Bytes>,
    B::Error: std::fmt::Debug,
{
    let (parts, body) = answer.into_parts();
    let body = collected(body).await;
    Answer { status: parts.status.as_u16(), headers: parts.headers, body }
}

pub(crate) async fn collected<B>(body: B) -> Bytes
where
    B: http_body::Body<Data = Bytes>,
    B::Error: std::fmt::Debug,
{
    body.collect().await.unwrap().to_bytes()
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    /// The problem's name; empty where it is none.
    pub(crate) fn problem(&self) -> String {
        if self.header("content-type") != Some("application/problem+json") {
            return String::new();
        }
        let document: Value = serde_json::from_slice(&self.body).unwrap();
        assert_eq!(document["status"], self.status, "the document names another status");
        document["type"].as_str().unwrap().trim_start_matches("urn:counterfoil:problem:").to_owned()
    }

    /// `201 replayed=false`, or `409 in-progress`.
    pub(crate) fn line(&self) -> String {
        match self.problem() {
            name if name.is_empty() => {
                format!("{} replayed={}", self.status, self.header("idempotent-replayed").unwrap_or("none"))
            }
            name => format!("{} {name}", self.status),
        }
    }
}
