//! Load, ask the core, write, and again where another one wrote first: the only way to a stored intent.
//! What an event makes of an intent is decided in `core::intent`.

use std::sync::Arc;
use std::time::Duration;

use counterfoil_core::Now;
use counterfoil_core::intent::{Event, Intent, Name, Said, next};
use counterfoil_store::intents::Put;
use counterfoil_store::{Applied, IntentStore, StoreError};
use tokio::time::Instant;

use crate::error::ClientError;

/// How often a change is decided anew on what another one wrote.
const ROUNDS_MAX: usize = 64;
/// How long a write of unknown fate is repeated.
const WRITE_DEADLINE: Duration = Duration::from_secs(5);
/// The pause in between.
const REPEAT_PAUSE: Duration = Duration::from_millis(50);

/// Where intents are kept.
#[derive(Clone)]
pub(crate) struct Journal(Arc<dyn IntentStore>);

impl Journal {
    pub(crate) fn new(store: Arc<dyn IntentStore>) -> Self {
        Self(store)
    }

    pub(crate) fn store(&self) -> &dyn IntentStore {
        self.0.as_ref()
    }

    pub(crate) fn now(&self) -> Now {
        self.0.now()
    }

    /// What stands under `name`.
    pub(crate) async fn find(&self, name: &Name) -> Result<Option<Intent>, ClientError> {
        Ok(self.0.intent(name).await?)
    }

    /// Writes a new intent down: it, or what stands under its name already.
    pub(crate) async fn write_down(&self, intent: Intent) -> Result<Result<Intent, Intent>, ClientError> {
        for _ in 0..ROUNDS_MAX {
            match self.put(None, &intent).await? {
                Put::Won => return Ok(Ok(intent)),
                // Our own, by a copy of the write whose answer was lost.
                Put::Lost(Some(stands)) if stands == intent => return Ok(Ok(intent)),
                Put::Lost(Some(stands)) => return Ok(Err(stands)),
                // It was purged in between.
                Put::Lost(None) => {}
            }
        }
        Err(busy().into())
    }

    /// Tells an event: what is to be done, and the intent as it stands then.
    pub(crate) async fn tell(&self, mut intent: Intent, event: &Event) -> Result<(Said, Intent), ClientError> {
        for _ in 0..ROUNDS_MAX {
            let step = next(&intent, event, self.now());
            let Some(after) = step.write else { return Ok((step.said, intent)) };
            match self.put(Some(intent.version), &after).await? {
                Put::Won => return Ok((step.said, after)),
                Put::Lost(Some(stands)) if stands == after => return Ok((step.said, after)),
                Put::Lost(Some(stands)) => intent = stands,
                Put::Lost(None) => {
                    return Err(ClientError::NoIntent(intent.request.name.as_str().to_owned()));
                }
            }
        }
        Err(busy().into())
    }

    /// One write, repeated as long as its fate is unknown.
    async fn put(&self, before: Option<u64>, intent: &Intent) -> Result<Put, StoreError> {
        let until = Instant::now() + WRITE_DEADLINE;
        loop {
            match self.0.put(before, intent.clone()).await {
                Err(error) if error.applied == Applied::Unknown && Instant::now() < until => {
                    tracing::warn!(%error, "a write of unknown fate is repeated");
                    tokio::time::sleep(REPEAT_PAUSE).await;
                }
                answer => return answer,
            }
        }
    }
}

fn busy() -> StoreError {
    StoreError::not_applied(
        counterfoil_store::ErrorKind::Busy,
        "the intent changed too often while it was written: try again",
    )
}
