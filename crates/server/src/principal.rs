//! Who is calling, by the source that the configuration declares: the source knows the caller, and here the required
//! claims are asked for and the scope is made. Nothing of this calls a store, and no scope holds a credential.
//!
//! What does not belong here: when the question is asked and what a fault is answered with (the middleware), and how
//! the settings are spelled (`config`).

mod api_keys;
mod credential;
mod forward_auth;
mod header;
mod jwks;
mod jwt;
mod outbound;
mod signature;

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use counterfoil_core::{Operation, Scope};
use counterfoil_middleware::{Principal, PrincipalAnswer, PrincipalFault, SingleTenant};
use counterfoil_store::clock::SystemClock;
use http::request::Parts;
use serde_json::{Map, Value as Json};

use self::api_keys::KeyedCallers;
use self::forward_auth::AskedApplication;
use self::header::HeaderPrincipal;
use self::jwks::Jwks;
use self::jwt::TokenCallers;
use self::outbound::Outbound;
use crate::config::{Config, JwksPlace, PrincipalSource, Requirement, ScopePart};
use crate::error::ServerError;

/// The part of a scope that names a caller,
const PRINCIPAL: &str = "principal";
/// and the one of a service without tenants.
const TENANT: &str = "tenant";

/// A caller that a source knows.
#[derive(Clone, PartialEq, Debug)]
struct Caller {
    /// What names it: `principal`, or `tenant` where there is only one.
    part: &'static str,
    name: String,
    /// What else is verified: an object.
    claims: Json,
}

impl Caller {
    const fn named(name: String, claims: Json) -> Self {
        Self { part: PRINCIPAL, name, claims }
    }

    fn single_tenant() -> Self {
        Self { part: TENANT, name: "single".to_owned(), claims: Json::Object(Map::new()) }
    }
}

type CallerAnswer<'a> = Pin<Box<dyn Future<Output = Result<Caller, PrincipalFault>> + Send + 'a>>;

/// Knows callers by what their requests bring.
trait Source: Send + Sync + 'static {
    fn caller<'a>(&'a self, parts: &'a Parts) -> CallerAnswer<'a>;

    /// The name of the part of the scope that names a caller.
    fn part(&self) -> &'static str {
        PRINCIPAL
    }
}

/// One tenant, where the scope has further parts.
struct OneTenant;

impl Source for OneTenant {
    fn caller<'a>(&'a self, _parts: &'a Parts) -> CallerAnswer<'a> {
        Box::pin(std::future::ready(Ok(Caller::single_tenant())))
    }

    fn part(&self) -> &'static str {
        TENANT
    }
}

/// The callers of a configuration.
pub(crate) struct Callers {
    pub(crate) principal: Arc<dyn Principal>,
    pub(crate) reread: Reread,
}

/// What of it can be read anew.
#[derive(Clone, Default)]
pub(crate) struct Reread {
    keyed: Option<Arc<KeyedCallers>>,
    jwks: Option<Arc<Jwks>>,
}

impl Reread {
    /// Takes the API keys of `config`; `None` where callers are not known by them.
    pub(crate) fn keys(&self, config: &Config) -> Option<Result<(), String>> {
        let keyed = self.keyed.as_ref()?;
        let PrincipalSource::ApiKeys(keys) = &config.principal.value else {
            return Some(Err(
                "principal.from is no longer \"api-keys\", which takes force at the next start".to_owned()
            ));
        };
        keyed.take(keys);
        Some(Ok(()))
    }

    /// Fetches the issuer's keys again; `None` where callers are not known by tokens.
    pub(crate) async fn jwks(&self) -> Option<Result<(), String>> {
        Some(self.jwks.as_ref()?.reread().await)
    }
}

impl Callers {
    /// Makes what `config` declares; the keys of a URL are not fetched yet.
    pub(crate) fn new(config: &Config) -> Result<Self, ServerError> {
        let mut reread = Reread::default();
        let source: Box<dyn Source> = match &config.principal.value {
            PrincipalSource::None if config.scope.is_empty() => {
                return Ok(Self { principal: Arc::new(SingleTenant), reread });
            }
            PrincipalSource::None => Box::new(OneTenant),
            PrincipalSource::Header { name, peers } => {
                Box::new(HeaderPrincipal { name: name.clone(), peers: peers.clone() })
            }
            PrincipalSource::ApiKeys(keys) => Box::new(reread.keyed.insert(Arc::new(KeyedCallers::new(keys))).clone()),
            PrincipalSource::Jwt(terms) => {
                let keys = reread.jwks.insert(Jwks::new(terms)?).clone();
                Box::new(TokenCallers::new(terms, keys, Arc::new(SystemClock::new())))
            }
            PrincipalSource::ForwardAuth(asked) => {
                Box::new(AskedApplication::new(asked, Outbound::new(asked.url.is_secure())?))
            }
        };
        let of = |operation: &crate::config::Operation| {
            Ok((Operation::new(operation.name.as_str())?, operation.require.clone()))
        };
        let declared = Declared {
            source,
            require: config.require.clone(),
            of_operations: config.operations.iter().map(of).collect::<Result<_, ServerError>>()?,
            scope: config.scope.clone(),
        };
        Ok(Self { principal: Arc::new(declared), reread })
    }

