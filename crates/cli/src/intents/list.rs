//! `intents list` and `intents export`: all intents, filtered by what they are as of now.

use comfy_table::Table;
use counterfoil_core::intent::Intent;
use counterfoil_core::{Error, Now};
use counterfoil_store::intents::{INTENTS_MAX, Letter};
use counterfoil_store::sqlite::Missing;
use serde_json::{Value, json};

use super::{view, walk};
use crate::args::{IntentState, IntentsExport, IntentsList};
use crate::error::CliError;
use crate::journal::Journal;
use crate::send::story::window;
use crate::{instant, journal, print};

const fn word(state: IntentState) -> &'static str {
    match state {
        IntentState::Ready => "ready",
        IntentState::Sending => "sending",
        IntentState::Waiting => "waiting",
        IntentState::Uncertain => "uncertain",
        IntentState::Overdue => "overdue",
        IntentState::Succeeded => "succeeded",
        IntentState::Refused => "refused",
    }
}

/// One that cannot be read is in every list.
fn matches(list: &IntentsList, row: &Result<Intent, Error>) -> bool {
    let Ok(intent) = row else { return true };
    list.state.is_empty() || list.state.iter().any(|state| word(*state) == intent.state.as_str())
}

pub(super) async fn list(list: &IntentsList) -> Result<(), CliError> {
    let journal = journal::open(&list.place, Missing::Refuse).await?;
    let mut table = Table::new();
    let mut head = vec!["NAME", "STATE", "ATTEMPTS", "MADE", "WINDOW", "VERSION", "TO"];
    if list.show_key {
        head.push("KEY");
    }
    table.load_style(comfy_table::presets::NOTHING).set_header(head);
    let (mut count, mut more) = (0_usize, false);
    walk(&journal, |row, now| {
        if !matches(list, &row) {
            return Ok(true);
        }
        if count == list.limit {
            more = true;
            return Ok(false);
        }
        count += 1;
        if list.json {
            print::data(&json(&row, now, list.show_key).to_string())?;
        } else {
            table.add_row(line(&row, now, list.show_key));
        }
        Ok(true)
    })
    .await?;
    for letter in kept(&journal).await? {
        count += 1;
        if list.json {
            print::data(&kept_json(&letter).to_string())?;
        } else {
            let why = letter.refused.unwrap_or_default();
            table.add_row(
                [letter.name, "kept".to_owned()].into_iter().chain(std::iter::repeat_n("-".to_owned(), 4)).chain([why]),
            );
        }
    }
    journal.close().await;
    if list.json {
        return Ok(());
    }
    if count == 0 {
        print::human("no such intent");
        return Ok(());
    }
    print::human(&table.trim_fmt());
    if more {
        print::human(&format!("there are more than {}: raise --limit, or narrow --state", list.limit));
    }
    Ok(())
}

fn line(row: &Result<Intent, Error>, now: Now, show_key: bool) -> Vec<String> {
    let intent = match row {
        Ok(intent) => intent,
        Err(error) => return vec!["-".to_owned(), "unreadable".to_owned(), error.to_string()],
    };
    let alarm = if intent.alarm { " ALARM" } else { "" };
    let window = if intent.due_at().is_some() { window(intent, now.at) } else { "-".to_owned() };
    let mut line = vec![
        intent.request.name.as_str().to_owned(),
        format!("{}{alarm}", intent.state.as_str()),
        intent.attempted.to_string(),
        instant::print(intent.created_at),
        window,
        intent.version.to_string(),
        format!("{} {}", intent.request.method, intent.request.origin),
    ];
    if show_key {
        line.push(intent.request.key.as_str().to_owned());
    }
    line
}

fn json(row: &Result<Intent, Error>, now: Now, show_key: bool) -> Value {
    match row {
        Ok(intent) => Value::Object(view::json(intent, now, show_key)),
        Err(error) => json!({ "state": "unreadable", "error": error.to_string() }),
    }
}

/// What applications left behind and no relay could take up. It is in every list, as what cannot be read is.
async fn kept(journal: &Journal) -> Result<Vec<Letter>, CliError> {
    let (mut kept, mut after) = (Vec::new(), 0);
    loop {
        let page = journal.intents().letters(Some(after), INTENTS_MAX).await?;
        let last = page.last().map(|letter| letter.id);
        let full = page.len() == INTENTS_MAX;
        kept.extend(page.into_iter().filter(|letter| letter.refused.is_some()));
        match last {
            Some(last) if full => after = last,
            _ => return Ok(kept),
        }
    }
}

fn kept_json(letter: &Letter) -> Value {
    json!({ "name": letter.name, "state": "kept", "error": letter.refused })
}

pub(super) async fn export(export: &IntentsExport) -> Result<(), CliError> {
    let journal = journal::open(&export.place, Missing::Refuse).await?;
    let mut count = 0_usize;
    walk(&journal, |row, now| {
        count += 1;
        print::data(&json(&row, now, export.show_key).to_string())?;
        Ok(true)
    })
    .await?;
    for letter in kept(&journal).await? {
        count += 1;
        print::data(&kept_json(&letter).to_string())?;
    }
    journal.close().await;
    print::human(&format!("{count} intents were exported"));
    Ok(())
}
