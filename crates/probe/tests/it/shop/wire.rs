//! HTTP for the shop: its listeners, its paths, its callers and their keys. HTTP/2 where a caller begins with it.
//!
//! What does not belong here: what a request does (`shop.rs`).

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use super::{Asked, Flaw, Killed, Shop, Stage, Told, names_twice, problem};
use crate::forms::parsed;

/// Callers: credential, name, and whether it may order.
pub(crate) const CALLERS: [(&str, &str, bool); 5] = [
    ("Bearer the-first-caller", "a", true),
    ("Bearer another-caller", "other", true),
    ("Bearer the-first-caller-again", "a", true),
    ("Bearer the-first-caller-reads", "a", false),
    ("Bearer a-longer-name", "a:b", true),
];

impl Shop {
    pub(crate) async fn open(flaw: Flaw) -> Self {
        let stage = Arc::new(watch::Sender::new(Stage::default()));
        Self::listen(flaw, "first", Arc::default(), stage).await
    }

    /// Another instance with the same book.
    pub(crate) async fn another(&self, instance: &'static str) -> Self {
        Self::listen(self.flaw, instance, self.book.clone(), self.stage.clone()).await
    }

    async fn listen(
        flaw: Flaw,
        instance: &'static str,
        book: Arc<std::sync::Mutex<super::Book>>,
        stage: Arc<watch::Sender<Stage>>,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let shop = Self { flaw, instance, book, stage, address: listener.local_addr().unwrap() };
        let served = shop.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(served.clone().serve(stream));
            }
        });
        shop
    }

    async fn serve(self, stream: TcpStream) {
        let mut first = [0; 2_048];
        let count = stream.peek(&mut first).await.unwrap_or_default();
        let begin = String::from_utf8_lossy(&first[..count]).into_owned();
        let capitals = begin.contains("IDEMPOTENCY-KEY:");
        let answer = service_fn(move |request| {
            let shop = self.clone();
            async move { shop.answer(request, capitals).await.map_err(|Killed| std::io::Error::other("killed")) }
        });
        let (stream, executor) = (TokioIo::new(stream), TokioExecutor::new());
        if begin.starts_with("PRI ") {
            drop(hyper::server::conn::http2::Builder::new(executor).serve_connection(stream, answer).await);
        } else {
            drop(hyper::server::conn::http1::Builder::new().serve_connection(stream, answer).await);
        }
    }

    async fn answer(&self, request: Request<Incoming>, capitals: bool) -> Result<Response<Full<Bytes>>, Killed> {
        let told = self.route(request, capitals).await?;
        let kind = if told.status >= 400 { "application/problem+json" } else { "application/json" };
        let mut response = Response::builder().status(told.status).header("content-type", kind);
        if let Some(id) = told.id {
            response = response.header("location", format!("/orders/{id}"));
        }
        Ok(response.body(Full::new(Bytes::from(told.body))).unwrap())
    }

    async fn route(&self, request: Request<Incoming>, capitals: bool) -> Result<Told, Killed> {
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let fine = |body: serde_json::Value| Told { status: 200, id: None, body: body.to_string() };
        if let Some(control) = path.strip_prefix("/control/") {
            return Ok(self.control(control).await);
        }
        match path.as_str() {
            "/requests/itself" => {
                let mut book = self.book();
                book.requests += 1;
                return Ok(fine(json!({"count": book.requests})));
            }
            "/count" => return Ok(fine(json!({"count": self.book().effects}))),
            "/requests" => return Ok(fine(json!({"count": self.book().requests}))),
            "/openapi.json" => return Ok(fine(json!({"parameters": [{"name": "Idempotency-Key", "in": "header"}]}))),
            _ => self.book().requests += 1,
        }
        if let Some(key) = path.strip_prefix("/keys/") {
            return Ok(self.by_key(key));
        }
        match (method, path.strip_prefix("/orders/").and_then(|id| id.parse().ok())) {
            (Method::PATCH, Some(id)) => drop(self.book().changed.insert(id)),
            (Method::DELETE, Some(id)) => drop(self.book().deleted.insert(id)),
            (Method::GET, _) => {}
            _ => return self.order(request, capitals).await,
        }
        Ok(fine(json!({})))
    }

    /// Looks a result up by its key, or cancels what is not known yet.
    fn by_key(&self, key: &str) -> Told {
        let (key, cancels) = key.strip_suffix("/cancel").map_or((key, false), |key| (key, true));
        let mut book = self.book();
        let name = format!("|a||POST /orders|{key}");
        if cancels {
            let told = Some(problem(409, "cancelled"));
            let record = super::Record { fingerprint: String::new(), told, at: book.now, purged: false };
            book.records.entry(name).or_insert(record);
            return Told { status: 204, id: None, body: String::new() };
        }
        let told = book.records.get(&name).and_then(|record| record.told.clone());
        told.map_or_else(|| problem(404, "unknown"), |told| Told { status: 200, ..told })
    }

    async fn order(&self, request: Request<Incoming>, capitals: bool) -> Result<Told, Killed> {
        let (parts, body) = request.into_parts();
        let Ok(body) = body.collect().await else { return Ok(problem(400, "cut")) };
        let body = body.to_bytes();
        let header = |name: &str| parts.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let known = CALLERS.iter().find(|(credential, _, _)| *credential == header("authorization"));
        let Some((credential, caller, orders)) = known else { return Ok(problem(401, "unknown")) };
        if !orders {
            return Ok(problem(403, "may-not"));
        }
        let media = header("content-type");
        if !["application/json", "application/x-www", "multipart/form-data"].iter().any(|kind| media.starts_with(kind))
        {
            return Ok(problem(415, "media-type"));
        }
        let keys: Vec<_> = parts.headers.get_all("idempotency-key").iter().collect();
        let key = match self.key(&keys) {
            Ok(key) => key.filter(|_| !(capitals && self.is(Flaw::HeaderNameHasCase))),
            Err(told) => return Ok(told),
        };
        let all = self.is(Flaw::ComparesAllAndRuns);
        let says = parsed(media, &body);
        let exact = format!("{media} {} {} {body:?}", header("accept"), header("api-version"));
        let caller = if self.is(Flaw::CallerIsCredential) { credential } else { caller };
        let asked = Asked {
            caller: (*caller).to_owned(),
            account: header("account").to_owned(),
            two: parts.version == hyper::Version::HTTP_2,
            operation: format!("{} {}", parts.method, parts.uri.path()),
            key,
            fingerprint: if all { exact } else { says.to_string() },
            twice: names_twice(&body),
            says,
        };
        let shop = self.clone();
        // A caller that goes away does not end what it began.
        tokio::spawn(async move { shop.ask(asked).await }).await.unwrap()
    }

    /// The key of a request, or why it is none.
    fn key(&self, lines: &[&hyper::header::HeaderValue]) -> Result<Option<String>, Told> {
        let Some(first) = lines.first() else { return Ok(None) };
        if lines.len() > 1 && !self.is(Flaw::FirstOfTwoLines) {
            return Err(problem(400, "two-keys"));
        }
        let text = match (first.to_str(), self.flaw) {
            (Ok(text), _) => text.to_owned(),
            (Err(_), Flaw::BeyondAsciiTaken) => format!("{first:?}"),
            (Err(_), _) => return Err(problem(400, "not-ascii")),
        };
        let bare = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(&text);
        if bare.is_empty() || (bare.contains("\", \"") && !self.is(Flaw::ListTaken)) {
            return Err(problem(400, "no-key"));
        }
        Ok(Some(bare.to_owned()))
    }
}
