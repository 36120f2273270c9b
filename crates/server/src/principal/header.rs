//! The principal named by a header, believed only from named peers. Credentials in headers belong to `credential`.

use std::future::ready;

use counterfoil_core::Scope;
use counterfoil_middleware::PrincipalFault;
use http::HeaderName;
use http::request::Parts;
use serde_json::{Map, Value as Json};

use super::{Caller, CallerAnswer, Source};
use crate::config::Peer;
use crate::listener::is_from;

/// Reads the caller's name from a header that only named peers may set.
#[derive(Clone, Debug)]
pub(super) struct HeaderPrincipal {
    pub(super) name: HeaderName,
    pub(super) peers: Vec<Peer>,
}

impl HeaderPrincipal {
    fn name(&self, parts: &Parts) -> Result<String, PrincipalFault> {
        let unauthenticated = |detail: String| PrincipalFault::Unauthenticated { detail, challenge: None };
        if !is_from(&self.peers, &parts.extensions) {
            return Err(unauthenticated("the connection comes from no peer that may name the caller".to_owned()));
        }
        let mut lines = parts.headers.get_all(&self.name).iter();
        let line = lines.next().ok_or_else(|| unauthenticated(format!("the header {} is missing", self.name)))?;
        // Two lines could be one of the peer and one of its caller: nobody can tell which.
        if lines.next().is_some() {
            return Err(unauthenticated(format!("the header {} came more than once", self.name)));
        }
        let text = line.to_str().map_err(|_| unauthenticated(format!("the header {} is not ASCII", self.name)))?;
        let name = text.trim();
        let fits = Scope::principal(name).map(|_| name.to_owned());
        fits.map_err(|error| unauthenticated(format!("the header {}: {error}", self.name)))
    }
}

impl Source for HeaderPrincipal {
    fn caller<'a>(&'a self, parts: &'a Parts) -> CallerAnswer<'a> {
        let named = self.name(parts).map(|name| Caller::named(name, Json::Object(Map::new())));
        Box::pin(ready(named))
    }
}

#[cfg(test)]
mod tests;
