//! The bytes of each request to the target, as a step differs from the plain one.
//!
//! What does not belong here: sending them (`wire.rs`), and when which is sent (the cases).

use super::{Address, Carrier, Target};
use crate::case::{Body, Contract, Credential, Http, KeyForm, KeyPlace, Loss, Media, Request, To};
use crate::exchange::Answer;
use crate::lack::Lack;
use crate::wire::Outgoing;

/// A credential that nobody has.
const WRONG: &str = "counterfoil-probe-wrong-credential";
/// A media type that no API takes.
const FOREIGN: &str = "application/x-counterfoil-probe";

/// What is known of the round when a request is put together.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sent<'a> {
    /// The key, where one goes along or is asked for.
    pub(crate) key: Option<&'a str>,
    /// The answer that `of` means; nothing before anything was sent.
    pub(crate) made: Option<&'a Answer>,
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
    /// Its head for HTTP/2; nothing for HTTP/1.1.
    two: Option<http::Request<()>>,
}

impl Prepared {
    /// The version of HTTP that it goes over.
    pub(crate) const fn protocol(&self) -> &'static str {
        if self.two.is_some() { "HTTP/2" } else { "HTTP/1.1" }
    }

    pub(crate) fn outgoing(&self) -> Outgoing {
        let Self { method, path, headers, body, lose, two, .. } = self;
        Outgoing { two: two.clone(), body: body.clone(), lose: *lose, head: head(method, path, headers) }
    }
}

