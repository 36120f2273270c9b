//! The principal named by a header, believed only from named peers. One tenant for all is the middleware's own.

use std::future::ready;

use counterfoil_core::Scope;
use counterfoil_middleware::{Principal, PrincipalAnswer, PrincipalFault};
use http::HeaderName;
use http::request::Parts;

use crate::config::Peer;

/// Reads the caller's name from a header that only named peers may set.
#[derive(Clone, Debug)]
pub(crate) struct HeaderPrincipal {
    pub(crate) name: HeaderName,
    pub(crate) peers: Vec<Peer>,
}

impl HeaderPrincipal {
    fn scope(&self, parts: &Parts) -> Result<Scope, PrincipalFault> {
        let unauthenticated = |detail: String| PrincipalFault::Unauthenticated { detail, challenge: None };
        let peer = parts.extensions.get::<counterfoil_middleware::Peer>();
        if !peer.is_some_and(|peer| self.peers.iter().any(|known| known.contains(peer.0.ip()))) {
            return Err(unauthenticated("the connection comes from no peer that may name the caller".to_owned()));
        }
        let mut lines = parts.headers.get_all(&self.name).iter();
        let line = lines.next().ok_or_else(|| unauthenticated(format!("the header {} is missing", self.name)))?;
        // Two lines could be one of the peer and one of its caller: nobody can tell which.
        if lines.next().is_some() {
            return Err(unauthenticated(format!("the header {} came more than once", self.name)));
        }
        let text = line.to_str().map_err(|_| unauthenticated(format!("the header {} is not ASCII", self.name)))?;
        Scope::principal(text.trim()).map_err(|error| unauthenticated(format!("the header {}: {error}", self.name)))
    }
}

impl Principal for HeaderPrincipal {
    fn principal<'a>(&'a self, parts: &'a Parts) -> PrincipalAnswer<'a> {
        Box::pin(ready(self.scope(parts)))
    }

    fn scope_parts(&self) -> Option<Vec<String>> {
        Some(vec!["principal".to_owned()])
    }
}

#[cfg(test)]
mod tests;
