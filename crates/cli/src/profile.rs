//! `profile`: providers' contracts, listed, shown, checked and fetched. How a file is read belongs to the client.

mod fetch;

use std::path::Path;

use comfy_table::Table;
use counterfoil_client::profiles;
use counterfoil_core::profile::{self as contract, Carrier};
use serde_json::json;

use crate::args::{Profile, ProfileList};
use crate::error::CliError;
use crate::{instant, print};

/// The largest file that is read.
const FILE_BYTES_MAX: u64 = 256 << 10;

pub(crate) async fn run(command: &Profile) -> Result<(), CliError> {
    match command {
        Profile::List(arguments) => list(arguments),
        Profile::Show { id } => match profiles::text(id) {
            Some(text) => print::data(text),
            None => Err(CliError::Usage(format!(
                "there is no built-in profile {id:?}: `counterfoil profile list` shows those that there are"
            ))),
        },
        Profile::Check { file } => {
            let profile = read(file)?;
            print::human(&format!("profile `{}`, version {}, is good", profile.id, profile.version));
            Ok(())
        }
        Profile::Fetch(arguments) => fetch::run(arguments).await,
    }
}

/// The profile that an argument names: a built-in id, or a file.
pub(crate) fn named(text: &str) -> Result<contract::Profile, CliError> {
    match profiles::builtin(text) {
        Some(profile) => Ok(profile.clone()),
        None if Path::new(text).exists() => read(Path::new(text)),
        None => Err(CliError::Usage(format!(
            "{text:?} is no built-in profile and no file: `counterfoil profile list` shows those that are built in"
        ))),
    }
}

/// The profile in a file.
pub(crate) fn read(path: &Path) -> Result<contract::Profile, CliError> {
    let wrong = |why: String| CliError::Usage(format!("{}: {why}", path.display()));
    let size = std::fs::metadata(path).map_err(|error| wrong(error.to_string()))?.len();
    if size > FILE_BYTES_MAX {
        return Err(wrong(format!("a profile has at most {FILE_BYTES_MAX} bytes, and this one has {size}")));
    }
    let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    profiles::parse(&text).map_err(|complaints| wrong(complaints.to_string()))
}

fn list(arguments: &ProfileList) -> Result<(), CliError> {
    let mut table = Table::new();
    table.load_style(comfy_table::presets::NOTHING).set_header(["ID", "KEY IN", "WINDOW", "CHECKED", "TITLE"]);
    for profile in profiles::all() {
        let checked = profile.sources.iter().map(|source| source.checked.as_str()).min().unwrap_or_default();
        if arguments.json {
            let window = profile.window.as_ref().map(|_| window(profile));
            let row = json!({
                "id": profile.id,
                "version": profile.version,
                "title": profile.title,
                "key_in": carrier(&profile.key.carrier),
                "window": window,
                "methods": profile.methods,
                "checked": checked,
            });
            print::data(&row.to_string())?;
        } else {
            let row = [&profile.id, &carrier(&profile.key.carrier), &window(profile), checked, &profile.title];
            table.add_row(row);
        }
    }
    if !arguments.json {
        print::human(&table.trim_fmt());
    }
    Ok(())
}

fn carrier(carrier: &Carrier) -> String {
    match carrier {
        Carrier::Header { name, .. } => name.clone(),
        Carrier::Member(name) => format!("body member {name}"),
        Carrier::Parameter(name) => format!("parameter {name}"),
    }
}

fn window(profile: &contract::Profile) -> String {
    match &profile.window {
        None => "unknown".to_owned(),
        Some(window) => window.span.map_or_else(|| "for ever".to_owned(), instant::age),
    }
}
