//! A small orders service that keeps keys rightly, or with exactly one fault.
//!
//! What does not belong here: what the probe says of it.

use std::collections::{HashMap, HashSet};
use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::http::request::Parts;
use hyper::{Request, Response};
use serde_json::{Value, json};
use tokio::sync::Notify;

mod control;
mod instances;

use instances::Killed;

mod fault;
mod forms;
mod outages;
mod places;

pub(crate) use fault::{FAULTS, Fault};

pub(crate) const CREDENTIAL: &str = "Bearer the-credential-of-the-tests";
pub(crate) const SAME_TENANT: &str = "Bearer another-credential-of-the-same";
/// The name of its principal goes on where that of the first one ends.
pub(crate) const NESTED: &str = "Bearer the-credential-of-the-tests:b";
pub(crate) const SECOND: &str = "Bearer the-credential-of-somebody-else";

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

#[derive(Clone)]
struct Record {
    fingerprint: String,
    /// Nothing while it runs.
    told: Option<Told>,
    replays: u32,
    /// When it was made, on the clock that the control moves.
    at: u64,
}

#[derive(Default)]
struct Book {
    /// Keys that came with GET.
    looked_at: Vec<hyper::header::HeaderValue>,
    effects: u64,
    clock: u64,
    kills: u32,
    under_way: u32,
    /// Whether the request that a kill shall meet is there.
    held: bool,
    /// Requests for an effect, however they were answered.
    requests: u64,
    records: HashMap<String, Record>,
    backup: HashMap<String, Record>,
    outage: Option<outages::Outage>,
    /// Ids of what was changed since it was made.
    changed: HashSet<String>,
    /// Keys that were cancelled.
    cancelled: HashSet<String>,
    /// Keys that were declined once; the next time there would be money.
    declined: HashSet<String>,
}

/// One service on a port of its own; it ends with the runtime of its test.
#[derive(Clone)]
pub(crate) struct Orders {
    fault: Fault,
    book: Arc<Mutex<Book>>,
    address: std::net::SocketAddr,
    second: std::net::SocketAddr,
    /// The number of the effect whose answer never comes, and of the kill that ends it.
    held: Option<(u64, u32)>,
    changed: Arc<Notify>,
}

/// What a request asked for.
struct Asked {
    method: String,
    operation: String,
    query: String,
    agent: String,
    key: Option<String>,
    kind: String,
    body: Bytes,
    connection: u64,
    tenant: String,
    instance: u64,
}

