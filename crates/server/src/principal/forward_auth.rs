//! Callers known to an application, which is asked for every call: whoever it no longer knows is shown no receipt.
//! How the question travels belongs to `outbound`.

use std::sync::Arc;

use counterfoil_core::Scope;
use counterfoil_middleware::{Peer, PrincipalFault};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use serde_json::{Map, Value as Json};
use tokio::sync::Semaphore;

use super::outbound::{Answered, Limits, Outbound};
use super::{Caller, CallerAnswer, Source};
use crate::config::ForwardAuth;

/// The most questions at once; further callers wait within their time limit.
const ASKED_AT_ONCE_MAX: usize = 512;

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const FORWARDED_METHOD: HeaderName = HeaderName::from_static("x-forwarded-method");
const FORWARDED_URI: HeaderName = HeaderName::from_static("x-forwarded-uri");

/// The application that is asked.
pub(super) struct AskedApplication {
    terms: ForwardAuth,
    outbound: Outbound,
    places: Arc<Semaphore>,
}

impl AskedApplication {
    pub(super) fn new(terms: &ForwardAuth, outbound: Outbound) -> Self {
        Self { terms: terms.clone(), outbound, places: Arc::new(Semaphore::new(ASKED_AT_ONCE_MAX)) }
    }

    async fn ask(&self, parts: &Parts) -> Result<Caller, PrincipalFault> {
        let time = self.terms.timeout.value;
        let answered = tokio::time::timeout(time, async {
            let _place = self.places.acquire().await.map_err(|error| error.to_string())?;
            self.outbound.get(&self.terms.url, self.question(parts), Limits { time, body_bytes: None }).await
        });
        let answered = answered.await.unwrap_or_else(|_| Err(format!("{}: no answer in time", self.terms.url)));
        match answered {
            Ok(answered) => self.judge(&answered),
            Err(why) => {
                tracing::warn!(%why, "forward-auth: the application was not heard");
                Err(unavailable("the application that knows the callers does not answer".to_owned()))
            }
        }
    }

    /// The headers of the question: those that are forwarded, and what is asked for by whom. What the caller wrote under
    /// the names of the latter is not believed.
    fn question(&self, parts: &Parts) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for name in &self.terms.send.value {
            for line in parts.headers.get_all(name) {
                headers.append(name, line.clone());
            }
        }
        let peer = parts.extensions.get::<Peer>().map(|peer| peer.0.ip().to_canonical().to_string());
        let host = parts.headers.get(header::HOST).and_then(|host| host.to_str().ok());
        let host = host.or_else(|| parts.uri.authority().map(|authority| authority.as_str()));
        let uri = parts.uri.path_and_query().map_or("/", |path| path.as_str());
        for (name, value) in [
            (FORWARDED_FOR, peer.as_deref()),
            (FORWARDED_HOST, host),
            (FORWARDED_METHOD, Some(parts.method.as_str())),
            (FORWARDED_URI, Some(uri)),
        ] {
            if let Some(value) = value.and_then(|value| HeaderValue::try_from(value).ok()) {
                headers.insert(name, value);
            }
        }
        headers
    }

    fn judge(&self, answered: &Answered) -> Result<Caller, PrincipalFault> {
        match answered.status {
            status if status.is_success() => self.named(&answered.headers),
            StatusCode::FORBIDDEN => {
                Err(PrincipalFault::Forbidden { detail: "the application does not allow this".to_owned() })
            }
            // It says nothing about the caller, who may come again.
            status
                if status.is_server_error()
                    || matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT) =>
            {
                tracing::warn!(status = status.as_u16(), "forward-auth: the application could not tell");
                Err(unavailable("the application that knows the callers cannot tell now".to_owned()))
            }
            // A redirect to a form, and whatever else is no yes.
            _ => Err(PrincipalFault::Unauthenticated {
                detail: "the application does not know the caller".to_owned(),
                challenge: answered.headers.get(header::WWW_AUTHENTICATE).cloned(),
            }),
        }
    }

    fn named(&self, headers: &HeaderMap) -> Result<Caller, PrincipalFault> {
        let nobody = |why: &str| {
            tracing::warn!(header = %self.terms.answer_header, why, "forward-auth: the application named nobody");
            let detail = "the application named nobody".to_owned();
            PrincipalFault::Unauthenticated { detail, challenge: None }
        };
        let mut lines = headers.get_all(&self.terms.answer_header).iter();
        let line = lines.next().ok_or_else(|| nobody("the header is missing"))?;
        if lines.next().is_some() {
            return Err(nobody("the header came more than once"));
        }
        let name = line.to_str().map_err(|_| nobody("the header is not ASCII"))?.trim();
        Scope::principal(name).map_err(|error| nobody(&error.to_string()))?;
        let claims = self
            .terms
            .answer_claims
            .value
            .iter()
            .filter_map(|name| Some((name.as_str().to_owned(), claim(headers, name)?)));
        Ok(Caller::named(name.to_owned(), Json::Object(claims.collect::<Map<_, _>>())))
    }
}

impl Source for AskedApplication {
    fn caller<'a>(&'a self, parts: &'a Parts) -> CallerAnswer<'a> {
        Box::pin(self.ask(parts))
    }
}

/// The header as a claim: a text, or a list where it came more than once.
fn claim(headers: &HeaderMap, name: &HeaderName) -> Option<Json> {
    let lines = headers.get_all(name).iter().map(|line| line.to_str().map(|text| Json::from(text.trim())));
    let mut lines = lines.collect::<Result<Vec<_>, _>>().ok()?;
    if lines.len() > 1 { Some(Json::Array(lines)) } else { lines.pop() }
}

const fn unavailable(detail: String) -> PrincipalFault {
    PrincipalFault::Unavailable { detail }
}

#[cfg(test)]
mod tests;
