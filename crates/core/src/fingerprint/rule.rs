//! A rule: how two requests are compared, as a self-describing text that is stored beside the digest.
//!
//! What does not belong here: applying it to a body (`json`, `form`, `multipart`).

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use jsonptr::Pointer;
use thiserror::Error;

use super::form::hex;
use super::media::is_token;
use super::pointers::tokens;

/// How long a rule's text may be, in bytes.
const MAX_TEXT: usize = 1024;

/// How a body is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub(super) enum Kind {
    Auto,
    Bytes,
    Json,
    Form,
    Multipart,
}

impl Kind {
    const ALL: [Kind; 5] = [Kind::Auto, Kind::Bytes, Kind::Json, Kind::Form, Kind::Multipart];

    fn word(self) -> &'static str {
        match self {
            Kind::Auto => "auto",
            Kind::Bytes => "bytes",
            Kind::Json => "json",
            Kind::Form => "form",
            Kind::Multipart => "multipart",
        }
    }

    /// Whether fields have names and no structure, so that a pointer is one name.
    fn is_flat(self) -> bool {
        match self {
            Kind::Form | Kind::Multipart => true,
            Kind::Auto | Kind::Bytes | Kind::Json => false,
        }
    }
}

/// How requests are compared: `json;ignore=/sent_at;headers=x-mode`.
///
/// The text is a kind, then in this order and each only if it says something: `;ignore=`, `;choose=` (RFC 6901
/// pointers) and `;headers=` (names in lower case), as sorted lists with commas. In the text `%`, `,`, `;` and all
/// that is not printable ASCII is percent-encoded. At most 1,024 bytes.
///
/// - `auto` (the default) becomes one of the others by the request's media type: `application/json` and `+json` →
///   `json`; `application/x-www-form-urlencoded` → `form`; `multipart/form-data` → `multipart`; all else → `bytes`. A
///   body that is coded (`Content-Encoding`), or that the kind cannot read strictly, is compared as `bytes`.
/// - `bytes`: as received.
/// - `json`: member order and white space do not count, nor how a string is escaped; numbers are exact decimals (1.0
///   is 1, 9007199254740993 is not 9007199254740992, -0 is 0); arrays are ordered; text is not folded or normalised.
///   Refused: duplicate members, lone surrogates, a byte order mark, trailing bytes, more than 128 levels, an integer
///   part of more than 4,300 digits, an exponent of more than 18 digits.
/// - `form`: decoded pairs; the order between different names does not count, see `fingerprint/form.rs`.
/// - `multipart`: parts in order; the boundary does not count.
///
/// What is *ignored* is as if it were not there, whether it was or not; an ignored array element closes the gap. Where
/// something is *chosen*, only that is compared, and absent differs from `null`. Of forms, a pointer is `/name` and
/// means every field of that name. A pointer under another of the same list adds nothing and is dropped.
#[derive(Clone, PartialEq, Eq, Debug, Hash)]
pub struct Rule {
    kind: Kind,
    ignore: Vec<String>,
    choose: Vec<String>,
    headers: Vec<String>,
}

/// Why a text is not a rule.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RuleError {
    /// Longer than 1,024 bytes.
    #[error("a fingerprint rule has at most 1024 bytes and this one has {length}; name fewer pointers or headers")]
    TooLong {
        /// The length in bytes.
        length: usize,
    },
    /// Not one of the kinds.
    #[error("unknown fingerprint rule {found:?}; use auto, bytes, json, form or multipart")]
    UnknownKind {
        /// What stood there.
        found: String,
    },
    /// Not one of the settings.
    #[error("unknown setting {found:?} in a fingerprint rule; use ignore=, choose= or headers=")]
    UnknownSetting {
        /// What stood there.
        found: String,
    },
    /// A setting that is empty or stands there twice.
    #[error("the setting {setting} of a fingerprint rule must be given once, with at least one item")]
    Setting {
        /// Its name.
        setting: &'static str,
    },
    /// A percent escape that is broken or does not give UTF-8.
    #[error("broken percent escape in {found:?}; write a percent sign as %25")]
    Escape {
        /// The item.
        found: String,
    },
    /// Not an RFC 6901 pointer, or the empty one.
    #[error("{pointer:?} is not a json pointer to a part of the body; write /name or /list/0/name")]
    Pointer {
        /// What stood there.
        pointer: String,
    },
    /// Not a header name.
    #[error("{name:?} is not a header name")]
    HeaderName {
        /// What stood there.
        name: String,
    },
    /// A pointer into a form's value, which has no inside.
    #[error("{pointer:?} leads into a field, and the fields of {kind} have no inside; write /name")]
    Nested {
        /// The pointer.
        pointer: String,
        /// The rule's kind.
        kind: &'static str,
    },
    /// Pointers on a kind that cannot apply them.
    #[error("{kind} takes no {setting}; name json, form or multipart")]
    NotForKind {
        /// The setting.
        setting: &'static str,
        /// The rule's kind.
        kind: &'static str,
    },
    /// Both lists of pointers at once.
    #[error("a fingerprint rule either ignores or chooses; drop one of the two")]
    IgnoreAndChoose,
}