impl Asked {
    fn parsed(&self) -> Value {
        forms::read(&self.kind, &self.body).unwrap_or_else(|| serde_json::from_slice(&self.body).unwrap_or_default())
    }
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
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap()
    }

    fn is(&self, fault: Fault) -> bool {
        self.fault == fault
    }

    async fn answer(&self, request: Request<Incoming>, connection: u64) -> Result<Response<Full<Bytes>>, Killed> {
        let told = if request.uri().path().starts_with("/control/") {
            self.control(request.uri()).await
        } else if let Some(told) = self.beside(request.method(), request.uri()) {
            told
        } else if request.method() == hyper::Method::GET {
            let mut book = self.book();
            if let Some(key) = request.headers().get("idempotency-key").filter(|_| self.is(Fault::GetFills)) {
                book.looked_at.push(key.clone());
            }
            let body = json!({"count": book.effects, "requests": book.requests}).to_string();
            Told { status: 200, kind: "application/json", headers: Vec::new(), body }
        } else {
            self.book().requests += 1;
            self.ask(request, connection).await.ok_or(Killed)?
        };
        let mut response = Response::builder().status(told.status).header("content-type", told.kind);
        for (name, value) in told.headers {
            response = response.header(name, value);
        }
        Ok(response.body(Full::new(Bytes::from(told.body))).unwrap())
    }

    /// The key in the head, or why there may be none.
    fn key(&self, parts: &Parts) -> Result<Option<String>, Told> {
        let header = |name: &str| parts.headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let repeatable = header("repeatability-request-id");
        if repeatable.is_some() && self.is_too_old(header("repeatability-first-sent")) {
            return Err(problem(412, "too-old"));
        }
        let lines = |name: &str| parts.headers.get_all(name).iter().cloned();
        let keys: Vec<_> = lines("idempotency-key").chain(lines("repeatability-request-id")).collect();
        if keys.len() > 1 && !self.is(Fault::TwoKeysRun) {
            return Err(problem(400, "two-keys"));
        }
        if keys.iter().any(|key| self.book().looked_at.contains(key)) {
            return Err(problem(200, "looked-at"));
        }
        let key = header("idempotency-key").or(repeatable).map(|key| key.trim_matches('"').to_owned());
        let query = parts.uri.query().unwrap_or_default();
        let in_query = || query.split('&').find_map(|pair| pair.strip_prefix("idempotency_key=")).map(str::to_owned);
        Ok(if self.is(Fault::KeyInQuery) { key.or_else(in_query) } else { key })
    }

    /// The body; nothing where it was cut.
    async fn read(&self, incoming: &mut Incoming) -> Option<Vec<u8>> {
        let mut body = Vec::new();
        while let Some(frame) = incoming.frame().await {
            match frame {
                Ok(frame) => body.extend_from_slice(frame.data_ref().map_or(&[][..], |data| data)),
                Err(_) if self.is(Fault::HalfBodyRuns) => break,
                Err(_) => return None,
            }
        }
        Some(body)
    }

    async fn ask(&self, request: Request<Incoming>, connection: u64) -> Option<Told> {
        let (parts, mut incoming) = request.into_parts();
        let header = |name: &str| parts.headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let credential = header("authorization").unwrap_or_default();
        let allowed = [CREDENTIAL, SAME_TENANT, SECOND, NESTED].contains(&credential.as_str());
        let account = header("x-account").filter(|_| !self.is(Fault::AccountIgnored)).unwrap_or_default();
        let tenant = match credential.as_str() {
            SECOND => "b",
            NESTED => "a:b",
            _ => "a",
        };
        let _under_way = control::UnderWay::begin(self);
        let mut key = match self.key(&parts) {
            Ok(key) => key,
            Err(told) => return Some(told),
        };
        let query = parts.uri.query().unwrap_or_default().to_owned();
        let Some(body) = self.read(&mut incoming).await else { return Some(problem(400, "cut")) };
        let agent = header("user-agent").unwrap_or_default();
        let versionless = parts.uri.path().strip_prefix("/v2").filter(|_| !self.is(Fault::VersionsApart));
        let operation = versionless.unwrap_or(parts.uri.path()).to_owned();
        let kind = header("content-type").unwrap_or_default();
        if !self.is(Fault::KeyInFormIgnored) {
            key = key.or_else(|| forms::read(&kind, &body)?.get("token")?.as_str().map(str::to_owned));
        }
        if self.is(Fault::MultipartUnguarded) && kind.starts_with("multipart/") {
            key = None;
        }
        let asked = Asked {
            method: parts.method.to_string(),
            operation,
            query,
            agent,
            key,
            kind,
            body: Bytes::from(body),
            connection,
            tenant: format!("{tenant}{account}"),
            instance: connection % 2,
        };
        let name = self.name(&asked);
        if !allowed {
            let book = self.book();
            let stored = name.as_ref().and_then(|name| book.records.get(name)).and_then(|record| record.told.clone());
            if let (true, Some(told)) = (self.is(Fault::StoredBeforeCredential), stored) {
                return Some(told);
            }
            let refused = problem(401, "unauthenticated");
            if let (true, Some(name)) = (self.is(Fault::UnauthenticatedRemembered), name) {
                drop(book);
                self.remember(&name, &asked, &refused);
            }
            return Some(refused);
        }
        if let Some(told) = self.refused(name.as_ref(), &asked) {
            return Some(told);
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
        let tenant = if self.is(Fault::PrincipalIgnored) { "" } else { &asked.tenant };
        let method = if self.is(Fault::MethodIgnored) { "" } else { &asked.method };
        let instance = if self.is(Fault::InstancesApart) { asked.instance } else { 0 };
        let own = format!("{tenant} {instance} {method} {} {key}", asked.operation);
        Some(match self.fault {
            Fault::GlobalKey => key,
            Fault::JoinedParts => format!("{method} {} {tenant}:{key}", asked.operation),
            _ => own,
        })
    }

    fn fingerprint(&self, asked: &Asked) -> String {
        let mut query: Vec<&str> = asked.query.split('&').collect();
        query.sort_unstable();
        let query = if self.is(Fault::FingerprintWithoutQuery) { Vec::new() } else { query };
        let parsed = asked.parsed();
        let body = match self.fault {
            Fault::FingerprintMissing => return String::new(),
            Fault::FingerprintOfNames => parsed.as_object().map(|all| format!("{:?}", all.keys())).unwrap_or_default(),
            Fault::FingerprintOfBytes | Fault::FormInOrder | Fault::MultipartWithBoundary => {
                String::from_utf8_lossy(&asked.body).into_owned()
            }
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

    async fn guarded(&self, asked: Asked) -> Option<Told> {
        let Some(name) = self.name(&asked) else {
            if self.is(Fault::MissingKeyText) {
                let body = "no key".to_owned();
                return Some(Told { status: 400, kind: "text/plain", headers: Vec::new(), body });
            }
            return Some(self.run(&asked));
        };
        if asked.key.as_ref().is_some_and(|key| key.len() > 255) {
            return Some(problem(400, "key-too-long"));
        }
        if asked.key.as_ref().is_some_and(|key| self.book().cancelled.contains(key)) {
            return Some(problem(409, "cancelled"));
        }
        let fingerprint = self.fingerprint(&asked);
        if let Some(told) = self.look_up(&name, &fingerprint, &asked) {
            return Some(told);
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
                let at = book.clock;
                let record = Record { fingerprint: fingerprint.clone(), told: None, replays: 0, at };
                book.records.insert(name.clone(), record);
            }
            free
        };
        if !claimed {
            return self.look_up(&name, &fingerprint, &asked).or_else(|| Some(problem(409, "in-progress")));
        }
        let mut forgets = Forgets(self.clone(), Some(name.clone()).filter(|_| self.is(Fault::CallerGoneForgets)));
        self.while_held().await;
        let told = self.failed_after(self.run(&asked));
        if self.is_held() {
            self.until_killed(&name, told).await;
            return None;
        }
        works().await;
        forgets.1 = None;
        let mut book = self.book();
        let forgotten = match told.status {
            400 => !self.is(Fault::ValidationKept),
            402 => self.is(Fault::DeclinedForgotten),
            500 => self.is(Fault::FailedForgotten),
            _ => false,
        };
        if forgotten {
            book.records.remove(&name);
        } else if let Some(record) = book.records.get_mut(&name)
            && record.told.is_none()
        {
            record.told = Some(told.clone());
        }
        Some(told)
    }

    /// What a key that is known is answered with; nothing where the request shall run.
    fn look_up(&self, name: &str, fingerprint: &str, asked: &Asked) -> Option<Told> {
        let mut book = self.book();
        if let Some(told) = self.expire(&mut book, name) {
            return Some(told);
        }
        let now = book.clock;
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
        if self.is(Fault::WindowSlides) {
            record.at = now;
        }
        if self.is(Fault::ThirdTimeRuns) && record.replays > 1 {
            book.records.remove(name);
            return None;
        }
        if self.is(Fault::ReplayHasEffect) {
            book.effects += 1;
        }
        let shown = self.shown(&told, &book.changed);
        Some(self.replayed(Told { body: shown, ..told }))
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
        let body = asked.parsed();
        let valid = body.get("quantity").is_some_and(Value::is_number) || self.is(Fault::HalfBodyRuns);
        let mut book = self.book();
        let gold = body.get("product").is_some_and(|product| product == "gold");
        if gold && book.declined.insert(asked.key.clone().unwrap_or_default()) {
            return problem(402, "declined");
        }
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
