//! A small orders service that keeps keys rightly, or with exactly one fault.
//!
//! What does not belong here: what the probe says of it.

use std::collections::HashMap;
use std::convert::Infallible;
use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;

pub(crate) use crate::fault::Fault;
use crate::forms::parsed;

pub(crate) const CREDENTIAL: &str = "Bearer the-credential-of-the-tests";

/// An answer before it is written.
#[derive(Clone)]
struct Told {
    status: u16,
    kind: &'static str,
    headers: Vec<(&'static str, String)>,
    body: String,
}

fn problem(status: u16, name: &str) -> Told {
    let body = json!({"type": format!("urn:orders:{name}"), "status": status}).to_string();
    Told { status, kind: "application/problem+json", headers: Vec::new(), body }
}

struct Record {
    fingerprint: String,
    /// Nothing while it runs.
    told: Option<Told>,
    replays: u32,
}

#[derive(Default)]
struct Book {
    effects: u64,
    records: HashMap<String, Record>,
}

/// One service on a port of its own; it ends with the runtime of its test.
#[derive(Clone)]
pub(crate) struct Orders {
    fault: Fault,
    book: Arc<Mutex<Book>>,
    address: std::net::SocketAddr,
}

/// What a request asked for.
struct Asked {
    operation: String,
    query: String,
    agent: String,
    key: Option<String>,
    body: Bytes,
    /// What the body says, however it is written.
    says: Value,
    connection: u64,
}

/// Removes a record whose request was given up.
struct Forgets(Orders, Option<String>);

impl Drop for Forgets {
    fn drop(&mut self) {
        if let Some(name) = self.1.take() {
            self.0.book().records.remove(&name);
        }
    }
}

impl Orders {
    pub(crate) async fn start(fault: Fault) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let orders = Self { fault, book: Arc::default(), address: listener.local_addr().unwrap() };
        let service = orders.clone();
        tokio::spawn(async move {
            let mut number = 0;
            while let Ok((stream, _)) = listener.accept().await {
                number += 1;
                let (service, connection) = (service.clone(), number);
                let answer = service_fn(move |request| {
                    let service = service.clone();
                    async move { Ok::<_, Infallible>(service.answer(request, connection).await) }
                });
                let serving = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), answer);
                tokio::spawn(serving);
            }
        });
        orders
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap()
    }

    fn is(&self, fault: Fault) -> bool {
        self.fault == fault
    }

    async fn answer(&self, request: Request<Incoming>, connection: u64) -> Response<Full<Bytes>> {
        let told = if request.method() == hyper::Method::GET {
            let body = json!({"count": self.book().effects}).to_string();
            Told { status: 200, kind: "application/json", headers: Vec::new(), body }
        } else {
            self.ask(request, connection).await
        };
        let mut response = Response::builder().status(told.status).header("content-type", told.kind);
        for (name, value) in told.headers {
            response = response.header(name, value);
        }
        response.body(Full::new(Bytes::from(told.body))).unwrap()
    }

    async fn ask(&self, request: Request<Incoming>, connection: u64) -> Told {
        let (parts, mut incoming) = request.into_parts();
        let header = |name: &str| parts.headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let allowed = header("authorization").as_deref() == Some(CREDENTIAL);
        let mut key = header("idempotency-key").map(|key| key.trim_matches('"').to_owned());
        let query = parts.uri.query().unwrap_or_default().to_owned();
        if matches!(self.fault, Fault::KeyInQuery | Fault::KeyOfAnyPlace) && key.is_none() {
            key = query.split('&').find_map(|pair| pair.strip_prefix("idempotency_key=")).map(str::to_owned);
        }
        let mut body = Vec::new();
        while let Some(frame) = incoming.frame().await {
            match frame {
                Ok(frame) => body.extend_from_slice(frame.data_ref().map_or(&[][..], |data| data)),
                Err(_) if self.is(Fault::HalfBodyRuns) => break,
                Err(_) => return problem(400, "cut"),
            }
        }
        let agent = header("user-agent").unwrap_or_default();
        let operation = parts.uri.path().to_owned();
        let mut says = parsed(&header("content-type").unwrap_or_default(), &body);
        if let (true, Some(all)) = (self.is(Fault::KeyOfAnyPlace), says.as_object_mut()) {
            key = all.remove("idempotency_key").and_then(|key| key.as_str().map(str::to_owned)).or(key);
        }
        let asked = Asked { operation, query, agent, key, body: Bytes::from(body), says, connection };
        let name = self.name(&asked);
        if !allowed {
            let mut book = self.book();
            let stored = name.as_ref().and_then(|name| book.records.get(name)).and_then(|record| record.told.clone());
            if let (true, Some(told)) = (self.is(Fault::StoredBeforeCredential), stored) {
                return told;
            }
            let refused = problem(401, "unauthenticated");
            if let (true, Some(name)) = (self.is(Fault::UnauthenticatedRemembered), name) {
                let told = Some(refused.clone());
                let record = Record { fingerprint: self.fingerprint(&asked), told, replays: 0 };
                book.records.entry(name).or_insert(record);
            }
            return refused;
        }
        let (service, watched) =
            (self.clone(), matches!(self.fault, Fault::CallerGoneForgets | Fault::CallerGoneSticks));
        if watched {
            service.guarded(asked).await
        } else {
            tokio::spawn(async move { service.guarded(asked).await }).await.unwrap()
        }
    }

    /// The name of the record; nothing where no key guards the request.
    fn name(&self, asked: &Asked) -> Option<String> {
        let body = String::from_utf8_lossy(&asked.body).into_owned();
        let key = match (&asked.key, self.fault) {
            (_, Fault::NoDedup) => return None,
            (_, Fault::BodyIsKey) => body,
            (None, Fault::BodyWithoutKeyIsKey) => body,
            (None, _) => return None,
            (Some(key), Fault::KeyCut) => key.chars().take(64).collect(),
            (Some(key), Fault::KeyCaseIgnored) => key.to_lowercase(),
            (Some(key), Fault::KeyOfConnection) => format!("{} {key}", asked.connection),
            (Some(key), _) => key.clone(),
        };
        Some(if self.is(Fault::GlobalKey) { key } else { format!("{} {key}", asked.operation) })
    }

    fn fingerprint(&self, asked: &Asked) -> String {
        let mut query: Vec<&str> = asked.query.split('&').collect();
        query.sort_unstable();
        let blind = matches!(self.fault, Fault::FingerprintWithoutQuery | Fault::KeyOfAnyPlace);
        let query = if blind { Vec::new() } else { query };
        let parsed = asked.says.clone();
        let body = match self.fault {
            Fault::FingerprintMissing => return String::new(),
            Fault::FingerprintOfNames => parsed.as_object().map(|all| format!("{:?}", all.keys())).unwrap_or_default(),
            Fault::FingerprintOfBytes => String::from_utf8_lossy(&asked.body).into_owned(),
            Fault::FingerprintSortsArrays | Fault::FingerprintThroughFloat => self.loose(parsed).to_string(),
            _ => parsed.to_string(),
        };
        let agent = if self.is(Fault::FingerprintOfAgent) { asked.agent.as_str() } else { "" };
        format!("{} {query:?} {body} {agent}", if self.is(Fault::GlobalKey) { "" } else { &asked.operation })
    }

    fn loose(&self, value: Value) -> Value {
        match value {
            Value::Array(mut all) if self.is(Fault::FingerprintSortsArrays) => {
                all.sort_by_key(Value::to_string);
                Value::Array(all)
            }
            Value::Number(number) if self.is(Fault::FingerprintThroughFloat) => json!(number.as_f64()),
            Value::Object(all) => all.into_iter().map(|(name, value)| (name, self.loose(value))).collect(),
            other => other,
        }
    }

    async fn guarded(&self, asked: Asked) -> Told {
        let Some(name) = self.name(&asked) else {
            if self.is(Fault::MissingKeyText) {
                return Told { status: 400, kind: "text/plain", headers: Vec::new(), body: "no key".to_owned() };
            }
            return self.run(&asked);
        };
        if asked.key.as_ref().is_some_and(|key| key.len() > 255) {
            return problem(400, "key-too-long");
        }
        let fingerprint = self.fingerprint(&asked);
        if let Some(told) = self.look_up(&name, &fingerprint, &asked) {
            return told;
        }
        if self.is(Fault::RaceBeforeClaim) {
            works().await;
        }
        let claimed = {
            let mut book = self.book();
            if self.is(Fault::LastKeyOnly) {
                book.records.retain(|_, record| record.told.is_none());
            }
            let free = !book.records.contains_key(&name) || self.is(Fault::RaceBeforeClaim);
            if free {
                book.records.insert(name.clone(), Record { fingerprint: fingerprint.clone(), told: None, replays: 0 });
            }
            free
        };
        if !claimed {
            return self.look_up(&name, &fingerprint, &asked).unwrap_or_else(|| problem(409, "in-progress"));
        }
        let mut forgets = Forgets(self.clone(), Some(name.clone()).filter(|_| self.is(Fault::CallerGoneForgets)));
        let told = self.run(&asked);
        works().await;
        forgets.1 = None;
        let mut book = self.book();
        if told.status == 400 && !self.is(Fault::ValidationKept) {
            book.records.remove(&name);
        } else if let Some(record) = book.records.get_mut(&name)
            && record.told.is_none()
        {
            record.told = Some(told.clone());
        }
        told
    }

    /// What a key that is known is answered with; nothing where the request shall run.
    fn look_up(&self, name: &str, fingerprint: &str, asked: &Asked) -> Option<Told> {
        let mut book = self.book();
        let record = book.records.get_mut(name)?;
        if record.fingerprint != fingerprint {
            return match self.fault {
                Fault::MismatchConflict => Some(problem(409, "in-progress")),
                Fault::MismatchRuns | Fault::MismatchForgets => {
                    let runs = self.is(Fault::MismatchRuns);
                    book.records.remove(name);
                    (!runs).then(|| problem(422, "mismatch"))
                }
                Fault::MismatchPlain => Some(Told { kind: "text/plain", ..problem(422, "mismatch") }),
                _ => Some(problem(422, "mismatch")),
            };
        }
        let Some(told) = record.told.clone() else {
            return match self.fault {
                Fault::InProgressRuns => {
                    drop(book);
                    Some(self.run(asked))
                }
                Fault::InProgressEmpty => {
                    Some(Told { body: "{}".to_owned(), kind: "application/json", ..problem(200, "") })
                }
                Fault::InProgressFails => Some(problem(500, "in-progress")),
                Fault::InProgressRemembered => {
                    record.told = Some(problem(409, "in-progress"));
                    record.told.clone()
                }
                _ => Some(problem(409, "in-progress")),
            };
        };
        record.replays += 1;
        if self.is(Fault::ThirdTimeRuns) && record.replays > 1 {
            book.records.remove(name);
            return None;
        }
        if self.is(Fault::ReplayHasEffect) {
            book.effects += 1;
        }
        Some(self.replayed(told))
    }

    fn replayed(&self, mut told: Told) -> Told {
        let kept = |name: &str| match name {
            "set-cookie" => self.is(Fault::ReplayLeaksCookie),
            "location" => !self.is(Fault::ReplayLosesLocation),
            _ => true,
        };
        told.headers.retain(|(name, _)| kept(name));
        if !self.is(Fault::ReplayWithoutMarker) {
            told.headers.push(("idempotent-replayed", "true".to_owned()));
        }
        match self.fault {
            Fault::ReplayEncodedTwice => told.body = Value::from(told.body).to_string(),
            Fault::ReplayStatus => told.status = 200,
            _ => {}
        }
        told
    }

    /// The effect itself.
    fn run(&self, asked: &Asked) -> Told {
        let valid = asked.says.get("quantity").is_some_and(Value::is_number) || self.is(Fault::HalfBodyRuns);
        let mut book = self.book();
        if valid || self.is(Fault::ValidationAfterEffect) {
            book.effects += if self.is(Fault::RepeatedOnTheWay) { 2 } else { 1 };
        }
        if !valid {
            return problem(400, "invalid");
        }
        let id = book.effects;
        let headers =
            vec![("location", format!("{}/{id}", asked.operation)), ("set-cookie", format!("session={id}; HttpOnly"))];
        Told { status: 201, kind: "application/json", headers, body: json!({"id": id}).to_string() }
    }
}

/// Work that takes a moment, so that others can come meanwhile.
async fn works() {
    let _ = tokio::time::timeout(Duration::from_millis(15), pending::<()>()).await;
}
