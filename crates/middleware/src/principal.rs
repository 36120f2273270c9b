//! Who is calling: the trait that every way of knowing implements, and the one that knows nobody apart.
//! Ways that need configuration (headers from peers, tokens) belong to the server.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;

use counterfoil_core::Scope;
use http::HeaderValue;
use http::request::Parts;

/// The address of the other end of the connection, as a request extension. Whoever accepts connections puts it there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Peer(pub SocketAddr);

/// What a [`Principal`] answers.
pub type PrincipalAnswer<'a> = Pin<Box<dyn Future<Output = Result<Scope, PrincipalFault>> + Send + 'a>>;

/// Knows who is calling. It is asked first, for every guarded request, replays included.
///
/// The scope must name the verified caller and never hold the token's own bytes, or rotating a token would repeat an
/// effect.
pub trait Principal: Send + Sync + 'static {
    /// The caller's scope. Which operation is asked for, an [`Operation`](counterfoil_core::Operation), is among the
    /// extensions of `parts`.
    ///
    /// # Errors
    /// [`PrincipalFault`] where the caller is not known or not allowed; nothing is looked up then.
    fn principal<'a>(&'a self, parts: &'a Parts) -> PrincipalAnswer<'a>;

    /// The names of the parts of every scope that it gives, never their values, for the published contract; `None` where
    /// they are not the same for all callers or are nobody's business.
    fn scope_parts(&self) -> Option<Vec<String>> {
        None
    }
}

/// Why a caller has no scope. The texts go to the caller.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PrincipalFault {
    /// The caller is not known: 401.
    #[error("{detail}")]
    Unauthenticated {
        /// What to send, in lower case.
        detail: String,
        /// The value of `WWW-Authenticate`, where there is a scheme to offer (RFC 9110 section 11.6.1).
        challenge: Option<HeaderValue>,
    },
    /// The caller is known and may not do this: 403.
    #[error("{detail}")]
    Forbidden {
        /// Why not, in lower case.
        detail: String,
    },
    /// Who the caller is cannot be found out now: 503.
    #[error("{detail}")]
    Unavailable {
        /// What is missing, in lower case.
        detail: String,
    },
}

/// One tenant, said aloud: all callers share one scope.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SingleTenant;

impl Principal for SingleTenant {
    fn principal<'a>(&'a self, _parts: &'a Parts) -> PrincipalAnswer<'a> {
        Box::pin(std::future::ready(Ok(Scope::single_tenant())))
    }

    fn scope_parts(&self) -> Option<Vec<String>> {
        Some(vec!["tenant".to_owned()])
    }
}
