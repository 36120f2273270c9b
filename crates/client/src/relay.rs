//! Delivers what transactions left in an outbox, with the same loop as everything else. Which intents are due is the
//! store's to say, what becomes of one belongs to `deliver`.

use std::collections::{HashMap, HashSet, VecDeque};
use std::pin::pin;
use std::time::Duration;

use counterfoil_core::intent::{Intent, Name, Outbound, Recorded, origin};
use counterfoil_store::intents::{INTENTS_MAX, Letter, Turn};
use counterfoil_store::{ErrorKind, StoreError};
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::{Instant, sleep, sleep_until};

use crate::client::Client;
use crate::deliver::unwatched;
use crate::error::ClientError;
use crate::outcome::Outcome;

/// How many intents are sent at once unless told otherwise.
pub const AT_ONCE: usize = 16;
/// The most that may be sent at once.
pub const AT_ONCE_MAX: usize = 1_000;
/// How often an outbox is looked at unless told otherwise: nobody tells a relay of a commit.
pub const POLL: Duration = Duration::from_millis(500);
/// How long attempts under way may go on once the relay is told to end.
pub const GRACE: Duration = Duration::from_secs(25);
/// How long an intent rests that could not be begun, because of a secret or a profile that is not there.
const REST: Duration = Duration::from_secs(30);

/// Sends the intents of one outbox until it is told to end. Any number of relays may share an outbox: one conditional
/// write decides who sends, and a relay that dies leaves its intents to the others.
///
/// **Order is not promised**: what was committed first is taken first, and overtaken by others while it waits.
#[derive(Clone)]
pub struct Relay {
    client: Client,
    at_once: usize,
    poll: Duration,
    grace: Duration,
}

type Delivered = Result<Outcome, ClientError>;

/// What is under way, and what waits for its turn.
#[derive(Default)]
struct Work {
    tasks: JoinSet<Delivered>,
    names: HashMap<Id, Name>,
    ready: VecDeque<Intent>,
    resting: HashMap<Name, Instant>,
    /// Where the next look goes on: those that rest must not hide the others, however many they are.
    turn: Option<Turn>,
    /// Behind which position letters that could not be opened before are still to be looked at; `None`: all were.
    again: Option<u64>,
}

impl Work {
    fn new() -> Self {
        Self { again: Some(0), ..Self::default() }
    }
}

impl Relay {
    /// A relay of the client's journal.
    #[must_use]
    pub const fn new(client: Client) -> Self {
        Self { client, at_once: AT_ONCE, poll: POLL, grace: GRACE }
    }

    /// At most so many attempts at once, between 1 and [`AT_ONCE_MAX`].
    #[must_use]
    pub fn with_at_once(mut self, at_once: usize) -> Self {
        self.at_once = at_once.clamp(1, AT_ONCE_MAX);
        self
    }

    /// Looks so often, at the least, for what was committed.
    #[must_use]
    pub const fn with_poll(mut self, poll: Duration) -> Self {
        self.poll = poll;
        self
    }

    /// Attempts under way may go on for so long once the relay is told to end.
    #[must_use]
    pub const fn with_grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Delivers until `stop` is ready: then nothing is begun any more, and what is under way is waited for. Answers how
    /// many attempts were cut off; they count as uncertain, and any relay goes on with them under the same key.
    ///
    /// A store that fails is asked again. Dropping the future loses nothing either.
    pub async fn run(&self, stop: impl Future<Output = ()>) -> usize {
        let mut stop = pin!(stop);
        let mut work = Work::new();
        loop {
            let look_again = self.fill(&mut work).await;
            tokio::select! {
                biased;
                () = &mut stop => break,
                Some(over) = work.tasks.join_next_with_id() => work.over(over),
                () = sleep_until(look_again) => {}
            }
        }
        self.drain(work).await
    }

    /// Begins what is due, as far as there is room; when to look again.
    async fn fill(&self, work: &mut Work) -> Instant {
        let mut look_again = Instant::now() + self.poll;
        if work.ready.is_empty() && work.tasks.len() < self.at_once {
            if let Err(error) = self.open_letters(work).await {
                tracing::warn!(%error, "what applications left behind cannot be read; it is tried again");
            }
            match self.due(work).await {
                Ok(Some(next)) => look_again = look_again.min(next),
                Ok(None) => {}
                Err(error) => tracing::warn!(%error, "what is due cannot be read; it is tried again"),
            }
        }
        while work.tasks.len() < self.at_once {
            let Some(intent) = work.ready.pop_front() else { break };
            let (client, name) = (self.client.clone(), intent.request.name.clone());
            let task = work.tasks.spawn(async move { client.deliver(intent, Duration::ZERO, &unwatched).await });
            work.names.insert(task.id(), name);
        }
        look_again
    }

