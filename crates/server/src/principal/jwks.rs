//! The issuer's public keys: fetched when they are needed, kept for a while, fetched again for a key that nobody knows
//! yet, and never more often than every 10 seconds. Which key a token may use is judged here; the token in `jwt`.

mod set;

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use jsonwebtoken::{Algorithm, DecodingKey};
use tokio::time::Instant;

use self::set::{Fitting, KeySet};
use super::outbound::{Limits, Outbound};
use super::signature;
use crate::config::{JwksPlace, Jwt, Url};
use crate::error::ServerError;

/// The most bytes of a set.
const BYTES_MAX: usize = 256 * 1024;
/// How long fetching may take.
const FETCH_LIMIT: Duration = Duration::from_secs(5);
/// The pause between two attempts, whatever callers send.
pub(super) const PAUSE: Duration = Duration::from_secs(10);

pub(super) type Fetched<'a> = Pin<Box<dyn Future<Output = Result<Bytes, String>> + Send + 'a>>;

/// Where a set comes from.
pub(super) trait Place: Send + Sync + 'static {
    fn fetch(&self) -> Fetched<'_>;
}

/// Why no key can be had.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum NoKey {
    /// The issuer has no such key.
    Unknown,
    /// The token names no key, and several would do.
    Ambiguous,
    /// The issuer's keys cannot be had now.
    Unavailable,
}

/// The keys of one issuer.
pub(super) struct Jwks {
    place: Box<dyn Place>,
    refresh: Duration,
    keep: Duration,
    state: Mutex<State>,
    /// Held by whoever fetches.
    fetching: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Default)]
struct State {
    set: Option<(Arc<KeySet>, Instant)>,
    /// When the last attempt ended, and whether it brought a set.
    tried: Option<(Instant, bool)>,
}

impl Jwks {
    /// The keys that `terms` name. A file is read now, so that a wrong one is told at the start.
    pub(super) fn new(terms: &Jwt) -> Result<Arc<Self>, ServerError> {
        let (refresh, keep) = (terms.jwks_refresh.value, terms.jwks_keep.value);
        match &terms.jwks {
            JwksPlace::File(path) => {
                let told = |why: String| ServerError::Principal(format!("file:{}: {why}", path.display()));
                let bytes = read(path).map_err(told)?;
                KeySet::parse(&bytes).map_err(told)?;
                Ok(Self::at(Box::new(InFile(path.clone())), refresh, keep))
            }
            JwksPlace::Url(url) => {
                let outbound = Outbound::new(url.is_secure())?;
                Ok(Self::at(Box::new(AtUrl { url: url.clone(), outbound }), refresh, keep))
            }
        }
    }

    pub(super) fn at(place: Box<dyn Place>, refresh: Duration, keep: Duration) -> Arc<Self> {
        signature::install();
        Arc::new(Self { place, refresh, keep, state: Mutex::default(), fetching: Arc::default() })
    }

    /// The keys that a token of this key id and algorithm may be signed with: at least one.
    pub(super) async fn keys(
        self: &Arc<Self>,
        id: Option<&str>,
        algorithm: Algorithm,
    ) -> Result<Vec<Arc<DecodingKey>>, NoKey> {
        let usable = self.usable().filter(|(set, _)| !matches!(set.fitting(id, algorithm), Fitting::None));
        match usable {
            Some((_, age)) if age <= self.refresh => {}
            Some(_) => self.renew().await,
            None => self.refetch().await,
        }
        self.look(id, algorithm)
    }

    fn look(&self, id: Option<&str>, algorithm: Algorithm) -> Result<Vec<Arc<DecodingKey>>, NoKey> {
        let (set, _) = self.usable().ok_or(NoKey::Unavailable)?;
        match set.fitting(id, algorithm) {
            Fitting::Keys(keys) => Ok(keys),
            Fitting::Several => Err(NoKey::Ambiguous),
            // A set that could not be fetched again may lack a key that the issuer has by now.
            Fitting::None if self.failed() => Err(NoKey::Unavailable),
            Fitting::None => Err(NoKey::Unknown),
        }
    }

