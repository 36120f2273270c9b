//! Opens the store that a configuration names. What a store keeps and how belongs to the store's crate.

use std::sync::Arc;

use counterfoil_store::sqlite::{Missing, Options};
use counterfoil_store::{MemoryStore, RecordStore, SqliteStore, StoreError};

use crate::config::{Limits, Origin, Setting, StorePlace};

/// An open store.
#[derive(Clone)]
pub struct Store {
    records: Arc<dyn RecordStore>,
    sqlite: Option<Arc<SqliteStore>>,
}

impl Store {
    /// Opens what `place` names. `missing` says what happens where no file stands; a memory is always made.
    ///
    /// # Errors
    /// [`StoreError`], with what to do.
    pub async fn open(place: &StorePlace, missing: Missing) -> Result<Self, StoreError> {
        let mut options = Options::default();
        options.missing = missing;
        Self::open_with(place, options).await
    }

    async fn open_with(place: &StorePlace, options: Options) -> Result<Self, StoreError> {
        let path = match place {
            StorePlace::Memory => return Ok(Self { records: Arc::new(MemoryStore::new()), sqlite: None }),
            StorePlace::Sqlite(path) => path.clone(),
        };
        let sqlite = blocking(move || SqliteStore::open(path, options)).await?;
        Ok(Self { records: sqlite.clone(), sqlite: Some(sqlite) })
    }

    /// Opens the store of a serving process.
    ///
    /// A store that a file or the environment names must exist, so that a wrong directory is not an empty memory; one
    /// that nobody named, or that was typed on the command line, is made.
    pub(crate) async fn open_to_serve(place: &Setting<StorePlace>, limits: &Limits) -> Result<Self, StoreError> {
        let mut options = Options::default();
        options.missing = match place.origin {
            Origin::Default | Origin::Flag(_) => Missing::Create,
            Origin::File | Origin::FileDefaults | Origin::Environment(_) => Missing::Refuse,
        };
        options.queue_max = limits.writer_queue.value;
        options.batch_max = limits.writer_batch.value;
        Self::open_with(&place.value, options).await
    }

    /// A store of any kind, which its owner closes.
    #[must_use]
    pub fn of(records: Arc<dyn RecordStore>) -> Self {
        Self { records, sqlite: None }
    }

    /// Its records.
    #[must_use]
    pub const fn records(&self) -> &Arc<dyn RecordStore> {
        &self.records
    }

    /// The SQLite store, where it is one.
    #[must_use]
    pub const fn sqlite(&self) -> Option<&Arc<SqliteStore>> {
        self.sqlite.as_ref()
    }

    /// Ends what is under way and lets the file go.
    pub async fn close(self) {
        if let Some(sqlite) = self.sqlite {
            let closed = blocking(move || {
                sqlite.close();
                Ok(())
            });
            if let Err(error) = closed.await {
                tracing::warn!(%error, "the store was not closed in order");
            }
        }
    }
}

/// Runs what blocks beside the runtime.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => Err(StoreError::not_applied(
            counterfoil_store::ErrorKind::Unavailable,
            "opening or closing the store was cut short: try again",
        )
        .caused_by(error)),
    }
}
