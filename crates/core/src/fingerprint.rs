//! What was asked, as a digest: the parts of a request, compared under a rule that is stored with the digest.
//!
//! What does not belong here: who asked and under which key (`identity`), what a mismatch leads to (`action`), reading
//! a body from a connection or limiting its size (the middleware), and decoding a `Content-Encoding`.
//!
//! # What is compared
//!
//! | part | compared as |
//! |---|---|
//! | method, operation, path, query | bytes, as given; the caller normalises the path; the query keeps its order |
//! | media type | `type/subtype` in lower case; parameters (`charset`, `boundary`) are left out, absent is a value of its own |
//! | `Content-Encoding` | the codings in order, lower case; `identity` is the same as none |
//! | chosen headers | every line of the named header, in order; absent differs from empty |
//! | body | as the rule says, see [`Rule`] |
//!
//! The media type is a part because the same bytes under another type ask for something else (a merge patch and a
//! JSON patch). Its parameters are not: clients add `charset` at will, and every attempt draws a fresh `boundary`. A
//! rule that needs them names the header: `json;headers=content-type`.
//!
//! # The digest
//!
//! SHA-256 over fields. A *field* is its length in decimal digits, a colon, and its bytes (`3:abc`); a *list* is its
//! count in decimal digits, a semicolon, and its items. In this order: field `counterfoil fingerprint 1`; field rule
//! text; fields method, operation, path, query; list of media type lines (fields; one for the usual single header);
//! list of codings (fields); list of chosen headers in the rule's order (field name, list of line fields); then the
//! body:
//!
//! - `bytes`: one field.
//! - `json`: one field with the canonical text: `n`, `t`, `f`; a number as `d`, a minus if negative, its digits without
//!   leading and trailing zeros, `e`, the exponent of ten, `;` (1.50 is `d15e-1;`, every zero is `d0;`); a string as
//!   `s` and a field; an array as its items between `[` and `]`; an object as (name field, value) pairs between `{`
//!   and `}`, sorted by the bytes of the names. Under `choose`: for each pointer in the rule's order `-` if absent,
//!   else `+` and the value.
//! - `form`: one field with, for each pair, the name's field, and `-` if there was no `=`, else `+` and the value's field.
//! - `multipart`: a list of parts, each: field name, list of the other disposition parameters (two fields each), list
//!   of the other part headers sorted by name (two fields each), field content.
//!
//! Lengths and counts make it injective, and the rule text keeps the kinds of body apart. `fingerprint/vectors.txt`
//! holds examples for other implementations.

use std::fmt;

mod decimal;
mod error;
mod form;
mod frame;
mod json;
mod media;
mod multipart;
mod pointers;
mod rule;

pub use error::BodyError;
pub use rule::{Rule, RuleError};

use frame::Hasher;
use rule::Kind;

/// First field of every digest; another number would mean another arrangement of the fields.
const DOMAIN: &[u8] = b"counterfoil fingerprint 1";

/// What was asked: the parts a fingerprint is made of. Borrowed; nothing is read or awaited.
///
/// There is no `Default` and no optional body on purpose: who could not read the body (too large, cut off, already
/// consumed) has no `Parts` and must refuse the request. An empty slice says that the body *is* empty.
#[derive(Clone, Copy)]
pub struct Parts<'a> {
    /// The method, as received (it is case-sensitive, RFC 9110 section 9.1).
    pub method: &'a str,
    /// The stable name of what is done.
    pub operation: &'a str,
    /// The path after the caller's normalisation.
    pub path: &'a str,
    /// The raw query without its question mark; none and empty are the same.
    pub query: &'a str,
    /// All header lines in order, names in lower case.
    pub headers: &'a [(&'a str, &'a [u8])],
    /// The whole body as received, before any decoding.
    pub body: &'a [u8],
}

impl<'a> Parts<'a> {
    /// The lines of one header, in order.
    fn lines(&self, name: &str) -> impl Iterator<Item = &'a [u8]> {
        self.headers.iter().filter(move |(given, _)| given.eq_ignore_ascii_case(name)).map(|(_, value)| *value)
    }
}

