//! Reads one table of the file, setting by setting, and goes on after a fault so that all are told at once.
//! What a setting means belongs to the module of its section.

use std::cell::RefCell;
use std::collections::BTreeSet;

use counterfoil_core::complaint::Pad;
use toml::{Table, Value};

/// Settings that the blueprint names and this version does not have, by path without indices.
const NOT_BUILT: [&str; 4] = ["console", "regions", "relay", "seal"];

/// One table of the file.
pub(crate) struct Section<'a> {
    table: &'a Table,
    path: String,
    pad: &'a Pad,
    known: RefCell<BTreeSet<&'static str>>,
}

impl<'a> Section<'a> {
    /// The whole file.
    pub(crate) fn root(table: &'a Table, pad: &'a Pad) -> Self {
        Self { table, path: String::new(), pad, known: RefCell::default() }
    }

    /// Where complaints of this file go.
    pub(crate) const fn pad(&self) -> &'a Pad {
        self.pad
    }

    /// The path of a setting in this table.
    pub(crate) fn at(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    pub(crate) fn complain(&self, key: &str, fault: impl Into<String>, accepted: impl Into<String>) {
        self.pad.add(self.at(key), fault, accepted);
    }

    /// Complains about the table itself.
    pub(crate) fn complain_here(&self, fault: impl Into<String>, accepted: impl Into<String>) {
        self.pad.add(self.path.clone(), fault, accepted);
    }

    /// Whether the table says anything under `key`.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    /// Marks a setting as one that this table may have, whatever it says.
    pub(crate) fn know(&self, key: &'static str) {
        self.known.borrow_mut().insert(key);
    }

    fn get(&self, key: &'static str) -> Option<&'a Value> {
        self.know(key);
        self.table.get(key)
    }

    /// A setting; `None` where it is absent or was complained about.
    pub(crate) fn read<T>(
        &self,
        key: &'static str,
        accepted: &str,
        parse: impl FnOnce(&Value) -> Result<T, String>,
    ) -> Option<T> {
        match parse(self.get(key)?) {
            Ok(value) => Some(value),
            Err(fault) => {
                self.complain(key, fault, accepted);
                None
            }
        }
    }

    /// A setting that is a text.
    pub(crate) fn text<T>(
        &self,
        key: &'static str,
        accepted: &str,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<T> {
        self.read(key, accepted, |value| parse(text(value)?))
    }

    /// A whole number between two bounds.
    pub(crate) fn number(&self, key: &'static str, least: usize, most: usize) -> Option<usize> {
        let accepted = format!("a whole number from {least} to {most}");
        self.read(key, &accepted, |value| {
            let number = value.as_integer().ok_or_else(|| format!("{} is no whole number", shown(value)))?;
            let bounded = usize::try_from(number).ok().filter(|number| (least..=most).contains(number));
            bounded.ok_or_else(|| format!("{number} is out of bounds"))
        })
    }

    /// `true` or `false`.
    pub(crate) fn flag(&self, key: &'static str) -> Option<bool> {
        self.read(key, "true or false", |value| value.as_bool().ok_or_else(|| format!("{} is neither", shown(value))))
    }

    /// A list, each item by `parse`; faults name the item.
    pub(crate) fn list<T>(
        &self,
        key: &'static str,
        accepted: &str,
        parse: impl Fn(&Value) -> Result<T, String>,
    ) -> Option<Vec<T>> {
        let value = self.get(key)?;
        let Some(items) = value.as_array() else {
            self.complain(key, format!("{} is no list", shown(value)), format!("a list of {accepted}"));
            return None;
        };
        let read = items.iter().enumerate().filter_map(|(index, item)| match parse(item) {
            Ok(item) => Some(item),
            Err(fault) => {
                self.complain(&format!("{key}[{index}]"), fault, accepted);
                None
            }
        });
        Some(read.collect())
    }

    /// How many items a list has, readable or not.
    pub(crate) fn length(&self, key: &str) -> usize {
        self.table.get(key).and_then(Value::as_array).map_or(0, Vec::len)
    }

    /// A table inside this one.
    pub(crate) fn table(&self, key: &'static str) -> Option<Section<'a>> {
        let value = self.get(key)?;
        let Some(table) = value.as_table() else {
            self.complain(key, format!("{} is no table", shown(value)), format!("a table [{}]", self.at(key)));
            return None;
        };
        Some(Section { table, path: self.at(key), pad: self.pad, known: RefCell::default() })
    }

    /// The tables of an array of tables.
    pub(crate) fn tables(&self, key: &'static str) -> Vec<Section<'a>> {
        let Some(value) = self.get(key) else { return Vec::new() };
        let tables = value.as_array().map(|items| items.iter().map(Value::as_table).collect::<Vec<_>>());
        let Some(tables) = tables.filter(|tables| tables.iter().all(Option::is_some)) else {
            self.complain(
                key,
                format!("{} is no list of tables", shown(value)),
                format!("tables [[{}]]", self.at(key)),
            );
            return Vec::new();
        };
        let section = |(index, table): (usize, &'a Table)| Section {
            table,
            path: format!("{}[{index}]", self.at(key)),
            pad: self.pad,
            known: RefCell::default(),
        };
        tables.into_iter().flatten().enumerate().map(section).collect()
    }

    /// The keys of this table, for tables whose keys are data.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&'a String, &'a Value)> {
        self.table.iter()
    }

    /// Complains about every setting that nobody asked for.
    pub(crate) fn finish(&self) {
        let known = self.known.borrow();
        let names = known.iter().copied().collect::<Vec<_>>().join(", ");
        for key in self.table.keys().filter(|key| !known.contains(key.as_str())) {
            let fault = if NOT_BUILT.contains(&without_indices(&self.at(key)).as_str()) {
                "not built yet in this version"
            } else {
                "unknown setting"
            };
            self.complain(key, fault, format!("one of {names}"));
        }
    }
}

/// The text of a value.
pub(crate) fn text(value: &Value) -> Result<&str, String> {
    value.as_str().ok_or_else(|| format!("{} is no text", shown(value)))
}

/// A value for a complaint, cut short.
pub(crate) fn shown(value: &Value) -> String {
    let whole = match value {
        Value::Table(_) => "a table".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::String(_) | Value::Integer(_) | Value::Float(_) | Value::Boolean(_) | Value::Datetime(_) => {
            value.to_string()
        }
    };
    if whole.chars().count() > 60 { whole.chars().take(60).chain(['…']).collect() } else { whole }
}

fn without_indices(path: &str) -> String {
    path.split('.').map(|part| part.split('[').next().unwrap_or(part)).collect::<Vec<_>>().join(".")
}