    /// Makes intents of what applications left behind in their own words. What cannot become one is kept, and told; a
    /// relay that starts tries it again, because it may know more profiles.
    async fn open_letters(&self, work: &mut Work) -> Result<(), StoreError> {
        let store = self.client.journal.store();
        let letters = store.letters(work.again, INTENTS_MAX).await?;
        let next = letters.last().filter(|_| letters.len() == INTENTS_MAX).map(|letter| letter.id);
        for letter in letters {
            let Err(why) = self.opened(&letter).await? else { continue };
            tracing::error!(intent = letter.name, why, "it cannot be sent and is kept: mend or delete its row");
            if letter.refused.as_ref() != Some(&why) {
                store.refuse_letter(letter.id, &why).await?;
            }
        }
        work.again = work.again.and(next);
        Ok(())
    }

    /// Makes an intent of one letter; the inner error says why there is none.
    async fn opened(&self, letter: &Letter) -> Result<Result<(), String>, StoreError> {
        let (draft, parent) = match &letter.asks {
            Ok(asks) => asks.clone(),
            Err(error) => return Ok(Err(error.to_string())),
        };
        let profile = match self.client.profile(&draft.profile.id) {
            Ok(profile) => profile,
            Err(error) => return Ok(Err(error.to_string())),
        };
        if let Err(error) =
            origin(&draft.url).map_err(Into::into).and_then(|to| self.client.reach.allows(&to, &draft.headers))
        {
            return Ok(Err(error.to_string()));
        }
        let outbound = Outbound::new(draft, parent);
        match self.client.journal.store().open_letter(letter.id, &outbound, profile).await {
            Ok(Recorded::Written | Recorded::Stands) => Ok(Ok(())),
            Ok(Recorded::Taken(differences)) => {
                let parts: Vec<String> = differences.iter().map(ToString::to_string).collect();
                let parts = if parts.is_empty() { "parent".to_owned() } else { parts.join(", ") };
                Ok(Err(format!("its name stands for an intent with another {parts}")))
            }
            Err(error) if error.kind == ErrorKind::Misuse => Ok(Err(error.detail)),
            Err(error) => Err(error),
        }
    }

    /// Reads on in what is due, and takes what is neither under way nor resting; when the next is.
    async fn due(&self, work: &mut Work) -> Result<Option<Instant>, StoreError> {
        let now = Instant::now();
        work.resting.retain(|_, until| *until > now);
        let busy: HashSet<&Name> = work.names.values().chain(work.resting.keys()).collect();
        let limit = (busy.len() + 4 * self.at_once).min(INTENTS_MAX);
        let journal = &self.client.journal;
        let due = journal.store().due(work.turn, limit).await?;
        work.turn = due.more;
        work.ready.extend(due.intents.into_iter().filter(|intent| !busy.contains(&intent.request.name)));
        Ok(due.next.map(|next| now + next.since(journal.now().at)))
    }

    /// Waits for what is under way, and cuts off what takes too long.
    async fn drain(&self, mut work: Work) -> usize {
        let mut grace = pin!(sleep(self.grace));
        loop {
            tokio::select! {
                biased;
                over = work.tasks.join_next_with_id() => match over {
                    Some(over) => work.over(over),
                    None => return 0,
                },
                () = &mut grace => break,
            }
        }
        let left = work.tasks.len();
        tracing::warn!(left, "attempts were cut off; they can be gone on with");
        work.tasks.shutdown().await;
        left
    }
}

impl Work {
    /// Says what became of a delivery.
    fn over(&mut self, over: Result<(Id, Delivered), JoinError>) {
        let (id, delivered) = match over {
            Ok((id, delivered)) => (id, Some(delivered)),
            Err(error) => (error.id(), None),
        };
        let Some(name) = self.names.remove(&id) else { return };
        match delivered {
            Some(Ok(outcome)) => say(&name, &outcome),
            Some(Err(error)) => {
                tracing::warn!(intent = name.as_str(), %error, "it cannot be sent now");
                self.rest(name);
            }
            None => {
                tracing::error!(intent = name.as_str(), "its delivery was cut short");
                self.rest(name);
            }
        }
    }

    fn rest(&mut self, name: Name) {
        self.resting.insert(name, Instant::now() + REST);
    }
}

fn say(name: &Name, outcome: &Outcome) {
    let intent = name.as_str();
    match outcome {
        Outcome::Succeeded { .. } => tracing::info!(intent, "succeeded"),
        Outcome::Refused { answer } => {
            let status = answer.as_ref().map(|answer| answer.status);
            tracing::error!(intent, status, "refused for good");
        }
        Outcome::Uncertain { .. } => tracing::warn!(intent, "uncertain; the same key is sent again"),
        Outcome::Overdue { why } => {
            tracing::error!(
                intent,
                why = why.as_str(),
                "overdue: `counterfoil intents recover` or `resolve` settles it"
            );
        }
        Outcome::NotDone { .. } => tracing::info!(intent, "not done so far; it is tried again"),
        Outcome::WindowClosed => tracing::error!(intent, "not done, and its window is closed"),
        Outcome::InProgress { .. } => tracing::debug!(intent, "another relay sends it"),
        Outcome::Mismatch(_) | Outcome::Blocked => tracing::error!(intent, "the name stands for another action"),
    }
}
