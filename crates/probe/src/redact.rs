//! Takes secrets out of what is kept: the credential wherever it stands, and headers that hold such things.
//!
//! What does not belong here: which reports there are.

use crate::exchange::Exchange;
use crate::target::Target;

/// What stands in the place of a secret.
const REDACTED: &str = "[redacted]";
/// Headers whose values are never kept.
const SECRET_HEADERS: [&str; 6] =
    ["authorization", "proxy-authorization", "cookie", "set-cookie", "x-api-key", "api-key"];

/// What is taken out.
pub(crate) struct Redaction {
    texts: Vec<String>,
    headers: Vec<String>,
}

impl Redaction {
    pub(crate) fn new(target: &Target) -> Self {
        let mut headers: Vec<String> = SECRET_HEADERS.iter().map(|name| (*name).to_owned()).collect();
        let (texts, holders) = target.secrets();
        headers.extend(holders);
        Self { texts, headers }
    }

    /// A text without the credential.
    pub(crate) fn text(&self, text: &str) -> String {
        self.texts.iter().fold(text.to_owned(), |text, secret| text.replace(secret.as_str(), REDACTED))
    }

    /// An exchange without secrets.
    pub(crate) fn clean(&self, exchange: &mut Exchange) {
        exchange.path = self.text(&exchange.path);
        exchange.body = self.text(&exchange.body);
        self.clean_headers(&mut exchange.headers);
        if let Some(answer) = &mut exchange.answer {
            self.clean_headers(&mut answer.headers);
            answer.body = self.text(&answer.body);
        }
    }

    fn clean_headers(&self, headers: &mut [(String, String)]) {
        for (name, value) in headers {
            *value = match self.headers.iter().any(|secret| secret == name) {
                true => REDACTED.to_owned(),
                false => self.text(value),
            };
        }
    }
}
