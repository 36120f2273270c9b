//! The contract sheet: what a target was seen to promise, each value with where it comes from; and drift between two.
//!
//! What does not belong here: which fact is which field, which the cases say.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::error::ProbeError;
use crate::fact::Value;
use crate::run::Run;
use crate::settings::Documented;

/// How a value is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// Seen by the probe.
    Measured,
    /// Written by the provider.
    Documented,
}

/// One value of a sheet.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// The value.
    pub value: Value,
    /// How it is known.
    pub source: Source,
    /// The day on which it was known, as YYYY-MM-DD.
    pub date: String,
    /// In how many rounds it was seen; 0 where it is documented.
    pub observations: u32,
    /// The case, or the page, that it comes from.
    pub from: String,
}

/// What a target promises, as far as it was seen or is written.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sheet {
    /// The version of this format.
    pub format: u32,
    /// The target.
    pub target: String,
    /// The contract that it was held against.
    pub contract: String,
    /// The values by group and field, such as `mismatch` and `status`.
    pub field: BTreeMap<String, BTreeMap<String, Entry>>,
}

/// A field on which two sheets do not agree.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Drift {
    /// `mismatch.status`.
    pub field: String,
    /// The value in the first sheet.
    pub before: Option<Value>,
    /// The value in the second.
    pub after: Option<Value>,
}

impl Drift {
    /// Whether both sheets have a value: then the promise changed. Else it is only not known on one side.
    #[must_use]
    pub fn is_change(&self) -> bool {
        self.before.is_some() && self.after.is_some()
    }
}

const FORMAT: u32 = 1;

impl Sheet {
    /// The sheet of a run.
    #[must_use]
    pub fn of(run: &Run) -> Self {
        let mut field: BTreeMap<String, BTreeMap<String, Entry>> = BTreeMap::new();
        for result in &run.results {
            for (name, value) in &result.sheet {
                let (group, name) = name.split_once('.').unwrap_or(("other", name));
                let entry = Entry {
                    value: value.clone(),
                    source: Source::Measured,
                    date: run.began.chars().take(10).collect(),
                    observations: result.observations,
                    from: result.id.clone(),
                };
                field.entry(group.to_owned()).or_default().insert(name.to_owned(), entry);
            }
        }
        Self { format: FORMAT, target: run.target.clone(), contract: run.contract.clone(), field }
    }

    /// The same sheet with what the provider says, in fields of which nothing was seen.
    #[must_use]
    pub fn with_documented(mut self, documented: &BTreeMap<String, Documented>) -> Self {
        for (name, said) in documented {
            let (group, name) = name.split_once('.').unwrap_or(("other", name));
            let entry = || Entry {
                value: said.value.clone(),
                source: Source::Documented,
                date: said.date.clone(),
                observations: 0,
                from: said.from.clone(),
            };
            self.field.entry(group.to_owned()).or_default().entry(name.to_owned()).or_insert_with(entry);
        }
        self
    }

    /// The sheet as TOML.
    ///
    /// # Errors
    /// [`ProbeError::Harness`] where it cannot be written.
    pub fn to_toml(&self) -> Result<String, ProbeError> {
        toml::to_string_pretty(self).map_err(|error| ProbeError::Harness(format!("the sheet: {error}")))
    }

    /// Reads a sheet; nothing unknown is allowed.
    ///
    /// # Errors
    /// [`ProbeError::Usage`] where it is no sheet of a known format.
    pub fn parse(text: &str) -> Result<Self, ProbeError> {
        let sheet: Self =
            toml::from_str(text).map_err(|error| ProbeError::Usage(format!("no contract sheet: {error}")))?;
        match sheet.format {
            FORMAT => Ok(sheet),
            other => Err(ProbeError::Usage(format!("the sheet has format {other}, known is {FORMAT}"))),
        }
    }

    /// Where another sheet does not agree with this one.
    #[must_use]
    pub fn drift(&self, after: &Self) -> Vec<Drift> {
        let (ours, theirs) = (self.values(), after.values());
        let names: BTreeSet<&String> = ours.keys().chain(theirs.keys()).collect();
        let drift = |name: &String| Drift {
            field: name.clone(),
            before: ours.get(name).cloned(),
            after: theirs.get(name).cloned(),
        };
        names.into_iter().map(drift).filter(|drift| drift.before != drift.after).collect()
    }

    fn values(&self) -> BTreeMap<String, Value> {
        let group = |(group, fields): (&String, &BTreeMap<String, Entry>)| {
            let one = |(name, entry): (&String, &Entry)| (format!("{group}.{name}"), entry.value.clone());
            fields.iter().map(one).collect::<Vec<_>>()
        };
        self.field.iter().flat_map(group).collect()
    }
}
