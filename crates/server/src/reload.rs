//! What is read anew while a server runs: the listener's certificate, the table of API keys, the issuer's public keys.
//! What is of no use is not taken, and what was in force stays. When to do it (a signal) belongs to whoever owns the
//! process.

use std::fmt::Display;
use std::sync::Arc;

use crate::config::Config;
use crate::principal::Reread;
use crate::tls::Acceptor;

/// What was read anew (counter; labels `what`: `configuration`, `certificate`, `api-keys`, `jwks`, and `result`: `taken`,
/// `kept`, which says that what was in force stays).
pub(crate) const RELOADS: &str = "counterfoil_reloads_total";

/// Reads certificates and keys anew. Cheap to clone; all clones are the same server's.
#[derive(Clone)]
pub struct Reload(Arc<Inner>);

struct Inner {
    config: Config,
    acceptor: Option<Acceptor>,
    callers: Reread,
    /// Held by whoever reads, so that the last to begin is the last to be taken.
    reading: tokio::sync::Mutex<()>,
}

impl Reload {
    pub(crate) fn new(config: Config, acceptor: Option<Acceptor>, callers: Reread) -> Self {
        Self(Arc::new(Inner { config, acceptor, callers, reading: tokio::sync::Mutex::default() }))
    }

    /// Reads the files of the certificate and of the public keys again, and takes the API keys of `config`, which is the
    /// configuration as it reads now, or why it cannot be read. Each of them is taken whole or not at all. Everything
    /// else in the configuration takes force at the next start, and a warning says so where it differs.
    ///
    /// Answers whether all was taken; what was not is logged with the next step, and counted.
    pub async fn reload<E: Display>(&self, config: Result<Config, E>) -> bool {
        let reading = self.0.reading.lock().await;
        let read = told("configuration", config.map_err(|error| error.to_string()));
        let mut all = read.is_some();
        if let Some(config) = &read {
            self.0.tell_others(config);
            let keys = self.0.callers.keys(config);
            all &= keys.is_none_or(|keys| told("api-keys", keys).is_some());
        }
        all &= self.0.certificate().await.is_none_or(|read| told("certificate", read).is_some());
        all &= self.0.callers.jwks().await.is_none_or(|read| told("jwks", read).is_some());
        drop(reading);
        all
    }
}

impl Inner {
    async fn certificate(&self) -> Option<Result<(), String>> {
        let (acceptor, tls) = (self.acceptor.clone()?, self.config.tls.as_ref()?.value.clone());
        let read = tokio::task::spawn_blocking(move || acceptor.reread(&tls).map_err(|error| error.to_string()));
        Some(read.await.unwrap_or_else(|error| Err(error.to_string())))
    }

    /// Says where the configuration differs in what is not read anew.
    fn tell_others(&self, now: &Config) {
        if fixed(&self.config) != fixed(now) {
            tracing::warn!(
                "the configuration has changed in more than its api keys: the rest takes force at the next start"
            );
        }
    }
}

/// The settings that hold until the process ends: all but the API keys, each of which is printed as a remark.
fn fixed(config: &Config) -> Vec<String> {
    config.print().lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
}

/// Logs and counts what became of one part; the part, where it was taken.
fn told<T>(what: &'static str, read: Result<T, String>) -> Option<T> {
    let result = if read.is_ok() { "taken" } else { "kept" };
    metrics::counter!(RELOADS, "what" => what, "result" => result).increment(1);
    match read {
        Ok(part) => {
            tracing::info!(what, "read anew");
            Some(part)
        }
        Err(why) => {
            // One event is one line, however many faults a configuration has.
            let why = why.lines().map(str::trim).collect::<Vec<_>>().join("; ");
            tracing::error!(what, %why, "not read anew, what was in force stays: mend it, and send SIGHUP again");
            None
        }
    }
}
