//! Writing an intent down, or finding the one that stands under its name. Nothing is sent here: that is `deliver`.

use std::sync::Arc;
use std::time::Duration;

use counterfoil_core::intent::{ATTEMPT_LIMIT, Draft, Intent, Name, State};
use counterfoil_core::profile::Profile;
use counterfoil_core::{Key, Now};
use counterfoil_store::{IntentStore, points};

use crate::error::ClientError;
use crate::journal::Journal;
use crate::outcome::Outcome;
use crate::profiles;
use crate::reach::Reach;
use crate::transport::Transport;

/// Sends intents of one journal over one transport. Cheap to clone.
#[derive(Clone)]
pub struct Client {
    pub(crate) journal: Journal,
    pub(crate) transport: Arc<dyn Transport>,
    /// Contracts of the user's own, before those that are built in.
    own: Arc<[Profile]>,
    pub(crate) reach: Arc<Reach>,
}

/// What a caller wants done once.
#[derive(Clone, Debug)]
pub struct Wish {
    /// The request, under its name.
    pub draft: Draft,
    /// A key of the caller's own; without one, one is drawn as the profile asks for it.
    pub key: Option<String>,
    /// How long the provider remembers keys at the least, where its profile does not say.
    pub window: Option<Duration>,
    /// How long one attempt may take.
    pub attempt_limit: Duration,
    /// A deliberate further action under the same name.
    pub again: bool,
}

impl Wish {
    /// `draft`, once, with the usual time limit.
    #[must_use]
    pub const fn new(draft: Draft) -> Self {
        Self { draft, key: None, window: None, attempt_limit: ATTEMPT_LIMIT, again: false }
    }
}

impl Client {
    /// A client of `journal`.
    pub fn new(journal: Arc<dyn IntentStore>, transport: Arc<dyn Transport>) -> Self {
        Self { journal: Journal::new(journal), transport, own: Arc::default(), reach: Arc::default() }
    }

    /// The same client with contracts of its user's own; they come before those that are built in.
    #[must_use]
    pub fn with_profiles(mut self, profiles: impl Into<Arc<[Profile]>>) -> Self {
        self.own = profiles.into();
        self
    }

    /// The same client, which sends and reads no further than `reach`, whatever stands in its journal.
    #[must_use]
    pub fn with_reach(mut self, reach: Reach) -> Self {
        self.reach = Arc::new(reach);
        self
    }

    /// The journal's time.
    #[must_use]
    pub fn now(&self) -> Now {
        self.journal.now()
    }

    /// The contract of that id.
    ///
    /// # Errors
    /// [`ClientError::NoProfile`].
    pub fn profile(&self, id: &str) -> Result<&Profile, ClientError> {
        let own = self.own.iter().find(|profile| profile.id == id);
        own.or_else(|| profiles::builtin(id)).ok_or_else(|| ClientError::NoProfile(id.to_owned()))
    }

    /// The intent of that name.
    ///
    /// # Errors
    /// [`ClientError::NoIntent`], and [`ClientError::Journal`] where it cannot be read.
    pub async fn intent(&self, name: &Name) -> Result<Intent, ClientError> {
        let found = self.journal.find(name).await?;
        found.ok_or_else(|| ClientError::NoIntent(name.as_str().to_owned()))
    }

    /// Writes the wish down, durable when this answers; or finds the intent that stands under its name. The inner `Err`
    /// says why it stands for something else: nothing may be sent then.
    ///
    /// # Errors
    /// [`ClientError`]; nothing was written down, or it is not known whether it was, and nothing may be sent.
    pub async fn write_down(&self, wish: &Wish) -> Result<Result<Intent, Outcome>, ClientError> {
        match self.frozen(wish).await? {
            Frozen::Stands(stands) => Ok(stands),
            Frozen::New(fresh) => {
                let intent = fresh.intent.clone();
                Ok(self.put_down(&fresh, intent).await?.map_or_else(|stands| stands, Ok))
            }
        }
    }

    /// What `wish` is once it is frozen, or what stands under its name. Nothing is written.
    pub(crate) async fn frozen(&self, wish: &Wish) -> Result<Frozen, ClientError> {
        let profile = self.profile(&wish.draft.profile.id)?;
        let key = wish.key.as_deref().map(|text| profile.key.lint(text)).transpose()?;
        let mut draft = wish.draft.clone();
        if wish.again {
            match self.further(&wish.draft.name).await? {
                Further::New(name) => draft.name = name,
                Further::Blocked => return Ok(Frozen::Stands(Err(Outcome::Blocked))),
            }
        }
        points::pass("client.before-journal");
        let now = self.journal.now().at;
        let drawn = match &key {
            Some(key) => key.clone(),
            None => profile.key.draw(random()?, now),
        };
        // Before the name is looked up: what cannot be frozen is refused whatever stands.
        let intent = draft.intent(&drawn, profile, wish.window, wish.attempt_limit, now)?;
        Ok(match self.journal.find(&draft.name).await? {
            Some(stands) => Frozen::Stands(same(stands, &draft, key.as_ref())),
            None => Frozen::New(Fresh { intent, draft, key }),
        })
    }

    /// Writes `intent`, which is the fresh one or what became of it, where nothing has its name. The inner `Err` is what
    /// stands by now, and whether it is the same action.
    pub(crate) async fn put_down(
        &self,
        fresh: &Fresh,
        intent: Intent,
    ) -> Result<Result<Intent, Result<Intent, Outcome>>, ClientError> {
        Ok(match self.journal.write_down(intent).await? {
            Ok(written) => {
                points::pass("client.journalled");
                Ok(written)
            }
            Err(stands) => Err(same(stands, &fresh.draft, fresh.key.as_ref())),
        })
    }

    /// The name of a further action: `NAME#2` after `NAME`, and so on. The last one that is not settled is gone on
    /// with; the first one blocks.
    async fn further(&self, name: &Name) -> Result<Further, ClientError> {
        let mut number: u32 = 1;
        let mut last = name.clone();
        loop {
            let Some(stands) = self.journal.find(&last).await? else { return Ok(Further::New(last)) };
            let settled = matches!(stands.state, State::Settled { .. });
            if !settled {
                return Ok(if number == 1 { Further::Blocked } else { Further::New(last) });
            }
            number = number.saturating_add(1);
            last = Name::new(format!("{}#{number}", name.as_str()))?;
        }
    }
}

/// A wish, frozen.
pub(crate) enum Frozen {
    /// Nothing has its name.
    New(Fresh),
    /// This has, or it is something else.
    Stands(Result<Intent, Outcome>),
}

/// A frozen wish that is not written down yet.
pub(crate) struct Fresh {
    pub(crate) intent: Intent,
    draft: Draft,
    key: Option<Key>,
}

enum Further {
    New(Name),
    Blocked,
}

/// Whether what stands is the same action.
fn same(stands: Intent, draft: &Draft, key: Option<&Key>) -> Result<Intent, Outcome> {
    if key.is_some_and(|key| *key != stands.request.key) {
        // Another key names another action: never for what may have been done.
        return Err(Outcome::Blocked);
    }
    match stands.request.differences(draft) {
        Ok(differences) if differences.is_empty() => Ok(stands),
        Ok(differences) => Err(Outcome::Mismatch(differences)),
        // It was frozen once; what cannot be now is another request.
        Err(_) => Err(Outcome::Mismatch(vec![counterfoil_core::intent::Difference::Body])),
    }
}

/// Bytes of the operating system's randomness.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], ClientError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| ClientError::Random(error.to_string()))?;
    Ok(bytes)
}
