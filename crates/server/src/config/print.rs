//! The effective configuration as a TOML file, each value with where it came from.

use std::fmt::Write as _;

use counterfoil_core::{Effect, Expiry, Hold, Rule};
use toml::Value;

use super::quantity::{print_size, print_span};
use super::{Config, Duplicates, Forward, HostSent, Http, Operation, Origin, Roots, Setting, Terms};

mod principal;

/// Collects lines; writing to a text cannot fail.
struct Page(String);

impl Page {
    fn table(&mut self, head: &str) {
        let _ = writeln!(self.0, "\n{head}");
    }

    fn line(&mut self, key: &str, value: impl Into<Value>, origin: Origin) {
        let _ = writeln!(self.0, "{key} = {} # {origin}", value.into());
    }

    fn setting<T, V: Into<Value>>(&mut self, key: &str, setting: &Setting<T>, value: impl FnOnce(&T) -> V) {
        self.line(key, value(&setting.value), setting.origin);
    }
}

pub(super) fn print(config: &Config) -> String {
    let mut page = Page(String::new());
    page.setting("listen", &config.listen, ToString::to_string);
    page.setting("admin", &config.admin, ToString::to_string);
    if config.admin_token.is_some() {
        let _ = writeln!(page.0, "# the admin token is set: {}", super::ADMIN_TOKEN_VARIABLE);
    }
    page.setting("upstream", &config.upstream, ToString::to_string);
    page.setting("store", &config.store, ToString::to_string);
    page.setting("forward_key", &config.forward_key, |flag| *flag);
    page.setting("publish_contract", &config.publish_contract, |flag| *flag);
    page.setting("repeatability", &config.repeatability, |flag| *flag);
    page.setting("replay_headers", &config.replay_headers, |names| {
        names.iter().map(|name| name.as_str().to_owned()).collect::<Vec<_>>()
    });
    principal::principal(&mut page, config);
    principal::scope(&mut page, &config.scope);
    if let Some(tls) = &config.tls {
        page.table("[tls]");
        page.setting("certificate", tls, |tls| tls.certificate.display().to_string());
        page.setting("key", tls, |tls| tls.key.display().to_string());
    }
    forward(&mut page, &config.forward, config.upstream.value.is_tls());
    page.table("[cors]");
    page.setting("origins", &config.cors.origins, |origins| {
        origins.iter().map(|origin| String::from_utf8_lossy(origin.as_bytes()).into_owned()).collect::<Vec<_>>()
    });
    page.setting("credentials", &config.cors.credentials, |flag| *flag);
    limits(&mut page, config);
    page.table("[defaults]");
    terms(&mut page, &config.defaults);
    for operation in &config.operations {
        print_operation(&mut page, operation);
    }
    page.0
}

fn forward(page: &mut Page, forward: &Forward, tls: bool) {
    page.table("[forward]");
    page.setting("http", &forward.http, |http| match http {
        Http::Auto => "auto",
        Http::One => "1.1",
        Http::Two => "2",
    });
    page.setting("host", &forward.host, |host| match host {
        HostSent::Upstream => "upstream",
        HostSent::Caller => "caller",
    });
    if tls {
        page.setting("roots", &forward.roots, |roots| match roots {
            Roots::System => "system".to_owned(),
            Roots::File(path) => path.display().to_string(),
        });
    }
    page.setting("trusted", &forward.trusted, |trusted| trusted.iter().map(ToString::to_string).collect::<Vec<_>>());
}

fn limits(page: &mut Page, config: &Config) {
    let limits = &config.limits;
    page.table("[limits]");
    page.setting("request_body_max", &limits.request_body_max, |size| print_size(*size));
    page.setting("kept_answer_max", &limits.kept_answer_max, |size| print_size(*size));
    page.setting("header_bytes", &limits.header_bytes, |size| print_size(*size));
    for (key, setting) in [
        ("max_running", &limits.max_running),
        ("waiting_for_one", &limits.waiting_for_one),
        ("waiting_in_all", &limits.waiting_in_all),
        ("connections", &limits.connections),
        ("http2_streams", &limits.http2_streams),
        ("header_lines", &limits.header_lines),
        ("upstream_connections", &limits.upstream_connections),
        ("sweep_rows", &limits.sweep_rows),
        ("writer_queue", &limits.writer_queue),
        ("writer_batch", &limits.writer_batch),
    ] {
        page.setting(key, setting, |number| whole(*number));
    }
    for (key, setting) in [
        ("header", &limits.header),
        ("body", &limits.body),
        ("connect", &limits.connect),
        ("answer", &limits.answer),
        ("idle", &limits.idle),
        ("drain", &limits.drain),
        ("sweep_every", &limits.sweep_every),
    ] {
        page.setting(key, setting, |span| print_span(*span));
    }
}

