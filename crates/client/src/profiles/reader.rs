//! Reads a profile file, setting by setting, and goes on after a fault so that all are told at once.
//! Rules about answers are in `answer`.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::time::Duration;

use counterfoil_core::complaint::Pad;
use counterfoil_core::identity::KEY_BYTES_MAX;
use counterfoil_core::profile::{
    Advice, AfterWindow, Basis, Carrier, Confidence, Encoding, Format, Generator, KeyRule, Marker, Profile, Remembers,
    Source, Window,
};
use toml::{Table, Value};

use super::answer;

/// The most items of a list.
const ITEMS_MAX: usize = 100;
/// The longest text, in bytes.
const TEXT_BYTES_MAX: usize = 2048;
const SPAN_ACCEPTED: &str = "a span like \"500ms\", \"30s\", \"15m\", \"24h\" or \"7d\"";
const ID_ACCEPTED: &str = "1 to 64 of a-z, 0-9 and - like \"stripe-v1\"";
const TEXT_ACCEPTED: &str = "a text of 1 to 2,048 bytes";
pub(super) const HEADER_ACCEPTED: &str = "the name of a header";

/// One table of the file.
pub(super) struct Section<'a> {
    table: &'a Table,
    path: String,
    pad: &'a Pad,
    known: RefCell<BTreeSet<&'static str>>,
}

impl<'a> Section<'a> {
    pub(super) fn root(table: &'a Table, pad: &'a Pad) -> Self {
        Self { table, path: String::new(), pad, known: RefCell::default() }
    }

