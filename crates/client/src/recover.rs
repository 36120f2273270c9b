//! Asks a provider what became of an action, by the recipes of its profile. What the answer settles is decided in
//! `core::intent`.

use counterfoil_core::Receipt;
use counterfoil_core::intent::{Event, Found, Intent, Name, State};
use counterfoil_core::profile::{Question, Recipe};
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Uri};

use crate::client::Client;
use crate::deliver::after;
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
        let question = recipe.and_then(|recipe| {
            let question = recipe.question(&intent.request, intent.resource.as_deref())?;
            Some((recipe, question))
        });
        let (recipe, question) = question.ok_or_else(|| ClientError::NoRecipe(profile.id.clone()))?;
        let asked_at = self.journal.now().at;
        let found = match self.ask(&intent, question).await? {
            Heard::Answered(answer) => found(recipe, answer),
            Heard::NotSent(_) | Heard::Uncertain(_) => Found::Unclear,
        };
        let (_, intent) = self.journal.tell(intent, &Event::LookedUp { asked_at, found }).await?;
        Ok(Outcome::of(&intent))
    }

    async fn ask(&self, intent: &Intent, question: Question) -> Result<Heard, ClientError> {
        let wrong = |what| ClientError::Request(counterfoil_core::Error::Corrupt(what));
        let method =
            Method::from_bytes(question.method.as_bytes()).map_err(|_| wrong("the recipe's method is none"))?;
        let url: Uri = question.url.parse().map_err(|_| wrong("the recipe's URL is none"))?;
        self.reach.allows(&intent.request.origin, &intent.request.headers)?;
        let mut headers = secret::credentials(&intent.request)?;
        if question.body.is_some() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        let body = question.body.unwrap_or_default().into();
        let limit = after(intent.terms.attempt_limit);
        Ok(self.transport.send(Outgoing { method, url, headers, body }, limit).await)
    }
}

fn found(recipe: &Recipe, answer: Receipt) -> Found {
    match recipe.judge(&answer) {
        Some(true) => Found::Done(answer),
        Some(false) => Found::Absent,
        None => Found::Unclear,
    }
}
