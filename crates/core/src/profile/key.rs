//! What a key may be: the rule of a provider, what is refused whatever the provider says, and how a new one is made.
//! Keys of child actions belong elsewhere; drawing random bytes to the caller.

use std::fmt;

use uuid::{Builder, Uuid, Variant};

use crate::identity::Key;
use crate::time::Timestamp;

/// How a key travels and what it may be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyRule {
    /// Where it stands in a request.
    pub carrier: Carrier,
    /// The fewest bytes.
    pub bytes_min: usize,
    /// The most bytes; where the provider does not say, the most that any key of ours has.
    pub bytes_max: usize,
    /// Whether the provider says so itself.
    pub length_said: bool,
    /// What it must look like.
    pub format: Format,
    /// What is drawn for a new one.
    pub generate: Generator,
}

/// Where a key stands in a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Carrier {
    /// A header.
    Header {
        /// Its name, in lower case.
        name: String,
        /// How its value is spelled.
        encoding: Encoding,
        /// A second header with the instant of the first send, the same in every attempt (OASIS Repeatable Requests).
        first_sent: Option<String>,
    },
    /// A member of the JSON body's outermost object.
    Member(String),
    /// A parameter of the form or, without a form, of the query.
    Parameter(String),
}

/// How a key is spelled in a header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Encoding {
    /// As it is.
    Raw,
    /// As a string of RFC 9651, in quotes.
    Quoted,
}

/// What a key must look like.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// Any printable ASCII.
    Any,
    /// Letters, digits, and the characters `-` and `_`.
    Word,
    /// A UUID of any version (RFC 9562), in its hyphenated form.
    Uuid,
    /// A UUID of version 4.
    Uuid4,
}

/// What is drawn for a new key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Generator {
    /// A UUID of version 7: it keeps stores fast and tells its age.
    Uuid7,
    /// A UUID of version 4, where a provider asks for it.
    Uuid4,
}

/// Why a text is refused as a key. Its message never shows the text.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyFault {
    /// It is no key at all.
    #[error("the key is empty or not printable ASCII: leave `--key` out, and one is drawn")]
    Unprintable,
    /// Too few bytes for the provider.
    #[error("the key has {bytes} bytes and the profile asks for at least {least}: leave `--key` out, and one is drawn")]
    TooShort {
        /// Its length.
        bytes: usize,
        /// The fewest.
        least: usize,
    },
    /// Too many bytes for the provider.
    #[error("the key has {bytes} bytes and the profile allows {most}: leave `--key` out, and one is drawn that fits")]
    TooLong {
        /// Its length.
        bytes: usize,
        /// The most.
        most: usize,
    },
    /// Not what the provider's format says.
    #[error("the profile asks for {wanted} as a key: leave `--key` out, and one is drawn")]
    Format {
        /// What it asks for.
        wanted: Format,
    },
    /// It looks like a credential of HTTP.
    #[error(
        "the key looks like an access token: a key is no secret and is stored by others. Revoke that token if it was \
         sent anywhere, and leave `--key` out"
    )]
    Token,
    /// It looks like a signed token.
    #[error(
        "the key looks like a JSON web token: a key is no secret and is stored by others. Leave `--key` out, and send \
         the token in its own header by reference"
    )]
    WebToken,
    /// It holds an e-mail address.
    #[error("the key holds an e-mail address: providers keep keys and show them. Name the intent after it instead")]
    Email,
    /// It holds the number of a payment card.
    #[error("the key holds the number of a payment card: providers keep keys and show them. Leave `--key` out")]
    Card,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Any => "printable ASCII",
            Self::Word => "letters, digits, `-` and `_`",
            Self::Uuid => "a UUID",
            Self::Uuid4 => "a UUID of version 4",
        })
    }
}

impl KeyRule {
    /// Judges a text before anything is written down under it: a key that a provider rejects after the first attempt
    /// cannot be exchanged safely.
    ///
    /// # Errors
    /// The first [`KeyFault`] that it has; what would leak something comes before what does not fit.
    pub fn lint(&self, text: &str) -> Result<Key, KeyFault> {
        let key = Key::new(text);
        if let Some(fault) = leak(text) {
            return Err(fault);
        }
        let bytes = text.len();
        if bytes > self.bytes_max {
            return Err(KeyFault::TooLong { bytes, most: self.bytes_max });
        }
        let key = key.map_err(|_| KeyFault::Unprintable)?;
        if bytes < self.bytes_min {
            return Err(KeyFault::TooShort { bytes, least: self.bytes_min });
        }
        if self.format.allows(text) { Ok(key) } else { Err(KeyFault::Format { wanted: self.format }) }
    }

