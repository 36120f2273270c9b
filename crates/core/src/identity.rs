//! Who an action is: scope, operation and key, their parts kept apart.
//! How a key travels in a header belongs to `wire`; what was asked belongs to `fingerprint`.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, LazyLock};

use sha2::{Digest as _, Sha256};

use crate::error::Error;

/// The longest key, in bytes.
pub const KEY_BYTES_MAX: usize = 255;
/// The longest operation name, in bytes.
pub const OPERATION_BYTES_MAX: usize = 1024;
/// The most parts of a scope.
pub const SCOPE_PARTS_MAX: usize = 16;
/// The longest value of a scope's part, in bytes.
pub const SCOPE_VALUE_BYTES_MAX: usize = 1024;
/// The longest name of a scope's part, in bytes.
pub const SCOPE_NAME_BYTES_MAX: usize = 64;

/// The client's text that names the action: 1 to 255 printable ASCII characters.
///
/// A key is no secret, but it may be anything a client chose: `Debug` does not print it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(Arc<str>);

impl Key {
    /// Checks `text`.
    ///
    /// # Errors
    /// [`Error::KeyEmpty`], [`Error::KeyTooLong`] or [`Error::KeyCharacter`].
    pub fn new(text: impl Into<Arc<str>>) -> Result<Self, Error> {
        let text = text.into();
        if text.is_empty() {
            return Err(Error::KeyEmpty);
        }
        if text.len() > KEY_BYTES_MAX {
            return Err(Error::KeyTooLong { bytes: text.len() });
        }
        match text.bytes().position(|byte| !(0x20..=0x7e).contains(&byte)) {
            Some(at) => Err(Error::KeyCharacter { at }),
            None => Ok(Self(text)),
        }
    }

    /// A UUID in its hyphenated form, lower case.
    pub(crate) fn uuid(uuid: &uuid::Uuid) -> Self {
        Self(uuid.hyphenated().to_string().into())
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({} bytes)", self.0.len())
    }
}

/// The stable name of what is done: `create-order`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Operation(Arc<str>);

impl Operation {
    /// Checks `name`: 1 to 1,024 bytes.
    ///
    /// # Errors
    /// [`Error::OperationLength`].
    pub fn new(name: impl Into<Arc<str>>) -> Result<Self, Error> {
        let name = name.into();
        if name.is_empty() || name.len() > OPERATION_BYTES_MAX {
            return Err(Error::OperationLength { bytes: name.len() });
        }
        Ok(Self(name))
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The verified principal and any further dimension (region, mode), as named parts in the order of their names.
///
/// Kept as the length-prefixed bytes of [`Scope::as_bytes`].
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Scope(Arc<[u8]>);

impl Scope {
    /// The scope of a service without tenants, said aloud: one part `tenant` = `single`.
    #[must_use]
    pub fn single_tenant() -> Self {
        static SINGLE: LazyLock<Scope> = LazyLock::new(|| Scope::framed([("tenant", "single")].into_iter()));
        SINGLE.clone()
    }

    /// A scope of one verified principal.
    ///
    /// # Errors
    /// [`Error::Scope`] where the principal is empty or over 1,024 bytes.
    pub fn principal(principal: impl Into<String>) -> Result<Self, Error> {
        Self::from_parts([("principal".to_owned(), principal.into())])
    }

    /// A scope of the given parts; their order does not matter.
    ///
    /// # Errors
    /// [`Error::Scope`] where there is no part or more than 16, a name is repeated, empty, over 64 bytes or not of
    /// `a-z 0-9 - _`, or a value is empty or over 1,024 bytes.
    pub fn from_parts(parts: impl IntoIterator<Item = (String, String)>) -> Result<Self, Error> {
        let mut named = BTreeMap::new();
        for (name, value) in parts {
            let plain = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_');
            if name.is_empty() || name.len() > SCOPE_NAME_BYTES_MAX || !name.bytes().all(plain) {
                return Err(Error::Scope("a part's name must be 1 to 64 of a-z, 0-9, - and _"));
            }
            if value.is_empty() || value.len() > SCOPE_VALUE_BYTES_MAX {
                return Err(Error::Scope("a part's value must have 1 to 1,024 bytes"));
            }
            if named.insert(name, value).is_some() {
                return Err(Error::Scope("a part's name is repeated"));
            }
            if named.len() > SCOPE_PARTS_MAX {
                return Err(Error::Scope("at most 16 parts are allowed"));
            }
        }
        if named.is_empty() {
            return Err(Error::Scope("it needs a part: a caller without a principal has no scope"));
        }
        Ok(Self::framed(named.iter().map(|(name, value)| (name.as_str(), value.as_str()))))
    }

    /// Parts that were checked, in the order of their names.
    fn framed<'p>(parts: impl Iterator<Item = (&'p str, &'p str)>) -> Self {
        let mut bytes = Vec::new();
        for (name, value) in parts {
            push_prefixed(&mut bytes, name.as_bytes());
            push_prefixed(&mut bytes, value.as_bytes());
        }
        Self(bytes.into())
    }

    /// The parts by name, in order.
    pub fn parts(&self) -> impl Iterator<Item = (&str, &str)> {
        let mut bytes = &self.0[..];
        // They were written by `framed`, so they end only where nothing is left.
        std::iter::from_fn(move || Some((take_prefixed(&mut bytes).ok()?, take_prefixed(&mut bytes).ok()?)))
    }

    /// The parts as length-prefixed bytes: injective, and equal for equal scopes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Reads what [`Scope::as_bytes`] answered.
    ///
    /// # Errors
    /// [`Error::Corrupt`] where the bytes are no scope's.
    pub fn from_bytes(given: &[u8]) -> Result<Self, Error> {
        let mut bytes = given;
        let mut parts = Vec::new();
        while !bytes.is_empty() {
            let name = take_prefixed(&mut bytes)?;
            let value = take_prefixed(&mut bytes)?;
            parts.push((name.to_owned(), value.to_owned()));
        }
        let scope = Self::from_parts(parts).map_err(|_| Error::Corrupt("scope"))?;
        if scope.as_bytes() == given { Ok(scope) } else { Err(Error::Corrupt("scope")) }
    }
}

impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.parts().map(|(name, _)| name)).finish()
    }
}

