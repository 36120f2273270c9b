//! The target: what was told about it, judged once, and the bytes of each request to it.
//!
//! What does not belong here: sending (`wire.rs`), and when what is sent (the cases).

use std::net::IpAddr;

use http::Uri;
use http::header::{HeaderName, HeaderValue};

use crate::body::{Entity, Hints};
use crate::case::{Body, Contract, Credential, KeyForm, KeyPlace, Loss, Request};
use crate::error::ProbeError;
use crate::lack::Lack;
use crate::settings::Settings;
use crate::wire::Outgoing;

/// Where a server listens, and what is asked of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Address {
    pub(crate) tls: bool,
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) authority: String,
    pub(crate) path: String,
}

impl Address {
    pub(crate) fn parse(url: &str) -> Result<Self, ProbeError> {
        let wrong = |why: &str| ProbeError::Usage(format!("{url:?} is no address to probe: {why}"));
        let uri: Uri = url.parse().map_err(|_| wrong("it is not a URL"))?;
        let tls = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            Some(_) | None => return Err(wrong("it begins with neither http:// nor https://")),
        };
        let authority = uri.authority().ok_or_else(|| wrong("it names no host"))?;
        if authority.as_str().contains('@') {
            return Err(wrong("it holds a name or password; use --credential"));
        }
        let host = authority.host().trim_matches(['[', ']']).to_owned();
        let port = authority.port_u16().unwrap_or(if tls { 443 } else { 80 });
        let path = uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
        Ok(Self { tls, host, port, authority: authority.as_str().to_owned(), path })
    }

    /// Whether it is this machine by its very name.
    pub(crate) fn is_loopback(&self) -> bool {
        self.host.eq_ignore_ascii_case("localhost") || self.host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
    }
}

/// Where the key of a plain request stands.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Carrier {
    Header(String),
    Query(String),
    Body(String),
}

/// Where the id of a result stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum IdPlace {
    Pointer(String),
    Header(String),
}

/// What counts effects apart from answers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Counter {
    Url { address: Address, pointer: String },
    Command(String),
}

/// A target as the settings say.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) address: Address,
    pub(crate) other: Option<Address>,
    pub(crate) method: String,
    pub(crate) contract: Contract,
    pub(crate) entity: Entity,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) credential: Option<(String, String)>,
    pub(crate) id: Option<IdPlace>,
    pub(crate) counter: Option<Counter>,
    vary: Option<String>,
    invalid: Option<String>,
    default_member: Option<String>,
    carrier: Carrier,
}

/// A credential that nobody has.
const WRONG: &str = "counterfoil-probe-wrong-credential";

impl Target {
    /// Judges the settings.
    pub(crate) fn of(settings: &Settings) -> Result<Self, ProbeError> {
        let usage = ProbeError::Usage;
        let url = settings.url.as_deref().ok_or_else(|| usage("no URL was given".to_owned()))?;
        let contract = settings.contract.unwrap_or(Contract::Ietf);
        let method = settings.method.clone().unwrap_or_else(|| "POST".to_owned());
        method.parse::<http::Method>().map_err(|_| usage(format!("{method:?} is no method")))?;
        let counter = match (&settings.count_url, &settings.count_command) {
            (Some(_), Some(_)) => return Err(usage("count effects by a URL or by a command, not both".to_owned())),
            (Some(url), None) => {
                let pointer = settings.count.clone().unwrap_or_default();
                Some(Counter::Url { address: Address::parse(url)?, pointer })
            }
            (None, Some(command)) => Some(Counter::Command(command.clone())),
            (None, None) => None,
        };
        let id = settings.id.as_deref().map(|id| match id.strip_prefix("header:") {
            Some(name) => IdPlace::Header(name.to_ascii_lowercase()),
            None => IdPlace::Pointer(id.to_owned()),
        });
        let target = Self {
            address: Address::parse(url)?,
            other: settings.other_url.as_deref().map(Address::parse).transpose()?,
            method,
            contract,
            entity: Entity::of(settings.body.as_deref(), &settings.form, settings.content_type.as_deref())
                .map_err(|why| usage(format!("the body: {why}")))?,
            headers: settings.header.iter().map(|line| header(line)).collect::<Result<_, _>>()?,
            credential: settings.credential.as_deref().map(secret).transpose()?,
            id,
            counter,
            vary: settings.vary.clone(),
            invalid: settings.invalid.clone(),
            default_member: settings.default_member.clone(),
            carrier: carrier(settings.key.as_deref(), contract)?,
        };
        if target.vary.is_some() {
            target.changed(Body::Changed).map_err(|lack| usage(format!("--vary: {}", lack.why())))?;
        }
        Ok(target)
    }

