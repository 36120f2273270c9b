//! Claims, many in one statement: each takes its identity's lock, finds it free, and is written with the server's time.
//!
//! What does not belong here: every other write (`put`), and when an action may run (core).

use std::sync::Arc;
use std::time::Duration;

use counterfoil_core::claim::Draft;
use counterfoil_core::{Digest, Effect, Expiry, Record, State, Timestamp};
use tokio::time::Instant;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::Inner;
use super::fault::{self, Intent};
use super::pool::{Lent, Param};
use super::queue::{Entry, in_time};
use super::rows::{self, Columns, ZERO, get};
use super::transaction::Cells;
use crate::error::{Applied, ErrorKind, StoreError};
use crate::seam::{Expected, New, Swap, Swapped};

pub(super) const CLAIM: &str = "SELECT * FROM counterfoil.claim($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, \
    $14, $15, $16, $17)";

pub(super) const CLOCK: &str = "SELECT counterfoil.clock()";

const DOING: &str = "a claim could not be written";

/// How often a claim looks again while somebody's open transaction is at its identity, before that is its answer.
const LOOKS_MAX: u32 = 5;

/// The pause before the first of them; it doubles.
const FIRST_PAUSE: Duration = Duration::from_millis(2);

/// How often a statement is sent again because the quarantine was changed meanwhile.
const QUARANTINES_MAX: usize = 4;

/// Claims all of `entries` and answers each.
pub(super) async fn together(inner: &Arc<Inner>, entries: Vec<Entry>) {
    let mut waiting = entries;
    for _ in 0..QUARANTINES_MAX {
        if waiting.is_empty() {
            return;
        }
        let quarantine = inner.quarantine();
        let deadline = Instant::now() + inner.options.call_timeout;
        let mut lent = match inner.lend(deadline).await {
            Ok(lent) => lent,
            Err(error) => return waiting.into_iter().for_each(|entry| entry.answer(Err(fault::told(&error)))),
        };
        let sent = send(inner, &mut lent, &waiting, quarantine, deadline).await;
        drop(lent);
        let sent = match sent {
            Ok(sent) => sent,
            // The server is there, and something is wrong with one of them.
            Err(error) if error.applied == Applied::No && waiting.len() > 1 => return one_by_one(inner, waiting).await,
            Err(error) => return waiting.into_iter().for_each(|entry| entry.answer(Err(fault::told(&error)))),
        };
        waiting = settle(inner, waiting, sent);
    }
    let changed = || StoreError::not_applied(ErrorKind::Busy, "the quarantine is being changed: try again");
    waiting.into_iter().for_each(|entry| entry.answer(Err(changed())));
}

async fn one_by_one(inner: &Arc<Inner>, entries: Vec<Entry>) {
    for entry in entries {
        Box::pin(together(inner, in_time(vec![entry]))).await;
    }
}

/// What one statement answered.
struct Sent {
    written: Vec<Written>,
    rows: Vec<Row>,
}

/// Answers every entry whose fate is known; gives back those that were decided under another quarantine.
fn settle(inner: &Arc<Inner>, entries: Vec<Entry>, sent: Sent) -> Vec<Entry> {
    let mut again = Vec::new();
    for ((entry, written), row) in entries.into_iter().zip(sent.written).zip(sent.rows) {
        match outcome(inner, &entry.swap, written, &row) {
            Ok(Outcome::Answer(swapped)) => entry.answer(Ok(swapped)),
            Ok(Outcome::Held(now)) => look_again(inner, entry, now),
            Ok(Outcome::Quarantine(before)) => {
                inner.set_quarantine_seen(before);
                again.push(entry);
            }
            Err(error) => entry.answer(Err(error)),
        }
    }
    again
}

pub(super) enum Outcome {
    Answer(Swapped),
    Held(Timestamp),
    Quarantine(Option<Timestamp>),
}

