//! Connections to the upstream that rest between two requests. Opening them, and how many there may be in all, belongs
//! to `reach`.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::Instant;

use super::link::Link;

/// How long a connection rests before it is closed. Servers close theirs after 2 s or more (gunicorn 2 s; Node.js,
/// Apache and uvicorn 5 s): we are first, so that no request meets a connection that is just being closed.
const REST_MAX: Duration = Duration::from_millis(1500);
/// How long it may have rested for a guarded request, which is in doubt where the upstream hangs up just then: a
/// quarter of the shortest of these times, so that also a time-out of 1 s, and one that our clock and the upstream's
/// count differently, is far away. Under load connections hardly rest at all.
const GUARDED_REST_MAX: Duration = Duration::from_millis(500);
/// The most connections that rest.
const RESTING_MAX: usize = 512;

/// The connections that rest, the one that came last at the back.
#[derive(Default)]
pub(super) struct Pool {
    resting: Mutex<Resting>,
}

#[derive(Default)]
struct Resting {
    links: VecDeque<(Instant, Link)>,
    /// A task closes those that have rested for long.
    watched: bool,
}

impl Pool {
    /// A connection that has rested only shortly, stands, and has nothing to read at this moment.
    pub(super) fn take(&self, guarded: bool) -> Option<Link> {
        let most = if guarded { GUARDED_REST_MAX } else { REST_MAX };
        loop {
            let mut resting = self.resting();
            let (since, _) = resting.links.back()?;
            if since.elapsed() > most {
                return None;
            }
            let (_, mut link) = resting.links.pop_back()?;
            drop(resting);
            if link.is_free() && link.witness.is_quiet() {
                link.witness.begin();
                return Some(link);
            }
        }
    }

    /// Closes those that have rested longest, until only so many are left.
    pub(super) fn trim(&self, left: usize) {
        let mut resting = self.resting();
        let over = resting.links.len().saturating_sub(left);
        let closed: Vec<_> = resting.links.drain(..over).collect();
        drop(resting);
        drop(closed);
    }

    /// Lets a connection rest, where it may carry another request.
    pub(super) fn rest(self: &Arc<Self>, mut link: Link) {
        // Outside of the runtime nobody would close it in time.
        let Ok(runtime) = Handle::try_current() else { return };
        if !link.is_free() {
            return;
        }
        let mut resting = self.resting();
        resting.links.push_back((Instant::now(), link));
        let closed = if resting.links.len() > RESTING_MAX { resting.links.pop_front() } else { None };
        if !std::mem::replace(&mut resting.watched, true) {
            runtime.spawn(close_in_time(Arc::downgrade(self)));
        }
        drop(resting);
        drop(closed);
    }

    /// Closes those that have rested for too long. The time when the next one will have; none rests without one.
    fn close_late(&self) -> Option<Instant> {
        let mut resting = self.resting();
        let now = Instant::now();
        let late = resting.links.iter().take_while(|(since, _)| *since + REST_MAX <= now).count();
        let closed: Vec<_> = resting.links.drain(..late).collect();
        let next = resting.links.front().map(|(since, _)| *since + REST_MAX);
        resting.watched = next.is_some();
        drop(resting);
        drop(closed);
        next
    }

    fn resting(&self) -> MutexGuard<'_, Resting> {
        self.resting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs as long as a connection rests.
async fn close_in_time(pool: Weak<Pool>) {
    while let Some(next) = pool.upgrade().and_then(|pool| pool.close_late()) {
        tokio::time::sleep_until(next).await;
    }
}

#[cfg(test)]
mod tests;
