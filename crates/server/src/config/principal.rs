//! `[principal]`: who the caller is said to be, and whom we believe. Judging a request belongs to `principal`.

mod api_keys;
mod forward_auth;
mod jwt;
mod peer;

use std::fmt;

use counterfoil_core::Scope;
use http::HeaderName;

pub(crate) use self::api_keys::shown as shown_key;
pub use self::api_keys::{ApiKey, ApiKeys};
pub use self::forward_auth::ForwardAuth;
pub use self::jwt::{Algorithm, JwksPlace, Jwt};
pub use self::peer::{Net, Peer};
use super::claims::{ClaimName, Requirement, require};
use super::place::Listen;
use super::reader::{Section, text};
use super::setting::{Names, Origin, Outside, Setting};

const ACCEPTED: &str =
    "\"none\" (one tenant), \"header\" (from named peers), \"api-keys\", \"jwt\" or \"forward-auth\"";
const TEXT_ACCEPTED: &str =
    "\"none\" or \"header:NAME@PEER,PEER\" with peers like 127.0.0.1/32 or unix, or [principal] in a file";
pub(crate) const PEER_ACCEPTED: &str = "an address or network like \"127.0.0.1/32\" or \"fd00::/8\", or \"unix\"";
const HEADER_ACCEPTED: &str = "a header name like \"x-user-id\"";
/// What a header that brings a credential looks like, for complaints.
const CREDENTIAL_ACCEPTED: &str = "\"authorization\" (a bearer token) or a header name like \"x-api-key\"";

/// The most peers that may be named.
const PEERS_MAX: usize = 256;

/// Each setting with the sources that it means something to.
const SETTINGS: [(&str, &[Kind]); 15] = [
    ("header", &[Kind::Header, Kind::ApiKeys, Kind::Jwt]),
    ("peers", &[Kind::Header]),
    ("keys", &[Kind::ApiKeys]),
    ("jwks", &[Kind::Jwt]),
    ("issuer", &[Kind::Jwt]),
    ("audience", &[Kind::Jwt]),
    ("claim", &[Kind::Jwt]),
    ("algorithms", &[Kind::Jwt]),
    ("jwks_refresh", &[Kind::Jwt]),
    ("jwks_keep", &[Kind::Jwt]),
    ("url", &[Kind::ForwardAuth]),
    ("answer_header", &[Kind::ForwardAuth]),
    ("answer_claims", &[Kind::ForwardAuth]),
    ("send", &[Kind::ForwardAuth]),
    ("timeout", &[Kind::ForwardAuth]),
];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    None,
    Header,
    ApiKeys,
    Jwt,
    ForwardAuth,
}

impl Kind {
    const ALL: [Self; 5] = [Self::None, Self::Header, Self::ApiKeys, Self::Jwt, Self::ForwardAuth];

    const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Header => "header",
            Self::ApiKeys => "api-keys",
            Self::Jwt => "jwt",
            Self::ForwardAuth => "forward-auth",
        }
    }

    fn parse(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|kind| kind.name() == text);
        found.ok_or_else(|| format!("{text:?} is no source of principals"))
    }
}

/// Where the principal comes from.
#[derive(Clone, PartialEq, Debug)]
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
    /// A key of the caller's own.
    ApiKeys(ApiKeys),
    /// A signed token.
    Jwt(Box<Jwt>),
    /// An application that is asked for every call.
    ForwardAuth(Box<ForwardAuth>),
}

impl PrincipalSource {
    /// Why this claim can never be had from this source; `None` where it may be.
    pub(crate) fn lacks(&self, claim: &ClaimName) -> Option<String> {
        match self {
            Self::None | Self::Header { .. } => Some(format!("from = {:?} has no claims", self.name())),
            Self::ApiKeys(keys) => {
                let has = keys.keys.iter().any(|key| claim.find(&key.claims).is_some());
                (!has).then(|| format!("no key has the claim {claim}"))
            }
            Self::Jwt(_) => None,
            Self::ForwardAuth(asked) => {
                let named = asked.answer_claims.value.iter().any(|name| name.as_str() == claim.as_str());
                (!named).then(|| format!("{claim} is not among answer_claims"))
            }
        }
    }

    /// Where a claim would come from.
    pub(crate) const fn claims_accepted(&self) -> &'static str {
        match self {
            Self::None | Self::Header { .. } => "no such setting, or a source with claims",
            Self::ApiKeys(_) => "a name among the claims of [[principal.keys]]",
            Self::Jwt(_) => "a claim of the token",
            Self::ForwardAuth(_) => "a name among principal.answer_claims",
        }
    }

    const fn name(&self) -> &'static str {
        match self {
            Self::None => Kind::None.name(),
            Self::Header { .. } => Kind::Header.name(),
            Self::ApiKeys(_) => Kind::ApiKeys.name(),
            Self::Jwt(_) => Kind::Jwt.name(),
            Self::ForwardAuth(_) => Kind::ForwardAuth.name(),
        }
    }
}

impl fmt::Display for PrincipalSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Reads the name of a header that names the caller, which must not be a credential.
fn parse_header(text: &str) -> Result<HeaderName, String> {
    let name = parse_header_name(text)?;
    match name.as_str() {
        "authorization" | "cookie" => {
            Err(format!("{text:?} holds a credential, and rotating it would make every retry a new action"))
        }
        _ => Ok(name),
    }
}

