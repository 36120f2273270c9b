//! `serve`: signals around a server. A first one to stop stops it in order, a second one at once; a hang-up makes it read
//! certificates and keys anew.

use std::convert::Infallible;

use counterfoil_server::{Reload, Server};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::args::Settings;
use crate::error::CliError;
use crate::settings;

/// The signals that stop a process.
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    pub(crate) fn catch() -> Result<Self, CliError> {
        Ok(Self { terminate: caught(SignalKind::terminate())?, interrupt: caught(SignalKind::interrupt())? })
    }

    /// Waits for the next one.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

fn caught(kind: SignalKind) -> Result<Signal, CliError> {
    signal(kind).map_err(|error| CliError::Internal(format!("signals cannot be caught: {error}")))
}

pub(crate) async fn run(settings: &Settings) -> Result<(), CliError> {
    let config = settings::read(settings)?;
    let mut signals = Signals::catch()?;
    let hang_up = caught(SignalKind::hangup())?;
    let server = Server::start(config).await?;
    let reload = server.reload();
    tokio::select! {
        ended = serve(server, &mut signals) => ended,
        never = read_anew(hang_up, &reload, settings) => match never {},
    }
}

/// Reads certificates and keys anew, and the configuration for the latter, each time that it is told to.
async fn read_anew(mut hang_up: Signal, reload: &Reload, settings: &Settings) -> Infallible {
    loop {
        match hang_up.recv().await {
            // What could not be taken is in the log.
            Some(()) => drop(reload.reload(settings::read(settings)).await),
            None => std::future::pending().await,
        }
    }
}

/// Runs a server until signals stop it.
pub(crate) async fn serve(server: Server, signals: &mut Signals) -> Result<(), CliError> {
    let (first, stop) = tokio::sync::oneshot::channel::<()>();
    let mut first = Some(first);
    let server = server.run(async move {
        // A sender that is gone stops as well.
        let _ = stop.await;
    });
    let mut server = std::pin::pin!(server);
    loop {
        tokio::select! {
            _ = server.as_mut() => return Ok(()),
            () = signals.next() => match first.take() {
                Some(first) => drop(first),
                None => {
                    let text = "stopped at once: what ran is in doubt, and its leases say so when the store is next opened";
                    return Err(CliError::Internal(text.to_owned()));
                }
            },
        }
    }
}
