//! `relay`: signals around a relay of the client, on the store that an application's transactions write to. A first signal
//! ends it in order, a second one at once. How intents are sent belongs to the client.

use std::sync::Arc;

use counterfoil_client::{Client, Http, Reach};
use tokio::sync::oneshot;

use crate::args::Relay;
use crate::error::CliError;
use crate::journal::Journal;
use crate::serve::Signals;
use crate::{print, profile, settings};

pub(crate) async fn run(arguments: &Relay) -> Result<(), CliError> {
    let own = arguments.profile.iter().map(|path| profile::read(path)).collect::<Result<Vec<_>, _>>()?;
    let transport = Http::new().map_err(|error| CliError::Internal(error.to_string()))?;
    let mut signals = Signals::catch()?;
    let place = settings::place(&arguments.place)?;
    // An outbox is made by whoever writes to it, or by `counterfoil migrate`.
    let outbox = Journal::existing(&place).await?;
    let client = Client::new(outbox.intents(), Arc::new(transport)).with_profiles(own).with_reach(reach(arguments));
    let relay = counterfoil_client::Relay::new(client).with_at_once(arguments.at_once.into());
    print::human(&format!("relaying {place}, {} at once", arguments.at_once));
    let ended = relayed(&relay, &mut signals).await;
    outbox.close().await;
    ended
}

async fn relayed(relay: &counterfoil_client::Relay, signals: &mut Signals) -> Result<(), CliError> {
    let (first, stop) = oneshot::channel::<()>();
    let mut first = Some(first);
    let relaying = relay.run(async move {
        // A sender that is gone stops as well.
        let _ = stop.await;
    });
    let mut relaying = std::pin::pin!(relaying);
    loop {
        tokio::select! {
            left = relaying.as_mut() => {
                if left > 0 {
                    print::human(&format!("{left} attempts were cut off; the next relay goes on with them"));
                }
                return Ok(());
            }
            () = signals.next() => match first.take() {
                Some(first) => drop(first),
                None => {
                    let text = "stopped at once: attempts under way were cut off, and the next relay goes on with them";
                    return Err(CliError::Internal(text.to_owned()));
                }
            },
        }
    }
}

/// Whoever may write to the outbox chooses what is sent where: never with a secret that was not meant for it.
fn reach(arguments: &Relay) -> Reach {
    let reach = Reach::default().with_secrets(arguments.secret.clone());
    if arguments.to.is_empty() { reach } else { reach.with_origins(arguments.to.clone()) }
}