/// Reads the name of a header that brings a credential.
fn parse_credential_header(text: &str) -> Result<HeaderName, String> {
    let name = parse_header_name(text)?;
    match name.as_str() {
        "cookie" => Err("a cookie line holds more than a credential".to_owned()),
        "connection" | "host" | "content-length" | "transfer-encoding" => {
            Err(format!("{name} has a meaning of its own"))
        }
        _ => Ok(name),
    }
}

fn parse_header_name(text: &str) -> Result<HeaderName, String> {
    let name = HeaderName::try_from(text).map_err(|_| format!("{text:?} is no header name"))?;
    if name == counterfoil_core::wire::IDEMPOTENCY_KEY {
        return Err("the key is no principal".to_owned());
    }
    Ok(name)
}

/// Reads the name of a principal.
fn parse_principal(text: &str) -> Result<String, String> {
    Scope::principal(text).map(|_| text.to_owned()).map_err(|error| error.to_string())
}

/// Complains about each of `settings` that the section does not say.
fn missing(section: &Section<'_>, settings: &[(&str, &str)], why: &str) {
    for (key, accepted) in settings {
        if !section.has(key) {
            section.complain(key, format!("missing: {why}"), *accepted);
        }
    }
}

fn parse_text(text: &str) -> Result<PrincipalSource, String> {
    let Some(rest) = text.strip_prefix("header:") else {
        return match Kind::parse(text)? {
            Kind::None => Ok(PrincipalSource::None),
            Kind::Header => Err("the header and the peers are missing".to_owned()),
            Kind::ApiKeys | Kind::Jwt | Kind::ForwardAuth => Err(format!("{text:?} takes more than one text can say")),
        };
    };
    let (name, peers) = rest.split_once('@').ok_or("the peers are missing")?;
    let peers = peers.split(',').map(Peer::parse).collect::<Result<Vec<_>, _>>()?;
    Ok(PrincipalSource::Header { name: parse_header(name)?, peers })
}

/// Reads `[principal]`, its variable and its flag, and the claims that every caller must have. The source is declared,
/// never guessed: absence is a complaint.
pub(crate) fn read(
    root: &Section<'_>,
    outside: &Outside<'_>,
    flag: Option<&str>,
) -> (Option<Setting<PrincipalSource>>, Vec<Requirement>) {
    let names =
        Names { key: "principal", variable: "COUNTERFOIL_PRINCIPAL", flag: "--principal", accepted: TEXT_ACCEPTED };
    let section = root.table("principal");
    let stated =
        !outside.whole || root.has(names.key) || flag.is_some() || (outside.environment)(names.variable).is_some();
    if !stated {
        root.complain("principal.from", "missing: who the callers are is never guessed", ACCEPTED);
    }
    let required = section.as_ref().map(require).unwrap_or_default();
    let from_file = section.and_then(from_file).map(|value| Setting { value, origin: Origin::File });
    let from_outside = outside.read(&names, flag, parse_text);
    (from_outside.map(|(value, origin)| Setting { value, origin }).or(from_file), required)
}

/// Complains where nobody whose word is taken can come through the listener: every caller would be refused.
pub(crate) fn judge(root: &Section<'_>, source: &PrincipalSource, listen: &Listen) {
    let PrincipalSource::Header { peers, .. } = source else { return };
    let through_socket = matches!(listen, Listen::Unix(_));
    if !peers.iter().any(|peer| matches!(peer, Peer::Unix) == through_socket) {
        let accepted = if through_socket { "\"unix\" among them" } else { "an address or network among them" };
        root.complain("principal.peers", format!("no such peer can connect to {listen}"), accepted);
    }
}

fn from_file(section: Section<'_>) -> Option<PrincipalSource> {
    let from = section.text("from", ACCEPTED, Kind::parse);
    if from.is_none() && !section.has("from") {
        section.complain("from", "missing: who the callers are is never guessed", ACCEPTED);
    }
    for (key, kinds) in SETTINGS {
        section.know(key);
        let Some(kind) = from.filter(|kind| section.has(key) && !kinds.contains(kind)) else { continue };
        let others = kinds.iter().map(|kind| format!("{:?}", kind.name())).collect::<Vec<_>>().join(" or ");
        let fault = format!("has no meaning with from = {:?}", kind.name());
        section.complain(key, fault, format!("no such setting, or from = {others}"));
    }
    let source = from.and_then(|kind| match kind {
        Kind::None => Some(PrincipalSource::None),
        Kind::Header => header(&section),
        Kind::ApiKeys => api_keys::read(&section).map(PrincipalSource::ApiKeys),
        Kind::Jwt => jwt::read(&section).map(|jwt| PrincipalSource::Jwt(Box::new(jwt))),
        Kind::ForwardAuth => forward_auth::read(&section).map(|asked| PrincipalSource::ForwardAuth(Box::new(asked))),
    });
    section.finish();
    source
}

fn header(section: &Section<'_>) -> Option<PrincipalSource> {
    let name = section.text("header", HEADER_ACCEPTED, parse_header);
    let peers = section.list("peers", PEER_ACCEPTED, |value| Peer::parse(text(value)?));
    missing(section, &[("header", HEADER_ACCEPTED), ("peers", PEER_ACCEPTED)], "only named peers are believed");
    if peers.is_some() && !(1..=PEERS_MAX).contains(&section.length("peers")) {
        section.complain("peers", "an empty or too long list", format!("1 to {PEERS_MAX} peers"));
    }
    name.zip(peers).map(|(name, peers)| PrincipalSource::Header { name, peers })
}
