//! The target: what was told about it, judged once, and the bytes of each request to it.
//!
//! What does not belong here: sending (`wire.rs`), and when what is sent (the cases).

use http::header::{HeaderName, HeaderValue};
use jiff::Timestamp;

use crate::address::Address;
use crate::arrivals;
use crate::body::{Format, Hints};
use crate::case::{Body, Case, Contract, Credential, KeyForm, KeyPlace, Loss, Request};
use crate::error::ProbeError;
use crate::fact::Value;
use crate::hook::{Means, not_given};
use crate::place::{Further, Place};
use crate::settings::Settings;
use crate::wire::Outgoing;

/// What stands in a body for a text of its own for each action.
const FRESH: &str = "{{fresh}}";

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

impl Counter {
    pub(crate) fn of(
        url: Option<&str>,
        pointer: Option<&str>,
        command: Option<&str>,
    ) -> Result<Option<Self>, ProbeError> {
        match (url, command) {
            (Some(_), Some(_)) => Err(ProbeError::Usage("count by a URL or by a command, not both".to_owned())),
            (Some(url), None) => {
                let pointer = pointer.unwrap_or_default().to_owned();
                Ok(Some(Self::Url { address: Address::parse(url)?, pointer }))
            }
            (None, Some(command)) => Ok(Some(Self::Command(command.to_owned()))),
            (None, None) => Ok(None),
        }
    }
}

/// A target as the settings say.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) address: Address,
    pub(crate) method: String,
    pub(crate) contract: Contract,
    body: String,
    pub(crate) content_type: String,
    pub(crate) headers: Vec<(String, String)>,
    format: Format,
    pub(crate) credential: Option<(String, String)>,
    pub(crate) id: Option<IdPlace>,
    pub(crate) counter: Option<Counter>,
    pub(crate) means: Means,
    /// What counts requests on the target's own side.
    pub(crate) arrivals: Option<Counter>,
    vary: Option<String>,
    invalid: Option<String>,
    declined: Option<String>,
    default_member: Option<String>,
    carrier: Carrier,
}

/// What a round knows when it sends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known<'a> {
    pub(crate) key: Option<&'a str>,
    /// When the key was used first, on the target's clock.
    pub(crate) first_used: Timestamp,
    /// The id of what was made.
    pub(crate) id: Option<&'a str>,
}

