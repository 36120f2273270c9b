//! The target: what was told about it, judged once.
//!
//! What does not belong here: the requests to it (`target/request.rs`), and sending them (`wire.rs`).

use http::header::{HeaderName, HeaderValue};

pub(crate) use self::address::Address;
use self::places::{Callers, Places};
pub(crate) use self::request::{Prepared, Sent, head, head_of_two};
use crate::body::{Entity, Hints};
use crate::case::{Body, Contract};
use crate::error::ProbeError;
use crate::hook::Hooks;
use crate::lack::Lack;
use crate::settings::Settings;

mod address;
mod places;
mod request;

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
    places: Places,
    callers: Callers,
    pub(crate) hooks: Hooks,
    pub(crate) method: String,
    pub(crate) contract: Contract,
    pub(crate) entity: Entity,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) credential: Option<(String, String)>,
    pub(crate) id: Option<IdPlace>,
    pub(crate) counter: Option<Counter>,
    /// What counts requests where they arrive.
    pub(crate) requests: Option<Counter>,
    pub(crate) http2: bool,
    vary: Option<String>,
    invalid: Option<String>,
    default_member: Option<String>,
    declined: Option<String>,
    change: Option<String>,
    other_method: Option<String>,
    change_method: Option<String>,
    cancel_method: Option<String>,
    carrier: Carrier,
}

impl Target {
    /// Judges the settings.
    pub(crate) fn of(settings: &Settings) -> Result<Self, ProbeError> {
        let usage = ProbeError::Usage;
        let url = settings.url.as_deref().ok_or_else(|| usage("no URL was given".to_owned()))?;
        let contract = settings.contract.unwrap_or(Contract::Ietf);
        let id = settings.id.as_deref().map(|id| match id.strip_prefix("header:") {
            Some(name) => IdPlace::Header(name.to_ascii_lowercase()),
            None => IdPlace::Pointer(id.to_owned()),
        });
        let target = Self {
            address: Address::parse(url)?,
            places: Places::of(settings)?,
            callers: Callers::of(settings)?,
            hooks: Hooks::of(settings),
            method: method(settings.method.as_deref().unwrap_or("POST"))?,
            contract,
            entity: Entity::of(settings.body.as_deref(), &settings.form, settings.content_type.as_deref())
                .map_err(|why| usage(format!("the body: {why}")))?,
            headers: settings.header.iter().map(|line| header(line)).collect::<Result<_, _>>()?,
            credential: settings.credential.as_deref().map(secret).transpose()?,
            id,
            counter: counter("effects", &settings.count_url, &settings.count, &settings.count_command)?,
            requests: counter("requests", &settings.requests_url, &settings.requests, &settings.requests_command)?,
            http2: settings.http2,
            vary: settings.vary.clone(),
            invalid: settings.invalid.clone(),
            default_member: settings.default_member.clone(),
            declined: settings.also.declined.clone(),
            change: settings.also.change.clone(),
            other_method: settings.also.other_method.as_deref().map(method).transpose()?,
            change_method: settings.also.change_method.as_deref().map(method).transpose()?,
            cancel_method: settings.also.cancel_method.as_deref().map(method).transpose()?,
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
            declined: self.declined.as_deref(),
            change: self.change.as_deref(),
        };
        self.entity.changed(change, &hints)
    }

    /// Every address that requests may go to.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = &Address> {
        std::iter::once(&self.address).chain(self.places.all())
    }

    /// What may never be written into a report: values, and the headers that hold them.
    pub(crate) fn secrets(&self) -> (Vec<String>, Vec<String>) {
        let all: Vec<&(String, String)> = self.credential.iter().chain(self.callers.all()).collect();
        let bare = all.iter().filter_map(|(_, value)| value.split_once(' ').map(|(_, bare)| bare.to_owned()));
        let values = all.iter().map(|(_, value)| value.clone()).chain(bare);
        let values = values.filter(|secret| !secret.is_empty()).collect();
        (values, all.iter().map(|(name, _)| name.clone()).collect())
    }
}

fn counter(
    what: &str,
    url: &Option<String>,
    pointer: &Option<String>,
    command: &Option<String>,
) -> Result<Option<Counter>, ProbeError> {
    match (url, command) {
        (Some(_), Some(_)) => Err(ProbeError::Usage(format!("count {what} by a URL or by a command, not both"))),
        (Some(url), None) => {
            let pointer = pointer.clone().unwrap_or_default();
            Ok(Some(Counter::Url { address: Address::parse(url)?, pointer }))
        }
        (None, Some(command)) => Ok(Some(Counter::Command(command.clone()))),
        (None, None) => Ok(None),
    }
}

fn method(text: &str) -> Result<String, ProbeError> {
    let wrong = |_| ProbeError::Usage(format!("{text:?} is no method"));
    text.parse::<http::Method>().map(|_| text.to_owned()).map_err(wrong)
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