/// What became of one claim.
pub(super) fn outcome(inner: &Inner, swap: &Swap, written: Written, row: &impl Cells) -> Result<Outcome, StoreError> {
    let at = rows::time(row, 2)?;
    inner.pace.learn(at);
    let now = counterfoil_core::Now::at(at);
    Ok(match get::<&str>(row, 1)? {
        "won" => Outcome::Answer(Swapped::Won { record: Some(Arc::new(written.at(at))), now }),
        "lost" => {
            let stands = rows::standing(row, 4).map_err(|error| rows::named(error, &swap.identity))?.map(Arc::new);
            Outcome::Answer(Swapped::Lost { stands, now })
        }
        "late" => Outcome::Answer(Swapped::TooLate { now }),
        "held" => Outcome::Held(at),
        "quarantined" => Outcome::Quarantine(get::<Option<i64>>(row, 3)?.map(Timestamp::from_millis)),
        _ => {
            let busy = "the quarantine is being changed: try again";
            return Err(StoreError::not_applied(ErrorKind::Busy, busy));
        }
    })
}

/// Somebody's transaction is at this identity. A claim of another instance is over in a moment, so it is looked at a
/// few times more, without holding a lane or a connection; an application's may last.
fn look_again(inner: &Arc<Inner>, mut entry: Entry, at: Timestamp) {
    if entry.tries >= LOOKS_MAX {
        return entry.answer(Ok(Swapped::Held { now: counterfoil_core::Now::at(at) }));
    }
    let pause = FIRST_PAUSE.saturating_mul(1 << entry.tries);
    entry.tries += 1;
    let later = inner.clone();
    inner.runtime.spawn(async move {
        tokio::time::sleep(pause).await;
        later.enter_again(entry);
    });
}

/// What a claim writes: times that count from the write, or, under a quarantine, what was decided just before it.
#[expect(clippy::large_enum_variant, reason = "made once for a claim and moved into its answer")]
pub(super) enum Written {
    Counted(Arc<Draft>),
    Decided(Record),
}

impl Written {
    /// Decided under `quarantine`, where one stands at the server's time `now`.
    pub(super) fn of(draft: &Arc<Draft>, quarantine: Option<(Timestamp, Timestamp)>) -> Self {
        if let Some((before, now)) = quarantine {
            let record = draft.at(now, Some(before));
            // A draft that may run now may run a moment later too.
            if record.state != State::Running {
                return Self::Decided(record);
            }
        }
        Self::Counted(draft.clone())
    }

    fn at(self, now: Timestamp) -> Record {
        match self {
            Self::Counted(draft) => draft.at(now, None),
            Self::Decided(record) => record,
        }
    }

    fn columns(&self) -> Result<Columns, StoreError> {
        match self {
            Self::Counted(draft) => Columns::of(&draft.at(ZERO, None)),
            Self::Decided(record) => Columns::of(record),
        }
    }
}

/// The lock that every claim of this identity takes, here and in transactions of callers.
pub(super) fn lock(digest: &Digest) -> i64 {
    let [a, b, c, d, e, f, g, h, ..] = *digest.as_bytes();
    i64::from_be_bytes([a, b, c, d, e, f, g, h])
}

/// The statement's arrays, one place for each claim.
#[derive(Default)]
pub(super) struct Arrays<'e> {
    locks: Vec<i64>,
    scopes: Vec<&'e [u8]>,
    operations: Vec<&'e [u8]>,
    keys: Vec<&'e [u8]>,
    expected_versions: Vec<Option<i64>>,
    expected_leases: Vec<Option<Vec<u8>>>,
    versions: Vec<i64>,
    leases: Vec<Vec<u8>>,
    states: Vec<i16>,
    counted: Vec<bool>,
    claimed_ats: Vec<Option<i64>>,
    records: Vec<Vec<u8>>,
    limits: Vec<Option<i64>>,
    digests: Vec<Option<Vec<u8>>>,
    retentions: Vec<Option<i64>>,
    refusals: Vec<Option<i64>>,
}

