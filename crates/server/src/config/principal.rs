//! `[principal]`: who the caller is said to be, and whom we believe. Judging a request belongs to `principal`.

use std::fmt;
use std::net::IpAddr;

use http::HeaderName;

use super::reader::{Section, text};
use super::setting::{Names, Origin, Outside, Setting};

const ACCEPTED: &str = "\"none\" (one tenant) or \"header\" (from named peers)";
const TEXT_ACCEPTED: &str = "\"none\" or \"header:NAME@PEER,PEER\" with peers like 127.0.0.1/32";
const PEER_ACCEPTED: &str = "an address or network like \"127.0.0.1/32\" or \"fd00::/8\"";

/// The most peers that may be named.
const PEERS_MAX: usize = 256;

/// Where the principal comes from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PrincipalSource {
    /// Every caller is the same tenant.
    None,
    /// A header that these peers are believed to set.
    Header {
        /// Its name.
        name: HeaderName,
        /// Who is believed.
        peers: Vec<Peer>,
    },
}

impl fmt::Display for PrincipalSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Header { name, peers } => {
                write!(f, "header:{name}@")?;
                peers.iter().enumerate().try_for_each(|(index, peer)| {
                    let comma = if index == 0 { "" } else { "," };
                    write!(f, "{comma}{peer}")
                })
            }
        }
    }
}

/// An address or network of peers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Peer {
    address: IpAddr,
    bits: u8,
}

impl Peer {
    /// Reads `address` or `address/bits`.
    ///
    /// # Errors
    /// What is wrong with the text.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no address or network");
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits.parse::<u8>().map_err(|_| wrong())?)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.unwrap_or(most);
        if bits > most {
            return Err(wrong());
        }
        let peer = Self { address, bits };
        if masked(address, bits) != (number(address), peer.address.is_ipv4()) {
            return Err(format!("{text:?} has bits set behind the prefix"));
        }
        Ok(peer)
    }

    /// Whether `address` is this peer or in this network. An IPv4 address inside IPv6 counts as IPv4.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        masked(address.to_canonical(), self.bits) == masked(self.address, self.bits)
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

/// The address's number, IPv4 in the upper bits.
fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(u32::from(address)) << 96,
        IpAddr::V6(address) => u128::from(address),
    }
}

fn masked(address: IpAddr, bits: u8) -> (u128, bool) {
    let mask = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
    (number(address) & mask, address.is_ipv4())
}

fn parse_header(text: &str) -> Result<HeaderName, String> {
    let name = HeaderName::try_from(text).map_err(|_| format!("{text:?} is no header name"))?;
    match name.as_str() {
        "authorization" | "cookie" => {
            Err(format!("{text:?} holds a credential, and rotating it would make every retry a new action"))
        }
        "idempotency-key" => Err("the key is no principal".to_owned()),
        _ => Ok(name),
    }
}

fn parse_text(text: &str) -> Result<PrincipalSource, String> {
    if text == "none" {
        return Ok(PrincipalSource::None);
    }
    let Some(rest) = text.strip_prefix("header:") else { return Err(not_a_source(text)) };
    let (name, peers) = rest.split_once('@').ok_or("the peers are missing")?;
    let peers = peers.split(',').map(Peer::parse).collect::<Result<Vec<_>, _>>()?;
    Ok(PrincipalSource::Header { name: parse_header(name)?, peers })
}

fn not_a_source(text: &str) -> String {
    match text {
        "jwt" | "api-keys" | "forward-auth" => format!("{text:?} is not built yet in this version"),
        _ => format!("{text:?} is no source of principals"),
    }
}

/// Reads `[principal]`, its variable and its flag. It is declared, never guessed: absence is a complaint.
pub(crate) fn read(root: &Section<'_>, outside: &Outside<'_>, flag: Option<&str>) -> Option<Setting<PrincipalSource>> {
    let names =
        Names { key: "principal", variable: "COUNTERFOIL_PRINCIPAL", flag: "--principal", accepted: TEXT_ACCEPTED };
    let section = root.table("principal");
    let stated =
        !outside.whole || root.has(names.key) || flag.is_some() || (outside.environment)(names.variable).is_some();
    if !stated {
        root.complain("principal.from", "missing: who the callers are is never guessed", ACCEPTED);
    }
    let from_file = section.and_then(from_file).map(|value| Setting { value, origin: Origin::File });
    let from_outside = outside.read(&names, flag, parse_text);
    from_outside.map(|(value, origin)| Setting { value, origin }).or(from_file)
}

fn from_file(section: Section<'_>) -> Option<PrincipalSource> {
    let known = |text: &str| match text {
        "none" | "header" => Ok(text == "header"),
        _ => Err(not_a_source(text)),
    };
    let from = section.read("from", ACCEPTED, |value| known(text(value)?));
    if from.is_none() && !section.has("from") {
        section.complain("from", "missing: who the callers are is never guessed", ACCEPTED);
    }
    let name = section.text("header", "a header name like \"x-user-id\"", parse_header);
    let peers = section.list("peers", PEER_ACCEPTED, |value| Peer::parse(text(value)?));
    let source = match from {
        Some(true) => {
            for (key, absent) in [("header", name.is_none()), ("peers", peers.is_none())] {
                if absent && !section.has(key) {
                    let accepted = if key == "header" { "a header name like \"x-user-id\"" } else { PEER_ACCEPTED };
                    section.complain(key, "missing: only named peers are believed", accepted);
                }
            }
            if peers.as_ref().is_some_and(|peers| peers.is_empty() || peers.len() > PEERS_MAX) {
                section.complain("peers", "an empty or too long list", format!("1 to {PEERS_MAX} peers"));
            }
            name.zip(peers).map(|(name, peers)| PrincipalSource::Header { name, peers })
        }
        Some(false) => {
            for key in ["header", "peers"] {
                if section.has(key) {
                    section.complain(
                        key,
                        "has no meaning with from = \"none\"",
                        "no such setting, or from = \"header\"",
                    );
                }
            }
            Some(PrincipalSource::None)
        }
        None => None,
    };
    section.finish();
    source
}
