//! A header of an intent, and the references that stand for secrets in it. Resolving a reference belongs to the client.

use std::fmt;

use bytes::Bytes;

/// A header.
#[derive(Clone, PartialEq, Eq)]
pub struct Header {
    /// Its name, in lower case.
    pub name: String,
    /// Its value.
    pub value: Value,
}

impl fmt::Debug for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Header({})", self.name)
    }
}

/// A header's value.
#[derive(Clone, PartialEq, Eq)]
pub enum Value {
    /// These bytes.
    Plain(Bytes),
    /// What a reference leads to at each attempt.
    Secret(Secret),
}

impl Value {
    /// What a caller wrote: a reference to a secret where it reads as one, else the bytes themselves.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Self {
        match str::from_utf8(bytes).ok().and_then(Secret::parse) {
            Some(secret) => Self::Secret(secret),
            None => Self::Plain(Bytes::copy_from_slice(bytes)),
        }
    }
}

/// A reference to a secret: `Bearer env:TOKEN`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Secret {
    /// What stands before it: `Bearer `.
    pub prefix: String,
    /// Where it is.
    pub source: SecretSource,
}

/// Where a secret is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SecretSource {
    /// In an environment variable.
    Env(String),
    /// In a file, without the newline at its end.
    File(String),
}

impl fmt::Display for SecretSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Env(name) => write!(f, "env:{name}"),
            Self::File(path) => write!(f, "file:{path}"),
        }
    }
}

impl Secret {
    /// Reads `env:NAME` or `file:PATH`, alone or after one word and a space; `None` where it is no reference.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (prefix, reference) = match text.rsplit_once("env:").filter(|(before, _)| is_prefix(before)) {
            Some((before, name)) => (before, SecretSource::Env(name.to_owned())),
            None => {
                let (before, path) = text.split_once("file:").filter(|(before, _)| is_prefix(before))?;
                (before, SecretSource::File(path.to_owned()))
            }
        };
        let usable = match &reference {
            SecretSource::Env(name) => {
                let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
                !name.is_empty() && name.bytes().all(word) && !name.starts_with(|letter: char| letter.is_ascii_digit())
            }
            SecretSource::File(path) => !path.is_empty() && !path.contains('\0'),
        };
        usable.then(|| Self { prefix: prefix.to_owned(), source: reference })
    }
}

/// Nothing, or one word and a space.
fn is_prefix(text: &str) -> bool {
    text.is_empty()
        || text.strip_suffix(' ').is_some_and(|word| {
            !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        })
}