impl<'e> Arrays<'e> {
    /// `permits` says that a coupled run will carry a permit, by which an application settles it.
    pub(super) fn push(&mut self, swap: &'e Swap, written: &Written, permits: bool) -> Result<(), StoreError> {
        let (identity, digest) = (&swap.identity, swap.identity.digest());
        let columns = written.columns()?;
        let expected = match swap.expected {
            Expected::Absent => None,
            Expected::Record { version, lease } => Some((rows::version(version)?, lease.as_bytes().to_vec())),
        };
        self.locks.push(lock(&digest));
        self.scopes.push(identity.scope.as_bytes());
        self.operations.push(identity.operation.as_str().as_bytes());
        self.keys.push(identity.key.as_str().as_bytes());
        self.expected_versions.push(expected.as_ref().map(|(version, _)| *version));
        self.expected_leases.push(expected.map(|(_, lease)| lease));
        self.versions.push(columns.version);
        self.leases.push(columns.lease);
        self.states.push(columns.state);
        self.counted.push(matches!(written, Written::Counted(_)));
        self.claimed_ats.push(match written {
            Written::Counted(draft) => draft.claimed_at.map(Timestamp::as_millis),
            Written::Decided(record) => Some(record.claimed_at.as_millis()),
        });
        self.records.push(columns.bytes);
        self.limits.push(swap.not_after.map(Timestamp::as_millis));
        let promise = match written {
            Written::Counted(draft) if permits && draft.effect == Effect::Coupled => Some(draft),
            Written::Counted(_) | Written::Decided(_) => None,
        };
        self.digests.push(promise.map(|_| digest.as_bytes().to_vec()));
        self.retentions.push(promise.map(|draft| rows::span(draft.retention)));
        self.refusals.push(promise.and_then(|draft| match draft.expiry {
            Expiry::NewAction => None,
            Expiry::Refuse(span) => Some(rows::span(span)),
        }));
        Ok(())
    }

    /// What the statement takes, under the quarantine that was decided by.
    pub(super) fn parameters<'p>(&'p self, quarantine: &'p Option<i64>) -> [Param<'p>; 17] {
        [
            (&self.locks, Type::INT8_ARRAY),
            (&self.scopes, Type::BYTEA_ARRAY),
            (&self.operations, Type::BYTEA_ARRAY),
            (&self.keys, Type::BYTEA_ARRAY),
            (&self.expected_versions, Type::INT8_ARRAY),
            (&self.expected_leases, Type::BYTEA_ARRAY),
            (&self.versions, Type::INT8_ARRAY),
            (&self.leases, Type::BYTEA_ARRAY),
            (&self.states, Type::INT2_ARRAY),
            (&self.counted, Type::BOOL_ARRAY),
            (&self.claimed_ats, Type::INT8_ARRAY),
            (&self.records, Type::BYTEA_ARRAY),
            (&self.limits, Type::INT8_ARRAY),
            (&self.digests, Type::BYTEA_ARRAY),
            (&self.retentions, Type::INT8_ARRAY),
            (&self.refusals, Type::INT8_ARRAY),
            (quarantine, Type::INT8),
        ]
    }
}

async fn send(
    inner: &Inner,
    lent: &mut Lent,
    entries: &[Entry],
    quarantine: Option<Timestamp>,
    deadline: Instant,
) -> Result<Sent, StoreError> {
    let quarantine_at = match quarantine {
        None => None,
        Some(before) => {
            let rows = lent.query(Intent::Reads, DOING, CLOCK, &[], deadline).await?;
            let now = rows.first().map(|row| rows::time(row, 0)).transpose()?.unwrap_or_else(|| inner.pace.now().at);
            Some((before, now))
        }
    };
    let mut arrays = Arrays::default();
    let mut all = Vec::with_capacity(entries.len());
    for entry in entries {
        let New::Claim(draft) = &entry.swap.new else { continue };
        let written = Written::of(draft, quarantine_at);
        arrays.push(&entry.swap, &written, true)?;
        all.push(written);
    }
    let before = quarantine.map(Timestamp::as_millis);
    // Half of a call's time at most: where the network swallows it, there is time for another copy.
    let deadline = deadline.min(Instant::now() + inner.options.call_timeout / 2);
    let rows = lent.query(Intent::Writes, DOING, CLAIM, &arrays.parameters(&before), deadline).await?;
    Ok(Sent { written: all, rows })
}
