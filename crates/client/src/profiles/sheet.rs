//! A contract sheet of `counterfoil probe` as a profile: what was seen is taken, and what was not seen stays unknown.
//! What a profile means belongs to `core::profile`.

use counterfoil_core::complaint::Pad;
use toml::{Table, Value};

/// The sheets that are known.
const FORMAT: i64 = 1;

/// Whether the file is a sheet, and no profile.
pub(super) fn is(table: &Table) -> bool {
    table.contains_key("field") && table.contains_key("target")
}

/// The sheet as the profile that could be written by hand from it.
pub(super) fn profile(sheet: &Table, pad: &Pad) -> Option<Table> {
    if sheet.get("format").and_then(Value::as_integer) != Some(FORMAT) {
        pad.add("format", "it is not 1", "a sheet of this version's `counterfoil probe`");
        return None;
    }
    let target = sheet.get("target").and_then(Value::as_str).unwrap_or_default();
    let told = |field: &str| {
        let (group, name) = field.split_once('.')?;
        sheet.get("field")?.get(group)?.get(name)?.get("value")
    };
    if told("replay.is").and_then(Value::as_str) != Some("replay") {
        // Sending again would act again.
        pad.add("field.replay.is", "the target was not seen to keep keys", "a sheet in which case B1 conforms");
    }
    let key = key(told("key.place").and_then(Value::as_str), told("key.quoted").and_then(Value::as_bool));
    if key.is_none() {
        pad.add("field.key.place", "missing", "a sheet in which case B1 was asked");
    }
    let mut profile = Table::new();
    profile.insert("id".to_owned(), Value::from(super::id_of(host(target))));
    profile.insert("version".to_owned(), Value::from(1));
    profile.insert("title".to_owned(), Value::from(format!("As seen by the probe at {target}")));
    let source = [("at", target), ("checked", date(sheet)), ("confidence", "partly")];
    profile
        .insert("source".to_owned(), Value::Array(vec![table(source.map(|(name, text)| (name, Value::from(text))))]));
    let mut key = key?;
    if let Some(longest) = told("key.longest").and_then(Value::as_integer) {
        key.insert("bytes_max".to_owned(), Value::from(longest));
    }
    profile.insert("key".to_owned(), Value::Table(key));
    if let Some(span) = told("retention.span").and_then(Value::as_str) {
        let window = [("span", span), ("from", "unknown"), ("after", "unknown")];
        profile.insert("window".to_owned(), table(window.map(|(name, text)| (name, Value::from(text)))));
    }
    let marker = told("replay.marker").and_then(Value::as_str).and_then(|marker| marker.split_once(": "));
    if let Some((header, value)) = marker {
        profile.insert("marker".to_owned(), table([("header", Value::from(header)), ("value", Value::from(value))]));
    }
    profile.insert("answer".to_owned(), Value::Array(answers(&told)));
    Some(profile)
}

/// `header:NAME`, `query:NAME` or `body:NAME`.
fn key(place: Option<&str>, quoted: Option<bool>) -> Option<Table> {
    let (kind, name) = place?.split_once(':')?;
    let mut key = Table::new();
    match kind {
        "header" => {
            key.insert("header".to_owned(), Value::from(name));
            let encoding = if quoted == Some(true) { "quoted" } else { "raw" };
            key.insert("encoding".to_owned(), Value::from(encoding));
        }
        "query" => drop(key.insert("parameter".to_owned(), Value::from(name))),
        "body" => drop(key.insert("member".to_owned(), Value::from(name))),
        _ => return None,
    }
    Some(key)
}

/// One status tells *in progress* and another *mismatch*: where both have the same, it tells neither. The same bytes are
/// sent at every attempt, so a status of mismatches is a refusal that proves nothing.
fn answers<'s>(told: &impl Fn(&str) -> Option<&'s Value>) -> Vec<Value> {
    let status = |field: &str| told(field).and_then(Value::as_integer);
    let (running, other) = (status("in_progress.status"), status("mismatch.status"));
    let rule = |name: &str, status: Value, means: &str, record: bool| {
        table([
            ("name", Value::from(name)),
            ("status", Value::Array(vec![status])),
            ("means", Value::from(means)),
            ("record", Value::from(record)),
        ])
    };
    let mut rules = Vec::new();
    if let Some(running) = running.filter(|status| (400..500).contains(status) && Some(*status) != other) {
        rules.push(rule("in progress", Value::from(running), "in-progress", false));
    }
    if let Some(other) = other.filter(|status| (400..500).contains(status) && Some(*status) != running) {
        rules.push(rule("mismatch or malformed", Value::from(other), "refused", false));
    }
    rules.push(rule("success", Value::from("2xx"), "success", true));
    rules
}

fn table<const N: usize>(members: [(&str, Value); N]) -> Value {
    Value::Table(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

/// The day of the oldest value: all of it was so then or later.
fn date(sheet: &Table) -> &str {
    let groups = sheet.get("field").and_then(Value::as_table).into_iter().flat_map(Table::values);
    let entries = groups.filter_map(Value::as_table).flat_map(Table::values);
    entries.filter_map(|entry| entry.get("date")?.as_str()).min().unwrap_or_default()
}

/// Host and port of the target.
fn host(target: &str) -> &str {
    target.split("://").nth(1).unwrap_or(target).split(['/', '?']).next().unwrap_or_default()
}