    fn at(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    pub(super) fn complain(&self, key: &str, fault: impl Into<String>, accepted: impl Into<String>) {
        self.pad.add(self.at(key), fault, accepted);
    }

    pub(super) fn get(&self, key: &'static str) -> Option<&'a Value> {
        self.known.borrow_mut().insert(key);
        self.table.get(key)
    }

    /// A text that `parse` takes; `None` where it is absent or was complained about.
    pub(super) fn text<T>(
        &self,
        key: &'static str,
        accepted: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Option<T> {
        let value = self.get(key)?;
        let read = value.as_str().filter(|text| (1..=TEXT_BYTES_MAX).contains(&text.len())).and_then(parse);
        if read.is_none() {
            self.complain(key, format!("{} is not it", shown(value)), accepted);
        }
        read
    }

    /// Complains where a setting that must be there is absent.
    pub(super) fn needed<T>(&self, key: &'static str, accepted: &str, read: Option<T>) -> Option<T> {
        if read.is_none() && !self.table.contains_key(key) {
            self.complain(key, "missing", accepted);
        }
        read
    }

    fn word<T: Copy>(&self, key: &'static str, words: &[(&str, T)]) -> Option<T> {
        let accepted = words.iter().map(|(word, _)| format!("\"{word}\"")).collect::<Vec<_>>().join(", ");
        self.text(key, &accepted, |text| words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value))
    }

    /// A word that must be there.
    pub(super) fn needed_word<T: Copy>(&self, key: &'static str, words: &[(&str, T)]) -> Option<T> {
        let accepted = words.iter().map(|(word, _)| format!("\"{word}\"")).collect::<Vec<_>>().join(", ");
        let read = self.word(key, words);
        self.needed(key, &accepted, read)
    }

    fn number(&self, key: &'static str, least: usize, most: usize) -> Option<usize> {
        let value = self.get(key)?;
        let read = value.as_integer().and_then(|number| usize::try_from(number).ok());
        let read = read.filter(|number| (least..=most).contains(number));
        if read.is_none() {
            self.complain(key, format!("{} is out of bounds", shown(value)), format!("{least} to {most}"));
        }
        read
    }

    pub(super) fn flag(&self, key: &'static str) -> bool {
        match self.get(key) {
            None => false,
            Some(value) => value.as_bool().unwrap_or_else(|| {
                self.complain(key, format!("{} is neither", shown(value)), "true or false");
                false
            }),
        }
    }

    /// The items of a list, each by `parse`.
    pub(super) fn list<T>(&self, key: &'static str, accepted: &str, parse: impl Fn(&Value) -> Option<T>) -> Vec<T> {
        let Some(value) = self.get(key) else { return Vec::new() };
        let Some(items) = value.as_array().filter(|items| items.len() <= ITEMS_MAX) else {
            self.complain(key, format!("{} is not it", shown(value)), format!("a list of at most 100: {accepted}"));
            return Vec::new();
        };
        let read = items.iter().enumerate().filter_map(|(index, item)| {
            let read = parse(item);
            if read.is_none() {
                self.complain(&format!("{key}[{index}]"), format!("{} is not it", shown(item)), accepted);
            }
            read
        });
        read.collect()
    }

    fn texts(&self, key: &'static str) -> Vec<String> {
        self.list(key, TEXT_ACCEPTED, |value| {
            value.as_str().filter(|text| (1..=TEXT_BYTES_MAX).contains(&text.len())).map(str::to_owned)
        })
    }

    pub(super) fn section(&self, key: &'static str) -> Option<Section<'a>> {
        let value = self.get(key)?;
        let Some(table) = value.as_table() else {
            self.complain(key, format!("{} is no table", shown(value)), format!("a table [{}]", self.at(key)));
            return None;
        };
        Some(Section { table, path: self.at(key), pad: self.pad, known: RefCell::default() })
    }

    /// One table, or a list of them.
    pub(super) fn one_or_more(&self, key: &'static str) -> Vec<Section<'a>> {
        match self.get(key) {
            Some(Value::Table(_)) => self.section(key).into_iter().collect(),
            Some(_) | None => self.sections(key),
        }
    }

    pub(super) fn sections(&self, key: &'static str) -> Vec<Section<'a>> {
        let Some(value) = self.get(key) else { return Vec::new() };
        let tables: Option<Vec<&'a Table>> = value
            .as_array()
            .filter(|items| items.len() <= ITEMS_MAX)
            .and_then(|items| items.iter().map(Value::as_table).collect());
        let Some(tables) = tables else {
            let accepted = format!("at most 100 tables [[{}]]", self.at(key));
            self.complain(key, format!("{} is not it", shown(value)), accepted);
            return Vec::new();
        };
        let section = |(index, table)| {
            let path = format!("{}[{index}]", self.at(key));
            Section { table, path, pad: self.pad, known: RefCell::default() }
        };
        tables.into_iter().enumerate().map(section).collect()
    }

    /// Complains about every setting that nobody asked for.
    pub(super) fn finish(&self) {
        let known = self.known.borrow();
        let names = known.iter().copied().collect::<Vec<_>>().join(", ");
        for key in self.table.keys().filter(|key| !known.contains(key.as_str())) {
            self.complain(key, "unknown setting", format!("one of {names}"));
        }
    }
}

/// A value for a complaint, cut short.
pub(super) fn shown(value: &Value) -> String {
    let whole = match value {
        Value::Table(_) => "a table".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::String(_) | Value::Integer(_) | Value::Float(_) | Value::Boolean(_) | Value::Datetime(_) => {
            value.to_string()
        }
    };
    if whole.chars().count() > 60 { whole.chars().take(60).chain(['…']).collect() } else { whole }
}

/// The whole profile; `None` where something that it cannot do without was complained about.
pub(super) fn profile(root: &Section<'_>) -> Option<Profile> {
    let id = root.text("id", ID_ACCEPTED, |text| is_id(text).then(|| text.to_owned()));
    let id = root.needed("id", ID_ACCEPTED, id);
    let version = root.number("version", 1, u32::MAX as usize).and_then(|number| u32::try_from(number).ok());
    let version = root.needed("version", "a whole number that rises with every change, from 1", version);
    let title = root.needed("title", TEXT_ACCEPTED, root.text("title", TEXT_ACCEPTED, owned));
    let sources = sources(root);
    let key = root.needed("key", "a table [key]", root.section("key").map(|section| key(&section)));
    let window = root.section("window").map(|section| window(&section));
    let remembers = root.section("remembers").map(|section| remembers(&section)).unwrap_or_default();
    let profile = Profile {
        id: id.unwrap_or_default(),
        version: version.unwrap_or_default(),
        title: title.unwrap_or_default(),
        sources,
        notes: root.texts("notes"),
        key: key??,
        methods: root.texts("methods"),
        scope: root.texts("scope"),
        window: window.flatten(),
        wait_min: root.text("wait_min", SPAN_ACCEPTED, span).unwrap_or_default(),
        marker: root.section("marker").and_then(|section| marker(&section)),
        advice: root.section("advice").and_then(|section| advice(&section)),
        remembers,
        answers: answer::rules(root, "answer"),
        lookup: root.section("lookup").and_then(|section| answer::recipe(&section)),
        cancel: root.section("cancel").and_then(|section| answer::recipe(&section)),
    };
    root.finish();
    Some(profile)
}

pub(super) fn owned(text: &str) -> Option<String> {
    Some(text.to_owned())
}

fn is_id(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    text.len() <= 64 && text.bytes().all(plain)
}

/// A header's name, in lower case.
pub(super) fn header(text: &str) -> Option<String> {
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    text.bytes().all(token).then(|| text.to_ascii_lowercase())
}

fn sources(root: &Section<'_>) -> Vec<Source> {
    const DATE: &str = "a date like \"2026-10\" or \"2026-10-31\"";
    let sections = root.sections("source");
    if sections.is_empty() {
        root.complain("source", "missing", "at least one table [[source]]: a promise without a source is a guess");
    }
    let read = |section: Section<'_>| {
        let at = section.needed("at", TEXT_ACCEPTED, section.text("at", TEXT_ACCEPTED, owned));
        let checked = section.text("checked", DATE, |text| is_date(text).then(|| text.to_owned()));
        let checked = section.needed("checked", DATE, checked);
        let confidence = section.needed_word(
            "confidence",
            &[("read", Confidence::Read), ("partly", Confidence::Partly), ("recalled", Confidence::Recalled)],
        );
        section.finish();
        Some(Source { at: at?, checked: checked?, confidence: confidence? })
    };
    sections.into_iter().filter_map(read).collect()
}

fn is_date(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let sizes = [4, 2, 2];
    let number = |(part, size): (&&str, usize)| part.len() == size && part.bytes().all(|byte| byte.is_ascii_digit());
    let within =
        |at: usize, most: u8| parts.get(at).is_none_or(|part| part.parse().is_ok_and(|n: u8| (1..=most).contains(&n)));
    matches!(parts.len(), 2 | 3) && parts.iter().zip(sizes).all(number) && within(1, 12) && within(2, 31)
}

fn key(section: &Section<'_>) -> Option<KeyRule> {
    let header = section.text("header", HEADER_ACCEPTED, header);
    let member = section.text("member", TEXT_ACCEPTED, owned);
    let parameter = section.text("parameter", TEXT_ACCEPTED, owned);
    let encoding = section.word("encoding", &[("raw", Encoding::Raw), ("quoted", Encoding::Quoted)]);
    let first_sent = section.text("first_sent", HEADER_ACCEPTED, self::header);
    let carrier = match (header, member, parameter) {
        (Some(name), None, None) => {
            Some(Carrier::Header { name, encoding: encoding.unwrap_or(Encoding::Raw), first_sent })
        }
        (None, Some(name), None) if encoding.is_none() && first_sent.is_none() => Some(Carrier::Member(name)),
        (None, None, Some(name)) if encoding.is_none() && first_sent.is_none() => Some(Carrier::Parameter(name)),
        (None | Some(_), None | Some(_), None | Some(_)) => {
            let accepted = "one of `header` (with `encoding`, `first_sent`), `member`, `parameter`";
            section.pad.add(section.path.clone(), "where the key stands is not clear", accepted);
            None
        }
    };
    let bytes_max = section.number("bytes_max", 1, 1 << 16);
    let bytes_min = section.number("bytes_min", 1, KEY_BYTES_MAX);
    let formats = [("any", Format::Any), ("word", Format::Word), ("uuid", Format::Uuid), ("uuid4", Format::Uuid4)];
    let format = section.word("format", &formats).unwrap_or(Format::Any);
    let generate = section.word("generate", &[("uuid7", Generator::Uuid7), ("uuid4", Generator::Uuid4)]);
    let rule = KeyRule {
        carrier: carrier?,
        bytes_min: bytes_min.unwrap_or(1),
        bytes_max: bytes_max.map_or(KEY_BYTES_MAX, |most| most.min(KEY_BYTES_MAX)),
        length_said: bytes_max.is_some(),
        format,
        generate: generate.unwrap_or(if format == Format::Uuid4 { Generator::Uuid4 } else { Generator::Uuid7 }),
    };
    if rule.bytes_min > rule.bytes_max || rule.format == Format::Uuid4 && rule.generate == Generator::Uuid7 {
        section.pad.add(section.path.clone(), "no key could be drawn that fits", "bounds and a format that agree");
    }
    section.finish();
    Some(rule)
}

fn window(section: &Section<'_>) -> Option<Window> {
    let accepted = format!("{SPAN_ACCEPTED}, or \"for-ever\"; leave [window] out where the provider does not say");
    let read = |text: &str| if text == "for-ever" { Some(None) } else { span(text).map(Some) };
    let span = section.needed("span", &accepted, section.text("span", &accepted, read));
    let from = section.needed_word(
        "from",
        &[
            ("first-sent", Basis::FirstSent),
            ("first-seen", Basis::FirstSeen),
            ("completed", Basis::Completed),
            ("last-seen", Basis::LastSeen),
            ("unknown", Basis::Unknown),
        ],
    );
    let after = section.needed_word(
        "after",
        &[("new-action", AfterWindow::NewAction), ("refused", AfterWindow::Refused), ("unknown", AfterWindow::Unknown)],
    );
    section.finish();
    Some(Window { span: span?, from: from?, after: after? })
}

/// A span: a whole number and one unit, at most 36,600 days.
fn span(text: &str) -> Option<Duration> {
    let end = text.find(|letter: char| !letter.is_ascii_digit())?;
    let (number, unit) = text.split_at(end);
    let millis = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    let span = number.parse::<u64>().ok()?.checked_mul(millis)?;
    (span <= 36_600 * 86_400_000).then(|| Duration::from_millis(span))
}

fn marker(section: &Section<'_>) -> Option<Marker> {
    let header = section.needed("header", HEADER_ACCEPTED, section.text("header", HEADER_ACCEPTED, header));
    let value = section.text("value", TEXT_ACCEPTED, owned);
    section.finish();
    Some(Marker { header: header?, value })
}

fn advice(section: &Section<'_>) -> Option<Advice> {
    let header = section.needed("header", HEADER_ACCEPTED, section.text("header", HEADER_ACCEPTED, header));
    let again = section.text("again", TEXT_ACCEPTED, owned);
    let stop = section.text("stop", TEXT_ACCEPTED, owned);
    section.finish();
    Some(Advice { header: header?, again, stop })
}

fn remembers(section: &Section<'_>) -> Vec<(String, Remembers)> {
    let words = [("stored", Remembers::Stored), ("not-stored", Remembers::NotStored), ("depends", Remembers::Depends)];
    let read = |(class, value): (&String, &Value)| {
        let found = words.iter().find(|(word, _)| value.as_str() == Some(word));
        if found.is_none() {
            section.complain(class, format!("{} is not it", shown(value)), "\"stored\", \"not-stored\", \"depends\"");
        }
        Some((class.clone(), found?.1))
    };
    section.table.iter().filter_map(read).collect()
}
