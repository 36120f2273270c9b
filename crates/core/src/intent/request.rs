//! What an intent sends, frozen: the same bytes in every attempt. Secrets are references and never values.
//! Resolving a reference and sending belong to the client.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Uri};

use super::header::{Header, Value};
use crate::error::Error;
use crate::fingerprint::{Parts, Rule};
use crate::identity::{Key, Scope};
use crate::profile::{Carrier, Encoding, encoded};

/// The longest name of an intent, in bytes.
pub const NAME_BYTES_MAX: usize = 255;
/// The longest URL, in bytes.
pub const URL_BYTES_MAX: usize = 8 << 10;
/// The most headers.
pub const HEADERS_MAX: usize = 64;
/// The largest body, in bytes.
pub const BODY_BYTES_MAX: usize = 8 << 20;

/// What a person calls the action, unique in its journal: `order-1234/charge`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Name(Arc<str>);

impl Name {
    /// Checks `text`.
    ///
    /// # Errors
    /// [`Error::IntentName`].
    pub fn new(text: impl Into<Arc<str>>) -> Result<Self, Error> {
        let text = text.into();
        let printable = text.bytes().all(|byte| (0x20..=0x7e).contains(&byte));
        if text.trim().is_empty() || text.len() > NAME_BYTES_MAX || !printable {
            return Err(Error::IntentName);
        }
        Ok(Self(text))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Which contract an intent was written under.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProfileRef {
    /// Its id.
    pub id: String,
    /// Its version.
    pub version: u32,
}

/// Headers whose values are credentials: only by reference.
const CREDENTIALS: [&str; 6] =
    ["authorization", "proxy-authorization", "cookie", "x-api-key", "api-key", "x-auth-token"];
/// Headers that belong to the connection or to the message's framing.
const FRAMING: [&str; 10] = [
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// A request as a caller gives it, before it has a key.
#[derive(Clone, Debug)]
pub struct Draft {
    /// What the action is called.
    pub name: Name,
    /// The method.
    pub method: Method,
    /// The absolute URL.
    pub url: String,
    /// The headers, without the key's.
    pub headers: Vec<Header>,
    /// The body, without the key.
    pub body: Bytes,
    /// What narrows the scope besides the host and the credential: account, mode, region.
    pub scope: Option<Scope>,
    /// The contract.
    pub profile: ProfileRef,
}

/// What an intent sends, the same in every attempt.
#[derive(Clone, PartialEq, Eq)]
pub struct Request {
    /// What the action is called.
    pub name: Name,
    /// Its key.
    pub key: Key,
    /// Where the key stands.
    pub carrier: Carrier,
    /// The method.
    pub method: Method,
    /// Scheme, host and port: `https://api.example`.
    pub origin: String,
    /// Path and query.
    pub target: String,
    /// The headers, without the key's.
    pub headers: Vec<Header>,
    /// The body; where the key is carried in it, with the key.
    pub body: Bytes,
    /// What narrows the scope.
    pub scope: Option<Scope>,
    /// The contract.
    pub profile: ProfileRef,
}

impl fmt::Debug for Request {
    /// Sizes instead of target, headers and body: they are the caller's secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("name", &self.name.as_str())
            .field("method", &self.method)
            .field("origin", &self.origin)
            .field("headers", &self.headers)
            .field("body_bytes", &self.body.len())
            .field("profile", &self.profile)
            .finish_non_exhaustive()
    }
}

/// Where a request differs from a frozen one.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Difference {
    /// Another host, port or scheme: the provider's scope may be another one.
    Origin,
    /// A credential of another reference: the provider's scope may be another one.
    Credential(String),
    /// Other scope parts.
    Scope,
    /// Another contract.
    Profile,
    /// Another method.
    Method,
    /// Another path.
    Path,
    /// Another query.
    Query,
    /// Another header.
    Header(String),
    /// Another body, as its media type compares it.
    Body,
}

impl Difference {
    /// Whether the key would mean something else there: a drift of scope, and not merely other parameters.
    #[must_use]
    pub const fn is_drift(&self) -> bool {
        match self {
            Self::Origin | Self::Credential(_) | Self::Scope | Self::Profile => true,
            Self::Method | Self::Path | Self::Query | Self::Header(_) | Self::Body => false,
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Origin => f.write_str("host"),
            Self::Credential(name) => write!(f, "credential in `{name}`"),
            Self::Scope => f.write_str("scope"),
            Self::Profile => f.write_str("profile"),
            Self::Method => f.write_str("method"),
            Self::Path => f.write_str("path"),
            Self::Query => f.write_str("query"),
            Self::Header(name) => write!(f, "header `{name}`"),
            Self::Body => f.write_str("body"),
        }
    }
}

impl Draft {
    /// The request with its key in the place that the profile says.
    ///
    /// # Errors
    /// [`Error::Request`] and [`Error::RequestHeader`] with what to change.
    pub fn freeze(&self, key: &Key, carrier: &Carrier) -> Result<Request, Error> {
        let (origin, mut target) = split(&self.url)?;
        for header in &self.headers {
            check_header(header, carrier)?;
        }
        if self.headers.len() > HEADERS_MAX {
            return Err(Error::Request("it has more than 64 headers"));
        }
        if self.method.is_safe() {
            return Err(Error::Request(
                "GET, HEAD, OPTIONS and TRACE do nothing that a key could guard: send them without",
            ));
        }
        let mut body = self.body.clone();
        match carrier {
            Carrier::Header { .. } => {}
            Carrier::Member(name) => body = with_member(&body, name, key)?,
            Carrier::Parameter(name) => {
                let form = self.media_type() == Some("application/x-www-form-urlencoded");
                let text = if form { String::from_utf8_lossy(&body).into_owned() } else { query(&target).to_owned() };
                let parameters = with_parameter(&text, name, key)?;
                if form {
                    body = parameters.into();
                } else {
                    target = format!("{}?{parameters}", path(&target));
                }
            }
        }
        if body.len() > BODY_BYTES_MAX {
            return Err(Error::Request("its body is over 8 MiB"));
        }
        Ok(Request {
            name: self.name.clone(),
            key: key.clone(),
            carrier: carrier.clone(),
            method: self.method.clone(),
            origin,
            target,
            headers: self.headers.clone(),
            body,
            scope: self.scope.clone(),
            profile: self.profile.clone(),
        })
    }

