//! What the handler of an operation with `effect = "keyed-upstream"` gets: the child keys that its requests to an upstream
//! carry, and whether one may be sent now (PROTOCOL section 6, row 3).
//!
//! The keys themselves and the rule belong to core, the lease to the gate; sending belongs to the handler or the proxy.

use std::fmt;

use counterfoil_core::action::Sending;
use counterfoil_core::wire::IDEMPOTENCY_KEY;
use counterfoil_core::{Key, Why};
use counterfoil_store::gate::Wire;
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::fault::Fault;
use crate::reject::Rejection;
use crate::settings::Terms;

/// The step of an action that is one request forwarded as it came.
const FORWARDED: &str = "upstream";

/// How an upstream wants its key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChildKeyHeader {
    /// The header that carries it.
    pub name: HeaderName,
    /// Whether it is an RFC 9651 string in quotes, or the bare text.
    pub quoted: bool,
}

impl Default for ChildKeyHeader {
    /// `Idempotency-Key`, bare, as most providers take it.
    fn default() -> Self {
        Self { name: HeaderName::from_static(IDEMPOTENCY_KEY), quoted: false }
    }
}

/// A request extension of operations whose effect an upstream has once for each key: the keys that requests to it carry, the
/// same in every run of the action. Cheap to clone.
#[derive(Clone)]
pub struct ChildKeys {
    wire: Wire,
    header: ChildKeyHeader,
}

impl fmt::Debug for ChildKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ChildKeys").field(&self.wire.digest()).finish()
    }
}

impl ChildKeys {
    pub(crate) fn new(wire: Wire, terms: &Terms) -> Self {
        Self { wire, header: terms.child_key.clone() }
    }

    /// The key of one step of the action, by a name that never changes. Every request with an effect is a step of its own.
    #[must_use]
    pub fn key(&self, step: &str) -> Key {
        self.wire.child_key(step)
    }

    /// Puts the key of the whole request, forwarded as one step, in the header that the operation names.
    pub fn carry(&self, headers: &mut HeaderMap) {
        let key = self.key(FORWARDED);
        let text = if self.header.quoted { format!("\"{}\"", key.as_str()) } else { key.as_str().to_owned() };
        // A UUID is a header value.
        if let Ok(mut value) = HeaderValue::try_from(text) {
            value.set_sensitive(true);
            headers.insert(self.header.name.clone(), value);
        }
    }

    /// Whether a request may be sent now: ask immediately before each send.
    ///
    /// # Errors
    /// [`Fault::NotSent`] where it may not, which the handler answers with.
    pub fn may_send(&self) -> Result<(), Fault> {
        match self.wire.may_send() {
            Sending::Go => Ok(()),
            Sending::NotOurs => Err(Fault::NotSent("the lease of this run is over".to_owned())),
            Sending::WindowClosed { .. } => {
                Err(Fault::NotSent("the upstream may have forgotten the child key before it is done".to_owned()))
            }
        }
    }

    /// Why nothing is sent at all, as it is told to the caller; `None`: it may be.
    pub(crate) fn barred(&self) -> Option<Rejection> {
        match self.wire.may_send() {
            Sending::Go => None,
            Sending::NotOurs | Sending::WindowClosed { may_have_arrived: false } => Some(Rejection::NotSent),
            Sending::WindowClosed { may_have_arrived: true } => {
                Some(Rejection::Unknown { since: self.wire.now(), why: Why::WindowClosed })
            }
        }
    }
}
