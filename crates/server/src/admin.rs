//! The admin listener: whether the process lives (`/healthz`), whether it can serve (`/readyz`), and numbers
//! (`/metrics`). It changes nothing, and shows no key, digest or body.

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;

use counterfoil_middleware::{Body, Drain};
use counterfoil_store::RecordStore;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use metrics_exporter_prometheus::PrometheusHandle;

use crate::answer::typed;
use crate::config::Secret;

/// Records in the store (gauge).
pub(crate) const RECORDS: &str = "counterfoil_records";
/// Records in doubt as of now (gauge).
pub(crate) const IN_DOUBT: &str = "counterfoil_records_unknown";
/// The age of the oldest record in doubt (gauge, seconds; 0 where there is none).
pub(crate) const OLDEST_IN_DOUBT: &str = "counterfoil_oldest_unknown_age_seconds";
/// Records whose lease is live, whichever process holds it (gauge).
pub(crate) const LIVE_LEASES: &str = "counterfoil_records_running";
/// Whether the store's clock is in doubt, so that nothing expires (gauge, 0 or 1).
pub(crate) const CLOCK_DOUBT: &str = "counterfoil_clock_in_doubt";

const TEXT: &str = "text/plain; charset=utf-8";
const JSON: &str = "application/json";
const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// What the admin listener looks at.
#[derive(Clone)]
pub(crate) struct Admin(Arc<Inner>);

struct Inner {
    store: Arc<dyn RecordStore>,
    drain: Drain,
    stopping: tokio::sync::watch::Receiver<bool>,
    prometheus: PrometheusHandle,
    /// Asked for by everything but health, where one listens beyond loopback.
    token: Option<Secret>,
}

impl Admin {
    pub(crate) fn new(
        store: Arc<dyn RecordStore>,
        drain: Drain,
        stopping: tokio::sync::watch::Receiver<bool>,
        prometheus: PrometheusHandle,
        token: Option<Secret>,
    ) -> Self {
        Self(Arc::new(Inner { store, drain, stopping, prometheus, token }))
    }

    /// Answers one request.
    pub(crate) async fn answer(self, request: Request<Body>) -> Result<Response<Body>, Infallible> {
        Ok(self.0.route(&request.map(drop)).await)
    }
}

impl Inner {
    async fn route(&self, request: &Request<()>) -> Response<Body> {
        if !is_right_host(request.headers().get(header::HOST)) {
            let text = "ask by address or as localhost: a name could lead here from a page elsewhere\n";
            return typed(StatusCode::MISDIRECTED_REQUEST, TEXT, text);
        }
        let path = request.uri().path();
        if !matches!(path, "/healthz" | "/readyz" | "/metrics") {
            return typed(StatusCode::NOT_FOUND, TEXT, "there are /healthz, /readyz and /metrics\n");
        }
        if request.method() != Method::GET && request.method() != Method::HEAD {
            let mut answer = typed(StatusCode::METHOD_NOT_ALLOWED, TEXT, "send GET\n");
            answer.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
            return answer;
        }
        match path {
            "/healthz" => typed(StatusCode::OK, TEXT, "alive\n"),
            "/readyz" => self.ready().await,
            _ if !self.is_known(request) => {
                let text = format!("send Authorization: Bearer with the {}\n", crate::config::ADMIN_TOKEN_VARIABLE);
                let mut answer = typed(StatusCode::UNAUTHORIZED, TEXT, text);
                answer.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
                answer
            }
            _ => {
                self.measure().await;
                typed(StatusCode::OK, PROMETHEUS, self.prometheus.render())
            }
        }
    }

    fn is_known(&self, request: &Request<()>) -> bool {
        let Some(token) = &self.token else { return true };
        let given = request.headers().get(header::AUTHORIZATION).map(HeaderValue::as_bytes);
        given.and_then(|given| given.strip_prefix(b"Bearer ")).is_some_and(|given| token.is(given))
    }

    /// Ready: the store can be used, its clock is believed, and the process is not stopping.
    async fn ready(&self) -> Response<Body> {
        let mut reasons = Vec::new();
        if *self.stopping.borrow() {
            reasons.push(format!("stopping: {} actions still run", self.drain.working()));
        }
        match self.store.health() {
            Err(error) => reasons.push(error.to_string()),
            Ok(()) if is_in_doubt(self.store.now()) => {
                reasons.push(
                    "the clock is in doubt, so nothing expires: see `counterfoil receipts clock accept`".to_owned(),
                );
            }
            Ok(()) => {}
        }
        let status = if reasons.is_empty() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
        let json = serde_json::json!({ "ready": reasons.is_empty(), "reasons": reasons });
        typed(status, JSON, format!("{json}\n"))
    }

    /// Sets the gauges of the store. A store that does not answer leaves them as they were.
    async fn measure(&self) {
        let now = self.store.now();
        metrics::gauge!(CLOCK_DOUBT).set(if is_in_doubt(now) { 1.0 } else { 0.0 });
        match self.store.about().await {
            Ok(about) => {
                let age = about.oldest_unknown.map_or(0.0, |(_, since)| about.now.at.since(since).as_secs_f64());
                metrics::gauge!(RECORDS).set(about.records as f64);
                metrics::gauge!(IN_DOUBT).set(about.unknown as f64);
                metrics::gauge!(OLDEST_IN_DOUBT).set(age);
                metrics::gauge!(LIVE_LEASES).set(about.running as f64);
            }
            Err(error) => tracing::warn!(%error, "the store could not be measured"),
        }
    }
}

/// Leases and retention are judged by two times only while the clock is in doubt.
fn is_in_doubt(now: counterfoil_core::Now) -> bool {
    now.expiry_at != now.at
}

/// Whether a request was addressed by number or as localhost. A page elsewhere can make a browser send requests here
/// only under a name of its own (DNS rebinding).
fn is_right_host(host: Option<&HeaderValue>) -> bool {
    let Some(host) = host.and_then(|host| host.to_str().ok()) else { return false };
    let Ok(authority) = host.parse::<http::uri::Authority>() else { return false };
    let host = authority.host();
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    bare.eq_ignore_ascii_case("localhost") || bare.parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests;
