//! Secrets, read anew at each attempt and kept nowhere. What a reference is belongs to `core::intent`.

use std::fs::File;
use std::io::Read as _;
use std::time::UNIX_EPOCH;

use counterfoil_core::Timestamp;
use counterfoil_core::intent::{Intent, Request, Secret, SecretSource, Value};
use counterfoil_core::profile::Carrier;
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::error::ClientError;

/// The longest secret, in bytes.
const SECRET_BYTES_MAX: u64 = 64 << 10;

/// The headers of every attempt: the intent's own, with its secrets, and the one that carries the key.
pub(crate) fn headers(request: &Request) -> Result<HeaderMap, ClientError> {
    let mut headers = HeaderMap::new();
    for header in &request.headers {
        let value = match &header.value {
            Value::Plain(bytes) => HeaderValue::from_bytes(bytes).map_err(|error| wrong(&header.name, error))?,
            Value::Secret(secret) => resolved(&header.name, secret)?,
        };
        headers.append(name(&header.name)?, value);
    }
    if let Some((key_header, value)) = request.key_header() {
        let value = HeaderValue::try_from(value).map_err(|error| wrong(key_header, error))?;
        headers.insert(name(key_header)?, value);
    }
    Ok(headers)
}

/// The header with the first attempt's own instant, the same in every attempt, where the profile asks for it.
pub(crate) fn first_sent(intent: &Intent) -> Result<Option<(HeaderName, HeaderValue)>, ClientError> {
    let Carrier::Header { first_sent: Some(header), .. } = &intent.request.carrier else { return Ok(None) };
    let Some(first) = intent.attempts.first() else { return Ok(None) };
    let date = httpdate::fmt_http_date(UNIX_EPOCH + first.started_at.since(Timestamp::from_millis(0)));
    let date = HeaderValue::try_from(date).map_err(|error| wrong(header, error))?;
    Ok(Some((name(header)?, date)))
}

/// Only the credentials, for a question beside the action.
pub(crate) fn credentials(request: &Request) -> Result<HeaderMap, ClientError> {
    let mut headers = HeaderMap::new();
    for header in &request.headers {
        if let Value::Secret(secret) = &header.value {
            headers.append(name(&header.name)?, resolved(&header.name, secret)?);
        }
    }
    Ok(headers)
}

fn name(text: &str) -> Result<HeaderName, ClientError> {
    HeaderName::from_bytes(text.as_bytes()).map_err(|error| wrong(text, error))
}

fn wrong(header: &str, why: impl ToString) -> ClientError {
    ClientError::Secret { header: header.to_owned(), why: why.to_string() }
}

fn resolved(header: &str, secret: &Secret) -> Result<HeaderValue, ClientError> {
    let text = match &secret.source {
        SecretSource::Env(variable) => std::env::var(variable).map_err(|_| {
            wrong(header, format!("the environment has no variable {variable}: set it for this command"))
        })?,
        SecretSource::File(path) => {
            let mut text = String::new();
            File::open(path)
                .and_then(|file| file.take(SECRET_BYTES_MAX).read_to_string(&mut text))
                .map_err(|error| wrong(header, format!("{path} cannot be read: {error}")))?;
            text.trim_end_matches(['\r', '\n']).to_owned()
        }
    };
    let mut value = HeaderValue::try_from(format!("{}{text}", secret.prefix))
        .map_err(|_| wrong(header, "its text cannot stand in a header: it must be one printable line"))?;
    value.set_sensitive(true);
    Ok(value)
}
