//! A value and where it came from, and the order of places: flag over environment over file over default.
//! Parsing belongs to the module of each value.

use std::fmt;

use counterfoil_core::complaint::Pad;

use super::reader::Section;

/// Where a value came from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// Nobody said otherwise.
    Default,
    /// The file, at the setting itself.
    File,
    /// The file's `[defaults]`.
    FileDefaults,
    /// This variable.
    Environment(&'static str),
    /// This flag.
    Flag(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File => f.write_str("file"),
            Self::FileDefaults => f.write_str("file, [defaults]"),
            Self::Environment(name) | Self::Flag(name) => f.write_str(name),
        }
    }
}

/// A value and where it came from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Setting<T> {
    /// The value.
    pub value: T,
    /// Where it came from.
    pub origin: Origin,
}

impl<T> Setting<T> {
    /// What the file says, or else the default.
    pub(crate) fn or(from_file: Option<T>, default: T) -> Self {
        match from_file {
            Some(value) => Self { value, origin: Origin::File },
            None => Self { value: default, origin: Origin::Default },
        }
    }

    /// What an operation says, or else `[defaults]`.
    pub(crate) fn or_inherited(from_file: Option<T>, defaults: &Self) -> Self
    where
        T: Clone,
    {
        match from_file {
            Some(value) => Self { value, origin: Origin::File },
            None => {
                let origin = match defaults.origin {
                    Origin::File => Origin::FileDefaults,
                    other => other,
                };
                Self { value: defaults.value.clone(), origin }
            }
        }
    }
}

/// What stands outside the file.
pub(crate) struct Outside<'a> {
    pub(crate) pad: &'a Pad,
    pub(crate) environment: &'a dyn Fn(&str) -> Option<String>,
    /// Whether the file could be read: of a broken one nothing is said to be missing.
    pub(crate) whole: bool,
}

/// The names of a setting that flags and variables may set.
pub(crate) struct Names<'n> {
    pub(crate) key: &'static str,
    pub(crate) variable: &'static str,
    pub(crate) flag: &'static str,
    pub(crate) accepted: &'n str,
}

impl Outside<'_> {
    /// Reads one setting from all places, complaining about each that cannot be read, also where another wins.
    pub(crate) fn text<T>(
        &self,
        section: &Section<'_>,
        names: &Names<'_>,
        flag: Option<&str>,
        parse: fn(&str) -> Result<T, String>,
    ) -> Option<Setting<T>> {
        let from_file = section.text(names.key, names.accepted, parse).map(|value| (value, Origin::File));
        let from_outside = self.read(names, flag, parse);
        let (value, origin) = from_outside.or(from_file)?;
        Some(Setting { value, origin })
    }

    /// Reads one setting from flag and variable.
    pub(crate) fn read<T>(
        &self,
        names: &Names<'_>,
        flag: Option<&str>,
        parse: fn(&str) -> Result<T, String>,
    ) -> Option<(T, Origin)> {
        let checked = |path: &str, text: &str| match parse(text) {
            Ok(value) => Some(value),
            Err(fault) => {
                self.pad.add(path, fault, names.accepted);
                None
            }
        };
        let from_flag = flag.and_then(|text| checked(names.flag, text)).map(|value| (value, Origin::Flag(names.flag)));
        let variable = (self.environment)(names.variable);
        let from_variable = variable.and_then(|text| checked(names.variable, &text));
        from_flag.or(from_variable.map(|value| (value, Origin::Environment(names.variable))))
    }
}
