//! Further places of the service: other operations, other instances, and what was made there.
//!
//! What does not belong here: what is asked there (the cases).

use std::str::FromStr;

use serde::Deserialize;
use serde::de::IntoDeserializer as _;
use serde::de::value::{self, StrDeserializer};

use crate::address::Address;
use crate::body::encoded;
use crate::error::ProbeError;

/// Where a request goes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// The target itself; no setting names it.
    #[default]
    #[serde(skip_deserializing)]
    Target,
    /// Another operation that takes the same body.
    Other,
    /// The same operation of another resource, such as `/orders/2/refunds` beside `/orders/1/refunds`.
    Sibling,
    /// The same path with another method.
    Method,
    /// The operation in another region.
    Region,
    /// The operation at a second instance of the same service.
    Second,
    /// The operation at an instance of another version.
    Upgraded,
    /// Where what was made is changed.
    Change,
    /// Where what was made is deleted.
    Delete,
    /// Where a result is looked up by its key.
    Lookup,
    /// Where an action is cancelled by its key.
    Cancel,
    /// The description of the API.
    Description,
}

impl Place {
    /// What names it in arguments.
    pub(crate) const fn flag(self) -> &'static str {
        match self {
            Self::Target => "URL",
            Self::Other => "--also other",
            Self::Sibling => "--also sibling",
            Self::Method => "--also method",
            Self::Region => "--also region",
            Self::Second => "--also second",
            Self::Upgraded => "--also upgraded",
            Self::Change => "--also change",
            Self::Delete => "--also delete",
            Self::Lookup => "--also lookup",
            Self::Cancel => "--also cancel",
            Self::Description => "--also description",
        }
    }

    /// The method where none is told; nothing is the target's.
    const fn method(self) -> Option<&'static str> {
        match self {
            Self::Lookup | Self::Description => Some("GET"),
            Self::Change | Self::Method => Some("PATCH"),
            Self::Delete => Some("DELETE"),
            Self::Target
            | Self::Other
            | Self::Sibling
            | Self::Region
            | Self::Second
            | Self::Upgraded
            | Self::Cancel => None,
        }
    }
}

impl FromStr for Place {
    type Err = String;

    /// By its name in the settings; the error names all.
    fn from_str(name: &str) -> Result<Self, String> {
        let name: StrDeserializer<'_, value::Error> = name.into_deserializer();
        Self::deserialize(name).map_err(|error| error.to_string())
    }
}

/// What stands in a place's address for the key of the round.
const KEY: &str = "{{key}}";
/// What stands in it for the id of what was made.
const ID: &str = "{{id}}";

/// A place as it was told: `URL` or `METHOD URL`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Further {
    pub(crate) address: Address,
    pub(crate) method: Option<String>,
}

impl Further {
    pub(crate) fn parse(place: Place, told: &str) -> Result<Self, ProbeError> {
        let (method, url) = match told.trim().split_once(' ') {
            Some((method, url)) => (Some(method.to_owned()), url.trim()),
            None => (place.method().map(str::to_owned), told.trim()),
        };
        if let Some(method) = method.as_deref().filter(|method| method.parse::<http::Method>().is_err()) {
            return Err(ProbeError::Usage(format!("{}: {method:?} is no method", place.flag())));
        }
        // A URL holds no braces, so each stands for a word until it is known.
        let mut address = Address::parse(&url.replace(KEY, STAND_IN_KEY).replace(ID, STAND_IN_ID))?;
        address.path = address.path.replace(STAND_IN_KEY, KEY).replace(STAND_IN_ID, ID);
        Ok(Self { address, method })
    }

    /// Whether the key stands in its address.
    pub(crate) fn holds_key(&self) -> bool {
        self.address.path.contains(KEY)
    }

    /// Where it is in a round with this key, and this id of what was made. The text of the error says what is not known.
    pub(crate) fn at(&self, key: Option<&str>, id: Option<&str>) -> Result<Address, String> {
        let mut address = self.address.clone();
        for (mark, text, unknown) in [
            (KEY, key, "the address holds {{key}}, and the case has none"),
            (ID, id, "no answer told the id of what was made (--id)"),
        ] {
            if address.path.contains(mark) {
                address.path = address.path.replace(mark, &encoded(text.ok_or(unknown)?).replace('+', "%20"));
            }
        }
        Ok(address)
    }
}

const STAND_IN_KEY: &str = "counterfoil-probe-stand-in-key";
const STAND_IN_ID: &str = "counterfoil-probe-stand-in-id";

#[cfg(test)]
mod tests;
