//! One loop that sends an intent until its outcome is known or its caller's patience ends. What to do next is decided in
//! `core::intent`; here it is waited for and carried out.

use std::time::{Duration, SystemTime};

use counterfoil_core::intent::{End, Event, Intent, Request, Resolution, Said, State};
use counterfoil_core::profile::reading;
use counterfoil_core::schedule::Jitter;
use counterfoil_core::{LeaseId, Receipt, Timestamp};
use counterfoil_store::points;
use http::Uri;
use http::header::{RETRY_AFTER, SET_COOKIE};
use tokio::time::Instant;

use crate::client::{Client, Wish, random};
use crate::error::ClientError;
use crate::outcome::Outcome;
use crate::recover::Ask;
use crate::secret;
use crate::transport::{Heard, Outgoing};

/// How often an intent that another worker sends is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// How long the end of an attempt is told to a journal that fails. After it the attempt lapses, which is safe.
const TELL_FOR: Duration = Duration::from_secs(30);
const TELL_PAUSE: Duration = Duration::from_millis(500);

/// What is going on, for whoever watches.
#[derive(Debug)]
#[non_exhaustive]
pub enum Progress<'a> {
    /// An attempt is committed and goes out.
    Sending {
        /// The intent.
        intent: &'a Intent,
        /// The attempt's number.
        attempt: u32,
    },
    /// An attempt is over.
    Heard {
        /// The intent as it stands now.
        intent: &'a Intent,
        /// What was heard: a status, or why there is none.
        what: String,
    },
    /// Nothing is done until then.
    Waiting {
        /// The intent.
        intent: &'a Intent,
        /// Until when.
        until: Timestamp,
    },
}

