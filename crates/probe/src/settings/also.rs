//! What else a target has: other places, callers, headers and bodies that single cases need; a table of the file.
//!
//! What does not belong here: what every run needs (`settings.rs`).

use serde::Deserialize;

/// What else the target has. A field that is `None` was not told.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Also {
    /// The same operation in another region.
    pub region_url: Option<String>,
    /// The same operation of another resource.
    pub sibling_url: Option<String>,
    /// The same operation at an instance of another version.
    pub upgraded_url: Option<String>,
    /// What was made, with `{id}` for its id; its `Location` where nothing is said.
    pub item_url: Option<String>,
    /// Where a result is looked up, with `{key}` for the key.
    pub lookup_url: Option<String>,
    /// Where a request is cancelled, with `{key}` for the key.
    pub cancel_url: Option<String>,
    /// The description of the API.
    pub openapi_url: Option<String>,
    /// Another credential of the same caller.
    pub same_tenant_credential: Option<String>,
    /// A credential of the same caller with fewer rights.
    pub weaker_credential: Option<String>,
    /// The credential of a caller whose name is that of the first with `nested-name` after it.
    pub nested_credential: Option<String>,
    /// What stands after the first caller's name in that of the other, such as `:b`.
    pub nested_name: Option<String>,
    /// The header that names another account, `Name: value`.
    pub account_header: Option<String>,
    /// The header that names another version of the API, `Name: value`.
    pub version_header: Option<String>,
    /// Another method that the operation takes.
    pub other_method: Option<String>,
    /// The method that changes what was made; PATCH where nothing is said.
    pub change_method: Option<String>,
    /// The method that cancels; POST where nothing is said.
    pub cancel_method: Option<String>,
    /// The body of a request that is declined for reasons of the business.
    pub declined: Option<String>,
    /// The body that changes what was made; made from `vary` where nothing is said.
    pub change: Option<String>,
}