    /// Fetches again what is old: waiting for it, or beside the callers where the last attempt failed.
    async fn renew(self: &Arc<Self>) {
        if self.failed() {
            let jwks = self.clone();
            tokio::spawn(async move { jwks.refetch().await });
        } else {
            self.refetch().await;
        }
    }

    /// Fetches the set unless somebody did within the pause. Whoever finds it being fetched waits for that; a caller that
    /// leaves does not end it.
    pub(super) async fn refetch(self: &Arc<Self>) {
        let one = self.fetching.clone().lock_owned().await;
        if self.state().tried.is_some_and(|(at, _)| at.elapsed() < PAUSE) {
            return;
        }
        let jwks = self.clone();
        let task = tokio::spawn(async move {
            let fetched = jwks.place.fetch().await.and_then(|bytes| KeySet::parse(&bytes));
            jwks.keep(fetched);
            drop(one);
        });
        if task.await.is_err() {
            tracing::warn!("jwks: fetching was cut short");
        }
    }

    /// Fetches the set whenever it was tried last, because an operator says so. Where that fails the last one stays.
    pub(super) async fn reread(self: &Arc<Self>) -> Result<(), String> {
        let one = self.fetching.lock().await;
        let fetched = self.place.fetch().await.and_then(|bytes| KeySet::parse(&bytes));
        let told = fetched.as_ref().map(|_| ()).map_err(Clone::clone);
        self.keep(fetched);
        drop(one);
        told
    }

    fn keep(&self, fetched: Result<KeySet, String>) {
        let mut state = self.state();
        let now = Instant::now();
        state.tried = Some((now, fetched.is_ok()));
        match fetched {
            Ok(set) => {
                tracing::debug!(keys = set.len(), "jwks: fetched");
                state.set = Some((Arc::new(set), now));
            }
            Err(why) => {
                let age_s = state.set.as_ref().map(|(_, at)| at.elapsed().as_secs());
                tracing::warn!(%why, age_s, "jwks: the issuer's keys could not be fetched");
            }
        }
    }

    fn usable(&self) -> Option<(Arc<KeySet>, Duration)> {
        let set = self.state().set.as_ref().map(|(set, at)| (set.clone(), at.elapsed()));
        set.filter(|(_, age)| *age <= self.keep)
    }

    fn failed(&self) -> bool {
        self.state().tried.is_some_and(|(_, brought)| !brought)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct InFile(PathBuf);

impl Place for InFile {
    fn fetch(&self) -> Fetched<'_> {
        let path = self.0.clone();
        Box::pin(async move {
            let read =
                tokio::task::spawn_blocking(move || read(&path).map_err(|why| format!("{}: {why}", path.display())));
            read.await.map_err(|error| error.to_string())?
        })
    }
}

fn read(path: &std::path::Path) -> Result<Bytes, String> {
    use std::io::Read as _;
    let file = std::fs::File::open(path).map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    file.take(BYTES_MAX as u64 + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() > BYTES_MAX {
        return Err(format!("it has more than {BYTES_MAX} bytes"));
    }
    Ok(bytes.into())
}

struct AtUrl {
    url: Url,
    outbound: Outbound,
}

impl Place for AtUrl {
    fn fetch(&self) -> Fetched<'_> {
        Box::pin(async move {
            let headers = HeaderMap::from_iter([(header::ACCEPT, HeaderValue::from_static("application/json"))]);
            let limits = Limits { time: FETCH_LIMIT, body_bytes: Some(BYTES_MAX) };
            let answered = self.outbound.get(&self.url, headers, limits).await?;
            match answered.status {
                StatusCode::OK => Ok(answered.body),
                status => Err(format!("{}: status {}", self.url, status.as_u16())),
            }
        })
    }
}

#[cfg(test)]
mod tests;
