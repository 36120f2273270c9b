//! Reads the configuration and opens the store that it names: `config`, `migrate`, and what the other commands start
//! from. What settings mean belongs to the server.

use std::path::Path;

use counterfoil_server::config::{Config, FILE_BYTES_MAX, Flags, STORE_ACCEPTED, StorePlace};
use counterfoil_server::{Missing, Store};
use counterfoil_store::sqlite::Migrated;
use counterfoil_store::{MysqlStore, PostgresStore, SqliteStore};

use crate::args::{self, Place, Settings};
use crate::error::CliError;
use crate::print;

fn variable(name: &str) -> Option<String> {
    std::env::var_os(name).map(|value| value.to_string_lossy().into_owned()).filter(|value| !value.is_empty())
}

/// The configuration of these arguments.
pub(crate) fn read(settings: &Settings) -> Result<Config, CliError> {
    let text = settings.config.as_deref().map(text).transpose()?;
    let flags = Flags {
        listen: settings.listen.clone(),
        admin: settings.admin.clone(),
        upstream: settings.upstream.clone(),
        store: settings.store.clone(),
        principal: settings.principal.clone(),
    };
    Ok(Config::read(text.as_deref(), &variable, &flags)?)
}

fn text(path: &Path) -> Result<String, CliError> {
    let wrong = |why: String| CliError::Usage(format!("{}: {why}", path.display()));
    let size = std::fs::metadata(path).map_err(|error| wrong(error.to_string()))?.len();
    if size > FILE_BYTES_MAX as u64 {
        return Err(wrong(format!("a configuration has at most {FILE_BYTES_MAX} bytes, and this one has {size}")));
    }
    std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))
}

/// Checks or prints the configuration.
pub(crate) fn config(command: &args::Config) -> Result<(), CliError> {
    match command {
        args::Config::Check(settings) => {
            let config = read(settings)?;
            counterfoil_server::check(&config)?;
            print::human("the configuration is good");
            Ok(())
        }
        args::Config::Print(settings) => print::data(&read(settings)?.print()),
    }
}

/// The configuration that a store's arguments name, if they name one.
pub(crate) fn of_place(place: &Place) -> Result<Option<Config>, CliError> {
    let settings = Settings { config: place.config.clone(), ..Settings::default() };
    place.config.as_ref().map(|_| read(&settings)).transpose()
}

/// The store that these arguments name.
pub(crate) fn place(place: &Place) -> Result<StorePlace, CliError> {
    if let Some(store) = &place.store {
        return Ok(store.clone());
    }
    if let Some(config) = of_place(place)? {
        return Ok(config.store.value);
    }
    let Some(text) = variable("COUNTERFOIL_STORE") else { return Ok(StorePlace::Sqlite("counterfoil.db".into())) };
    StorePlace::parse(&text)
        .map_err(|fault| CliError::Usage(format!("COUNTERFOIL_STORE: {fault}; accepted: {STORE_ACCEPTED}")))
}

fn nobodys() -> CliError {
    CliError::Usage(
        "a memory belongs to the process that serves it, and nobody else can look into it; name sqlite:PATH, \
         postgres://… or mysql://…"
            .to_owned(),
    )
}

/// Opens the store for an operator; it must exist.
pub(crate) async fn open(arguments: &Place) -> Result<Store, CliError> {
    let place = place(arguments)?;
    if place == StorePlace::Memory {
        return Err(nobodys());
    }
    Ok(Store::open(&place, Missing::Refuse).await?)
}

/// Makes the store, or brings it up to date.
pub(crate) async fn migrate(arguments: &Place) -> Result<(), CliError> {
    let place = place(arguments)?;
    let migrated = match &place {
        StorePlace::Memory => return Err(nobodys()),
        StorePlace::Postgres(database) => PostgresStore::migrate(database.url()).await?,
        StorePlace::Mysql(database) => MysqlStore::migrate(database.url()).await?,
        StorePlace::Sqlite(path) => {
            let path = path.clone();
            let migrated = tokio::task::spawn_blocking(move || SqliteStore::migrate(path)).await;
            migrated.map_err(|error| CliError::Internal(format!("the migration was cut short: {error}")))??
        }
    };
    let what = match migrated {
        Migrated::Made => "made",
        Migrated::Updated => "brought up to date",
        Migrated::Current => "already up to date",
    };
    print::human(&format!("{place}: {what}"));
    Ok(())
}