impl Rule {
    fn plain(kind: Kind) -> Rule {
        Rule { kind, ignore: Vec::new(), choose: Vec::new(), headers: Vec::new() }
    }

    /// By the request's media type; what cannot be read strictly is compared as bytes.
    pub fn auto() -> Rule {
        Self::plain(Kind::Auto)
    }

    /// The body's bytes as received.
    pub fn bytes() -> Rule {
        Self::plain(Kind::Bytes)
    }

    /// JSON with exact decimals, member order and white space apart.
    pub fn json() -> Rule {
        Self::plain(Kind::Json)
    }

    /// Decoded form pairs.
    pub fn form() -> Rule {
        Self::plain(Kind::Form)
    }

    /// The parts of `multipart/form-data`.
    pub fn multipart() -> Rule {
        Self::plain(Kind::Multipart)
    }

    /// Leaves out what these RFC 6901 pointers lead to. An empty list changes nothing.
    ///
    /// # Errors
    ///
    /// A malformed or empty pointer; a kind without pointers (`bytes`); beside chosen pointers; a text over 1,024 bytes.
    pub fn ignoring<I>(mut self, pointers: I) -> Result<Rule, RuleError>
    where
        I: IntoIterator,
        I::Item: AsRef<str>,
    {
        self.ignore.extend(pointers.into_iter().map(|pointer| pointer.as_ref().to_owned()));
        self.checked()
    }

    /// Compares only what these RFC 6901 pointers lead to. An empty list changes nothing.
    ///
    /// # Errors
    ///
    /// As [`Rule::ignoring`]; and on `auto`, where a body of another kind would be compared by nothing.
    pub fn choosing<I>(mut self, pointers: I) -> Result<Rule, RuleError>
    where
        I: IntoIterator,
        I::Item: AsRef<str>,
    {
        self.choose.extend(pointers.into_iter().map(|pointer| pointer.as_ref().to_owned()));
        self.checked()
    }

    /// Compares these headers as well, by name. An empty list changes nothing.
    ///
    /// # Errors
    ///
    /// A malformed name; a text over 1,024 bytes.
    pub fn with_headers<I>(mut self, names: I) -> Result<Rule, RuleError>
    where
        I: IntoIterator,
        I::Item: AsRef<str>,
    {
        self.headers.extend(names.into_iter().map(|name| name.as_ref().to_ascii_lowercase()));
        self.checked()
    }

    /// The canonical text; parsing it gives the same rule.
    pub fn as_text(&self) -> String {
        self.to_string()
    }

    pub(super) fn kind(&self) -> Kind {
        self.kind
    }

    pub(super) fn ignore(&self) -> &[String] {
        &self.ignore
    }

    pub(super) fn choose(&self) -> &[String] {
        &self.choose
    }

    pub(super) fn headers(&self) -> &[String] {
        &self.headers
    }

    /// What an `auto` rule is for a body of `kind`: its pointers as far as that kind can apply them.
    pub(super) fn resolved(&self, kind: Kind) -> Rule {
        let ignore = match kind {
            Kind::Auto | Kind::Json => self.ignore.clone(),
            Kind::Bytes => Vec::new(),
            Kind::Form | Kind::Multipart => {
                let names = self.ignore.iter().filter(|pointer| tokens(pointer).len() == 1);
                names.cloned().collect()
            }
        };
        Rule { kind, ignore, choose: Vec::new(), headers: self.headers.clone() }
    }

    /// Puts the lists into their canonical form and refuses what makes no sense.
    fn checked(mut self) -> Result<Rule, RuleError> {
        for list in [&mut self.ignore, &mut self.choose] {
            for pointer in list.iter() {
                if pointer.is_empty() || Pointer::parse(pointer).is_err() {
                    return Err(RuleError::Pointer { pointer: pointer.clone() });
                }
            }
            outermost(list);
        }
        if let Some(name) = self.headers.iter().find(|name| !is_token(name.as_bytes())) {
            return Err(RuleError::HeaderName { name: name.clone() });
        }
        self.headers.sort_unstable();
        self.headers.dedup();
        self.check_kind()?;
        match self.as_text().len() {
            length if length > MAX_TEXT => Err(RuleError::TooLong { length }),
            _ => Ok(self),
        }
    }

