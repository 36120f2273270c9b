//! `serve`: signals around a server. A first signal stops it in order, a second one at once.

use counterfoil_server::Server;
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
        let failed = |error: std::io::Error| CliError::Internal(format!("signals cannot be caught: {error}"));
        let terminate = signal(SignalKind::terminate()).map_err(failed)?;
        let interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
        Ok(Self { terminate, interrupt })
    }

    /// Waits for the next one.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

pub(crate) async fn run(settings: &Settings) -> Result<(), CliError> {
    let config = settings::read(settings)?;
    let mut signals = Signals::catch()?;
    let server = Server::start(config).await?;
    serve(server, &mut signals).await
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
