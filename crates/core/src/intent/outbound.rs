//! An intent that a transaction leaves behind with its effect: its key is a child key, so that the same intent in two
//! homes is one action. Writing it down belongs to the store, sending to the client.

use std::time::Duration;

use super::{ATTEMPT_LIMIT, Difference, Draft, Intent};
use crate::child::child_key;
use crate::error::Error;
use crate::identity::{Identity, Key, Operation, Scope};
use crate::profile::Profile;
use crate::time::Timestamp;

/// The operation of what has no parent.
const OPERATION: &str = "outbox";
/// Its scope's one part.
const STORE: &str = "store";

/// What an action wants sent once its transaction is committed.
#[derive(Clone, Debug)]
pub struct Outbound {
    /// The request, under its name.
    pub draft: Draft,
    /// The action that it is a step of; without one, the store itself stands for it.
    pub parent: Option<Identity>,
    /// Which step of the action, by a name that never changes; without one, the intent's name.
    pub step: Option<String>,
    /// How long the provider remembers keys at the least, where its profile does not say.
    pub window: Option<Duration>,
    /// How long one attempt may take.
    pub attempt_limit: Duration,
}

impl Outbound {
    /// `draft`, once, as a step of `parent`, with the usual time limit.
    #[must_use]
    pub const fn new(draft: Draft, parent: Option<Identity>) -> Self {
        Self { draft, parent, step: None, window: None, attempt_limit: ATTEMPT_LIMIT }
    }

    /// Its key in the store of that id: the child key of its parent and step. Without a parent, of the store's id (scope
    /// part `store`), the operation `outbox` and the intent's name.
    ///
    /// # Errors
    /// [`Error::Scope`] for a store's id that no scope can hold.
    pub fn key(&self, store_id: &str) -> Result<Key, Error> {
        let name = self.draft.name.as_str();
        let step = self.step.as_deref().unwrap_or(name);
        match &self.parent {
            Some(parent) => Ok(child_key(parent, step, 0)),
            None => {
                let scope = Scope::from_parts([(STORE.to_owned(), store_id.to_owned())])?;
                let orphan = Identity::new(scope, Operation::new(OPERATION)?, Key::new(name)?);
                Ok(child_key(&orphan, step, 0))
            }
        }
    }

    /// The intent that it is under `profile`, the one that its draft names.
    ///
    /// # Errors
    /// [`Error::Request`] and [`Error::RequestHeader`] with what to change.
    pub fn freeze(&self, store_id: &str, profile: &Profile, now: Timestamp) -> Result<Intent, Error> {
        if self.draft.profile.id != profile.id {
            return Err(Error::Request("it names another profile than the one it is kept under"));
        }
        let key = self.key(store_id)?;
        if profile.key.lint(key.as_str()).is_err() {
            return Err(Error::Request(
                "its profile takes no UUID of version 5 for a key, which a child key is: send it from a journal",
            ));
        }
        self.draft.intent(&key, profile, self.window, self.attempt_limit, now)
    }

    /// Whether `stands`, which has the same name, is the same action.
    ///
    /// # Errors
    /// As [`Outbound::freeze`].
    pub fn compared(&self, stands: &Intent, store_id: &str) -> Result<Recorded, Error> {
        let differences = stands.request.differences(&self.draft)?;
        let same = differences.is_empty() && stands.request.key == self.key(store_id)?;
        Ok(if same { Recorded::Stands } else { Recorded::Taken(differences) })
    }
}

/// What became of an intent that a transaction wants to leave behind.
#[derive(Clone, PartialEq, Eq, Debug)]
#[must_use = "where the name is taken, nothing was written: roll back, or leave it"]
pub enum Recorded {
    /// It is written, and is sent once the transaction is committed.
    Written,
    /// The same intent stands already; nothing was written.
    Stands,
    /// The name stands for another action, and nothing was written. Here is where they differ; nowhere: they are the same
    /// request of two actions.
    Taken(Vec<Difference>),
}
