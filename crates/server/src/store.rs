//! Opens the store that a configuration names. What a store keeps and how belongs to the store's crate.

use std::sync::Arc;

#[cfg(feature = "mysql")]
use counterfoil_store::mysql::{self, MysqlStore};
#[cfg(feature = "postgres")]
use counterfoil_store::postgres::{self, PostgresStore};
use counterfoil_store::sqlite::{Missing, Options};
use counterfoil_store::{MemoryStore, RecordStore, SqliteStore, StoreError};

use crate::config::{Limits, Origin, Setting, StorePlace};

/// An open store.
#[derive(Clone)]
pub struct Store {
    records: Arc<dyn RecordStore>,
    opened: Opened,
}

/// What must be closed in order.
#[derive(Clone)]
enum Opened {
    Sqlite(Arc<SqliteStore>),
    #[cfg(feature = "postgres")]
    Postgres(Arc<PostgresStore>),
    #[cfg(feature = "mysql")]
    Mysql(Arc<MysqlStore>),
    /// Nothing of ours.
    Nothing,
}

/// What a serving process asks of whichever store it is.
#[derive(Clone, Copy)]
struct Wanted {
    missing: Missing,
    queue_max: Option<usize>,
    batch_max: Option<usize>,
}

impl Store {
    /// Opens what `place` names. `missing` says what happens where no store stands; a memory is always made.
    ///
    /// # Errors
    /// [`StoreError`], with what to do.
    pub async fn open(place: &StorePlace, missing: Missing) -> Result<Self, StoreError> {
        Self::open_with(place, Wanted { missing, queue_max: None, batch_max: None }).await
    }

    async fn open_with(place: &StorePlace, wanted: Wanted) -> Result<Self, StoreError> {
        match place {
            StorePlace::Memory => Ok(Self::of(Arc::new(MemoryStore::new()))),
            StorePlace::Sqlite(path) => {
                let mut options = Options::default();
                options.missing = wanted.missing;
                options.queue_max = wanted.queue_max.unwrap_or(options.queue_max);
                options.batch_max = wanted.batch_max.unwrap_or(options.batch_max);
                let path = path.clone();
                let sqlite = blocking(move || SqliteStore::open(path, options)).await?;
                Ok(Self { records: sqlite.clone(), opened: Opened::Sqlite(sqlite) })
            }
            #[cfg(feature = "postgres")]
            StorePlace::Postgres(database) => {
                let mut options = postgres::Options::default();
                options.missing = wanted.missing;
                options.queue_max = wanted.queue_max.unwrap_or(options.queue_max);
                options.batch_max = wanted.batch_max.unwrap_or(options.batch_max);
                let store = PostgresStore::open(database.url(), options).await?;
                Ok(Self { records: store.clone(), opened: Opened::Postgres(store) })
            }
            // Its calls wait for a connection, and the server joins their commits: there is neither queue nor batch.
            #[cfg(feature = "mysql")]
            StorePlace::Mysql(database) => {
                let mut options = mysql::Options::default();
                options.missing = wanted.missing;
                let store = MysqlStore::open(database.url(), options).await?;
                Ok(Self { records: store.clone(), opened: Opened::Mysql(store) })
            }
        }
    }

    /// Opens the store of a serving process.
    ///
    /// A store that a file or the environment names must exist, so that a wrong directory is not an empty memory; one
    /// that nobody named, or that was typed on the command line, is made.
    pub(crate) async fn open_to_serve(place: &Setting<StorePlace>, limits: &Limits) -> Result<Self, StoreError> {
        let missing = match place.origin {
            Origin::Default | Origin::Flag(_) => Missing::Create,
            Origin::File | Origin::FileDefaults | Origin::Environment(_) => Missing::Refuse,
        };
        let (queue_max, batch_max) = (Some(limits.writer_queue.value), Some(limits.writer_batch.value));
        Self::open_with(&place.value, Wanted { missing, queue_max, batch_max }).await
    }

    /// A store of any kind, which its owner closes.
    #[must_use]
    pub fn of(records: Arc<dyn RecordStore>) -> Self {
        Self { records, opened: Opened::Nothing }
    }

    /// Its records.
    #[must_use]
    pub const fn records(&self) -> &Arc<dyn RecordStore> {
        &self.records
    }

    /// The SQLite store, where it is one.
    #[must_use]
    pub const fn sqlite(&self) -> Option<&Arc<SqliteStore>> {
        match &self.opened {
            Opened::Sqlite(sqlite) => Some(sqlite),
            #[cfg(feature = "postgres")]
            Opened::Postgres(_) => None,
            #[cfg(feature = "mysql")]
            Opened::Mysql(_) => None,
            Opened::Nothing => None,
        }
    }

    /// Ends what is under way and lets the file or the connections go.
    pub async fn close(self) {
        match self.opened {
            Opened::Sqlite(sqlite) => {
                let closed = blocking(move || {
                    sqlite.close();
                    Ok(())
                });
                if let Err(error) = closed.await {
                    tracing::warn!(%error, "the store was not closed in order");
                }
            }
            #[cfg(feature = "postgres")]
            Opened::Postgres(store) => store.close().await,
            #[cfg(feature = "mysql")]
            Opened::Mysql(store) => store.close().await,
            Opened::Nothing => {}
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