    fn media_type(&self) -> Option<&str> {
        media_type(&self.headers)
    }
}

fn media_type(headers: &[Header]) -> Option<&str> {
    headers.iter().find(|header| header.name == "content-type").and_then(|header| match &header.value {
        Value::Plain(value) => str::from_utf8(value).ok()?.split(';').next().map(str::trim),
        Value::Secret(_) => None,
    })
}

impl Request {
    /// The absolute URL.
    #[must_use]
    pub fn url(&self) -> String {
        format!("{}{}", self.origin, self.target)
    }

    /// The key's own header, where it is carried in one.
    #[must_use]
    pub fn key_header(&self) -> Option<(&str, String)> {
        match &self.carrier {
            Carrier::Header { name, encoding, .. } => {
                let key = self.key.as_str();
                let value = match encoding {
                    Encoding::Raw => key.to_owned(),
                    Encoding::Quoted => format!("\"{}\"", key.replace('\\', "\\\\").replace('"', "\\\"")),
                };
                Some((name, value))
            }
            Carrier::Member(_) | Carrier::Parameter(_) => None,
        }
    }

    /// Where `draft` differs from what is frozen; empty: it is the same action. Bodies are compared as their media type
    /// says (JSON by its values), headers as bytes, credentials by their references.
    ///
    /// # Errors
    /// What [`Draft::freeze`] refuses.
    pub fn differences(&self, draft: &Draft) -> Result<Vec<Difference>, Error> {
        let other = draft.freeze(&self.key, &self.carrier)?;
        let mut found = Vec::new();
        let mut note = |differs: bool, difference: Difference| {
            if differs {
                found.push(difference);
            }
        };
        note(self.origin != other.origin, Difference::Origin);
        note(self.scope != other.scope, Difference::Scope);
        note(self.profile.id != other.profile.id, Difference::Profile);
        note(self.method != other.method, Difference::Method);
        note(path(&self.target) != path(&other.target), Difference::Path);
        note(query(&self.target) != query(&other.target), Difference::Query);
        note(!self.same_body(&other), Difference::Body);
        for name in header_names(self, &other) {
            let values = |request: &Self| -> Vec<Value> {
                request.headers.iter().filter(|header| header.name == name).map(|header| header.value.clone()).collect()
            };
            let (mine, theirs) = (values(self), values(&other));
            let secret = mine.iter().chain(&theirs).any(|value| matches!(value, Value::Secret(_)));
            let difference = if secret { Difference::Credential(name) } else { Difference::Header(name) };
            note(mine != theirs, difference);
        }
        found.sort();
        Ok(found)
    }

