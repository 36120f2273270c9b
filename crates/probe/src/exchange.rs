//! One request with what became of it: the evidence of every verdict.
//!
//! What does not belong here: sockets (`wire.rs`), and what an exchange proves (`fact.rs`).

use serde::{Deserialize, Serialize};

/// An answer as it came.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The headers in order, names in lower case; values that are not text are shown with replacement characters.
    pub headers: Vec<(String, String)>,
    /// The body, without its transfer coding; bytes that are not text are shown with replacement characters.
    pub body: String,
    /// Whether the body came to its end.
    pub whole: bool,
}

impl Answer {
    /// The first value of a header.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Every value of a header, in order.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> Vec<&'a str> {
        self.headers.iter().filter(|(known, _)| known == name).map(|(_, value)| value.as_str()).collect()
    }

    /// Whether it says that the request was done.
    #[must_use]
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

/// One request and what became of it. Times are microseconds since the run began.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Exchange {
    /// Its number in the run, from 1.
    pub number: u32,
    /// The case.
    pub case: String,
    /// The round of the case, from 1.
    pub round: u32,
    /// The name that the case gives it.
    pub name: String,
    /// The method.
    pub method: String,
    /// The path and the query.
    pub path: String,
    /// `HTTP/1.1` or `HTTP/2`.
    #[serde(default)]
    pub protocol: String,
    /// The request's headers; secrets are replaced.
    pub headers: Vec<(String, String)>,
    /// The request's body.
    pub body: String,
    /// The key's length in bytes, without quotes; 0 where there is none.
    pub key_bytes: usize,
    /// The key itself, which no report shows apart from the headers.
    #[serde(skip)]
    pub(crate) key: Option<String>,
    /// What was lost on purpose.
    pub lost: Option<String>,
    /// When its first byte went out.
    pub sent_at: u64,
    /// When its last byte had gone out; nothing where it was cut.
    pub sent_whole_at: Option<u64>,
    /// When the first byte of the answer came.
    pub first_byte_at: Option<u64>,
    /// When it was over.
    pub ended_at: u64,
    /// The answer, where one came.
    pub answer: Option<Answer>,
    /// Why none came.
    pub fault: Option<String>,
}

/// Whether at least two requests had gone out whole before any answer began: only then was it a race.
pub(crate) fn overlapped(group: &[&Exchange]) -> bool {
    let earliest = group.iter().filter_map(|exchange| exchange.first_byte_at).min();
    let under_way = |exchange: &&&Exchange| match (exchange.sent_whole_at, earliest) {
        (Some(sent), Some(answered)) => sent < answered,
        (Some(_), None) => true,
        (None, _) => false,
    };
    group.iter().filter(under_way).count() >= 2
}