    /// The strongest way in which effects are seen: 0 answers only, 1 ids, 2 a request, 3 a command.
    pub(crate) fn observer(&self) -> u8 {
        match (&self.counter, &self.id) {
            (Some(Counter::Command(_)), _) => 3,
            (Some(Counter::Url { .. }), _) => 2,
            (None, Some(_)) => 1,
            (None, None) => 0,
        }
    }

    fn changed(&self, change: Body) -> Result<Entity, Lack> {
        let hints = Hints {
            vary: self.vary.as_deref(),
            invalid: self.invalid.as_deref(),
            default: self.default_member.as_deref(),
            ..Hints::default()
        };
        self.entity.changed(change, &hints)
    }

    /// The request of a step. The text of the error says what was not given that it needs.
    pub(crate) fn request(&self, send: &Request, key: Option<&str>) -> Result<(Address, Prepared), Lack> {
        let mut address = match send.other_operation {
            true => self.other.clone().ok_or("no other operation was named (--other-url)")?,
            false => self.address.clone(),
        };
        let mut entity = self.changed(send.body)?;
        let mut headers = vec![
            ("host".to_owned(), address.authority.clone()),
            ("user-agent".to_owned(), concat!("counterfoil-probe/", env!("CARGO_PKG_VERSION")).to_owned()),
            ("accept".to_owned(), "*/*".to_owned()),
            ("content-type".to_owned(), entity.media.clone()),
        ];
        for (name, value) in &self.headers {
            set(&mut headers, name, value);
        }
        if let Some((name, value)) = self.credential_for(send.credential)? {
            set(&mut headers, &name, &value);
        }
        for (name, value) in &send.headers {
            set(&mut headers, name, value);
        }
        if let Some(query) = &send.query {
            add_query(&mut address.path, query);
        }
        let key = key.map(|key| shaped(key, send));
        if let Some(key) = &key {
            match self.carrier(send.place) {
                Carrier::Header(name) => set(&mut headers, &name, &self.spelt(key, send.key_form)),
                Carrier::Query(name) => add_query(&mut address.path, &format!("{name}={key}")),
                Carrier::Body(name) => entity = entity.with_member(&name, key)?,
            }
        }
        let body = entity.bytes;
        set(&mut headers, "content-length", &body.len().to_string());
        set(&mut headers, "connection", if send.keep { "keep-alive" } else { "close" });
        let (method, path) = (self.method.clone(), address.path.clone());
        Ok((address, Prepared { method, path, headers, body, key, lose: send.lose }))
    }

    fn credential_for(&self, wanted: Credential) -> Result<Option<(String, String)>, String> {
        match (wanted, &self.credential) {
            (Credential::Given, credential) => Ok(credential.clone()),
            (Credential::None | Credential::Wrong, None) => Err("no credential was given (--credential)".to_owned()),
            (Credential::None, Some(_)) => Ok(None),
            (Credential::Wrong, Some((name, value))) => {
                let scheme = value.split_once(' ').map_or(String::new(), |(scheme, _)| format!("{scheme} "));
                Ok(Some((name.clone(), format!("{scheme}{WRONG}"))))
            }
        }
    }

    fn carrier(&self, place: KeyPlace) -> Carrier {
        match place {
            KeyPlace::Given => self.carrier.clone(),
            KeyPlace::Header => Carrier::Header("idempotency-key".to_owned()),
            KeyPlace::XHeader => Carrier::Header("x-idempotency-key".to_owned()),
            KeyPlace::Query => Carrier::Query("idempotency_key".to_owned()),
            KeyPlace::Body => Carrier::Body("idempotency_key".to_owned()),
        }
    }

