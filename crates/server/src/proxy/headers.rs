//! Headers on their way through: what ends at each hop, and what tells the upstream who asked.

use counterfoil_middleware::Peer;
use http::{HeaderMap, HeaderName, HeaderValue, header};

/// Ends at each hop whether `Connection` names it or not (RFC 9110 section 7.6.1).
const HOP_BY_HOP: [&str; 9] = [
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");

/// Removes what ends at this hop, what `Connection` names included.
pub(super) fn remove_hop_by_hop(headers: &mut HeaderMap) {
    for name in named_by_connection(headers) {
        headers.remove(name);
    }
    for name in HOP_BY_HOP {
        headers.remove(name);
    }
}

/// What `Connection` names, except what no message can do without.
fn named_by_connection(headers: &HeaderMap) -> Vec<HeaderName> {
    let lines = headers.get_all(header::CONNECTION).iter();
    let tokens = lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b','));
    let names = tokens.filter_map(|token| HeaderName::from_bytes(token.trim_ascii()).ok());
    names.filter(|name| *name != header::HOST && *name != header::CONTENT_LENGTH).collect()
}

/// Adds the caller's address to `X-Forwarded-For`; protocol and host are kept where a proxy in front told them.
pub(super) fn tell_origin(headers: &mut HeaderMap, peer: Option<Peer>) {
    if let Some(Peer(address)) = peer {
        let mut chain = Vec::new();
        for line in headers.get_all(FORWARDED_FOR) {
            chain.extend_from_slice(line.as_bytes());
            chain.extend_from_slice(b", ");
        }
        chain.extend_from_slice(address.ip().to_canonical().to_string().as_bytes());
        if let Ok(chain) = HeaderValue::from_bytes(&chain) {
            headers.insert(FORWARDED_FOR, chain);
        }
    }
    if !headers.contains_key(FORWARDED_PROTO) {
        headers.insert(FORWARDED_PROTO, HeaderValue::from_static("http"));
    }
    if let Some(host) = headers.get(header::HOST).cloned()
        && !headers.contains_key(FORWARDED_HOST)
    {
        headers.insert(FORWARDED_HOST, host);
    }
}

#[cfg(test)]
mod tests;
