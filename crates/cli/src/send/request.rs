//! The request that the arguments describe, before it has a key. What may be frozen is decided by core.

use std::io::Read as _;
use std::path::Path;

use bytes::Bytes;
use counterfoil_client::Wish;
use counterfoil_core::intent::{BODY_BYTES_MAX, Draft, Header, ProfileRef, Value};
use counterfoil_core::profile::Profile;
use http::Method;

use crate::args::Send;
use crate::error::CliError;

const FORM: &str = "application/x-www-form-urlencoded";
const JSON: &str = "application/json";

/// What is to be done once.
pub(super) fn wish(send: &Send, contract: &Profile) -> Result<Wish, CliError> {
    let method = method(&send.method, contract)?;
    let mut headers = send.headers.iter().map(|line| header(line)).collect::<Result<Vec<_>, _>>()?;
    let body = match &send.json {
        Some(text) => {
            default(&mut headers, "content-type", JSON);
            default(&mut headers, "accept", JSON);
            data(text)?
        }
        None if send.data.is_empty() => Bytes::new(),
        None => {
            default(&mut headers, "content-type", FORM);
            let parts = send.data.iter().map(|text| data(text)).collect::<Result<Vec<_>, _>>()?;
            parts.join(&b'&').into()
        }
    };
    let draft = Draft {
        name: send.intent.clone(),
        method,
        url: send.url.clone(),
        headers,
        body,
        scope: None,
        profile: ProfileRef { id: contract.id.clone(), version: contract.version },
    };
    Ok(Wish {
        key: send.key.clone(),
        window: send.window,
        attempt_limit: send.max_time,
        again: send.again,
        ..Wish::new(draft)
    })
}

fn method(text: &str, contract: &Profile) -> Result<Method, CliError> {
    let wrong = |why: String| CliError::Usage(format!("--request {text}: {why}"));
    let method = Method::from_bytes(text.as_bytes()).map_err(|_| wrong("that is no method".to_owned()))?;
    if contract.methods.is_empty() || contract.methods.iter().any(|known| known == method.as_str()) {
        return Ok(method);
    }
    Err(wrong(format!(
        "profile `{}` promises nothing for it, only for {}: a key would guard nothing",
        contract.id,
        contract.methods.join(", ")
    )))
}

fn header(line: &str) -> Result<Header, CliError> {
    let parts = line.split_once(':').filter(|(name, _)| !name.is_empty());
    let (name, value) = parts.ok_or_else(|| CliError::Usage("--header: write it as 'Name: value'".to_owned()))?;
    Ok(Header { name: name.trim().to_ascii_lowercase(), value: Value::read(value.trim().as_bytes()) })
}

/// A header that stands where none of its name was given.
fn default(headers: &mut Vec<Header>, name: &str, value: &'static str) {
    if !headers.iter().any(|header| header.name == name) {
        headers.push(Header { name: name.to_owned(), value: Value::Plain(Bytes::from_static(value.as_bytes())) });
    }
}

/// The text itself, or what stands in the file behind `@`.
fn data(text: &str) -> Result<Bytes, CliError> {
    let Some(path) = text.strip_prefix('@') else { return Ok(Bytes::copy_from_slice(text.as_bytes())) };
    let wrong = |why: String| CliError::Usage(format!("@{path}: {why}"));
    let mut read = Vec::new();
    let most = BODY_BYTES_MAX as u64 + 1;
    if path == "-" {
        std::io::stdin().lock().take(most).read_to_end(&mut read)
    } else {
        std::fs::File::open(Path::new(path)).and_then(|file| file.take(most).read_to_end(&mut read))
    }
    .map_err(|error| wrong(error.to_string()))?;
    if read.len() > BODY_BYTES_MAX {
        return Err(wrong("it has more than 8 MiB".to_owned()));
    }
    Ok(read.into())
}
