//! One request of a case, as what it differs in from the plain one.
//!
//! What does not belong here: its bytes (`target.rs`, `body.rs`).

use std::collections::BTreeMap;

use serde::Deserialize;

/// One request, as what it differs in from the plain one.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Request {
    /// The name of the exchange; all of a `together` may share one.
    pub r#as: String,
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
    /// More query, `a=1&b=2`.
    pub query: Option<String>,
    /// Headers that are set or replaced.
    pub headers: BTreeMap<String, String>,
    /// With the credential, without one, or with a wrong one.
    pub credential: Credential,
    /// Whether it goes to the other operation.
    pub other_operation: bool,
    /// Where else it goes.
    pub to: To,
    /// The exchange whose result is meant by `to = "item"`.
    pub of: Option<String>,
    /// Another method than the given one.
    pub method: Option<String>,
    /// Whether the other method of the settings is used.
    pub other_method: bool,
    /// How the media type of the body is written.
    pub media: Media,
    /// A header of the settings that goes along.
    pub along: Along,
    /// The version of HTTP.
    pub http: Http,
    /// Whether the connection is kept, and the kept one used.
    pub keep: bool,
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
    /// With a space in the middle.
    Space,
    /// With a comma in the middle.
    Comma,
    /// With a letter beyond ASCII.
    NonAscii,
    /// With a control character.
    Control,
    /// Two keys in one header, as a list.
    List,
    /// Two keys in two lines of the same header.
    TwoLines,
    /// Another text than a UUID.
    Token,
    /// The end of a caller's name in front, as if it were part of the key.
    Nested,
}

impl KeyForm {
    /// Whether it is a way to write a header, and nothing else.
    pub(crate) const fn is_of_headers(self) -> bool {
        matches!(self, Self::Quoted | Self::Bare | Self::Control | Self::List | Self::TwoLines)
    }
}

/// Where a request goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum To {
    /// To the given operation.
    #[default]
    Given,
    /// To the same operation at another instance.
    Second,
    /// To the same operation in another region.
    Region,
    /// To the same operation of another resource.
    Sibling,
    /// To the same operation at an instance of another version.
    Upgraded,
    /// To what an earlier request made.
    Item,
    /// To where a result is looked up by its key.
    Lookup,
    /// To where a request is cancelled by its key.
    Cancel,
    /// To the description of the API.
    Openapi,
}

/// Which version of HTTP a request goes over.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
pub enum Http {
    /// As the settings say.
    #[default]
    #[serde(rename = "given")]
    Given,
    /// HTTP/1.1.
    #[serde(rename = "1.1")]
    One,
    /// HTTP/2.
    #[serde(rename = "2")]
    Two,
}

/// How the media type of a body is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Media {
    /// As given.
    #[default]
    Given,
    /// With a charset.
    Charset,
    /// A type that the target does not know.
    Foreign,
}

/// A header of the settings that goes along.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Along {
    /// None.
    #[default]
    Nothing,
    /// The one that names another account.
    Account,
    /// The one that names another version of the API.
    Version,
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
    /// In the header where the contract or the settings say, its name in capitals.
    HeaderUpper,
    /// In a header `X-Idempotency-Key`.
    XHeader,
    /// In the query as `idempotency_key`.
    Query,
    /// In a member `idempotency_key` of the body.
    Body,
}

/// A change to the body.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Body {
    /// The given bytes.
    #[default]
    Base,
    /// One value changed.
    Changed,
    /// One more member.
    Added,
    /// The varied member taken away.
    Removed,
    /// One more member whose value is null.
    NullAdded,
    /// The documented default of a member written out.
    DefaultAdded,
    /// Members of objects in reverse order.
    Reordered,
    /// Elements of arrays in reverse order.
    ArraysReversed,
    /// With line breaks and spaces.
    Pretty,
    /// A whole number written with a fraction of zero.
    NumberDecimal,
    /// A whole number written with an exponent of zero.
    NumberExponent,
    /// A number of 20 digits.
    NumberLong,
    /// The number of 20 digits after that.
    NumberLongNext,
    /// A text whose first letter is written as an escape.
    Escaped,
    /// A text with an accent in one character.
    Composed,
    /// The same text with the accent as a character of its own.
    Decomposed,
    /// The varied value inside a list.
    Structured,
    /// The varied member once more, with another value.
    MemberTwice,
    /// The boundary of a multipart body replaced.
    NewBoundary,
    /// What the target should refuse.
    Invalid,
    /// What the target declines for reasons of its business.
    Declined,
    /// What changes the thing that was made.
    Change,
    /// No body at all.
    Nothing,
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
    /// That of another caller.
    Second,
    /// Another one of the same caller.
    SameTenant,
    /// One with fewer rights.
    Weaker,
    /// That of a caller whose name begins with the name of the first.
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

/// A status, or a class of them such as `2xx`.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(untagged)]
pub enum Wanted {
    /// A number: a status, a count, a length.
    Number(u64),
    /// Yes or no.
    Truth(bool),
    /// A class such as `2xx`, or a text.
    Text(String),
}

/// What a case is where a step's `want` is not met.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Otherwise {
    /// The case could not be set up.
    #[default]
    SetupFailed,
    /// The question could not be put in this way.
    Inconclusive,
}
