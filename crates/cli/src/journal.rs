//! Where intents are kept, and how a command opens it: a file of the caller's own, or the database whose transactions leave
//! intents behind. What an intent is belongs to core, its tables to the store.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use counterfoil_server::config::StorePlace;
use counterfoil_store::sqlite::{Missing, Options};
use counterfoil_store::{IntentStore, PostgresStore, SqliteStore, postgres};

use crate::args::{JournalPlace, parse_journal};
use crate::error::CliError;

const VARIABLE: &str = "COUNTERFOIL_JOURNAL";
/// Many short commands may start at once, and each one writes when it opens.
const BUSY_TIMEOUT: Duration = Duration::from_secs(30);

/// An open journal, to be closed in order.
pub(crate) enum Journal {
    Sqlite(Arc<SqliteStore>),
    Postgres(Arc<PostgresStore>),
}

impl Journal {
    /// That of a relay, or of a command that was told `place`; it must exist.
    pub(crate) async fn existing(place: &StorePlace) -> Result<Self, CliError> {
        match place {
            StorePlace::Sqlite(path) => {
                let path = path.clone();
                let mut options = Options::default();
                options.missing = Missing::Refuse;
                let opening = tokio::task::spawn_blocking(move || SqliteStore::open(path, options));
                let opened =
                    opening.await.map_err(|error| CliError::Internal(format!("opening was cut short: {error}")))?;
                Ok(Self::Sqlite(opened?))
            }
            StorePlace::Postgres(database) => {
                Ok(Self::Postgres(PostgresStore::open(database.url(), postgres::Options::default()).await?))
            }
            StorePlace::Mysql(_) | StorePlace::Memory => Err(CliError::Usage(keeps_none(place))),
        }
    }

    pub(crate) fn intents(&self) -> Arc<dyn IntentStore> {
        match self {
            Self::Sqlite(store) => store.clone(),
            Self::Postgres(store) => store.clone(),
        }
    }

    pub(crate) async fn close(self) {
        match self {
            // Beside the runtime: it waits for what is under way.
            Self::Sqlite(store) => drop(tokio::task::spawn_blocking(move || store.close()).await),
            Self::Postgres(store) => store.close().await,
        }
    }
}

/// Why `place` is no journal.
pub(crate) fn keeps_none(place: &StorePlace) -> String {
    format!("{place} keeps no intents; name sqlite:PATH or postgres://…")
}

/// The journal's place, and whether it is the file that stands where nobody named another.
fn place(place: &JournalPlace) -> Result<(StorePlace, bool), CliError> {
    if let Some(place) = &place.journal {
        return Ok((place.clone(), false));
    }
    if let Some(text) = std::env::var_os(VARIABLE).filter(|text| !text.is_empty()) {
        let place = parse_journal(&text.to_string_lossy());
        return place.map(|place| (place, false)).map_err(|fault| CliError::Usage(format!("{VARIABLE}: {fault}")));
    }
    // Relative paths are to be ignored there (XDG Base Directory Specification).
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = absolute("XDG_STATE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".local/state")));
    let state = state.ok_or_else(|| {
        CliError::Usage("neither XDG_STATE_HOME nor HOME is set: name a journal with --journal sqlite:PATH".to_owned())
    })?;
    Ok((StorePlace::Sqlite(state.join("counterfoil/intents.db")), true))
}

/// Opens the journal; `missing` says what happens where there is no such file. A database is never made.
pub(crate) async fn open(arguments: &JournalPlace, missing: Missing) -> Result<Journal, CliError> {
    let (place, usual) = place(arguments)?;
    let StorePlace::Sqlite(path) = place else { return Journal::existing(&place).await };
    if missing == Missing::Refuse && !path.exists() {
        return Err(CliError::Usage(format!(
            "{} does not exist: `counterfoil send` makes it; name another journal with --journal",
            path.display()
        )));
    }
    let shown = path.display().to_string();
    let opening = tokio::task::spawn_blocking(move || opened(&path, usual, missing));
    let opened = opening.await.map_err(|error| CliError::Internal(format!("opening was cut short: {error}")))?;
    opened
        .map(Journal::Sqlite)
        .map_err(|why| CliError::Internal(format!("the journal {shown}: {why}; nothing was sent")))
}

fn opened(path: &Path, usual: bool, missing: Missing) -> Result<Arc<SqliteStore>, String> {
    if usual
        && missing == Missing::Create
        && let Some(directory) = path.parent()
    {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(directory);
        made.map_err(|error| format!("{}: {error}: name another with --journal sqlite:PATH", directory.display()))?;
    }
    let mut options = Options::default();
    options.missing = missing;
    options.busy_timeout = BUSY_TIMEOUT;
    SqliteStore::open(path, options).map_err(|error| error.to_string())
}