    /// Whether this kind can apply the pointers.
    fn check_kind(&self) -> Result<(), RuleError> {
        let kind = self.kind.word();
        if !self.ignore.is_empty() && !self.choose.is_empty() {
            return Err(RuleError::IgnoreAndChoose);
        }
        if !self.ignore.is_empty() && self.kind == Kind::Bytes {
            return Err(RuleError::NotForKind { setting: "ignore", kind });
        }
        if !self.choose.is_empty() && matches!(self.kind, Kind::Auto | Kind::Bytes) {
            return Err(RuleError::NotForKind { setting: "choose", kind });
        }
        let mut pointers = self.ignore.iter().chain(&self.choose);
        match pointers.find(|pointer| self.kind.is_flat() && tokens(pointer).len() > 1) {
            Some(pointer) => Err(RuleError::Nested { pointer: pointer.clone(), kind }),
            None => Ok(()),
        }
    }
}

/// Sorts the pointers and drops those that another of them already covers.
fn outermost(pointers: &mut Vec<String>) {
    pointers.sort_unstable();
    pointers.dedup();
    let all = pointers.clone();
    let covers = |outer: &String, inner: &String| {
        let below = inner.strip_prefix(outer.as_str());
        below.is_some_and(|rest| rest.starts_with('/'))
    };
    pointers.retain(|inner| !all.iter().any(|outer| covers(outer, inner)));
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.word())?;
        let lists = [("ignore", &self.ignore), ("choose", &self.choose), ("headers", &self.headers)];
        for (setting, items) in lists {
            for (index, item) in items.iter().enumerate() {
                if index == 0 {
                    write!(f, ";{setting}=")?;
                } else {
                    f.write_str(",")?;
                }
                escape(item, f)?;
            }
        }
        Ok(())
    }
}

fn escape(item: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for byte in item.bytes() {
        match byte {
            b'%' | b',' | b';' => write!(f, "%{byte:02X}")?,
            0x21..=0x7e => write!(f, "{}", char::from(byte))?,
            _ => write!(f, "%{byte:02X}")?,
        }
    }
    Ok(())
}

fn unescape(item: &str) -> Result<String, RuleError> {
    let broken = || RuleError::Escape { found: item.to_owned() };
    let mut bytes = Vec::with_capacity(item.len());
    let mut rest = item.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        if *byte == b'%' {
            bytes.push(rest.get(..2).and_then(hex).ok_or_else(broken)?);
            rest = &rest[2..];
        } else {
            bytes.push(*byte);
        }
    }
    String::from_utf8(bytes).map_err(|_| broken())
}

impl FromStr for Rule {
    type Err = RuleError;

    /// Reads a rule. Lists need not be sorted, and settings may come in any order.
    fn from_str(text: &str) -> Result<Rule, RuleError> {
        if text.len() > MAX_TEXT {
            return Err(RuleError::TooLong { length: text.len() });
        }
        let mut pieces = text.split(';');
        let word = pieces.next().unwrap_or_default();
        let Some(kind) = Kind::ALL.into_iter().find(|kind| kind.word() == word) else {
            return Err(RuleError::UnknownKind { found: word.to_owned() });
        };
        let mut rule = Rule::plain(kind);
        for piece in pieces {
            let (name, items) = piece.split_once('=').unwrap_or((piece, ""));
            let (setting, list) = match name {
                "ignore" => ("ignore", &mut rule.ignore),
                "choose" => ("choose", &mut rule.choose),
                "headers" => ("headers", &mut rule.headers),
                other => {
                    return Err(RuleError::UnknownSetting { found: other.to_owned() });
                }
            };
            if items.is_empty() || !list.is_empty() {
                return Err(RuleError::Setting { setting });
            }
            for item in items.split(',') {
                list.push(unescape(item)?);
            }
        }
        rule.headers.iter_mut().for_each(|name| name.make_ascii_lowercase());
        rule.checked()
    }
}

/// Which fields of a form a rule compares.
pub(super) struct Names {
    ignore: BTreeSet<Vec<u8>>,
    choose: BTreeSet<Vec<u8>>,
}

impl Names {
    pub(super) fn of(rule: &Rule) -> Self {
        let names = |list: &[String]| {
            let names = list.iter().flat_map(|pointer| tokens(pointer));
            names.map(String::into_bytes).collect()
        };
        Self { ignore: names(&rule.ignore), choose: names(&rule.choose) }
    }

    pub(super) fn compared(&self, field: &[u8]) -> bool {
        !self.ignore.contains(field) && (self.choose.is_empty() || self.choose.contains(field))
    }
}