    /// A new key, of 16 bytes that the caller drew from the operating system's randomness.
    #[must_use]
    pub fn draw(&self, random: [u8; 16], now: Timestamp) -> Key {
        let uuid = match self.generate {
            Generator::Uuid4 => Builder::from_random_bytes(random).into_uuid(),
            Generator::Uuid7 => {
                let millis = u64::try_from(now.as_millis()).unwrap_or(0);
                let [rest @ .., _, _, _, _, _, _] = random;
                Builder::from_unix_timestamp_millis(millis, &rest).into_uuid()
            }
        };
        Key::uuid(&uuid)
    }
}

impl Format {
    fn allows(self, text: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Word => text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')),
            Self::Uuid => uuid(text).is_some(),
            Self::Uuid4 => uuid(text).is_some_and(|uuid| uuid.get_version_num() == 4),
        }
    }
}

fn uuid(text: &str) -> Option<Uuid> {
    let uuid = Uuid::try_parse(text).ok()?;
    (text.len() == uuid::fmt::Hyphenated::LENGTH && uuid.get_variant() == Variant::RFC4122).then_some(uuid)
}

/// Prefixes by which well-known services mark their secrets.
const SECRET_PREFIXES: [&str; 12] = [
    "sk_live_",
    "sk_test_",
    "rk_live_",
    "rk_test_",
    "ghp_",
    "gho_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "AKIA",
    "whsec_",
];

/// What must not be given away, whatever a provider allows.
fn leak(text: &str) -> Option<KeyFault> {
    let lower = text.trim_start().to_ascii_lowercase();
    let scheme = ["bearer ", "basic ", "token ", "bearer:", "basic:"].iter().any(|scheme| lower.starts_with(scheme));
    if is_web_token(text) {
        Some(KeyFault::WebToken)
    } else if scheme || SECRET_PREFIXES.iter().any(|prefix| text.starts_with(prefix)) {
        Some(KeyFault::Token)
    } else if holds_email(text) {
        Some(KeyFault::Email)
    } else if uuid(text).is_none() && holds_card(text) {
        Some(KeyFault::Card)
    } else {
        None
    }
}

/// Three parts of base64url, or two where it is not signed, the first opening as `{"` does.
fn is_web_token(text: &str) -> bool {
    let text = text.rsplit([' ', ':', '=']).next().unwrap_or(text);
    let parts: Vec<&str> = text.split('.').collect();
    let base64 = |part: &&str| part.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    matches!(parts.len(), 3 | 5)
        && parts.iter().all(base64)
        && parts.first().is_some_and(|head| head.starts_with("eyJ"))
}

/// A local part, an at sign, and a domain with a dot.
fn holds_email(text: &str) -> bool {
    let local = |byte: u8| byte.is_ascii_alphanumeric() || b".!#$%&'*+/=?^_`{|}~-".contains(&byte);
    let domain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-');
    text.match_indices('@').any(|(at, _)| {
        let (before, after) = (text.get(..at).unwrap_or_default(), text.get(at + 1..).unwrap_or_default());
        let host: String = after.bytes().take_while(|byte| domain(*byte)).map(char::from).collect();
        let labels: Vec<&str> = host.trim_end_matches('.').split('.').collect();
        before.bytes().next_back().is_some_and(local)
            && labels.len() >= 2
            && labels.iter().all(|label| !label.is_empty())
            && labels.last().is_some_and(|top| top.len() >= 2 && top.bytes().all(|byte| byte.is_ascii_alphabetic()))
    })
}

/// Digits of a card's number: 13 to 19 with a right check digit (Luhn, ISO/IEC 7812-1) and the first digit of a scheme
/// that issues cards; in one run, or in groups as they are printed, parted by single spaces or hyphens.
fn holds_card(text: &str) -> bool {
    let mut pieces = text.split(|letter: char| !(letter.is_ascii_digit() || matches!(letter, ' ' | '-')));
    pieces.any(|piece| {
        let groups: Vec<&str> = piece.split([' ', '-']).collect();
        let printed = [&[4, 4, 4, 4][..], &[4, 4, 4, 4, 3], &[4, 6, 5], &[4, 6, 4]];
        let together = printed.iter().any(|sizes| {
            groups.windows(sizes.len()).any(|window| {
                window.iter().map(|group| group.len()).eq(sizes.iter().copied()) && is_card(window.concat().as_bytes())
            })
        });
        together || groups.iter().any(|group| is_card(group.as_bytes()))
    })
}

fn is_card(digits: &[u8]) -> bool {
    let scheme = digits.first().is_some_and(|first| (b'2'..=b'6').contains(first));
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(place, digit)| match (place % 2, u32::from(digit.saturating_sub(b'0'))) {
            (0, digit) => digit,
            (_, digit) if digit > 4 => digit * 2 - 9,
            (_, digit) => digit * 2,
        })
        .sum();
    (13..=19).contains(&digits.len()) && scheme && sum.is_multiple_of(10)
}