fn prefix(part: &[u8]) -> [u8; 4] {
    u32::try_from(part.len()).unwrap_or(u32::MAX).to_be_bytes()
}

pub(crate) fn push_prefixed(bytes: &mut Vec<u8>, part: &[u8]) {
    bytes.extend_from_slice(&prefix(part));
    bytes.extend_from_slice(part);
}

fn take_prefixed<'b>(bytes: &mut &'b [u8]) -> Result<&'b str, Error> {
    let corrupt = Error::Corrupt("scope");
    let (length, rest) = bytes.split_first_chunk::<4>().ok_or(corrupt.clone())?;
    let length = u32::from_be_bytes(*length) as usize;
    let (part, rest) = rest.split_at_checked(length).ok_or(corrupt.clone())?;
    *bytes = rest;
    str::from_utf8(part).map_err(|_| corrupt)
}

/// Scope, operation and key: what a record is kept under.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Identity {
    /// Whose action it is.
    pub scope: Scope,
    /// What is done.
    pub operation: Operation,
    /// Which one.
    pub key: Key,
}

impl Identity {
    /// The parts together.
    #[must_use]
    pub const fn new(scope: Scope, operation: Operation, key: Key) -> Self {
        Self { scope, operation, key }
    }

    /// The SHA-256 digest of the length-prefixed parts: what logs, errors and permits name instead of the key.
    #[must_use]
    pub fn digest(&self) -> Digest {
        let mut hasher = Sha256::new();
        for part in
            [b"counterfoil identity 1", self.scope.as_bytes(), self.operation.0.as_bytes(), self.key.0.as_bytes()]
        {
            hasher.update(prefix(part));
            hasher.update(part);
        }
        Digest(hasher.finalize().into())
    }
}

/// An identity's digest. `Display` prints the first 16 hexadecimal digits, which is what logs and lists show.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// All 32 bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// All 64 hexadecimal digits.
    #[must_use]
    pub fn to_hex(&self) -> String {
        use fmt::Write as _;
        self.0.iter().fold(String::with_capacity(64), |mut text, byte| {
            // Writing to a String cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().take(8).try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests;