/// Is told what goes on. It must not block.
pub type Watch<'a> = &'a (dyn Fn(Progress<'_>) + Send + Sync);

/// Watches nothing.
pub fn unwatched(_: Progress<'_>) {}

impl Client {
    /// Writes the wish down and delivers it, for at most `patience` beyond the attempt under way.
    ///
    /// # Errors
    /// [`ClientError`]; the same call goes on where it stopped.
    pub async fn send(&self, wish: &Wish, patience: Duration) -> Result<Outcome, ClientError> {
        match self.write_down(wish).await? {
            Ok(intent) => self.deliver(intent, patience, &unwatched).await,
            Err(outcome) => Ok(outcome),
        }
    }

    /// Sends what was written down until its outcome is known, or until `patience` is over: then the answer says from
    /// when the same intent may be delivered further. An intent that is settled is not sent.
    ///
    /// Dropping the future drops the connection and loses nothing: the attempt under way counts as uncertain, and the
    /// intent can be delivered again.
    ///
    /// # Errors
    /// [`ClientError`]; the intent stands as it stood, and the same call goes on with it.
    pub async fn deliver(
        &self,
        mut intent: Intent,
        patience: Duration,
        watch: Watch<'_>,
    ) -> Result<Outcome, ClientError> {
        let give_up = after(patience);
        loop {
            let until = match self.step(&mut intent, watch).await? {
                Said::Settled => return Ok(Outcome::of(&intent)),
                Said::Overdue { .. } => return self.overdue(intent).await,
                Said::Wait { until } => until,
                Said::InProgress { until } => self.journal.now().at.plus(LOOK_EVERY).min(until),
                // The attempt's lease was lost, or somebody wrote in between: what stands is looked at.
                Said::Ready | Said::Send { .. } | Said::Noted | Said::Alarm | Said::TooEarly { .. } | Said::Stale => {
                    self.journal.now().at
                }
            };
            let pause = until.since(self.journal.now().at);
            if after(pause) > give_up {
                return Ok(Outcome::of(&intent));
            }
            if !pause.is_zero() {
                watch(Progress::Waiting { intent: &intent, until });
                tokio::time::sleep(pause).await;
            }
            intent = self.intent(&intent.request.name).await?;
        }
    }

    /// One attempt, if one may start now; what is to be done then.
    async fn step(&self, intent: &mut Intent, watch: Watch<'_>) -> Result<Said, ClientError> {
        if matches!(intent.state, State::Settled { .. }) {
            return Ok(Said::Settled);
        }
        // First what can be missing: a reference that leads nowhere must not cost an attempt, nor an answer be one that
        // nobody can read.
        self.profile(&intent.request.profile.id)?;
        let mut request = outgoing(&intent.request)?;
        let lease = LeaseId::from_bytes(random()?);
        let begin = Event::Begin { lease, holder: self.journal.store().holder() };
        // From before the commit, so that it ends no later than the intent says.
        let limit = after(intent.terms.attempt_limit);
        let (said, begun) = self.journal.tell(intent.clone(), &begin).await?;
        *intent = begun;
        let Said::Send { attempt, .. } = said else { return Ok(said) };
        if let Some((name, value)) = secret::first_sent(intent)? {
            request.headers.insert(name, value);
        }
        watch(Progress::Sending { intent, attempt });
        points::pass("client.before-wire");
        let heard = self.transport.send(request, limit).await;
        points::pass("client.answered");
        let ended = self.ended(intent, lease, &heard)?;
        let said = self.tell_end(intent, &ended).await?;
        points::pass("client.noted");
        watch(Progress::Heard { intent, what: told(&heard) });
        Ok(said)
    }

    /// What an attempt's end is, read through the profile.
    fn ended(&self, intent: &Intent, lease: LeaseId, heard: &Heard) -> Result<Event, ClientError> {
        let (end, wait) = match heard {
            Heard::NotSent(_) => (End::NotSent, None),
            Heard::Uncertain(_) => (End::Uncertain, None),
            Heard::Answered(answer) => {
                let profile = self.profile(&intent.request.profile.id)?;
                let read = reading(answer, profile, intent.doubt.is_some());
                let kept = without_cookies(answer);
                let end = End::Answered { answer: kept, verdict: read.verdict, resource: read.resource };
                (end, retry_after(answer, SystemTime::now()))
            }
        };
        Ok(Event::Ended { lease, end, told: wait, jitter: Jitter(u32::from_be_bytes(random()?)) })
    }

    /// Tells the journal what an attempt came to, again and again where it fails.
    async fn tell_end(&self, intent: &mut Intent, ended: &Event) -> Result<Said, ClientError> {
        let until = Instant::now() + TELL_FOR;
        loop {
            match self.journal.tell(intent.clone(), ended).await {
                Ok((said, stands)) => {
                    *intent = stands;
                    return Ok(said);
                }
                Err(ClientError::Journal(error)) if Instant::now() < until => {
                    tracing::warn!(%error, "the end of an attempt could not be noted");
                    tokio::time::sleep(TELL_PAUSE).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Nothing is sent any more. Where the profile documents how to ask, it is asked.
    async fn overdue(&self, intent: Intent) -> Result<Outcome, ClientError> {
        match self.recover(&intent.request.name, Ask::LookUp).await {
            Ok(outcome) => Ok(outcome),
            Err(ClientError::NoRecipe(_)) => Ok(Outcome::of(&intent)),
            // That it is overdue must not get lost with the question.
            Err(error) => {
                tracing::warn!(%error, "the provider could not be asked");
                Ok(Outcome::of(&intent))
            }
        }
    }

    /// A person's word on what became of an intent, about the version that they saw.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn resolve(
        &self,
        intent: Intent,
        version: u64,
        verdict: Resolution,
        who: &str,
        why: &str,
    ) -> Result<(Said, Intent), ClientError> {
        let event = Event::Resolved { version, verdict, who: who.to_owned(), why: why.to_owned() };
        self.journal.tell(intent, &event).await
    }
}

fn outgoing(request: &Request) -> Result<Outgoing, ClientError> {
    let url: Uri = request.url().parse().map_err(|_| unreadable())?;
    Ok(Outgoing { method: request.method.clone(), url, headers: secret::headers(request)?, body: request.body.clone() })
}

fn unreadable() -> ClientError {
    ClientError::Request(counterfoil_core::Error::Corrupt("its URL cannot be read"))
}

fn told(heard: &Heard) -> String {
    match heard {
        Heard::Answered(answer) => answer.status.to_string(),
        Heard::NotSent(why) => format!("nothing was sent: {why}"),
        Heard::Uncertain(why) => format!("no answer: {why}"),
    }
}

/// The longest span that anything here is waited for.
const FOR_EVER: Duration = Duration::from_hours(24 * 365);

/// So long after now; a span without an end is cut.
pub(crate) fn after(span: Duration) -> Instant {
    Instant::now() + span.min(FOR_EVER)
}

/// A cookie belongs to the connection's user, and is no part of what became of an action.
fn without_cookies(answer: &Receipt) -> Receipt {
    let kept = answer.headers.iter().filter(|(name, _)| name != SET_COOKIE.as_str());
    Receipt { headers: kept.cloned().collect(), ..answer.clone() }
}

/// How long the provider asks to wait (RFC 9110 section 10.2.3); a date is counted from `now` on our own clock.
pub(crate) fn retry_after(answer: &Receipt, now: SystemTime) -> Option<Duration> {
    let (_, value) = answer.headers.iter().find(|(name, _)| name == RETRY_AFTER.as_str())?;
    let text = str::from_utf8(value).ok()?.trim();
    match text.parse::<u32>() {
        Ok(seconds) => Some(Duration::from_secs(seconds.into())),
        Err(_) => httpdate::parse_http_date(text).ok().map(|date| date.duration_since(now).unwrap_or_default()),
    }
}