impl fmt::Debug for Parts<'_> {
    /// Shows sizes instead of header values and body: they are the caller's secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parts")
            .field("method", &self.method)
            .field("operation", &self.operation)
            .field("path", &self.path)
            .field("query_bytes", &self.query.len())
            .field("header_lines", &self.headers.len())
            .field("body_bytes", &self.body.len())
            .finish()
    }
}

/// A digest of what was asked, with the rule that made it. Two are equal only if both are.
///
/// The rule is never `auto`: [`Rule::fingerprint`] stores what `auto` became for that request, so that a later request
/// can be compared under the very same rule.
#[derive(Clone, PartialEq, Eq)]
pub struct Fingerprint {
    rule: Rule,
    digest: [u8; 32],
}

impl Fingerprint {
    /// Puts together what a store has kept.
    pub fn from_parts(rule: Rule, digest: [u8; 32]) -> Self {
        Self { rule, digest }
    }

    /// The rule that made the digest, resolved.
    pub fn rule(&self) -> &Rule {
        &self.rule
    }

    /// The SHA-256 digest.
    pub fn digest(&self) -> &[u8; 32] {
        &self.digest
    }
}

impl fmt::Debug for Fingerprint {
    /// Rule and the first eight bytes of the digest.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fingerprint({} ", self.rule)?;
        for byte in &self.digest[..8] {
            write!(f, "{byte:02x}")?;
        }
        f.write_str(")")
    }
}

impl Rule {
    /// The fingerprint of `parts` under this rule.
    ///
    /// Under `auto` this never fails: what does not parse strictly is compared as bytes. To compare a request with a
    /// record, call this on the *record's* rule; an error then means that the two differ.
    ///
    /// # Errors
    ///
    /// Under a named rule other than `bytes`: why the body cannot be read under it (`malformed-body`).
    pub fn fingerprint(&self, parts: &Parts<'_>) -> Result<Fingerprint, BodyError> {
        if self.kind() != Kind::Auto {
            return self.clone().named(parts);
        }
        match self.resolved(auto_kind(parts)).named(parts) {
            Ok(fingerprint) => Ok(fingerprint),
            Err(_) => self.resolved(Kind::Bytes).named(parts),
        }
    }

    /// The fingerprint under a rule that is not `auto`.
    fn named(self, parts: &Parts<'_>) -> Result<Fingerprint, BodyError> {
        let codings = media::codings(parts);
        let mut hasher = Hasher::new();
        hasher.field(DOMAIN);
        hasher.field(self.as_text().as_bytes());
        for text in [parts.method, parts.operation, parts.path, parts.query] {
            hasher.field(text.as_bytes());
        }
        hasher.list(media::types(parts).iter());
        hasher.list(codings.iter());
        hasher.count(self.headers().len());
        for name in self.headers() {
            hasher.field(name.as_bytes());
            hasher.list(parts.lines(name).collect::<Vec<_>>().iter());
        }
        match self.kind() {
            Kind::Auto | Kind::Bytes => hasher.field(parts.body),
            Kind::Json | Kind::Form | Kind::Multipart if !codings.is_empty() => {
                return Err(BodyError::Coded);
            }
            Kind::Json => hasher.field(&json::canonical(parts.body, &self)?),
            Kind::Form => hasher.field(&form::canonical(parts.body, &self)?),
            Kind::Multipart => {
                let boundary = media::boundary(parts).ok_or(BodyError::NoBoundary)?;
                multipart::hash(parts.body, &boundary, &self, &mut hasher)?;
            }
        }
        let digest = hasher.finish();
        Ok(Fingerprint { rule: self, digest })
    }
}

/// What `auto` becomes by media type, before anybody looked at the body.
fn auto_kind(parts: &Parts<'_>) -> Kind {
    match media::essence(parts).as_deref() {
        Some("application/json") => Kind::Json,
        Some("application/x-www-form-urlencoded") => Kind::Form,
        Some("multipart/form-data") => Kind::Multipart,
        Some(other) if other.ends_with("+json") => Kind::Json,
        Some(_) | None => Kind::Bytes,
    }
}

#[cfg(test)]
mod tests;