    /// The draft's header is a string of RFC 9651, which stands in quotes.
    fn spelt(&self, key: &str, form: KeyForm) -> String {
        let quoted = match form {
            KeyForm::Quoted => true,
            KeyForm::Bare => false,
            KeyForm::Plain | KeyForm::Upper => self.contract == Contract::Ietf,
        };
        if quoted { format!("\"{key}\"") } else { key.to_owned() }
    }

    /// What may never be written into a report.
    pub(crate) fn secrets(&self) -> Vec<String> {
        let value = self.credential.iter().map(|(_, value)| value.clone());
        let bare =
            self.credential.iter().filter_map(|(_, value)| value.split_once(' ').map(|(_, bare)| bare.to_owned()));
        value.chain(bare).filter(|secret| !secret.is_empty()).collect()
    }
}

/// A request that is ready to be sent.
#[derive(Clone, Debug)]
pub(crate) struct Prepared {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    pub(crate) key: Option<String>,
    pub(crate) lose: Loss,
}

impl Prepared {
    pub(crate) fn outgoing(&self) -> Outgoing {
        let mut head = format!("{} {} HTTP/1.1\r\n", self.method, self.path);
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        Outgoing { head: head.into_bytes(), body: self.body.clone(), lose: self.lose }
    }
}

fn set(headers: &mut Vec<(String, String)>, name: &str, value: &str) {
    headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
    headers.push((name.to_ascii_lowercase(), value.to_owned()));
}

fn add_query(path: &mut String, query: &str) {
    path.push(if path.contains('?') { '&' } else { '?' });
    path.push_str(query);
}

/// The key in the form and length that the step asks for.
fn shaped(key: &str, send: &Request) -> String {
    let text = match send.key_length {
        Some(length) => key.chars().cycle().take(length).collect(),
        None => key.to_owned(),
    };
    match send.key_form {
        KeyForm::Upper => text.to_ascii_uppercase(),
        KeyForm::Plain | KeyForm::Quoted | KeyForm::Bare => text,
    }
}

fn header(line: &str) -> Result<(String, String), ProbeError> {
    let wrong = || ProbeError::Usage("a header is written as 'Name: value'".to_owned());
    let (name, value) = line.split_once(':').ok_or_else(wrong)?;
    let (name, value) = (name.trim().to_ascii_lowercase(), value.trim().to_owned());
    name.parse::<HeaderName>().map_err(|_| wrong())?;
    HeaderValue::from_str(&value).map_err(|_| wrong())?;
    Ok((name, value))
}

fn secret(line: &str) -> Result<(String, String), ProbeError> {
    let (name, value) = header(line)?;
    let Some(variable) = value.strip_prefix("env:") else { return Ok((name, value)) };
    let told = std::env::var(variable).map_err(|_| ProbeError::Usage(format!("the variable {variable} is not set")))?;
    header(&format!("{name}: {told}"))
}

fn carrier(told: Option<&str>, contract: Contract) -> Result<Carrier, ProbeError> {
    let Some(told) = told else {
        return Ok(match contract {
            Contract::Ietf | Contract::StripeV1 => Carrier::Header("idempotency-key".to_owned()),
            Contract::Ec2 => Carrier::Query("ClientToken".to_owned()),
        });
    };
    match told.split_once(':') {
        Some(("header", name)) if name.parse::<HeaderName>().is_ok() => Ok(Carrier::Header(name.to_owned())),
        Some(("query", name)) if !name.is_empty() => Ok(Carrier::Query(name.to_owned())),
        Some(("body", name)) if !name.is_empty() => Ok(Carrier::Body(name.to_owned())),
        Some(_) | None => Err(ProbeError::Usage(format!("{told:?} is not header:NAME, query:NAME or body:NAME"))),
    }
}

#[cfg(test)]
mod tests;
