//! `from = "forward-auth"`: which application is asked who the caller is. Asking belongs to `principal::forward_auth`.

use std::time::Duration;

use http::{HeaderName, header};

use super::{missing, parse_header_name};
use crate::config::quantity::{SPAN_ACCEPTED, parse_span, print_span};
use crate::config::reader::{Section, text};
use crate::config::setting::Setting;
use crate::config::terms::bounded;
use crate::config::url::Url;

const URL_ACCEPTED: &str = "a URL like \"http://127.0.0.1:9000/whoami\"";
const ANSWER_ACCEPTED: &str = "the header of its answer that names the caller, like \"x-user-id\"";
const SEND_ACCEPTED: &str = "a header of the request that it needs, like \"authorization\"";
const CLAIM_ACCEPTED: &str = "a header of its answer like \"x-role\"";

const TIMEOUT_MIN: Duration = Duration::from_millis(100);
const TIMEOUT_MAX: Duration = Duration::from_secs(30);

/// Told to the application by us, so that the caller's own lines under these names never reach it.
const TOLD: [&str; 4] = ["x-forwarded-for", "x-forwarded-host", "x-forwarded-method", "x-forwarded-uri"];
/// Belongs to the connection or to the body, neither of which is forwarded.
const NEVER_SENT: [&str; 12] = [
    "connection",
    "content-encoding",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "range",
];

/// Callers known to an application, which is asked for every call.
#[derive(Clone, PartialEq, Debug)]
pub struct ForwardAuth {
    /// What is asked.
    pub url: Url,
    /// The header of its answer that names the caller.
    pub answer_header: HeaderName,
    /// Headers of its answer that are claims, each under its name in lower case.
    pub answer_claims: Setting<Vec<HeaderName>>,
    /// Headers of the request that it gets.
    pub send: Setting<Vec<HeaderName>>,
    /// How long it may take.
    pub timeout: Setting<Duration>,
}

pub(super) fn read(section: &Section<'_>) -> Option<ForwardAuth> {
    let url = section.text("url", URL_ACCEPTED, Url::parse);
    let answer_header = section.text("answer_header", ANSWER_ACCEPTED, parse_header_name);
    missing(
        section,
        &[("url", URL_ACCEPTED), ("answer_header", ANSWER_ACCEPTED)],
        "somebody must say who the caller is",
    );
    let answer_claims = bounded(section, "answer_claims", CLAIM_ACCEPTED, |value| parse_header_name(text(value)?));
    let send = bounded(section, "send", SEND_ACCEPTED, |value| parse_sent(text(value)?));
    let timeout = section.text("timeout", SPAN_ACCEPTED, parse_timeout);
    Some(ForwardAuth {
        url: url?,
        answer_header: answer_header?,
        answer_claims: Setting::or(answer_claims, Vec::new()),
        send: Setting::or(send, vec![header::AUTHORIZATION, header::COOKIE]),
        timeout: Setting::or(timeout, Duration::from_secs(2)),
    })
}

fn parse_sent(text: &str) -> Result<HeaderName, String> {
    let name = parse_header_name(text)?;
    if TOLD.contains(&name.as_str()) {
        return Err(format!("{name} is told anyway, by this proxy and not by its caller"));
    }
    if NEVER_SENT.contains(&name.as_str()) {
        return Err(format!("{name} belongs to the connection or the body, which the application does not get"));
    }
    Ok(name)
}

fn parse_timeout(text: &str) -> Result<Duration, String> {
    let span = parse_span(text)?;
    if span < TIMEOUT_MIN || span > TIMEOUT_MAX {
        let (least, most) = (print_span(TIMEOUT_MIN), print_span(TIMEOUT_MAX));
        return Err(format!("{text:?} is not between {least} and {most}"));
    }
    Ok(span)
}
