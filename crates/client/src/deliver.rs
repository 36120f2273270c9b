//! One loop that sends an intent until its outcome is known or its caller's patience ends. What to do next is decided in
//! `core::intent`; here it is waited for and carried out.

use std::time::{Duration, SystemTime};

use counterfoil_core::intent::{End, Event, Intent, Request, Resolution, Said, State, next};
use counterfoil_core::profile::reading;
use counterfoil_core::schedule::Jitter;
use counterfoil_core::{LeaseId, Receipt, Timestamp};
use counterfoil_store::points;
use http::Uri;
use http::header::{RETRY_AFTER, SET_COOKIE};
use tokio::time::Instant;

use crate::client::{Client, Frozen, Wish, random};
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
    /// It is written down now, or stood already.
    Kept {
        /// The intent.
        intent: &'a Intent,
    },
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
        self.send_watched(wish, patience, &unwatched).await
    }

    /// The same, and `watch` is told what goes on. A new intent is written down as its first attempt begins, in one
    /// commit before the first byte.
    ///
    /// # Errors
    /// [`ClientError`]; the same call goes on where it stopped.
    pub async fn send_watched(
        &self,
        wish: &Wish,
        patience: Duration,
        watch: Watch<'_>,
    ) -> Result<Outcome, ClientError> {
        let give_up = after(patience);
        let stands = match self.frozen(wish).await? {
            Frozen::Stands(stands) => stands,
            Frozen::New(fresh) => match self.first(&fresh.intent)? {
                Some((begun, attempt)) => match self.put_down(&fresh, begun).await? {
                    Ok(mut intent) => {
                        watch(Progress::Kept { intent: &intent });
                        let said = self.attempt(&mut intent, attempt, watch).await?;
                        return self.go_on(intent, Some(said), give_up, watch).await;
                    }
                    Err(stands) => stands,
                },
                // Nothing can be sent now. It is written down, and `deliver` says why.
                None => self.put_down(&fresh, fresh.intent.clone()).await?.map_or_else(|stands| stands, Ok),
            },
        };
        match stands {
            Ok(intent) => {
                watch(Progress::Kept { intent: &intent });
                self.go_on(intent, None, give_up, watch).await
            }
            Err(outcome) => Ok(outcome),
        }
    }

    /// What a new intent is with its first attempt begun; `None`: none can begin now.
    fn first(&self, intent: &Intent) -> Result<Option<(Intent, Attempt)>, ClientError> {
        let Ok(request) = self.outgoing(&intent.request) else { return Ok(None) };
        let (begin, lease, limit) = self.beginning(intent)?;
        let step = next(intent, &begin, self.journal.now());
        Ok(match (step.write, step.said) {
            (Some(begun), Said::Send { attempt, .. }) => {
                Some((begun, Attempt { number: attempt, lease, limit, request }))
            }
            _ => None,
        })
    }

    /// The event by which an attempt begins. Its limit runs from before the commit, so that it ends no later than the
    /// intent says.
    fn beginning(&self, intent: &Intent) -> Result<(Event, LeaseId, Instant), ClientError> {
        let lease = LeaseId::from_bytes(random()?);
        let begin = Event::Begin { lease, holder: self.journal.store().holder() };
        Ok((begin, lease, after(intent.terms.attempt_limit)))
    }

    /// Sends what was written down until its outcome is known, or until `patience` is over: then the answer says from
    /// when the same intent may be delivered further. An intent that is settled is not sent.
    ///
    /// Dropping the future drops the connection and loses nothing: the attempt under way counts as uncertain, and the
    /// intent can be delivered again.
    ///
    /// # Errors
    /// [`ClientError`]; the intent stands as it stood, and the same call goes on with it.
    pub async fn deliver(&self, intent: Intent, patience: Duration, watch: Watch<'_>) -> Result<Outcome, ClientError> {
        self.go_on(intent, None, after(patience), watch).await
    }

    /// The loop, behind what was `said` already.
    async fn go_on(
        &self,
        mut intent: Intent,
        mut said: Option<Said>,
        give_up: Instant,
        watch: Watch<'_>,
    ) -> Result<Outcome, ClientError> {
        loop {
            let now = match said.take() {
                Some(said) => said,
                None => self.step(&mut intent, watch).await?,
            };
            let until = match now {
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
        let (begin, lease, limit) = self.beginning(intent)?;
        // What can be missing is asked for first: a reference that leads nowhere must not cost an attempt, nor an answer
        // be one that nobody can read. Nor may it hide that nothing is to be sent.
        let request = self.profile(&intent.request.profile.id).and_then(|_| self.outgoing(&intent.request));
        let sends = matches!(next(intent, &begin, self.journal.now()).said, Said::Send { .. });
        let request = if sends { Ok(request?) } else { request };
        let (said, begun) = self.journal.tell(intent.clone(), &begin).await?;
        *intent = begun;
        let Said::Send { attempt, .. } = said else { return Ok(said) };
        match request {
            Ok(request) => self.attempt(intent, Attempt { number: attempt, lease, limit, request }, watch).await,
            // It became due in between.
            Err(error) => {
                let ended = self.ended(intent, lease, &Heard::NotSent(error.to_string()))?;
                self.tell_end(intent, &ended).await?;
                Err(error)
            }
        }
    }

    fn outgoing(&self, request: &Request) -> Result<Outgoing, ClientError> {
        self.reach.allows(&request.origin, &request.headers)?;
        let url: Uri = request.url().parse().map_err(|_| unreadable())?;
        Ok(Outgoing {
            method: request.method.clone(),
            url,
            headers: secret::headers(request)?,
            body: request.body.clone(),
        })
    }

    /// Carries out an attempt that is committed.
    async fn attempt(&self, intent: &mut Intent, attempt: Attempt, watch: Watch<'_>) -> Result<Said, ClientError> {
        let Attempt { number, lease, limit, mut request } = attempt;
        if let Some((name, value)) = secret::first_sent(intent)? {
            request.headers.insert(name, value);
        }
        watch(Progress::Sending { intent, attempt: number });
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

/// An attempt that may go out once it is committed.
struct Attempt {
    number: u32,
    lease: LeaseId,
    limit: Instant,
    request: Outgoing,
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
