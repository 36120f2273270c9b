//! The other addresses and callers that the settings name, and why one that a step needs is not there.
//!
//! What does not belong here: which step needs which.

use super::{Address, header, secret};
use crate::case::{Along, To};
use crate::error::ProbeError;
use crate::exchange::Answer;
use crate::fact::id_of;
use crate::lack::Lack;
use crate::settings::Settings;
use crate::target::IdPlace;

/// A header with its value.
type Header = (String, String);

/// Addresses beside the target's own.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    other: Option<Address>,
    second: Option<Address>,
    region: Option<Address>,
    sibling: Option<Address>,
    upgraded: Option<Address>,
    item: Option<Address>,
    lookup: Option<Address>,
    cancel: Option<Address>,
    openapi: Option<Address>,
}

impl Places {
    pub(crate) fn of(settings: &Settings) -> Result<Self, ProbeError> {
        // Braces are no part of a URL, and stand for what is put in later.
        let parse = |url: &Option<String>| url.as_deref().map(|url| Address::parse(&hidden(url))).transpose();
        Ok(Self {
            other: parse(&settings.other_url)?,
            second: parse(&settings.second_url)?,
            region: parse(&settings.also.region_url)?,
            sibling: parse(&settings.also.sibling_url)?,
            upgraded: parse(&settings.also.upgraded_url)?,
            item: parse(&settings.also.item_url)?,
            lookup: parse(&settings.also.lookup_url)?,
            cancel: parse(&settings.also.cancel_url)?,
            openapi: parse(&settings.also.openapi_url)?,
        })
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Address> {
        let all = [&self.other, &self.second, &self.region, &self.sibling, &self.upgraded];
        let more = [&self.item, &self.lookup, &self.cancel, &self.openapi];
        all.into_iter().chain(more).flatten()
    }

    pub(crate) fn other(&self) -> Result<Address, Lack> {
        self.other.clone().ok_or_else(|| "no other operation was named (--other-url)".into())
    }

    /// The address of a step, with the key put in where it is asked for by its key.
    pub(crate) fn find(&self, to: To, own: &Address, key: Option<&str>) -> Result<Address, Lack> {
        let (told, why) = match to {
            To::Given | To::Item => return Ok(own.clone()),
            To::Second => (&self.second, "no second instance was named (--second-url)"),
            To::Region => (&self.region, "no other region was named (region-url in [also])"),
            To::Sibling => (&self.sibling, "no other resource was named (sibling-url in [also])"),
            To::Upgraded => (&self.upgraded, "no instance of another version was named (upgraded-url in [also])"),
            To::Lookup => (&self.lookup, "no place to look up a key was named (lookup-url in [also])"),
            To::Cancel => (&self.cancel, "no place to cancel by key was named (cancel-url in [also])"),
            To::Openapi => (&self.openapi, "no description of the API was named (openapi-url in [also])"),
        };
        let mut address = told.clone().ok_or(why)?;
        address.path = address.path.replace(KEY, key.unwrap_or_default());
        Ok(address)
    }

    /// The address of what an answer says was made.
    pub(crate) fn item(&self, own: &Address, made: &Answer, id: Option<&IdPlace>) -> Result<Address, Lack> {
        if let Some(item) = &self.item {
            let id = id.and_then(|place| id_of(made, place)).ok_or("the answer holds no id (--id)")?;
            let mut address = item.clone();
            address.path = address.path.replace(ID, &id);
            return Ok(address);
        }
        let location = made.header("location").ok_or("the answer has no Location (item-url in [also])")?;
        if location.starts_with('/') && !location.starts_with("//") {
            return Ok(Address { path: location.to_owned(), ..own.clone() });
        }
        let address = Address::parse(location).map_err(|_| Lack::from("its Location is no address"))?;
        let same = (&address.host, address.port, address.tls) == (&own.host, own.port, own.tls);
        if same { Ok(address) } else { Err("its Location is another server's (item-url in [also])".into()) }
    }
}

/// What stands for a key or an id in an address once it is read.
const KEY: &str = "counterfoil-probe-key";
const ID: &str = "counterfoil-probe-id";

fn hidden(url: &str) -> String {
    url.replace("{key}", KEY).replace("{id}", ID)
}

/// Who else may call, and the headers that a step may add.
#[derive(Clone, Debug)]
pub(crate) struct Callers {
    second: Option<Header>,
    same_tenant: Option<Header>,
    weaker: Option<Header>,
    nested: Option<Header>,
    /// What stands after the first caller's name in that of the nested one.
    pub(super) nested_name: Option<String>,
    account: Option<Header>,
    version: Option<Header>,
}

impl Callers {
    pub(crate) fn of(settings: &Settings) -> Result<Self, ProbeError> {
        let secret = |line: &Option<String>| line.as_deref().map(secret).transpose();
        let header = |line: &Option<String>| line.as_deref().map(header).transpose();
        let also = &settings.also;
        Ok(Self {
            second: secret(&settings.second_credential)?,
            same_tenant: secret(&also.same_tenant_credential)?,
            weaker: secret(&also.weaker_credential)?,
            nested: secret(&also.nested_credential)?,
            nested_name: also.nested_name.clone(),
            account: header(&also.account_header)?,
            version: header(&also.version_header)?,
        })
    }

    /// Every credential.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Header> {
        [&self.second, &self.same_tenant, &self.weaker, &self.nested].into_iter().flatten()
    }

    pub(super) fn second(&self) -> Result<Header, Lack> {
        self.second.clone().ok_or_else(|| "no second caller was named (--second-credential)".into())
    }

    pub(super) fn same_tenant(&self) -> Result<Header, Lack> {
        let why = "no other credential of the same caller was given (same-tenant-credential in [also])";
        self.same_tenant.clone().ok_or_else(|| why.into())
    }

    pub(super) fn weaker(&self) -> Result<Header, Lack> {
        let why = "no credential with fewer rights was given (weaker-credential in [also])";
        self.weaker.clone().ok_or_else(|| why.into())
    }

    pub(super) fn nested(&self) -> Result<Header, Lack> {
        let why = "no caller with a longer name was named (nested-credential and nested-name in [also])";
        self.nested.clone().filter(|_| self.nested_name.is_some()).ok_or_else(|| why.into())
    }

    /// The header that a step adds.
    pub(super) fn along(&self, along: Along) -> Result<Option<Header>, Lack> {
        let (told, why) = match along {
            Along::Nothing => return Ok(None),
            Along::Account => (&self.account, "no other account was named (account-header in [also])"),
            Along::Version => (&self.version, "no other version was named (version-header in [also])"),
        };
        told.clone().map(Some).ok_or_else(|| why.into())
    }
}
