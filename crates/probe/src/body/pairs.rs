//! Pairs of a name and a value, given as `a=1&b=2` and sent as a form or as the parts of a multipart body.
//!
//! What does not belong here: which of both a target takes (`format.rs`).

use super::{COMPOSED, DECOMPOSED, Format, Hints, turned, unescape};
use crate::case::Body;

/// Pairs as they were written, so that what is not changed keeps its spelling.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Pairs(Vec<String>);

/// The name that `added` writes.
const EXTRA: &str = "counterfoil_probe";

impl Pairs {
    /// Every text is pairs: what is no escape stands for itself. The end of a file's last line is none of it.
    pub(super) fn read(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        match text.trim_end_matches(['\r', '\n']) {
            "" => Self(Vec::new()),
            text => Self(text.split('&').map(str::to_owned).collect()),
        }
    }

    pub(super) fn add(&mut self, name: &str, value: &str) {
        self.0.push(written(name, value));
    }

    /// The pairs after a change. The text of the error says what is missing for it, or that pairs have no such thing.
    pub(super) fn changed(mut self, format: Format, change: Body, hints: &Hints<'_>) -> Result<Self, String> {
        let none = |what: &str| Err(format!("pairs of a name and a value {what}"));
        match change {
            Body::Base | Body::Declined | Body::Nothing => {}
            Body::Changed => self.set(self.varied(hints.vary)?, another),
            Body::Added => self.add(EXTRA, "1"),
            Body::DefaultAdded => {
                let told = hints.default.ok_or("no member with a default was named (--default-member /NAME=VALUE)")?;
                let (name, value) = told.split_once('=').ok_or("the default is not /NAME=VALUE")?;
                self.add(&told_name(name), value);
            }
            Body::Removed => self.remove(hints.vary)?,
            Body::Reordered => self.reorder()?,
            Body::NumberDecimal => self.set(self.number(hints.vary)?, |text| format!("{text}.0")),
            Body::NumberExponent => self.set(self.number(hints.vary)?, |text| format!("{text}e0")),
            Body::NumberLong => self.set(self.number(hints.vary)?, |_| "12345678901234567890".to_owned()),
            Body::NumberLongNext => self.set(self.number(hints.vary)?, |_| "12345678901234567891".to_owned()),
            Body::Invalid => self.set(self.varied(hints.vary)?, invalid),
            Body::Composed => self.set(self.text(hints.vary)?, |text| format!("{text}{COMPOSED}")),
            Body::Decomposed => self.set(self.text(hints.vary)?, |text| format!("{text}{DECOMPOSED}")),
            Body::Escaped if format == Format::Form => self.escape(self.text(hints.vary)?),
            Body::Escaped => return none("have no escapes in a multipart body"),
            Body::NewBoundary if format == Format::Multipart => {}
            Body::NewBoundary => return Err("only a multipart body has boundaries".to_owned()),
            Body::NullAdded => return none("have no null"),
            Body::ArraysReversed => return none("have no arrays"),
            Body::Pretty => return none("have no white space around them"),
            Body::DuplicateMember => return none("are a list where a name stands twice"),
            Body::Nested => return none("have no structure"),
        }
        Ok(self)
    }

    /// As a form.
    pub(super) fn form(&self) -> Vec<u8> {
        self.0.join("&").into_bytes()
    }

    /// As one part for each pair.
    pub(super) fn parts(&self, boundary: &str) -> Vec<u8> {
        let mut text = String::new();
        for pair in self.0.iter().filter(|pair| !pair.is_empty()) {
            let name = name(pair).replace('"', "%22").replace('\r', "%0D").replace('\n', "%0A");
            let head = format!("--{boundary}\r\ncontent-disposition: form-data; name=\"{name}\"\r\n\r\n");
            text.push_str(&format!("{head}{}\r\n", value(pair)));
        }
        text.push_str(&format!("--{boundary}--\r\n"));
        text.into_bytes()
    }

    fn find(&self, told: &str) -> Option<usize> {
        let wanted = told_name(told);
        self.0.iter().position(|pair| name(pair) == wanted)
    }

    /// Which pair is varied; the first where nothing is said.
    fn varied(&self, vary: Option<&str>) -> Result<usize, String> {
        match vary {
            Some(told) => self.find(told).ok_or_else(|| format!("the body has no {told}")),
            None if self.0.is_empty() => Err("the body has no value to vary (--vary NAME)".to_owned()),
            None => Ok(0),
        }
    }

