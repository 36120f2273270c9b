//! Stores that are filled before they are measured, through the store's own conditional write.
//!
//! A filled store is kept, as filling is slow; which sizes are needed belongs to `growth`.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use counterfoil_core::record::Author;
use counterfoil_core::{Lease, LeaseId, Receipt, Record, State, Timestamp};
use counterfoil_store::seam::{Expected, New, Swap, Swapped};
use counterfoil_store::sqlite::Options;
use counterfoil_store::{RecordStore as _, SqliteStore};
use tokio::task::JoinSet;

use crate::keys::{Keys, Order};
use crate::ours::Claims;
use crate::{Fault, load};

/// Writers at once: more than a batch takes.
const WRITERS: u64 = 512;
/// For how long receipts are promised: longer than a filled store is kept.
const RETENTION: Duration = Duration::from_hours(24 * 365);

/// A closed store under `dir` with so many live receipts, and so many more that have expired.
pub(crate) fn filled(dir: &Path, live: u64, expired: u64) -> Result<PathBuf, Fault> {
    let path = dir.join(format!("receipts-{live}-{expired}.db"));
    if path.exists() {
        return Ok(path);
    }
    let making = tempfile::tempdir_in(dir)?;
    let draft = making.path().join("receipts.db");
    let store = SqliteStore::open(&draft, Options::default())?;
    load::runtime()?.block_on(fill(&store, live, expired))?;
    store.close();
    std::fs::rename(&draft, &path)?;
    Ok(path)
}

async fn fill(store: &Arc<SqliteStore>, live: u64, expired: u64) -> Result<(), Fault> {
    let next = Arc::new(AtomicU64::new(0));
    let mut writers = JoinSet::new();
    for _ in 0..WRITERS {
        let (store, next, claims) = (store.clone(), next.clone(), Claims::new()?);
        writers.spawn(async move {
            let mut keys = Keys::new(Order::Random);
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= live + expired {
                    return Ok::<_, Fault>(());
                }
                let key = keys.next();
                let now = store.now().at;
                // Mixed, as they would be: the expired do not stand together.
                let is_expired = (number * expired) % (live + expired) < expired;
                let expires_at = if is_expired { now } else { now.plus(RETENTION) };
                let identity = claims.identity(&key.to_string())?;
                let record = done(&claims, &key.to_string(), LeaseId::from_bytes(*key.as_bytes()), now, expires_at)?;
                let swap =
                    Swap { identity, expected: Expected::Absent, new: New::put(record), not_after: None, note: None };
                match store.swap(swap).await? {
                    Swapped::Won { .. } => {}
                    other => return Err(format!("a receipt was not written: {other:?}").into()),
                }
                if number.is_multiple_of(10_000) {
                    eprint!("\r\x1b[Kfilling a store: {number} of {}", live + expired);
                    std::io::stderr().flush()?;
                }
            }
        });
    }
    while let Some(writer) = writers.join_next().await {
        writer??;
    }
    Ok(())
}

/// A finished record as the gate leaves it.
pub(crate) fn done(
    claims: &Claims,
    key: &str,
    id: LeaseId,
    now: Timestamp,
    expires_at: Timestamp,
) -> Result<Record, Fault> {
    let policy = &claims.policy;
    let lease = Lease {
        id,
        holder: None,
        renewed_at: now,
        span: policy.lease,
        until: now.plus(policy.lease),
        attempt_until: now.plus(policy.attempt_limit),
    };
    let receipt = receipt();
    Ok(Record {
        version: 2,
        fingerprint: claims.claim(key)?.fingerprint().clone(),
        effect: policy.effect,
        keyed: None,
        claimed_at: now,
        lease,
        state: State::Done { receipt, author: Author::Owner, completed_at: now, expires_at, refuse_until: None },
    })
}

/// A result of usual size.
pub(crate) fn receipt() -> Receipt {
    Receipt::new(201, &b"{\"id\":12345,\"item\":\"copper kettle\",\"quantity\":2}"[..])
        .with_header("content-type", "application/json")
}