    /// Fetches the keys of a URL in the background, so that the first caller need not wait and the log tells early what
    /// is wrong.
    pub(crate) fn warm(&self) {
        if let Some(jwks) = self.reread.jwks.clone() {
            tokio::spawn(async move { jwks.refetch().await });
        }
    }
}

/// Says at the start who is believed, and whether that authorises too.
pub(crate) fn tell(config: &Config) {
    match &config.principal.value {
        PrincipalSource::None => {
            tracing::warn!("principal none: every caller is the same tenant, and may be shown any receipt");
        }
        PrincipalSource::Header { name, peers } => {
            tracing::info!(header = %name, peers = peers.len(), "principal by header from named peers; it names and does not authorise");
        }
        PrincipalSource::ApiKeys(keys) => {
            tracing::info!(header = %keys.header.value, keys = keys.keys.len(), "principal by api key; it names and does not authorise");
        }
        PrincipalSource::Jwt(jwt) => {
            tracing::info!(jwks = %jwt.jwks, issuer = %jwt.issuer, claim = %jwt.claim.value, "principal by signed token; it names and does not authorise");
            if let JwksPlace::Url(url) = &jwt.jwks
                && !url.is_secure()
            {
                tracing::warn!(jwks = %url, "the keys come over plain http: whoever can answer there can name any caller");
            }
        }
        PrincipalSource::ForwardAuth(asked) => {
            tracing::info!(url = %asked.url, "principal by forward-auth; the application is asked for every guarded call, replays included");
        }
    }
}

/// A source, and what is asked of the claims that it knows.
struct Declared {
    source: Box<dyn Source>,
    require: Vec<Requirement>,
    of_operations: BTreeMap<Operation, Vec<Requirement>>,
    scope: Vec<(String, ScopePart)>,
}

impl Declared {
    async fn scope(&self, parts: &Parts) -> Result<Scope, PrincipalFault> {
        let caller = self.source.caller(parts).await?;
        let of_operation = parts.extensions.get::<Operation>().and_then(|operation| self.of_operations.get(operation));
        let mut required = self.require.iter().chain(of_operation.into_iter().flatten());
        if let Some(missing) = required.find(|required| !required.is_met(&caller.claims)) {
            return Err(forbidden(format!("the caller lacks what is required of the claim {}", missing.claim)));
        }
        let mut named = vec![(caller.part.to_owned(), caller.name)];
        for (name, part) in &self.scope {
            let value = match part {
                ScopePart::Constant(text) => Some(text.clone()),
                ScopePart::Claim(claim) => claim.find(&caller.claims).and_then(plain),
            };
            let value =
                value.ok_or_else(|| forbidden(format!("the caller has no {name}, which is part of its scope")))?;
            named.push((name.clone(), value));
        }
        Scope::from_parts(named).map_err(|error| forbidden(error.to_string()))
    }
}

impl Principal for Declared {
    fn principal<'a>(&'a self, parts: &'a Parts) -> PrincipalAnswer<'a> {
        Box::pin(self.scope(parts))
    }

    fn scope_parts(&self) -> Option<Vec<String>> {
        let further = self.scope.iter().map(|(name, _)| name.clone());
        let mut names: Vec<String> = std::iter::once(self.source.part().to_owned()).chain(further).collect();
        names.sort();
        Some(names)
    }
}

const fn forbidden(detail: String) -> PrincipalFault {
    PrincipalFault::Forbidden { detail }
}

/// A claim as text: texts, whole numbers and flags have one spelling, and nothing else names anybody.
fn plain(claim: &Json) -> Option<String> {
    match claim {
        Json::String(text) => Some(text.clone()),
        Json::Number(number) if number.is_i64() || number.is_u64() => Some(number.to_string()),
        Json::Bool(flag) => Some(flag.to_string()),
        Json::Null | Json::Number(_) | Json::Array(_) | Json::Object(_) => None,
    }
}

#[cfg(test)]
mod tests;
