//! Where intents are kept, and how a command opens that file. What an intent is belongs to core, its tables to the store.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use counterfoil_store::SqliteStore;
use counterfoil_store::sqlite::{Missing, Options};

use crate::args::{JournalPlace, parse_journal};
use crate::error::CliError;

const VARIABLE: &str = "COUNTERFOIL_JOURNAL";
/// Many short commands may start at once, and each one writes when it opens.
const BUSY_TIMEOUT: Duration = Duration::from_secs(30);

/// The journal's file, and whether it is the one that stands where nobody named another.
fn place(place: &JournalPlace) -> Result<(PathBuf, bool), CliError> {
    if let Some(path) = &place.journal {
        return Ok((path.clone(), false));
    }
    if let Some(text) = std::env::var_os(VARIABLE).filter(|text| !text.is_empty()) {
        let path = parse_journal(&text.to_string_lossy());
        return path.map(|path| (path, false)).map_err(|fault| CliError::Usage(format!("{VARIABLE}: {fault}")));
    }
    // Relative paths are to be ignored there (XDG Base Directory Specification).
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = absolute("XDG_STATE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".local/state")));
    let state = state.ok_or_else(|| {
        CliError::Usage("neither XDG_STATE_HOME nor HOME is set: name a journal with --journal sqlite:PATH".to_owned())
    })?;
    Ok((state.join("counterfoil/intents.db"), true))
}

/// Opens the journal; `missing` says what happens where there is none.
pub(crate) async fn open(arguments: &JournalPlace, missing: Missing) -> Result<Arc<SqliteStore>, CliError> {
    let (path, usual) = place(arguments)?;
    if missing == Missing::Refuse && !path.exists() {
        return Err(CliError::Usage(format!(
            "{} does not exist: `counterfoil send` makes it; name another journal with --journal",
            path.display()
        )));
    }
    let shown = path.display().to_string();
    let opening = tokio::task::spawn_blocking(move || opened(&path, usual, missing));
    let opened = opening.await.map_err(|error| CliError::Internal(format!("opening was cut short: {error}")))?;
    opened.map_err(|why| CliError::Internal(format!("the journal {shown}: {why}; nothing was sent")))
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
