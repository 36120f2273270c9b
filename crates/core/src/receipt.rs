//! The remembered result. Which answers are remembered belongs to `policy`, which headers to `middleware`.

use std::sync::Arc;

use bytes::Bytes;

/// The remembered result of an action: a status, headers in order, and the body.
///
/// A plain function's result is a receipt with status 200 and its bytes as the body.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Receipt {
    /// The status that was answered.
    pub status: u16,
    /// The headers that are replayed, in order, several of one name kept apart; values as bytes.
    pub headers: Arc<[(String, Bytes)]>,
    /// The body, or that it was not kept.
    pub body: Body,
}

/// A receipt's body.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Body {
    /// These bytes.
    Kept(Bytes),
    /// The action is done, but its answer was too large or a stream: a duplicate learns that and no more.
    NotKept,
}

impl Receipt {
    /// A result without headers.
    #[must_use]
    pub fn new(status: u16, body: impl Into<Bytes>) -> Self {
        Self { status, headers: Arc::default(), body: Body::Kept(body.into()) }
    }

    /// The same result with one more header, its name in lower case.
    #[must_use]
    pub fn with_header(mut self, name: &str, value: impl Into<Bytes>) -> Self {
        let one_more = (name.to_ascii_lowercase(), value.into());
        self.headers = self.headers.iter().cloned().chain([one_more]).collect();
        self
    }
}
