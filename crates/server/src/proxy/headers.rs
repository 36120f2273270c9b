//! Headers on their way through: what ends at each hop, and what tells the upstream who asked.

use std::net::IpAddr;

use counterfoil_core::wire::{IDEMPOTENCY_PERMIT, list_items};
use http::{HeaderMap, HeaderName, HeaderValue, header};

/// Ends at each hop whether `Connection` names it or not (RFC 9110 section 7.6.1).
const HOP_BY_HOP: [&str; 8] = [
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "transfer-encoding",
    "upgrade",
];

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");

/// Who asked, how, and for which host.
pub(super) struct Origin {
    /// The other end of the connection; none for a Unix socket.
    pub(super) peer: Option<IpAddr>,
    /// Over TLS.
    pub(super) secure: bool,
    pub(super) host: Option<HeaderValue>,
    /// What this peer says about who asked is believed.
    pub(super) trusted: bool,
}

/// Removes what ends at this hop, what `Connection` names included.
pub(super) fn remove_hop_by_hop(headers: &mut HeaderMap) {
    for name in named_by_connection(headers) {
        headers.remove(name);
    }
    for name in HOP_BY_HOP {
        headers.remove(name);
    }
    // Settings for an upgrade to HTTP/2 that is not made.
    headers.remove("http2-settings");
}

/// What `Connection` names, except what no message can do without.
fn named_by_connection(headers: &HeaderMap) -> Vec<HeaderName> {
    let names = tokens(headers, &header::CONNECTION).filter_map(|token| HeaderName::from_bytes(token).ok());
    names.filter(|name| *name != header::HOST && *name != header::CONTENT_LENGTH).collect()
}

pub(super) fn tokens<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a [u8]> {
    list_items(headers.get_all(name).iter().map(HeaderValue::as_bytes))
}

/// Whether the sender takes trailers, the one thing in `TE` that outlives a hop (RFC 9110 section 10.1.4).
pub(super) fn takes_trailers(headers: &HeaderMap) -> bool {
    tokens(headers, &header::TE).any(|token| token.eq_ignore_ascii_case(b"trailers"))
}

/// Removes every permit, and what an application could take for one: many read `_` in a name as `-`.
pub(super) fn remove_permit(headers: &mut HeaderMap) {
    let alike = |name: &&HeaderName| name.as_str().replace('_', "-") == IDEMPOTENCY_PERMIT;
    while let Some(name) = headers.keys().find(alike).cloned() {
        headers.remove(name);
    }
}

/// HTTP/2 may part cookies into lines, which nothing else understands (RFC 9113 section 8.2.3).
pub(super) fn join_cookies(headers: &mut HeaderMap) {
    if headers.get_all(header::COOKIE).iter().count() < 2 {
        return;
    }
    let lines: Vec<&[u8]> = headers.get_all(header::COOKIE).iter().map(HeaderValue::as_bytes).collect();
    if let Ok(joined) = HeaderValue::from_bytes(&lines.join(&b"; "[..])) {
        headers.insert(header::COOKIE, joined);
    }
}

/// Says who asked. What came in is kept only from a trusted peer, and ours added behind it.
pub(super) fn tell_origin(headers: &mut HeaderMap, origin: &Origin) {
    if !origin.trusted {
        for name in [FORWARDED_FOR, FORWARDED_PROTO, FORWARDED_HOST, header::FORWARDED] {
            headers.remove(name);
        }
    }
    if let Some(peer) = origin.peer {
        add(headers, FORWARDED_FOR, peer.to_string().as_bytes());
    }
    let proto = if origin.secure { "https" } else { "http" };
    headers.entry(FORWARDED_PROTO).or_insert(HeaderValue::from_static(proto));
    if let Some(host) = &origin.host {
        headers.entry(FORWARDED_HOST).or_insert_with(|| host.clone());
    }
    add(headers, header::FORWARDED, &element(origin, proto));
}

/// Our element of `Forwarded` (RFC 7239 section 4).
fn element(origin: &Origin, proto: &str) -> Vec<u8> {
    let node = match origin.peer {
        Some(IpAddr::V4(peer)) => peer.to_string(),
        Some(IpAddr::V6(peer)) => format!("\"[{peer}]\""),
        None => "unknown".to_owned(),
    };
    let mut element = format!("for={node};proto={proto}").into_bytes();
    // A host that would need escapes is none.
    let host = origin.host.as_ref().map(HeaderValue::as_bytes).unwrap_or_default();
    if !host.is_empty() && !host.iter().any(|byte| matches!(byte, b'"' | b'\\')) {
        element.extend_from_slice(b";host=\"");
        element.extend_from_slice(host);
        element.push(b'"');
    }
    element
}

/// Adds an item to a list header, in one line.
fn add(headers: &mut HeaderMap, name: HeaderName, item: &[u8]) {
    let mut list = Vec::new();
    for line in headers.get_all(&name) {
        list.extend_from_slice(line.as_bytes());
        list.extend_from_slice(b", ");
    }
    list.extend_from_slice(item);
    if let Ok(list) = HeaderValue::from_bytes(&list) {
        headers.insert(name, list);
    }
}

#[cfg(test)]
mod tests;
