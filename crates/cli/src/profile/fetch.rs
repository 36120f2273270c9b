//! `profile fetch`: the contract that a service publishes, as a profile file. What is said is taken; what is not said
//! stays unknown. The form of the document is `docs/reference/idempotency-contract.schema.json`.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use counterfoil_client::{Heard, Http, Outgoing, Transport as _, profiles};
use counterfoil_core::Body;
use http::{HeaderMap, Method, Uri};
use serde_json::Value;
use tokio::time::Instant;

use crate::args::ProfileFetch;
use crate::error::CliError;
use crate::print;

const PATH: &str = "/.well-known/idempotency";
const FORM: u64 = 1;
const LIMIT: Duration = Duration::from_secs(30);
const PROBLEMS: &str = "urn:counterfoil:problem:";

pub(super) async fn run(arguments: &ProfileFetch) -> Result<(), CliError> {
    let url: Uri = arguments.url.parse().map_err(|_| wrong(arguments, "that is no URL"))?;
    let host = url.host().filter(|_| url.scheme().is_some());
    let host = host.ok_or_else(|| wrong(arguments, "begin with https:// or http:// and a host"))?.to_owned();
    let url = if matches!(url.path(), "" | "/") {
        format!("{}{PATH}", arguments.url.trim_end_matches('/'))
    } else {
        arguments.url.clone()
    };
    let document = asked(arguments, &url).await?;
    let id = arguments.id.clone().unwrap_or_else(|| profiles::id_of(&host));
    let today = jiff::Timestamp::now().to_string().chars().take(10).collect::<String>();
    let text = written(&document, arguments.operation.as_deref(), &id, &url, &today)
        .map_err(|fault| CliError::Refused(format!("{url}: {fault}")))?;
    profiles::parse(&text).map_err(|complaints| CliError::Refused(format!("{url}: {complaints}")))?;
    print::data(&text)
}

fn wrong(arguments: &ProfileFetch, why: &str) -> CliError {
    CliError::Usage(format!("{}: {why}", arguments.url))
}

async fn asked(arguments: &ProfileFetch, url: &str) -> Result<Value, CliError> {
    let url: Uri = url.parse().map_err(|_| wrong(arguments, "that is no URL"))?;
    let shown = url.to_string();
    let request = Outgoing { method: Method::GET, url, headers: HeaderMap::new(), body: bytes::Bytes::new() };
    let http = Arc::new(Http::new()?);
    let answer = match http.send(request, Instant::now() + LIMIT).await {
        Heard::Answered(answer) => answer,
        Heard::NotSent(why) | Heard::Uncertain(why) => return Err(CliError::Internal(format!("{shown}: {why}"))),
    };
    let refused = |why: String| CliError::Refused(format!("{shown}: {why}"));
    if answer.status != 200 {
        return Err(refused(format!("it publishes no contract there: status {}", answer.status)));
    }
    let Body::Kept(bytes) = answer.body else { return Err(refused("the document is too large".to_owned())) };
    serde_json::from_slice(&bytes).map_err(|error| refused(format!("the document is not JSON: {error}")))
}

/// The profile's text.
fn written(document: &Value, operation: Option<&str>, id: &str, url: &str, today: &str) -> Result<String, String> {
    if document.get("contract").and_then(Value::as_u64) != Some(FORM) {
        return Err("the document is of another form: fetch it with a newer counterfoil".to_owned());
    }
    if document.pointer("/problem_documents/type_prefix").and_then(Value::as_str) != Some(PROBLEMS) {
        return Err("its problem documents are not known here: write a profile by hand".to_owned());
    }
    let promises = promises(document, operation)?;
    let quote = |text: &str| toml_text(text);
    let mut text = String::new();
    let mut line = |words: String| {
        // Writing to a text cannot fail.
        let _ = writeln!(text, "{words}");
    };
    line(format!("# What {url} published on {today}."));
    line(format!("id = {}\nversion = 1\ntitle = {}", quote(id), quote(&format!("As published at {url}"))));
    let methods = methods(&promises);
    if !methods.is_empty() {
        let listed: Vec<String> = methods.iter().map(|method| quote(method)).collect();
        line(format!("methods = [{}]", listed.join(", ")));
    }
    let scope = scope(&promises);
    if !scope.is_empty() {
        let listed: Vec<String> = scope.iter().map(|part| quote(part)).collect();
        line(format!("scope = [{}]", listed.join(", ")));
    }
    line(format!("\n[[source]]\nat = {}\nchecked = {}\nconfidence = \"read\"", quote(url), quote(today)));
    line(format!("\n[key]\n{}", key(&promises)?));
    if let Some(window) = window(&promises) {
        line(format!("\n[window]\n{window}"));
    }
    // What answers mean is the same for every service behind Counterfoil.
    let rules = profiles::text("counterfoil").and_then(|known| known.find("[marker]").and_then(|at| known.get(at..)));
    line(format!("\n{}", rules.unwrap_or_default().trim_end()));
    Ok(text)
}