    fn same_body(&self, other: &Self) -> bool {
        // `auto` never fails; what it became is what the other is compared under.
        let Ok(mine) = Rule::auto().fingerprint(&parts(self, &plain(self))) else { return self.body == other.body };
        mine.rule().fingerprint(&parts(other, &plain(other))).is_ok_and(|theirs| theirs == mine)
    }
}

/// Media type and parameters of the body are the fingerprint's to compare, and only there.
fn header_names(mine: &Request, theirs: &Request) -> Vec<String> {
    let all = mine.headers.iter().chain(&theirs.headers).map(|header| header.name.clone());
    let mut names: Vec<String> =
        all.filter(|name| !matches!(name.as_str(), "content-type" | "content-encoding")).collect();
    names.sort_unstable();
    names.dedup();
    names
}

fn plain(request: &Request) -> Vec<(&str, &[u8])> {
    request
        .headers
        .iter()
        .filter_map(|header| match &header.value {
            Value::Plain(value) => Some((header.name.as_str(), value.as_ref())),
            Value::Secret(_) => None,
        })
        .collect()
}

fn parts<'a>(request: &'a Request, headers: &'a [(&'a str, &'a [u8])]) -> Parts<'a> {
    Parts { method: "", operation: "", path: "", query: "", headers, body: &request.body }
}

fn path(target: &str) -> &str {
    target.split_once('?').map_or(target, |(path, _)| path)
}

fn query(target: &str) -> &str {
    target.split_once('?').map_or("", |(_, query)| query)
}

/// Scheme, host and port of an absolute URL as a request keeps them: `https://api.example`.
///
/// # Errors
/// [`Error::Request`] says why it is no URL that a request can have.
pub fn origin(url: &str) -> Result<String, Error> {
    split(url).map(|(origin, _)| origin)
}

/// Origin and target of an absolute URL.
fn split(url: &str) -> Result<(String, String), Error> {
    if url.len() > URL_BYTES_MAX {
        return Err(Error::Request("its URL is over 8 KiB"));
    }
    if url.contains('#') {
        return Err(Error::Request("its URL has a fragment, which is never sent: leave it out"));
    }
    let uri: Uri = url.parse().map_err(|_| Error::Request("its URL cannot be read"))?;
    let scheme = uri.scheme_str().unwrap_or_default().to_ascii_lowercase();
    let authority = uri.authority().ok_or(Error::Request("its URL is not absolute: begin with http:// or https://"))?;
    let default_port = match scheme.as_str() {
        "http" => 80,
        "https" => 443,
        _ => return Err(Error::Request("its URL is neither http nor https")),
    };
    if authority.as_str().contains('@') {
        return Err(Error::Request("its URL holds a credential: send it in a header, by reference (`env:NAME`)"));
    }
    let host = authority.host().to_ascii_lowercase();
    let port = uri.port_u16().filter(|port| *port != default_port).map(|port| format!(":{port}")).unwrap_or_default();
    let target = uri.path_and_query().map_or("/", |target| target.as_str());
    Ok((format!("{scheme}://{host}{port}"), target.to_owned()))
}

fn check_header(header: &Header, carrier: &Carrier) -> Result<(), Error> {
    let name = header.name.as_str();
    let refuse = |why| Err(Error::RequestHeader { name: name.to_owned(), why });
    if HeaderName::from_bytes(name.as_bytes()).is_err() || name.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return refuse("its name is no header's name in lower case");
    }
    if FRAMING.contains(&name) {
        return refuse("it belongs to the connection: leave it out");
    }
    if let Carrier::Header { name: key, first_sent, .. } = carrier
        && (key == name || first_sent.as_deref() == Some(name))
    {
        return refuse("the profile puts the key there: give a key of your own with `--key`");
    }
    match &header.value {
        Value::Plain(_) if CREDENTIALS.contains(&name) => {
            refuse("it is a credential, which is never stored: give a reference, `env:NAME` or `file:PATH`")
        }
        Value::Plain(value) if HeaderValue::from_bytes(value).is_err() => refuse("its value is no header's value"),
        Value::Plain(_) | Value::Secret(_) => Ok(()),
    }
}

/// The body with one more member in front, every other byte as it was.
fn with_member(body: &[u8], name: &str, key: &Key) -> Result<Bytes, Error> {
    let fault = Error::Request("the profile puts the key into the body, which must be a JSON object");
    let parsed: serde_json::Value = serde_json::from_slice(body).map_err(|_| fault.clone())?;
    let members = parsed.as_object().ok_or(fault.clone())?;
    if members.contains_key(name) {
        return Err(Error::Request("the body already holds a key: leave it out, and give your own with `--key`"));
    }
    let at = body.iter().position(|byte| *byte == b'{').ok_or(fault)? + 1;
    let (head, rest) = body.split_at_checked(at).unwrap_or((body, &[]));
    let comma = if members.is_empty() { "" } else { "," };
    let member = format!("{}:{}{comma}", serde_json::Value::from(name), serde_json::Value::from(key.as_str()));
    Ok([head, member.as_bytes(), rest].concat().into())
}

/// Form parameters with one more at the end (WHATWG URL, percent-encoded but for unreserved characters).
fn with_parameter(parameters: &str, name: &str, key: &Key) -> Result<String, Error> {
    let taken = parameters.split('&').any(|pair| pair.split('=').next() == Some(name));
    if taken {
        return Err(Error::Request("its parameters already hold a key: leave it out, and give your own with `--key`"));
    }
    let mut text = parameters.to_owned();
    if !text.is_empty() {
        text.push('&');
    }
    text.push_str(name);
    text.push('=');
    text.push_str(&encoded(key.as_str()));
    Ok(text)
}