fn print_operation(page: &mut Page, operation: &Operation) {
    page.table("[[operation]]");
    page.line("name", operation.name.as_str(), Origin::File);
    page.line("match", format!("{} {}", operation.method, operation.path), Origin::File);
    page.setting("key", &operation.key_required, |required| if *required { "required" } else { "optional" });
    if !operation.require.is_empty() {
        page.line("require", principal::require(&operation.require), Origin::File);
    }
    terms(page, &operation.terms);
}

fn terms(page: &mut Page, terms: &Terms) {
    page.setting("retention", &terms.retention, |span| print_span(*span));
    page.setting("expired", &terms.expired, |expiry| match expiry {
        Expiry::NewAction => "new-action".to_owned(),
        Expiry::Refuse(span) => format!("refuse {}", print_span(*span)),
    });
    page.setting("duplicates", &terms.duplicates, |duplicates| match duplicates {
        Duplicates::Refuse => "refuse".to_owned(),
        Duplicates::Wait(span) => format!("wait {}", print_span(*span)),
    });
    page.setting("effect", &terms.effect, |effect| match effect {
        Effect::Coupled => "coupled",
        Effect::KeyedUpstream => "keyed-upstream",
        Effect::Other => "other",
    });
    page.setting("window", &terms.window, |span| span.map_or("none".to_owned(), print_span));
    page.setting("in_progress", &terms.in_progress, |running| {
        let statuses = running.statuses.iter().map(|status| Value::from(i64::from(*status)));
        statuses.chain(running.problems.iter().map(|problem| Value::from(problem.as_str()))).collect::<Vec<_>>()
    });
    page.setting("child_key", &terms.child_key, |key| {
        format!("{} {}", if key.quoted { "quoted" } else { "bare" }, key.name)
    });
    page.setting("hold", &terms.hold, |hold| match hold {
        Hold::Optional => "optional",
        Hold::Always => "always",
    });
    page.setting("fingerprint", &terms.fingerprint, rule);
    page.setting("max_age", &terms.max_age, |span| span.map_or("any".to_owned(), print_span));
    page.setting("lease", &terms.lease, |span| print_span(*span));
    page.setting("handler", &terms.handler, |span| print_span(*span));
    page.setting("not_processed", &terms.not_processed, |statuses| {
        statuses.iter().map(|status| i64::from(*status)).collect::<Vec<_>>()
    });
    page.setting("statuses", &terms.statuses, |statuses| {
        let entries = statuses.iter().map(|(kind, status)| (kind.name().to_owned(), i64::from(*status).into()));
        Value::Table(entries.collect())
    });
}

/// The rule's text taken apart again: its lists are percent-encoded there and plain here.
fn rule(rule: &Rule) -> Value {
    let text = rule.as_text();
    let mut pieces = text.split(';');
    let mut table = toml::Table::new();
    table.insert("body".to_owned(), pieces.next().unwrap_or_default().into());
    for (name, items) in pieces.filter_map(|piece| piece.split_once('=')) {
        table.insert(name.to_owned(), items.split(',').map(decoded).collect::<Vec<_>>().into());
    }
    Value::Table(table)
}

fn decoded(item: &str) -> String {
    let mut bytes = Vec::with_capacity(item.len());
    let mut rest = item.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        let escaped = after.get(..2).filter(|_| *byte == b'%');
        let escaped = escaped.and_then(|digits| std::str::from_utf8(digits).ok());
        let escaped = escaped.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(escaped.unwrap_or(*byte));
        rest = if escaped.is_some() { after.get(2..).unwrap_or_default() } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn whole(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
