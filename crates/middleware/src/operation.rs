//! Which operation a request is: patterns, and the normalised path that they are matched against.
//! How a path is normalised belongs to `core::wire`.

use std::str::FromStr;
use std::sync::Arc;

use counterfoil_core::Operation;
use counterfoil_core::identity::OPERATION_BYTES_MAX;
use counterfoil_core::wire::{PathFault, normalise};
use http::Method;

use crate::error::Error;
use crate::metrics::UNLISTED;
use crate::settings::{KeyNeed, OperationRule, Settings, Terms, Unlisted};

/// Which requests an operation is: `POST /orders/{id}`.
///
/// `{name}` stands for one segment, and `{*name}` at the end for one or more. Where several patterns match, the one
/// that says more from the left wins: a word over `{name}`, and that over `{*name}`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pattern {
    method: Method,
    segments: Vec<Segment>,
    text: String,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Segment {
    Rest,
    One,
    Word(String),
}

impl FromStr for Pattern {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let refuse = |why| Error::Pattern { pattern: text.to_owned(), why };
        let (method, path) = text.split_once(' ').ok_or(refuse("it has no method and path"))?;
        let method = Method::from_str(method).map_err(|_| refuse("its method is none"))?;
        let mut segments = Vec::new();
        let path = path.strip_prefix('/').ok_or(refuse("its path does not begin with a slash"))?;
        for part in path.split('/') {
            if segments.last() == Some(&Segment::Rest) {
                return Err(refuse("something follows its rest"));
            }
            segments.push(match part.strip_prefix('{').and_then(|part| part.strip_suffix('}')) {
                Some("" | "*") => return Err(refuse("a placeholder has no name")),
                Some(name) if name.starts_with('*') => Segment::Rest,
                Some(_) => Segment::One,
                None if part.contains(['{', '}']) => return Err(refuse("a brace is no placeholder's")),
                None => Segment::Word(part.to_owned()),
            });
        }
        // Placeholders stand for any segment: a word takes their place while the path's form is judged.
        let words = segments.iter().map(|segment| match segment {
            Segment::Word(word) => word.as_str(),
            Segment::One | Segment::Rest => "word",
        });
        let plain = words.fold(String::new(), |path, word| path + "/" + word);
        match normalise(&plain) {
            Ok(normal) if normal == plain => Ok(Self { method, segments, text: text.to_owned() }),
            Ok(_) => Err(refuse("its path is not in normal form")),
            Err(_) => Err(refuse("its path cannot be normalised")),
        }
    }
}

impl Pattern {
    /// The text that it was read from.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    fn matches(&self, segments: &[&str]) -> bool {
        let open = self.segments.last() == Some(&Segment::Rest);
        let enough = if open { segments.len() >= self.segments.len() } else { segments.len() == self.segments.len() };
        enough
            && self.segments.iter().zip(segments).all(|(pattern, segment)| match pattern {
                Segment::Word(word) => word == segment,
                Segment::One | Segment::Rest => !segment.is_empty(),
            })
    }
}

/// What a request was found to be.
pub(crate) enum Found {
    /// It passes as it is.
    Unguarded,
    /// It is guarded.
    Guarded(Box<Matched>),
    /// It would be guarded, and its path has no one spelling.
    Malformed { why: String, terms: Arc<Terms> },
}

/// A guarded request's operation.
pub(crate) struct Matched {
    pub(crate) operation: Operation,
    /// What metrics call it.
    pub(crate) label: Arc<str>,
    pub(crate) path: Arc<str>,
    pub(crate) terms: Arc<Terms>,
}

struct Listed {
    pattern: Pattern,
    operation: Operation,
    label: Arc<str>,
    key: KeyNeed,
    terms: Arc<Terms>,
}

/// All operations of a layer, the most telling pattern first.
pub(crate) struct Operations {
    listed: Vec<Listed>,
    unlisted: Option<Arc<Terms>>,
    unlisted_label: Arc<str>,
}

impl Operations {
    pub(crate) fn new(settings: &Settings) -> Result<Self, Error> {
        let mut listed = Vec::with_capacity(settings.operations.len());
        for rule in &settings.operations {
            let next = Listed::new(rule)?;
            for other in &listed {
                next.differs_from(other)?;
            }
            listed.push(next);
        }
        listed.sort_by(|a, b| b.pattern.segments.cmp(&a.pattern.segments));
        let unlisted = match &settings.unlisted {
            Unlisted::PassThrough => None,
            Unlisted::GuardKeyed(terms) => {
                terms.check(UNLISTED)?;
                Some(Arc::new(terms.as_ref().clone()))
            }
        };
        Ok(Self { listed, unlisted, unlisted_label: UNLISTED.into() })
    }

