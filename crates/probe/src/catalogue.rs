//! The cases that come with the crate, and the strict reader of their files.
//!
//! What does not belong here: what the parts of a case mean (`case.rs`).

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use crate::case::{Case, Fact, Step};
use crate::error::ProbeError;

/// The files that come with the crate, with their names.
const FILES: [(&str, &str); 12] = [
    ("a-controls.toml", include_str!("../cases/a-controls.toml")),
    ("a-syntax.toml", include_str!("../cases/a-syntax.toml")),
    ("b-sequence.toml", include_str!("../cases/b-sequence.toml")),
    ("c-concurrency.toml", include_str!("../cases/c-concurrency.toml")),
    ("d-parameters.toml", include_str!("../cases/d-parameters.toml")),
    ("d-numbers.toml", include_str!("../cases/d-numbers.toml")),
    ("d-bodies.toml", include_str!("../cases/d-bodies.toml")),
    ("e-scope.toml", include_str!("../cases/e-scope.toml")),
    ("f-failures.toml", include_str!("../cases/f-failures.toml")),
    ("g-retention.toml", include_str!("../cases/g-retention.toml")),
    ("h-restart.toml", include_str!("../cases/h-restart.toml")),
    ("i-description.toml", include_str!("../cases/i-description.toml")),
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Page {
    group: String,
    title: String,
    case: Vec<Case>,
}

/// A letter of the table with what it is about.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Group {
    /// The letter.
    pub letter: String,
    /// What its cases are about.
    pub title: String,
}

/// All cases in the order in which they run, with their groups.
#[derive(Clone, Debug)]
pub struct Catalogue {
    /// The groups, in order.
    pub groups: Vec<Group>,
    /// The cases, in order.
    pub cases: Vec<Case>,
}

impl Catalogue {
    /// The cases that come with the crate.
    ///
    /// # Errors
    /// [`ProbeError::Case`] where one of them breaks the format; the crate's own tests exclude it.
    pub fn built_in() -> Result<Self, ProbeError> {
        Self::read(&FILES)
    }

    /// Reads files of cases, given as name and text. Nothing unknown is allowed, and every name must lead somewhere.
    ///
    /// # Errors
    /// [`ProbeError::Case`] with the file and what is wrong in it.
    pub fn read(files: &[(&str, &str)]) -> Result<Self, ProbeError> {
        let mut all = Self { groups: Vec::new(), cases: Vec::new() };
        for (name, text) in files {
            let fault = |why: String| ProbeError::Case { file: (*name).to_owned(), why };
            let page: Page = toml::from_str(text).map_err(|error| fault(error.to_string()))?;
            if !all.groups.iter().any(|group| group.letter == page.group) {
                all.groups.push(Group { letter: page.group.clone(), title: page.title });
            }
            for case in page.case {
                let known = |id: &str| all.cases.iter().any(|earlier| earlier.id == id);
                case.check(&page.group, known).map_err(|why| fault(format!("{}: {why}", case.id)))?;
                all.cases.push(case);
            }
        }
        Ok(all)
    }
}

impl Case {
    fn check(&self, group: &str, known: impl Fn(&str) -> bool) -> Result<(), String> {
        if known(&self.id) {
            return Err("the id is used twice".to_owned());
        }
        let number = self.row.strip_prefix(group).unwrap_or_default();
        if group.len() != 1 || number.parse::<u8>().is_err() {
            return Err(format!("row {:?} is not {group:?} with a number", self.row));
        }
        if self.clause.trim().is_empty() || self.asks.trim().is_empty() || self.observer > 3 || self.rounds == 0 {
            return Err("a clause, a question, an observer of at most 3 and a round are needed".to_owned());
        }
        if let Some(unknown) = self.depends_on.iter().find(|id| !known(id)) {
            return Err(format!("it depends on {unknown:?}, which does not stand before it"));
        }
        let names: BTreeSet<&str> = self.sends().map(|send| send.r#as.as_str()).collect();
        if names.contains("") || self.sends().any(|send| send.key.is_empty()) {
            return Err("every request needs a name and a key, which may be \"none\"".to_owned());
        }
        self.check_facts(&names)?;
        self.check_hooks()?;
        let rules = [&self.ietf, &self.stripe_v1, &self.ec2].into_iter().flatten().flat_map(|rule| &rule.any);
        let asked = rules.flat_map(BTreeMap::keys).chain(self.sheet.values()).chain([&self.answer]);
        match asked.into_iter().find(|name| !self.facts.contains_key(*name)) {
            Some(unknown) => Err(format!("no fact is called {unknown:?}")),
            None => Ok(()),
        }
    }

    fn check_facts(&self, names: &BTreeSet<&str>) -> Result<(), String> {
        let marks: BTreeSet<&str> = self.steps.iter().filter_map(Step::mark).collect();
        for (name, fact) in &self.facts {
            if let Some(unknown) = fact.exchanges().into_iter().find(|of| !names.contains(of)) {
                return Err(format!("fact {name:?} looks at {unknown:?}, which no step makes"));
            }
            let Fact::Effects { since, until } = fact else { continue };
            if let Some(unknown) = [since, until].into_iter().flatten().find(|mark| !marks.contains(mark.as_str())) {
                return Err(format!("fact {name:?} counts from or to {unknown:?}, which no step marks"));
            }
        }
        let finished = self.steps.iter().filter_map(|step| match step {
            Step::Finish { of } | Step::Await { of } => Some(of.as_str()),
            _ => None,
        });
        match finished.into_iter().find(|of| !names.contains(of)) {
            Some(unknown) => Err(format!("{unknown:?} is finished and never started")),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