/// The shortest value that is taken for a secret wherever it stands; in its header every one is.
const SECRET_BYTES_MIN: usize = 6;
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
        let (count_url, count_command) = (settings.count_url.as_deref(), settings.count_command.as_deref());
        let counter = Counter::of(count_url, settings.count.as_deref(), count_command)?;
        let id = settings.id.as_deref().map(|id| match id.strip_prefix("header:") {
            Some(name) => IdPlace::Header(name.to_ascii_lowercase()),
            None => IdPlace::Pointer(id.to_owned()),
        });
        let content_type = settings.content_type.clone().unwrap_or_else(|| "application/json".to_owned());
        let format = Format::of(&content_type);
        if format == Format::Multipart && content_type.to_ascii_lowercase().contains("boundary=") {
            let why = "--content-type: parts and boundary are the probe's own; give --body as NAME=VALUE&NAME=VALUE";
            return Err(usage(why.to_owned()));
        }
        let mut target = Self {
            address: Address::parse(url)?,
            method,
            contract,
            body: settings.body.clone().unwrap_or_else(|| format.empty().to_owned()),
            format,
            content_type,
            headers: settings.header.iter().map(|line| header(line)).collect::<Result<_, _>>()?,
            credential: settings.credential.as_deref().map(secret).transpose()?,
            id,
            counter,
            means: Means::of(settings)?,
            arrivals: arrivals::counter(settings)?,
            vary: settings.vary.clone(),
            invalid: settings.invalid.clone(),
            declined: settings.declined.clone(),
            default_member: settings.default_member.clone(),
            carrier: carrier(settings.key.as_deref(), contract)?,
        };
        if settings.http2 {
            target.speak_http2();
        }
        if target.vary.is_some() {
            target.written(Body::Changed, None, None).map_err(|why| usage(format!("--vary: {why}")))?;
        }
        Ok(target)
    }

    /// The operations, and what counts on the same server; another one that counts need not know HTTP/2.
    fn speak_http2(&mut self) {
        for counter in [&mut self.counter, &mut self.arrivals].into_iter().flatten() {
            if let Counter::Url { address, .. } = counter {
                address.http2 = address.is_beside(&self.address);
            }
        }
        self.address.http2 = true;
        for further in self.means.places.values_mut() {
            further.address.http2 = true;
        }
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

    /// The body of a request under `key`, changed, with the key in its `member`. What is to be fresh for each action is the
    /// same for equal keys.
    fn written(&self, change: Body, key: Option<&str>, member: Option<&str>) -> Result<Vec<u8>, String> {
        // Not the key itself: an answer that shows this text does not show the key.
        let text = key.map_or_else(fresh, |key| Ok(key.chars().rev().collect()))?;
        let filled = |given: &str| given.replace(FRESH, &text);
        let (base, change) = match (change, &self.invalid, &self.declined) {
            (Body::Invalid, Some(invalid), _) => (invalid, Body::Base),
            (Body::Declined, _, Some(declined)) => (declined, Body::Base),
            (Body::Declined, _, None) => return Err(not_given(&["--declined"])),
            (change, _, _) => (&self.body, change),
        };
        let hints = Hints { vary: self.vary.as_deref(), default: self.default_member.as_deref() };
        self.format.body(filled(base).as_bytes(), change, &hints, member.zip(key))
    }

    /// What was not given that a case needs; nothing where it can be asked.
    pub(crate) fn lacks(&self, case: &Case) -> Option<String> {
        match self.means.missing(case).as_slice() {
            [] => {
                let id = self.id.as_ref().map(|_| "id");
                let known = Known { key: Some("key"), first_used: Timestamp::now(), id };
                case.sends().find_map(|send| self.request(send, &known).err())
            }
            flags => Some(not_given(flags)),
        }
    }

    /// Where a step goes, and how it asks there.
    fn place(&self, send: &Request, known: &Known<'_>) -> Result<(Address, String), String> {
        let given = send.method.clone();
        match (send.to, self.means.places.get(&send.to)) {
            (Place::Target, _) => Ok((self.address.clone(), given.unwrap_or_else(|| self.method.clone()))),
            (Place::Other, None) => Err("no other operation was named (--also other=URL)".to_owned()),
            (place, None) => Err(not_given(&[place.flag()])),
            (_, Some(further)) => {
                let method = given.or_else(|| further.method.clone()).unwrap_or_else(|| self.method.clone());
                Ok((further.at(known.key, known.id)?, method))
            }
        }
    }

    /// The request of a step. The text of the error says what was not given that it needs.
    pub(crate) fn request(&self, send: &Request, known: &Known<'_>) -> Result<(Address, Prepared), String> {
        let (mut address, method) = self.place(send, known)?;
        let mut headers = vec![
            ("host".to_owned(), address.authority.clone()),
            ("user-agent".to_owned(), concat!("counterfoil-probe/", env!("CARGO_PKG_VERSION")).to_owned()),
            ("accept".to_owned(), "*/*".to_owned()),
        ];
        if send.body != Body::Nothing {
            let content_type = self.format.content_type(&self.content_type, send.body, send.charset)?;
            headers.push(("content-type".to_owned(), content_type));
        }
        for (name, value) in &self.headers {
            set(&mut headers, name, value);
        }
        // Whoever keeps the description may be somebody else, and a credential is for one.
        let foreign = send.to == Place::Description && address.host != self.address.host;
        if let Some((name, value)) = self.credential_for(send.credential)?.filter(|_| !foreign) {
            set(&mut headers, &name, &value);
        }
        if send.other_account {
            let (name, value) = self.means.account.as_ref().ok_or_else(|| not_given(&["--account-header"]))?;
            set(&mut headers, name, value);
        }
        for (name, value) in &send.headers {
            set(&mut headers, name, value);
        }
        if let Some(query) = &send.query {
            add_query(&mut address.path, query);
        }
        let key = match (known.key.map(|key| shaped(key, send)), send.key_form) {
            (Some(key), KeyForm::Nested) => Some(self.means.nested_key(self.credential.as_ref(), &key)?),
            (key, _) => key,
        };
        let mut member = None;
        // A key that stands in the address is asked about, and not used.
        if let Some(key) = key.as_ref().filter(|_| !self.means.places.get(&send.to).is_some_and(Further::holds_key)) {
            if let Some((name, value)) = self.means.first_sent(send.first_sent, known.first_used) {
                set(&mut headers, name, &value);
            }
            match self.carrier(send.place) {
                Carrier::Header(name) => {
                    set(&mut headers, &name, &self.spelt(key, send.key_form));
                    match (send.place, headers.last_mut()) {
                        (KeyPlace::HeaderCapitals, Some((name, _))) => *name = name.to_ascii_uppercase(),
                        (KeyPlace::HeaderTwice, _) => {
                            let other = self.spelt(&format!("{key}-2"), send.key_form);
                            headers.push((name, other));
                        }
                        _ => {}
                    }
                }
                Carrier::Query(_) | Carrier::Body(_)
                    if matches!(send.place, KeyPlace::HeaderTwice | KeyPlace::HeaderCapitals) =>
                {
                    return Err("the key is in no header".to_owned());
                }
                Carrier::Query(name) => add_query(&mut address.path, &format!("{name}={key}")),
                Carrier::Body(name) => member = Some(name),
            }
        }
        let body = match send.body {
            Body::Nothing => Vec::new(),
            change => self.written(change, key.as_deref(), member.as_deref())?,
        };
        set(&mut headers, "content-length", &body.len().to_string());
        set(&mut headers, "connection", if send.keep { "keep-alive" } else { "close" });
        let path = address.path.clone();
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
            (Credential::Second, _) => {
                self.means.second.clone().map(Some).ok_or_else(|| not_given(&["--second-credential"]))
            }
            (Credential::SameTenant, _) => {
                self.means.same_tenant.clone().map(Some).ok_or_else(|| not_given(&["--same-tenant-credential"]))
            }
            (Credential::Nested, _) => {
                self.means.nested.clone().map(Some).ok_or_else(|| not_given(&["--nested-credential"]))
            }
        }
    }

    fn carrier(&self, place: KeyPlace) -> Carrier {
        match place {
            KeyPlace::Given | KeyPlace::HeaderTwice | KeyPlace::HeaderCapitals => self.carrier.clone(),
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
            _ => self.contract == Contract::Ietf,
        };
        if quoted { format!("\"{key}\"") } else { key.to_owned() }
    }

    /// The name of the header, parameter or member in which keys stand.
    pub(crate) fn key_name(&self) -> &str {
        match &self.carrier {
            Carrier::Header(name) | Carrier::Query(name) | Carrier::Body(name) => name,
        }
    }

    /// Where the key stood, as fields of the sheet.
    pub(crate) fn placed(&self) -> Vec<(String, Value)> {
        let place = match &self.carrier {
            Carrier::Header(name) => format!("header:{name}"),
            Carrier::Query(name) => format!("query:{name}"),
            Carrier::Body(name) => format!("body:{name}"),
        };
        let mut fields = vec![("key.place".to_owned(), Value::text(place))];
        if matches!(self.carrier, Carrier::Header(_)) {
            let quoted = self.spelt("", KeyForm::Plain).starts_with('"');
            fields.push(("key.quoted".to_owned(), Value::Truth(quoted)));
        }
        fields
    }

    /// Every credential that was given.
    pub(crate) fn credentials(&self) -> impl Iterator<Item = &(String, String)> {
        [&self.credential, &self.means.second, &self.means.same_tenant, &self.means.nested].into_iter().flatten()
    }

    /// What may never be written into a report, the longest first. A value as short as a tenant's name is none: without it
    /// no text could be read.
    pub(crate) fn secrets(&self) -> Vec<String> {
        let value = self.credentials().map(|(_, value)| value.clone());
        let bare = self.credentials().filter_map(|(_, value)| value.split_once(' ').map(|(_, bare)| bare.to_owned()));
        let mut secrets: Vec<String> = value.chain(bare).filter(|secret| secret.len() >= SECRET_BYTES_MIN).collect();
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        secrets
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

/// A text that no action had before.
fn fresh() -> Result<String, String> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes).map_err(|error| format!("no randomness: {error}"))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The key in the form and length that the step asks for.
fn shaped(key: &str, send: &Request) -> String {
    let text = match send.key_length {
        Some(length) => key.chars().cycle().take(length).collect(),
        None => key.to_owned(),
    };
    match send.key_form {
        KeyForm::Upper => text.to_ascii_uppercase(),
        KeyForm::Plain | KeyForm::Quoted | KeyForm::Bare | KeyForm::Nested => text,
        KeyForm::Empty => String::new(),
        KeyForm::Spaced => format!("{text} x"),
        KeyForm::Comma => format!("{text},x"),
        KeyForm::Accented => format!("{text}\u{e9}"),
        KeyForm::Word => format!("order-{}", text.replace('-', "")),
    }
}

pub(crate) fn header(line: &str) -> Result<(String, String), ProbeError> {
    let wrong = || ProbeError::Usage("a header is written as 'Name: value'".to_owned());
    let (name, value) = line.split_once(':').ok_or_else(wrong)?;
    let (name, value) = (name.trim().to_ascii_lowercase(), value.trim().to_owned());
    name.parse::<HeaderName>().map_err(|_| wrong())?;
    HeaderValue::from_str(&value).map_err(|_| wrong())?;
    Ok((name, value))
}

pub(crate) fn secret(line: &str) -> Result<(String, String), ProbeError> {
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
