//! What a case can ask for in one request.
//!
//! What does not belong here: the bytes of it (`crate::target`).

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{Body, Otherwise, Wanted};
use crate::place::Place;

/// One request, as what it differs in from the plain one.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Request {
    /// The name of the exchange; all of a `together` may share one.
    pub r#as: String,
    /// Another method than the target's.
    pub method: Option<String>,
    /// The name of the key in this round, or `none`.
    pub key: String,
    /// How the key's text is changed.
    pub key_form: KeyForm,
    /// The key's length in bytes; keys of one name begin alike.
    pub key_length: Option<usize>,
    /// Where the key stands.
    pub place: KeyPlace,
    /// The body, as a change to the given one.
    pub body: Body,
    /// Whether the content type names a character set.
    pub charset: bool,
    /// More query, `a=1&b=2`.
    pub query: Option<String>,
    /// Headers that are set or replaced.
    pub headers: BTreeMap<String, String>,
    /// With the credential, without one, or with another one.
    pub credential: Credential,
    /// Whether it names the other account.
    pub other_account: bool,
    /// Where it goes.
    pub to: Place,
    /// When the key is said to have been used first, where the dialect says that.
    pub first_sent: FirstSent,
    /// Whether the connection is kept, and the kept one used.
    pub keep: bool,
    /// Whether it goes by the other version of HTTP, where the target offers both.
    pub other_version: bool,
    /// What is lost on the way.
    pub lose: Loss,
    /// Statuses that the case needs here, else it says nothing of the question.
    pub want: Vec<Wanted>,
    /// What the case is where they are not met.
    pub otherwise: Otherwise,
}

/// A change to the key's text.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KeyForm {
    /// As the contract writes it.
    #[default]
    Plain,
    /// In capitals.
    Upper,
    /// In quotes, whatever the contract says.
    Quoted,
    /// Without quotes, whatever the contract says.
    Bare,
    /// No text at all.
    Empty,
    /// With a space in it.
    Spaced,
    /// With a comma in it.
    Comma,
    /// With a letter beyond ASCII.
    Accented,
    /// A word and a number instead of a UUID.
    Word,
    /// After what the nested credential has more than the given one, its first character moved to the end.
    Nested,
}

/// When a key is said to have been used first (OASIS Repeatable Requests 1.0: `Repeatability-First-Sent`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FirstSent {
    /// When it was.
    #[default]
    True,
    /// Before the window began.
    Old,
    /// In an hour.
    Future,
}

/// Where a key stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KeyPlace {
    /// Where the contract or the settings say.
    #[default]
    Given,
    /// In a header `Idempotency-Key`.
    Header,
    /// In a header `X-Idempotency-Key`.
    XHeader,
    /// In two lines of the contract's header, the second with another key.
    HeaderTwice,
    /// In the contract's header, its name in capitals.
    HeaderCapitals,
    /// In the query as `idempotency_key`.
    Query,
    /// In a member `idempotency_key` of the body.
    Body,
}

/// Which credential goes along.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Credential {
    /// The given one.
    #[default]
    Given,
    /// None.
    None,
    /// One that is not valid.
    Wrong,
    /// That of another principal.
    Second,
    /// Another one of the same principal.
    SameTenant,
    /// That of a principal whose name goes on where that of the first one ends.
    Nested,
}

/// What is lost on the way.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Loss {
    /// Nothing.
    #[default]
    Nothing,
    /// The whole answer: it is kept as evidence, and the case goes on as if it had not come.
    Reply,
    /// The answer from the middle of its body on.
    ReplyMidway,
    /// The request from the middle of its head on.
    RequestHead,
    /// The request from the middle of its body on.
    RequestBody,
    /// The caller: it closes right after the last byte of the request.
    Caller,
}