    /// What a request of this method and raw path is; `keyed` says that it carries a key's header.
    pub(crate) fn find(&self, method: &Method, path: &str, keyed: bool) -> Found {
        let unlisted = self.unlisted.as_ref().filter(|_| keyed && (method == Method::POST || method == Method::PATCH));
        let guards = |listed: &&Listed| listed.pattern.method == *method && (keyed || listed.key == KeyNeed::Required);
        if unlisted.is_none() && !self.listed.iter().any(|listed| guards(&listed)) {
            return Found::Unguarded;
        }
        let normal = match normalise(path) {
            Ok(normal) => normal,
            Err(fault) => return self.malformed(method, path, fault, guards, unlisted),
        };
        let segments: Vec<&str> = normal.split('/').skip(1).collect();
        let mut same_method = self.listed.iter().filter(|listed| listed.pattern.method == *method);
        // The pattern that fits best decides, also where it lets requests without a key pass.
        match same_method.find(|listed| listed.pattern.matches(&segments)) {
            Some(listed) if guards(&listed) => Found::Guarded(Box::new(Matched {
                operation: listed.operation.clone(),
                label: listed.label.clone(),
                terms: listed.terms.clone(),
                path: normal.into(),
            })),
            Some(_) => Found::Unguarded,
            None => match unlisted {
                None => Found::Unguarded,
                Some(terms) => match Operation::new([method.as_str(), " ", &normal].concat()) {
                    Err(_) => Found::Malformed {
                        why: format!("the path is longer than {OPERATION_BYTES_MAX} bytes"),
                        terms: terms.clone(),
                    },
                    Ok(operation) => Found::Guarded(Box::new(Matched {
                        operation,
                        label: self.unlisted_label.clone(),
                        path: normal.into(),
                        terms: terms.clone(),
                    })),
                },
            },
        }
    }

    /// Pattern, operation, and whether a key is required.
    pub(crate) fn listed(&self) -> impl Iterator<Item = (&str, &str, bool)> {
        self.listed
            .iter()
            .map(|listed| (listed.pattern.as_str(), listed.operation.as_str(), listed.key == KeyNeed::Required))
    }

    /// A path without one spelling is refused where some server may read it as a guarded one, and passes elsewhere.
    fn malformed(
        &self,
        method: &Method,
        path: &str,
        fault: PathFault,
        guards: impl Fn(&&Listed) -> bool,
        unlisted: Option<&Arc<Terms>>,
    ) -> Found {
        let lenient = leniently(path);
        let segments: Vec<&str> = lenient.iter().map(String::as_str).collect();
        let listed = self.listed.iter().filter(|listed| listed.pattern.method == *method).filter(guards);
        let terms = listed.map(|listed| (listed, &listed.terms)).find(|(listed, _)| listed.pattern.matches(&segments));
        match terms.map(|(_, terms)| terms).or(unlisted) {
            Some(terms) => Found::Malformed { why: fault.to_string(), terms: terms.clone() },
            None => Found::Unguarded,
        }
    }
}

/// The segments as the most forgiving server would read them.
fn leniently(path: &str) -> Vec<String> {
    let mut kept: Vec<String> = Vec::new();
    for segment in path.split('/') {
        let segment = normalise(&format!("/{segment}x")).map_or(segment.to_owned(), |normal| {
            normal.trim_start_matches('/').strip_suffix('x').unwrap_or_default().to_owned()
        });
        match segment.as_str() {
            "" | "." => {}
            ".." => {
                // At the root there is nothing to climb from.
                let _ = kept.pop();
            }
            _ => kept.push(segment),
        }
    }
    kept
}

impl Listed {
    fn new(rule: &OperationRule) -> Result<Self, Error> {
        let operation = match &rule.name {
            Some(name) => name.clone(),
            None => Operation::new(rule.pattern.as_str())
                .map_err(|_| Error::NoName { pattern: rule.pattern.as_str().to_owned() })?,
        };
        rule.terms.check(operation.as_str())?;
        Ok(Self {
            label: operation.as_str().into(),
            operation,
            pattern: rule.pattern.clone(),
            key: rule.key,
            terms: Arc::new(rule.terms.clone()),
        })
    }

    fn differs_from(&self, other: &Self) -> Result<(), Error> {
        if self.operation == other.operation {
            return Err(Error::SameName { name: self.operation.as_str().to_owned() });
        }
        if self.pattern.method == other.pattern.method && self.pattern.segments == other.pattern.segments {
            let (first, second) = (other.pattern.text.clone(), self.pattern.text.clone());
            return Err(Error::SamePattern { first, second });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
