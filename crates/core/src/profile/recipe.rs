//! Questions to a provider, filled in for one intent, and what their answers say.
//! Whether a recipe is called for is in `read`; asking belongs to the client.

use super::matching::Seen;
use super::{AnswerRule, Recipe};
use crate::intent::Request;
use crate::receipt::Receipt;

/// A recipe, filled in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Question {
    /// The method.
    pub method: String,
    /// The absolute URL.
    pub url: String,
    /// The body, JSON.
    pub body: Option<String>,
}

impl Recipe {
    /// Whether it can be used only with what an answer named.
    #[must_use]
    pub fn needs_resource(&self) -> bool {
        self.url.contains("{resource}") || self.body.as_ref().is_some_and(|body| body.contains("{resource}"))
    }

    /// The question about the action of `request`; `None` where it needs a `resource` and none was named. It goes to the
    /// host of the request and nowhere else.
    #[must_use]
    pub fn question(&self, request: &Request, resource: Option<&str>) -> Option<Question> {
        if self.needs_resource() && resource.is_none() {
            return None;
        }
        let resource = resource.unwrap_or_default();
        let path = request.target.split('?').next().unwrap_or_default();
        let url = self
            .url
            .replace("{url}", &format!("{}{path}", request.origin))
            .replace("{origin}", &request.origin)
            .replace("{resource}", &encoded(resource))
            .replace("{key}", &encoded(request.key.as_str()));
        let fill = |body: &String| {
            body.replace("{resource}", &escaped(resource)).replace("{key}", &escaped(request.key.as_str()))
        };
        Some(Question { method: self.method.clone(), url, body: self.body.as_ref().map(fill) })
    }

    /// What an answer to this question says: `Some(true)` done, `Some(false)` not done, `None`: a person reads it.
    #[must_use]
    pub fn judge(&self, answer: &Receipt) -> Option<bool> {
        let seen = Seen::new(answer);
        let fits = |rules: &[AnswerRule]| rules.iter().any(|rule| seen.fits(rule));
        if fits(&self.found) {
            Some(true)
        } else if fits(&self.absent) {
            Some(false)
        } else {
            None
        }
    }
}

/// Percent-encoded but for unreserved characters (RFC 3986 section 2.3), braces included, so that nothing that was
/// filled in is filled in again.
pub(crate) fn encoded(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(byte).collect()
}

/// The inside of a JSON string, its braces escaped too, so that nothing that was filled in is filled in again.
fn escaped(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    let inside = quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or_default();
    inside.replace('{', "\\u007b").replace('}', "\\u007d")
}
