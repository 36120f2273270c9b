//! `send`: a request written down first, and sent until its outcome is known or its caller's patience ends. What to do
//! next is decided by core, and done by the client.

pub(crate) mod outcome;
mod request;
pub(crate) mod story;

use std::sync::Arc;

use counterfoil_client::{Client, Http};
use counterfoil_store::sqlite::Missing;

use self::outcome::Told;
use self::story::Story;
use crate::args::Send;
use crate::error::CliError;
use crate::exit::Exit;
use crate::serve::Signals;
use crate::{journal, print, profile};

pub(crate) async fn run(send: &Send) -> Result<Exit, CliError> {
    interruptible(sent(send)).await
}

/// Runs `work` until it ends or the process is told to. What is under way is dropped then: its attempt counts as
/// uncertain, and the intent stands.
pub(crate) async fn interruptible(work: impl Future<Output = Result<Exit, CliError>>) -> Result<Exit, CliError> {
    let mut signals = Signals::catch()?;
    tokio::select! {
        biased;
        ended = work => ended,
        () = signals.next() => {
            print::human("counterfoil: interrupted; what was written down is kept: run the same command again");
            Ok(Exit::Interrupted)
        }
    }
}

async fn sent(send: &Send) -> Result<Exit, CliError> {
    let contract = profile::named(&send.profile)?;
    let wish = request::wish(send, &contract)?;
    let journal = journal::open(&send.place, Missing::Create).await?;
    let client = Client::new(journal.intents(), Arc::new(Http::new()?)).with_profiles(vec![contract]);
    let told = Told { client: &client, place: &send.place, printed: &send.printed };
    let story = Story::new(&client);
    let outcome = client.send_watched(&wish, send.wait, &|progress| story.tells(&progress)).await?;
    let exit = told.of(story.name().unwrap_or(&send.intent), outcome, story.attempts()).await;
    journal.close().await;
    exit
}