/// What is promised, operation by operation.
fn promises<'d>(document: &'d Value, operation: Option<&str>) -> Result<Vec<&'d Value>, String> {
    let listed = document.get("operations").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let name = |promise: &Value| promise.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
    if let Some(wanted) = operation {
        let found: Vec<&Value> = listed.iter().filter(|promise| name(promise) == wanted).collect();
        let names: Vec<String> = listed.iter().map(name).collect();
        return if found.is_empty() {
            Err(format!("it lists no operation {wanted:?}, but: {}", names.join(", ")))
        } else {
            Ok(found)
        };
    }
    let unlisted = document.get("unlisted").filter(|rest| rest.get("guarded") == Some(&Value::Bool(true)));
    let all: Vec<&Value> = listed.iter().chain(unlisted).collect();
    if all.is_empty() { Err("it guards nothing".to_owned()) } else { Ok(all) }
}

fn methods(promises: &[&Value]) -> BTreeSet<String> {
    let mut methods = BTreeSet::new();
    for promise in promises {
        let pattern = promise.get("match").and_then(Value::as_str).and_then(|pattern| pattern.split(' ').next());
        methods.extend(pattern.map(str::to_owned));
        let listed = promise.get("methods").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        methods.extend(listed.iter().filter_map(Value::as_str).map(str::to_owned));
    }
    methods
}

fn scope(promises: &[&Value]) -> Vec<String> {
    let parts = promises.first().and_then(|promise| promise.get("scope")?.as_array());
    parts.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Where the key stands, and the shortest of what is accepted.
fn key(promises: &[&Value]) -> Result<String, String> {
    let carrier = promises.first().and_then(|promise| promise.pointer("/key/carriers/0/header")?.as_str());
    let carrier = carrier.ok_or("it does not say which header carries the key")?;
    let quoted = promises.iter().all(|promise| {
        let spellings = promise.pointer("/key/spellings").and_then(Value::as_array);
        spellings.is_some_and(|spellings| spellings.iter().any(|spelling| spelling == "quoted"))
    });
    let encoding = if quoted { "quoted" } else { "raw" };
    let mut text = format!("header = {}\nencoding = \"{encoding}\"", toml_text(carrier));
    let longest = promises.iter().filter_map(|promise| promise.pointer("/key/length_max")?.as_u64()).min();
    if let Some(longest) = longest {
        text.push_str(&format!("\nbytes_max = {longest}"));
    }
    Ok(text)
}

/// The shortest retention of all; nothing where one of them does not say.
fn window(promises: &[&Value]) -> Option<String> {
    let seconds = |promise: &&Value| promise.pointer("/retention/seconds")?.as_f64();
    let spans: Option<Vec<f64>> = promises.iter().map(seconds).collect();
    let shortest = spans?.into_iter().reduce(f64::min)?;
    // Kept from its completion, so at least as long after it was sent.
    let from =
        promises.iter().all(|promise| promise.pointer("/retention/from").and_then(Value::as_str) == Some("completion"));
    let from = if from { "completed" } else { "unknown" };
    let then = |promise: &&Value| promise.pointer("/after_expiry/then").and_then(Value::as_str) == Some("refused");
    let after = if promises.iter().all(then) { "refused" } else { "new-action" };
    let millis = Duration::try_from_secs_f64(shortest).ok()?.as_millis();
    Some(format!("span = \"{millis}ms\"\nfrom = \"{from}\"\nafter = \"{after}\""))
}

/// A text as TOML has it in quotes: what JSON escapes, TOML reads.
fn toml_text(text: &str) -> String {
    Value::from(text).to_string()
}
