//! `intents`: what was written down, seen, delivered further, asked about and settled. Rules belong to core.

mod list;
mod purge;
mod resolve;
mod show;
mod view;

use std::sync::Arc;

use counterfoil_client::{Ask, Client, ClientError, Http, Outcome};
use counterfoil_core::intent::{Event, Intent, Name, next};
use counterfoil_core::{Error, Now};
use counterfoil_store::sqlite::Missing;

use crate::args::{Intents, IntentsRecover, IntentsResume, JournalPlace, Pursued};
use crate::error::CliError;
use crate::exit::Exit;
use crate::journal::Journal;
use crate::send::interruptible;
use crate::send::outcome::Told;
use crate::send::story::{Story, say};
use crate::{journal, profile};

/// Rows of one page.
const PAGE_ROWS: usize = 500;

pub(crate) async fn run(command: Intents) -> Result<Exit, CliError> {
    let done = match command {
        Intents::Resume(resume) => return interruptible(resumed(&resume)).await,
        Intents::Recover(recover) => return interruptible(recovered(&recover)).await,
        Intents::List(list) => list::list(&list).await,
        Intents::Show(show) => show::run(&show).await,
        Intents::Resolve(resolve) => resolve::run(&resolve).await,
        Intents::Export(export) => list::export(&export).await,
        Intents::Purge(purge) => purge::run(&purge).await,
    };
    done.map(|()| Exit::Done)
}

/// The journal, and a client of it that sends over the network.
async fn client(place: &JournalPlace, contract: Option<&str>) -> Result<(Journal, Client), CliError> {
    let own = contract.map(profile::named).transpose()?;
    let journal = journal::open(place, Missing::Refuse).await?;
    let client = Client::new(journal.intents(), Arc::new(Http::new()?));
    Ok((journal, client.with_profiles(own.into_iter().collect::<Vec<_>>())))
}

async fn resumed(resume: &IntentsResume) -> Result<Exit, CliError> {
    let Pursued { place, name, printed, profile } = &resume.of;
    let (journal, client) = client(place, profile.as_deref()).await?;
    let intent = client.intent(name).await?;
    let story = Story::new(&client);
    story.begins(&intent);
    let outcome = client.deliver(intent, resume.wait, &|progress| story.tells(&progress)).await?;
    let exit = Told { client: &client, place, printed }.of(name, outcome, story.attempts()).await;
    journal.close().await;
    exit
}

async fn recovered(recover: &IntentsRecover) -> Result<Exit, CliError> {
    let Pursued { place, name, printed, profile } = &recover.of;
    let (journal, client) = client(place, profile.as_deref()).await?;
    let ask = if recover.cancel { Ask::Cancel } else { Ask::LookUp };
    let told = Told { client: &client, place, printed };
    let exit = match client.recover(name, ask).await {
        Ok(outcome) => told.of(name, outcome, 1).await,
        Err(error @ ClientError::NoRecipe(_)) => {
            let intent = as_of(client.intent(name).await?, client.now());
            say(&intent, &error.to_string());
            told.of(name, Outcome::of(&intent), 1).await
        }
        Err(error) => Err(error.into()),
    };
    journal.close().await;
    exit
}

/// An intent as it is at `now`: leases run out and windows close without anybody writing it down.
fn as_of(intent: Intent, now: Now) -> Intent {
    match next(&intent, &Event::Look, now).write {
        // The version stays the one that is stored: it is what a later word must be about.
        Some(after) => Intent { version: intent.version, ..after },
        None => intent,
    }
}

/// Goes through all intents as of now; `take` answers whether it wants more.
async fn walk(
    journal: &Journal,
    mut take: impl FnMut(Result<Intent, Error>, Now) -> Result<bool, CliError>,
) -> Result<(), CliError> {
    let store = journal.intents();
    let mut after = 0;
    loop {
        let page = store.intents(after, PAGE_ROWS).await?;
        let now = store.now();
        for (position, row) in page.rows {
            after = position;
            if !take(row.map(|intent| as_of(intent, now)), now)? {
                return Ok(());
            }
        }
        if !page.more {
            return Ok(());
        }
    }
}

/// The intent of that name, as of now.
async fn found(journal: &Journal, name: &Name) -> Result<(Intent, Now), CliError> {
    let store = journal.intents();
    let found = store.intent(name).await?;
    let intent = found.ok_or_else(|| ClientError::NoIntent(name.as_str().to_owned()))?;
    let now = store.now();
    Ok((as_of(intent, now), now))
}
