//! Reads rules about answers, and recipes. What they mean belongs to `core::profile`.

use std::ops::RangeInclusive;

use counterfoil_core::profile::{AnswerRule, BodyMatch, Meaning, Recipe};
use toml::Value;

use super::reader::{Section, header, owned, shown};

const STATUS_ACCEPTED: &str = "a list of statuses like 409, \"2xx\" or \"400-499\"";
const POINTER_ACCEPTED: &str = "a JSON pointer like \"/error/code\", in which * stands for any item";
const NAME_ACCEPTED: &str = "what this answer says, in a few words";
const MATCH_ACCEPTED: &str = "a header's name, or \"Name: value\"";
const MEANINGS: [(&str, Meaning); 10] = [
    ("success", Meaning::Success),
    ("in-progress", Meaning::InProgress),
    ("not-processed", Meaning::NotProcessed),
    ("unclear", Meaning::Unclear),
    ("refused", Meaning::Refused),
    ("stored-failure", Meaning::StoredFailure),
    ("mismatch", Meaning::Mismatch),
    ("window-closed", Meaning::WindowClosed),
    ("unguarded", Meaning::Unguarded),
    ("operator", Meaning::Operator),
];

pub(super) fn rules(section: &Section<'_>, key: &'static str) -> Vec<AnswerRule> {
    section.sections(key).iter().filter_map(rule).collect()
}

fn rule(section: &Section<'_>) -> Option<AnswerRule> {
    let name = section.needed("name", NAME_ACCEPTED, section.text("name", NAME_ACCEPTED, owned));
    let status = section.list("status", STATUS_ACCEPTED, status);
    if status.is_empty() {
        section.complain("status", "empty or missing", STATUS_ACCEPTED);
    }
    let header = section.text("header", MATCH_ACCEPTED, header_match);
    let tables = section.one_or_more("json");
    let json = tables.iter().filter_map(json);
    let holds = section.text("holds", "a text that the body holds", |text| Some(BodyMatch::Holds(text.to_owned())));
    let body = json.chain(holds).collect();
    let means = section.needed_word("means", &MEANINGS);
    let record = section.flag("record");
    let resource = section.text("resource", POINTER_ACCEPTED, pointer);
    section.finish();
    Some(AnswerRule { name: name?, status, header, body, means: means?, record, resource })
}

fn json(section: &Section<'_>) -> Option<BodyMatch> {
    let at = section.needed("at", POINTER_ACCEPTED, section.text("at", POINTER_ACCEPTED, pointer));
    let is = section.list("is", "a text", |value| value.as_str().map(str::to_owned));
    if is.is_empty() {
        section.complain("is", "empty or missing", "a list of texts");
    }
    section.finish();
    Some(BodyMatch::Json { at: at?, is })
}

fn pointer(text: &str) -> Option<String> {
    let escapes = text.split('~').skip(1).all(|rest| rest.starts_with(['0', '1']));
    (text.starts_with('/') && escapes).then(|| text.to_owned())
}

fn header_match(text: &str) -> Option<(String, Option<String>)> {
    match text.split_once(':') {
        Some((name, value)) => {
            Some((header(name)?, Some(value.trim().to_owned()).filter(|value| !value.is_empty())?.into()))
        }
        None => Some((header(text)?, None)),
    }
}

fn status(value: &Value) -> Option<RangeInclusive<u16>> {
    let bounded = |from: u16, to: u16| (100 <= from && from <= to && to <= 599).then_some(from..=to);
    match value {
        Value::Integer(number) => u16::try_from(*number).ok().and_then(|status| bounded(status, status)),
        Value::String(text) => match text.strip_suffix("xx") {
            Some(class) => {
                let class: u16 = class.parse().ok().filter(|class| (1..=5).contains(class))?;
                bounded(class * 100, class * 100 + 99)
            }
            None => {
                let (from, to) = text.split_once('-')?;
                bounded(from.parse().ok()?, to.parse().ok()?)
            }
        },
        Value::Float(_) | Value::Boolean(_) | Value::Datetime(_) | Value::Array(_) | Value::Table(_) => None,
    }
}

pub(super) fn recipe(section: &Section<'_>) -> Option<Recipe> {
    const METHOD: &str = "\"GET\" or \"POST\"";
    const URL: &str = "a URL that begins with {url} or {origin}, and may hold {key} and {resource}";
    let method = section.text("method", METHOD, |text| matches!(text, "GET" | "POST").then(|| text.to_owned()));
    let method = section.needed("method", METHOD, method);
    let url = section.text("url", URL, |text| {
        (text.starts_with("{url}") || text.starts_with("{origin}/")).then(|| text.to_owned()).filter(|url| filled(url))
    });
    let url = section.needed("url", URL, url);
    let body = section.text("body", "a JSON text, which may hold {key} and {resource}", owned);
    let note = section.text("note", "what a person should know", owned);
    let note = section.needed("note", "what a person should know before using it", note);
    let (found, absent) = (rules(section, "found"), rules(section, "absent"));
    for (key, rules) in [("found", &found), ("absent", &absent)] {
        for (index, rule) in
            rules.iter().enumerate().filter(|(_, rule)| !matches!(rule.means, Meaning::Success | Meaning::Refused))
        {
            let path = format!("{key}[{index}].means");
            section.complain(&path, shown(&Value::String(format!("{:?}", rule.means))), "\"success\" or \"refused\"");
        }
    }
    section.finish();
    Some(Recipe { method: method?, url: url?, body, found, absent, note: note? })
}

/// Whether only the names that can be filled in stand in braces.
fn filled(text: &str) -> bool {
    let names = ["{url}", "{origin}", "{key}", "{resource}"];
    let rest = names.iter().fold(text.to_owned(), |rest, name| rest.replace(name, ""));
    !rest.contains(['{', '}'])
}