    /// The varied pair where it fits, else the first that does.
    fn fitting(&self, vary: Option<&str>, fits: impl Fn(&str) -> bool) -> Option<usize> {
        let fitting = |at: &usize| self.0.get(*at).is_some_and(|pair| fits(&value(pair)));
        vary.and_then(|told| self.find(told)).filter(fitting).or_else(|| (0..self.0.len()).find(fitting))
    }

    fn number(&self, vary: Option<&str>) -> Result<usize, String> {
        self.fitting(vary, is_whole).ok_or_else(|| "the body has no whole number".to_owned())
    }

    fn text(&self, vary: Option<&str>) -> Result<usize, String> {
        let is_text = |text: &str| !text.is_empty() && text.parse::<f64>().is_err() && !is_truth(text);
        self.fitting(vary, is_text).ok_or_else(|| "the body has no text".to_owned())
    }

    fn set(&mut self, at: usize, other: impl Fn(&str) -> String) {
        if let Some(pair) = self.0.get_mut(at) {
            *pair = format!("{}={}", raw_name(pair), encoded(&other(&value(pair))));
        }
    }

    fn escape(&mut self, at: usize) {
        let Some(pair) = self.0.get_mut(at) else { return };
        let text = value(pair);
        let mut letters = text.chars();
        let first = letters.next().map(|letter| letter.to_string()).unwrap_or_default();
        let first: String = first.bytes().map(|byte| format!("%{byte:02X}")).collect();
        *pair = format!("{}={first}{}", raw_name(pair), encoded(letters.as_str()));
    }

    fn remove(&mut self, vary: Option<&str>) -> Result<(), String> {
        let before = self.0.len();
        match vary.map(told_name) {
            Some(gone) => self.0.retain(|pair| name(pair) != gone),
            None => drop(self.0.pop()),
        }
        turned(self.0.len() < before, "the body has no such member to take away")
    }

    /// Turns the order of names. Values of one name keep theirs: they are a list.
    fn reorder(&mut self) -> Result<(), String> {
        let mut names: Vec<String> = Vec::new();
        for pair in &self.0 {
            let name = name(pair);
            if !names.contains(&name) {
                names.push(name);
            }
        }
        self.0.sort_by_key(|pair| std::cmp::Reverse(names.iter().position(|known| *known == name(pair))));
        turned(names.len() > 1, "the body has no two names")
    }
}

fn is_whole(text: &str) -> bool {
    text.parse::<i64>().is_ok()
}

fn is_truth(text: &str) -> bool {
    matches!(text, "true" | "false")
}

/// Another value that looks like the same type.
fn another(text: &str) -> String {
    match (text, text.parse::<i64>()) {
        ("true", _) => "false".to_owned(),
        ("false", _) => "true".to_owned(),
        (_, Ok(number)) => number.wrapping_add(1).to_string(),
        (text, Err(_)) => format!("{text} other"),
    }
}

/// A number must not be a word; of a text nothing is known but that it was there.
fn invalid(text: &str) -> String {
    if text.parse::<f64>().is_ok() || is_truth(text) { "invalid".to_owned() } else { String::new() }
}

/// A name as it is told: `/quantity` like in JSON, or as it is.
fn told_name(told: &str) -> String {
    told.strip_prefix('/').map_or_else(|| told.to_owned(), unescape)
}

fn written(name: &str, value: &str) -> String {
    format!("{}={}", encoded(name), encoded(value))
}

fn raw_name(pair: &str) -> &str {
    pair.split_once('=').map_or(pair, |(name, _)| name)
}

fn name(pair: &str) -> String {
    decoded(raw_name(pair))
}

fn value(pair: &str) -> String {
    pair.split_once('=').map_or_else(String::new, |(_, value)| decoded(value))
}

/// As in a form; a space is a plus.
pub(crate) fn encoded(text: &str) -> String {
    let each = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'*' | b'-' | b'.' | b'_' => char::from(byte).to_string(),
        b' ' => "+".to_owned(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(each).collect()
}

fn decoded(raw: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), raw.as_bytes());
    while let Some((first, after)) = rest.split_first() {
        let escape = after.get(..2).filter(|_| *first == b'%').and_then(|hex| std::str::from_utf8(hex).ok());
        let escape = escape.filter(|hex| hex.bytes().all(|digit| digit.is_ascii_hexdigit()));
        match escape.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = after.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(if *first == b'+' { b' ' } else { *first });
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests;
