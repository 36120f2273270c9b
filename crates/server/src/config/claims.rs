//! What is asked of verified claims: which must be there, and which become parts of the scope. Verifying them belongs to
//! `principal`.

use std::fmt;

use counterfoil_core::Scope;
use serde_json::Value as Json;
use toml::Value;

use super::Operation;
use super::principal::PrincipalSource;
use super::reader::{Section, shown, text};

const CLAIM_ACCEPTED: &str = "a claim's name like \"sub\", or a json pointer like \"/realm_access/roles\"";
const VALUE_ACCEPTED: &str = "a text, whole number, true or false, or a list of them";
const PART_ACCEPTED: &str = "a text, or { claim = \"NAME\" }";
const NAME_ACCEPTED: &str = "1 to 64 of a-z, 0-9, - and _, not \"principal\" or \"tenant\"";

/// The longest name of a claim, in bytes.
const CLAIM_BYTES_MAX: usize = 256;
/// The most claims that may be required, and the most values for one.
const REQUIRED_MAX: usize = 16;
/// The most parts that a scope may have beside the principal.
const PARTS_MAX: usize = 15;

/// The name of a claim, or a JSON pointer (RFC 6901) to one inside another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClaimName(String);

impl ClaimName {
    /// Reads a name.
    ///
    /// # Errors
    /// What is wrong with the text.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() || text.len() > CLAIM_BYTES_MAX {
            return Err(format!("a claim's name has 1 to {CLAIM_BYTES_MAX} bytes"));
        }
        Ok(Self(text.to_owned()))
    }

    /// The claim `sub`, the subject of a token (RFC 7519 section 4.1.2).
    pub(crate) fn subject() -> Self {
        Self("sub".to_owned())
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The claim among `claims`.
    #[must_use]
    pub fn find<'c>(&self, claims: &'c Json) -> Option<&'c Json> {
        let found = if self.0.starts_with('/') { claims.pointer(&self.0) } else { claims.get(&self.0) };
        found.filter(|claim| !claim.is_null())
    }
}

impl fmt::Display for ClaimName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A claim that must be there.
#[derive(Clone, PartialEq, Debug)]
pub struct Requirement {
    /// Which.
    pub claim: ClaimName,
    /// It is one of these, or a list that holds one of them.
    pub one_of: Vec<Json>,
}

impl Requirement {
    /// Whether `claims` fulfil it. The claims `scope` and `scp` are lists of words with spaces between (RFC 8693
    /// section 4.2).
    #[must_use]
    pub fn is_met(&self, claims: &Json) -> bool {
        let Some(found) = self.claim.find(claims) else { return false };
        if self.one_of.contains(found) {
            return true;
        }
        let words = matches!(self.claim.as_str(), "scope" | "scp");
        match found {
            Json::Array(items) => items.iter().any(|item| self.one_of.contains(item)),
            Json::String(text) if words => text.split(' ').any(|word| self.one_of.iter().any(|wanted| wanted == word)),
            Json::String(_) | Json::Null | Json::Bool(_) | Json::Number(_) | Json::Object(_) => false,
        }
    }
}

/// Where a further part of the scope comes from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ScopePart {
    /// The same for every caller of this process.
    Constant(String),
    /// A verified claim of the caller.
    Claim(ClaimName),
}

/// Reads a table of required claims.
pub(crate) fn require(section: &Section<'_>) -> Vec<Requirement> {
    let Some(table) = section.table("require") else { return Vec::new() };
    let mut required = Vec::new();
    for (name, value) in table.entries() {
        match (ClaimName::parse(name), values(value)) {
            (Ok(claim), Ok(one_of)) => required.push(Requirement { claim, one_of }),
            (Err(fault), _) => table.complain(name, fault, CLAIM_ACCEPTED),
            (Ok(_), Err(fault)) => table.complain(name, fault, VALUE_ACCEPTED),
        }
    }
    if required.len() > REQUIRED_MAX {
        section.complain("require", format!("{} claims", required.len()), format!("at most {REQUIRED_MAX}"));
    }
    required
}

fn values(value: &Value) -> Result<Vec<Json>, String> {
    let Some(items) = value.as_array() else { return Ok(vec![scalar(value)?]) };
    if items.is_empty() || items.len() > REQUIRED_MAX {
        return Err(format!("a list of {} values", items.len()));
    }
    items.iter().map(scalar).collect()
}

/// A plain value as a claim has it.
pub(crate) fn scalar(value: &Value) -> Result<Json, String> {
    match value {
        Value::String(text) => Ok(Json::from(text.as_str())),
        Value::Integer(number) => Ok(Json::from(*number)),
        Value::Boolean(flag) => Ok(Json::from(*flag)),
        Value::Float(_) | Value::Datetime(_) | Value::Array(_) | Value::Table(_) => {
            Err(format!("{} is no plain value", shown(value)))
        }
    }
}

/// Reads `[scope]`: the parts beside the principal.
pub(crate) fn scope(root: &Section<'_>) -> Vec<(String, ScopePart)> {
    let Some(section) = root.table("scope") else { return Vec::new() };
    let mut parts = Vec::new();
    for (name, value) in section.entries() {
        let sample = || (name.clone(), "x".to_owned());
        if matches!(name.as_str(), "principal" | "tenant") || Scope::from_parts([sample()]).is_err() {
            section.complain(name, "it is no name of a part", NAME_ACCEPTED);
            continue;
        }
        match part(name, value) {
            Ok(part) => parts.push((name.clone(), part)),
            Err(fault) => section.complain(name, fault, PART_ACCEPTED),
        }
    }
    if parts.len() > PARTS_MAX {
        root.complain("scope", format!("{} parts", parts.len()), format!("at most {PARTS_MAX}"));
    }
    parts
}

fn part(name: &str, value: &Value) -> Result<ScopePart, String> {
    if let Value::Table(table) = value {
        let claim = table.get("claim").filter(|_| table.len() == 1);
        let claim = claim.ok_or_else(|| format!("{} is no such table", shown(value)))?;
        return Ok(ScopePart::Claim(ClaimName::parse(text(claim)?)?));
    }
    let text = text(value)?;
    Scope::from_parts([(name.to_owned(), text.to_owned())]).map_err(|error| error.to_string())?;
    Ok(ScopePart::Constant(text.to_owned()))
}

/// Complains where a claim is asked for that the source of principals can never have.
pub(crate) fn judge(
    root: &Section<'_>,
    source: &PrincipalSource,
    require: &[Requirement],
    scope: &[(String, ScopePart)],
    operations: &[Operation],
) {
    let complain = |path: String, claim: &ClaimName| {
        if let Some(fault) = source.lacks(claim) {
            root.complain(&path, fault, source.claims_accepted());
        }
    };
    for required in require {
        complain(format!("principal.require.{}", required.claim), &required.claim);
    }
    for (name, part) in scope {
        match part {
            ScopePart::Constant(_) => {}
            ScopePart::Claim(claim) => complain(format!("scope.{name}"), claim),
        }
    }
    for operation in operations {
        for required in &operation.require {
            complain(format!("operation.{}.require.{}", operation.name, required.claim), &required.claim);
        }
    }
}
