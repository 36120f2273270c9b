//! The same client for threads that may block. It has a runtime of its own; nothing is decided here.

use std::sync::Arc;
use std::time::Duration;

use counterfoil_core::intent::{Intent, Name};
use counterfoil_store::IntentStore;
use tokio::runtime::{Builder, Runtime};

use crate::client::{Client, Wish};
use crate::deliver::Watch;
use crate::error::ClientError;
use crate::outcome::Outcome;
use crate::recover::Ask;
use crate::transport::Transport;

/// A [`Client`] whose calls block. Never call it on a thread that drives an asynchronous runtime: that panics.
pub struct BlockingClient {
    runtime: Runtime,
    client: Client,
}

impl BlockingClient {
    /// A client of `journal`.
    ///
    /// # Errors
    /// [`ClientError::Runtime`] where the operating system gives no thread to run on.
    pub fn new(journal: Arc<dyn IntentStore>, transport: Arc<dyn Transport>) -> Result<Self, ClientError> {
        Self::of(Client::new(journal, transport))
    }

    /// The same calls of a client that stands.
    ///
    /// # Errors
    /// [`ClientError::Runtime`].
    pub fn of(client: Client) -> Result<Self, ClientError> {
        // One worker, so that a connection is driven while the caller's thread waits for the journal.
        let mut builder = Builder::new_multi_thread();
        let built = builder.worker_threads(1).thread_name("counterfoil-client").enable_all().build();
        let runtime = built.map_err(|error| ClientError::Runtime(error.to_string()))?;
        Ok(Self { runtime, client })
    }

    /// [`Client::send`].
    ///
    /// # Errors
    /// The same.
    pub fn send(&self, wish: &Wish, patience: Duration) -> Result<Outcome, ClientError> {
        self.runtime.block_on(self.client.send(wish, patience))
    }

    /// [`Client::write_down`].
    ///
    /// # Errors
    /// The same.
    pub fn write_down(&self, wish: &Wish) -> Result<Result<Intent, Outcome>, ClientError> {
        self.runtime.block_on(self.client.write_down(wish))
    }

    /// [`Client::deliver`].
    ///
    /// # Errors
    /// The same.
    pub fn deliver(&self, intent: Intent, patience: Duration, watch: Watch<'_>) -> Result<Outcome, ClientError> {
        self.runtime.block_on(self.client.deliver(intent, patience, watch))
    }

    /// [`Client::recover`].
    ///
    /// # Errors
    /// The same.
    pub fn recover(&self, name: &Name, ask: Ask) -> Result<Outcome, ClientError> {
        self.runtime.block_on(self.client.recover(name, ask))
    }

    /// [`Client::intent`].
    ///
    /// # Errors
    /// The same.
    pub fn intent(&self, name: &Name) -> Result<Intent, ClientError> {
        self.runtime.block_on(self.client.intent(name))
    }
}
