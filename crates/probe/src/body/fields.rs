//! What both kinds of form have in common: named texts in an order, and the changes that can be spelt with them.
//!
//! What does not belong here: how they are written (`form.rs`, `multipart.rs`).

use super::Hints;
use crate::case::Body;
use crate::lack::Lack;

/// The field that `added` writes.
const EXTRA: &str = "counterfoil_probe";

/// One field. What is not changed is written as it was given.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) value: Vec<u8>,
    /// The head of a part that holds more than its name: a file, a media type.
    pub(super) head: Option<Vec<u8>>,
    /// Its bytes as they were given.
    pub(super) kept: Option<Vec<u8>>,
}

impl Field {
    pub(super) fn new(name: &str, value: &str) -> Self {
        Self { name: name.to_owned(), value: value.as_bytes().to_vec(), head: None, kept: None }
    }

    fn text(&self) -> Option<&str> {
        std::str::from_utf8(&self.value).ok()
    }

    fn set(&mut self, value: &str) {
        self.value = value.as_bytes().to_vec();
        self.kept = None;
    }
}

/// All fields, in order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Fields(pub(super) Vec<Field>);

impl Fields {
    pub(super) fn with(mut self, name: &str, value: &str) -> Self {
        self.0.push(Field::new(name, value));
        self
    }

    /// The field that is varied: the named one, else the first that is a text.
    fn varied(&mut self, vary: Option<&str>) -> Result<&mut Field, Lack> {
        let at = self.place(vary)?;
        self.0.get_mut(at).ok_or_else(|| "the body has no field to vary (--vary /NAME)".into())
    }

    fn place(&self, vary: Option<&str>) -> Result<usize, Lack> {
        let found = match vary.map(plain) {
            Some(name) => self.0.iter().position(|field| field.name == name),
            None => self.0.iter().position(|field| field.head.is_none() && field.text().is_some()),
        };
        match (found, vary) {
            (Some(at), _) => Ok(at),
            (None, Some(pointer)) => Err(format!("the body has no {pointer}").into()),
            (None, None) => Err("the body has no field to vary (--vary /NAME)".into()),
        }
    }

    /// The fields after a change.
    pub(super) fn changed(mut self, change: Body, hints: &Hints<'_>) -> Result<Self, Lack> {
        match change {
            Body::Base => {}
            Body::Changed | Body::Change => {
                let field = self.varied(hints.vary)?;
                let other = another(field.text().ok_or("what is varied is no text")?);
                field.set(&other);
            }
            Body::Added => return Ok(self.with(EXTRA, "1")),
            Body::DefaultAdded => {
                let told = hints.default.ok_or("no member with a default was named (--default-member /NAME=VALUE)")?;
                let (name, value) = told.split_once('=').ok_or("the default is not /NAME=VALUE")?;
                return Ok(self.with(&plain(name), value));
            }
            Body::Removed => {
                let at = match hints.vary {
                    Some(_) => self.place(hints.vary)?,
                    None => self.0.len().checked_sub(1).ok_or("the body has no field to take away")?,
                };
                self.0.remove(at);
            }
            Body::Reordered => {
                if self.0.iter().all(|field| Some(&field.name) == self.0.first().map(|first| &first.name)) {
                    return Err("the body has no two fields of different names".into());
                }
                self.0.reverse();
            }
            Body::ArraysReversed => self.turn_repeated()?,
            Body::NumberDecimal => self.respell(hints.vary, |text| format!("{text}.0"))?,
            Body::NumberExponent => self.respell(hints.vary, |text| format!("{text}e0"))?,
            Body::NumberLong => self.respell(hints.vary, |_| "12345678901234567890".to_owned())?,
            Body::NumberLongNext => self.respell(hints.vary, |_| "12345678901234567891".to_owned())?,
            Body::Composed => self.varied_text(hints.vary)?.set("caf\u{e9}"),
            Body::Decomposed => self.varied_text(hints.vary)?.set("cafe\u{301}"),
            Body::Structured | Body::Invalid => {
                let field = self.varied(hints.vary)?;
                field.name = format!("{}{}", field.name, if change == Body::Invalid { "[invalid]" } else { "[]" });
                field.kept = None;
            }
            Body::MemberTwice => {
                let field = self.varied(hints.vary)?.clone();
                let other = another(field.text().ok_or("what is varied is no text")?);
                return Ok(self.with(&field.name, &other));
            }
            Body::Escaped => {
                let field = self.varied(hints.vary)?;
                let escaped: String = field.value.iter().map(|byte| format!("%{byte:02X}")).collect();
                field.kept = Some(format!("{}={escaped}", field.name).into_bytes());
            }
            Body::NullAdded => return Err(Lack::void("a form has no null")),
            Body::Pretty => return Err(Lack::void("a form has no white space of its own")),
            Body::NewBoundary => return Err(Lack::void("only multipart bodies have a boundary")),
            Body::Declined | Body::Nothing => {}
        }
        Ok(self)
    }

    /// Values of one name, or of names with `[]`, in reverse order among themselves.
    fn turn_repeated(&mut self) -> Result<(), Lack> {
        let twice = |field: &&Field| self.0.iter().filter(|other| other.name == field.name).count() > 1;
        let name = self.0.iter().find(twice).map(|field| field.name.clone());
        let name = name.ok_or("no field of the body stands twice")?;
        let places: Vec<usize> =
            (0..self.0.len()).filter(|at| self.0.get(*at).is_some_and(|f| f.name == name)).collect();
        let before = self.clone();
        for (from, to) in places.iter().zip(places.iter().rev()) {
            if let (Some(field), Some(place)) = (before.0.get(*from), self.0.get_mut(*to)) {
                *place = field.clone();
            }
        }
        if *self == before { Err("no field of the body stands twice with two values".into()) } else { Ok(()) }
    }

    /// Spells a whole number otherwise: the varied one, else the first of the body.
    fn respell(&mut self, vary: Option<&str>, spell: impl Fn(&str) -> String) -> Result<(), Lack> {
        let whole = |field: &Field| field.text().is_some_and(|text| text.parse::<i64>().is_ok());
        let named = vary.map(plain);
        let chosen = self.0.iter().position(|field| Some(&field.name) == named.as_ref() && whole(field));
        let at = chosen.or_else(|| self.0.iter().position(whole)).ok_or("the body has no whole number")?;
        if let Some(field) = self.0.get_mut(at) {
            let text = spell(field.text().unwrap_or_default());
            field.set(&text);
        }
        Ok(())
    }

    /// A field for a text that is no number: the varied one, else the first.
    fn varied_text(&mut self, vary: Option<&str>) -> Result<&mut Field, Lack> {
        let word =
            |field: &Field| field.head.is_none() && field.text().is_some_and(|text| text.parse::<f64>().is_err());
        let named = vary.map(plain);
        let chosen = self.0.iter().position(|field| Some(&field.name) == named.as_ref() && word(field));
        let at = chosen.or_else(|| self.0.iter().position(word)).ok_or("the body has no text")?;
        self.0.get_mut(at).ok_or_else(|| "the body has no text".into())
    }
}

/// A field's name as a pointer says it.
fn plain(pointer: &str) -> String {
    pointer.strip_prefix('/').unwrap_or(pointer).replace("~1", "/").replace("~0", "~")
}

/// Another text of the same look.
fn another(text: &str) -> String {
    match (text, text.parse::<i64>()) {
        ("true", _) => "false".to_owned(),
        ("false", _) => "true".to_owned(),
        (_, Ok(number)) => number.wrapping_add(1).to_string(),
        (_, Err(_)) => format!("{text} other"),
    }
}