/// The head of a request as HTTP/1.1 writes it.
pub(crate) fn head(method: &str, path: &str, headers: &[(String, String)]) -> Vec<u8> {
    let mut head = format!("{method} {path} HTTP/1.1\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    head.into_bytes()
}

/// Headers of HTTP/1.1 that HTTP/2 has none of (RFC 9113, section 8.2.2), and the host, which it writes otherwise.
const NOT_IN_TWO: [&str; 2] = ["host", "connection"];

/// The head of a request for HTTP/2.
pub(crate) fn head_of_two(
    method: &str,
    to: &Address,
    path: &str,
    headers: &[(String, String)],
) -> Result<http::Request<()>, Lack> {
    let scheme = if to.tls { "https" } else { "http" };
    let mut head = http::Request::builder().method(method).uri(format!("{scheme}://{}{path}", to.authority));
    for (name, value) in headers.iter().filter(|(name, _)| !NOT_IN_TWO.contains(&name.as_str())) {
        head = head.header(name.as_str(), value.as_bytes());
    }
    let head = head.version(http::Version::HTTP_2).body(());
    head.map_err(|_| Lack::void("HTTP/2 carries no such header"))
}

impl Target {
    /// The request of a step. What it needs and was not given is said.
    pub(crate) fn request(&self, send: &Request, sent: Sent<'_>) -> Result<(Address, Prepared), Lack> {
        let mut address = self.address_of(send, sent)?;
        let mut entity = self.changed(send.body)?;
        let mut headers = vec![
            ("host".to_owned(), address.authority.clone()),
            ("user-agent".to_owned(), concat!("counterfoil-probe/", env!("CARGO_PKG_VERSION")).to_owned()),
            ("accept".to_owned(), "*/*".to_owned()),
        ];
        let credential = self.credential_for(send.credential)?;
        let along = self.callers.along(send.along)?;
        for (name, value) in self.headers.iter().chain(&credential).chain(&along).chain(&send.headers_of()) {
            set(&mut headers, name, value);
        }
        if let Some(query) = &send.query {
            add_query(&mut address.path, query);
        }
        // What is asked for by its key holds it in the address.
        let carried = sent.key.filter(|_| !matches!(send.to, To::Lookup | To::Cancel));
        let key = carried.map(|key| self.shaped(key, send)).transpose()?;
        if let Some(key) = &key {
            match self.carrier(send.place) {
                Carrier::Header(name) => self.in_header(&mut headers, &name, key, send),
                _ if send.key_form.is_of_headers() => return Err(Lack::void("the key stands in no header")),
                _ if send.place == KeyPlace::HeaderUpper => return Err(Lack::void("the key stands in no header")),
                Carrier::Query(name) => add_query(&mut address.path, &format!("{name}={}", in_query(key))),
                Carrier::Body(name) => entity = entity.with_member(&name, key)?,
            }
        }
        let body = entity.bytes;
        if send.body != Body::Nothing {
            let media = match send.media {
                Media::Given => entity.media,
                Media::Charset => format!("{}; charset=utf-8", entity.media),
                Media::Foreign => FOREIGN.to_owned(),
            };
            set(&mut headers, "content-type", &media);
            set(&mut headers, "content-length", &body.len().to_string());
        }
        set(&mut headers, "connection", if send.keep { "keep-alive" } else { "close" });
        let (method, path) = (self.method_of(send)?, address.path.clone());
        let two = match send.http {
            Http::One => None,
            Http::Given if !self.http2 => None,
            Http::Two if !self.http2 && !address.tls => {
                return Err("say --http2 if the target speaks HTTP/2 without TLS".into());
            }
            Http::Given | Http::Two if send.place == KeyPlace::HeaderUpper => {
                return Err(Lack::void("HTTP/2 has no capitals in names of headers"));
            }
            Http::Given | Http::Two => Some(head_of_two(&method, &address, &path, &headers)?),
        };
        Ok((address, Prepared { method, path, headers, body, key, lose: send.lose, two }))
    }

    fn address_of(&self, send: &Request, sent: Sent<'_>) -> Result<Address, Lack> {
        match (send.to, sent.made) {
            _ if send.other_operation => self.places.other(),
            (To::Item, Some(made)) => self.places.item(&self.address, made, self.id.as_ref()),
            (to, _) => self.places.find(to, &self.address, sent.key),
        }
    }

    fn method_of(&self, send: &Request) -> Result<String, Lack> {
        let told = |told: &Option<String>, otherwise: &str| told.clone().unwrap_or_else(|| otherwise.to_owned());
        match &send.method {
            Some(method) => Ok(method.clone()),
            None if send.other_method => {
                self.other_method.clone().ok_or_else(|| "no other method was named (other-method in [also])".into())
            }
            None if send.to == To::Cancel => Ok(told(&self.cancel_method, "POST")),
            None if send.body == Body::Change => Ok(told(&self.change_method, "PATCH")),
            None => Ok(self.method.clone()),
        }
    }

    fn in_header(&self, headers: &mut Vec<(String, String)>, name: &str, key: &str, send: &Request) {
        let spelt = |key: &str| self.spelt(key, send.key_form);
        match send.key_form {
            KeyForm::List => set(headers, name, &format!("{}, {}", spelt(key), spelt(&next(key)))),
            KeyForm::TwoLines => {
                set(headers, name, &spelt(key));
                headers.push((name.to_ascii_lowercase(), spelt(&next(key))));
            }
            _ if send.place == KeyPlace::HeaderUpper => {
                headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
                headers.push((name.to_ascii_uppercase(), spelt(key)));
            }
            _ => set(headers, name, &spelt(key)),
        }
    }

    fn credential_for(&self, wanted: Credential) -> Result<Option<(String, String)>, Lack> {
        match (wanted, &self.credential) {
            (Credential::Given, credential) => Ok(credential.clone()),
            (Credential::Second, _) => self.callers.second().map(Some),
            (Credential::SameTenant, _) => self.callers.same_tenant().map(Some),
            (Credential::Weaker, _) => self.callers.weaker().map(Some),
            (Credential::Nested, _) => self.callers.nested().map(Some),
            (Credential::None | Credential::Wrong, None) => Err("no credential was given (--credential)".into()),
            (Credential::None, Some(_)) => Ok(None),
            (Credential::Wrong, Some((name, value))) => {
                let scheme = value.split_once(' ').map_or(String::new(), |(scheme, _)| format!("{scheme} "));
                Ok(Some((name.clone(), format!("{scheme}{WRONG}"))))
            }
        }
    }

    fn carrier(&self, place: KeyPlace) -> Carrier {
        match place {
            KeyPlace::Given | KeyPlace::HeaderUpper => self.carrier.clone(),
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
            KeyForm::Bare | KeyForm::Empty => false,
            _ => self.contract == Contract::Ietf,
        };
        if quoted { format!("\"{key}\"") } else { key.to_owned() }
    }

    /// The key in the form and length that the step asks for.
    fn shaped(&self, key: &str, send: &Request) -> Result<String, Lack> {
        let text: String = match send.key_length {
            Some(length) => key.chars().cycle().take(length).collect(),
            None => key.to_owned(),
        };
        let with = |mark: &str| {
            let (front, back) = text.split_at_checked(text.len() / 2).unwrap_or((text.as_str(), ""));
            format!("{front}{mark}{back}")
        };
        Ok(match send.key_form {
            KeyForm::Upper => text.to_ascii_uppercase(),
            KeyForm::Plain | KeyForm::Quoted | KeyForm::Bare | KeyForm::List | KeyForm::TwoLines => text,
            KeyForm::Empty => String::new(),
            KeyForm::Space => with(" "),
            KeyForm::Comma => with(","),
            KeyForm::NonAscii => with("\u{e9}"),
            KeyForm::Control => with("\u{1}"),
            KeyForm::Token => format!("order_{}", text.replace('-', "")),
            KeyForm::Nested => {
                self.callers.nested()?;
                // A caller `a` with the key `b:k` must not be a caller `a:b` with the key `k`.
                let name = self.callers.nested_name.as_deref().unwrap_or_default();
                let mut letters = name.chars();
                let mark: String = letters.next().into_iter().collect();
                format!("{}{mark}{text}", letters.as_str())
            }
        })
    }
}

impl Request {
    fn headers_of(&self) -> Vec<(String, String)> {
        self.headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect()
    }
}

/// Another key that is told from the first one by its end.
fn next(key: &str) -> String {
    format!("{key}-2")
}

fn set(headers: &mut Vec<(String, String)>, name: &str, value: &str) {
    headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
    headers.push((name.to_ascii_lowercase(), value.to_owned()));
}

fn add_query(path: &mut String, query: &str) {
    path.push(if path.contains('?') { '&' } else { '?' });
    path.push_str(query);
}

fn in_query(key: &str) -> String {
    let one = |byte: u8| match byte {
        byte if byte.is_ascii_alphanumeric() || b"-._~:".contains(&byte) => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    key.bytes().map(one).collect()
}
