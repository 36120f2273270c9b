//! Asks a provider what became of an action, by the recipes of its profile. What the answer settles is decided in
//! `core::intent`.

use counterfoil_core::Receipt;
use counterfoil_core::intent::{Event, Found, Intent, Name, State};
use counterfoil_core::profile::Recipe;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Uri};
use tokio::time::Instant;

use crate::client::Client;
use crate::error::ClientError;
use crate::outcome::Outcome;
use crate::secret;
use crate::transport::{Heard, Outgoing};

/// What to ask a provider for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ask {
    /// What became of the action.
    LookUp,
    /// That it does not happen any more.
    Cancel,
}

impl Client {
    /// Asks the provider about an action, by the recipe of its profile. Settles the intent where the answer is clear;
    /// an empty look-up settles only once nothing that was sent can still arrive.
    ///
    /// # Errors
    /// [`ClientError::NoRecipe`] where the profile documents no way, or none that can be used with what is known.
    pub async fn recover(&self, name: &Name, ask: Ask) -> Result<Outcome, ClientError> {
        let intent = self.intent(name).await?;
        if matches!(intent.state, State::Settled { .. } | State::Ready) {
            return Ok(Outcome::of(&intent));
        }
        let profile = self.profile(&intent.request.profile.id)?;
        let recipe = match ask {
            Ask::LookUp => profile.lookup.as_ref(),
            Ask::Cancel => profile.cancel.as_ref(),
        };
        let usable = |recipe: &&Recipe| intent.resource.is_some() || !recipe.needs_resource();
        let recipe = recipe.filter(usable).ok_or_else(|| ClientError::NoRecipe(profile.id.clone()))?;
        let asked_at = self.journal.now().at;
        let found = match self.ask(&intent, recipe).await? {
            Heard::Answered(answer) => found(recipe, answer),
            Heard::NotSent(_) | Heard::Uncertain(_) => Found::Unclear,
        };
        let (_, intent) = self.journal.tell(intent, &Event::LookedUp { asked_at, found }).await?;
        Ok(Outcome::of(&intent))
    }

    async fn ask(&self, intent: &Intent, recipe: &Recipe) -> Result<Heard, ClientError> {
        let filled = |text: &str, part: fn(&str) -> String| {
            text.replace("{url}", &intent.request.url())
                .replace("{origin}", &intent.request.origin)
                .replace("{key}", &part(intent.request.key.as_str()))
                .replace("{resource}", &part(intent.resource.as_deref().unwrap_or_default()))
        };
        let wrong = |what| ClientError::Request(counterfoil_core::Error::Corrupt(what));
        let method = Method::from_bytes(recipe.method.as_bytes()).map_err(|_| wrong("the recipe's method is none"))?;
        let url: Uri = filled(&recipe.url, in_url).parse().map_err(|_| wrong("the recipe's URL is none"))?;
        let mut headers = secret::credentials(intent)?;
        let body = recipe.body.as_deref().map(|body| filled(body, in_json)).unwrap_or_default();
        if recipe.body.is_some() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        let limit = Instant::now() + intent.terms.attempt_limit;
        Ok(self.transport.send(Outgoing { method, url, headers, body: body.into() }, limit).await)
    }
}

fn found(recipe: &Recipe, answer: Receipt) -> Found {
    match recipe.judge(&answer) {
        Some(true) => Found::Done(answer),
        Some(false) => Found::Absent,
        None => Found::Unclear,
    }
}

/// What may stand in a part of a URL (RFC 3986 section 2.3); everything else as percent and two digits.
fn in_url(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
            _ => format!("%{byte:02X}"),
        })
        .collect()
}

/// What may stand in a JSON string. A key and a resource are printable text.
fn in_json(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}
