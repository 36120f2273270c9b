//! Claims: each finds its identity free, and is written with the server's time.
//!
//! What does not belong here: every other write (`put`), and when an action may run (core).

use std::sync::Arc;
use std::time::Duration;

use counterfoil_core::claim::Draft;
use counterfoil_core::{Now, Record, State, Timestamp};
use mysql_async::Value;
use tokio::time::Instant;

use super::Inner;
use super::fault::{Failed, Intent};
use super::list::clock;
use super::pool::Lent;
use super::rows::{self, Columns, ZERO, get};
use crate::error::{ErrorKind, StoreError};
use crate::seam::{Expected, Swap, Swapped};

pub(super) const CLAIM: &str = "CALL counterfoil_claim(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";

const DOING: &str = "a claim could not be written";

/// How often a claim looks again while somebody's open transaction is at its identity, before that is its answer.
const LOOKS_MAX: u32 = 5;

/// The pause before the first of them; it doubles.
const FIRST_PAUSE: Duration = Duration::from_millis(2);

/// How often a claim is sent again because the quarantine was changed meanwhile.
const QUARANTINES_MAX: usize = 4;

/// The pause before a look, counted from 0, for what another instance does is over in a moment.
pub(super) async fn pause(look: u32) {
    tokio::time::sleep(FIRST_PAUSE.saturating_mul(1 << look.min(LOOKS_MAX))).await;
}

/// Claims, and looks a few times more where somebody's transaction is at the identity.
pub(super) async fn swap(inner: &Inner, swap: &Swap, draft: &Arc<Draft>) -> Result<Swapped, StoreError> {
    let mut look = 0;
    loop {
        let failed = match decided(inner, swap, draft).await {
            Ok(swapped) => return Ok(swapped),
            Err(failed) => failed,
        };
        match failed {
            Failed::Locked if look >= LOOKS_MAX => return Ok(Swapped::Held { now: inner.pace.now() }),
            Failed::Deadlock if look >= LOOKS_MAX => return Err(failed.told(DOING)),
            Failed::Locked | Failed::Deadlock => pause(look).await,
            Failed::Other(error) => return Err(error),
        }
        look += 1;
    }
}

/// One claim under the quarantine that stands.
async fn decided(inner: &Inner, swap: &Swap, draft: &Arc<Draft>) -> Result<Swapped, Failed> {
    let deadline = Instant::now() + inner.options.call_timeout;
    let mut lent = inner.lend(deadline).await.map_err(Failed::Other)?;
    for _ in 0..QUARANTINES_MAX {
        match send(inner, &mut lent, swap, draft, deadline).await? {
            Outcome::Answer(swapped) => return Ok(swapped),
            Outcome::Quarantine(before) => inner.set_quarantine_seen(before),
        }
    }
    let changed = "the quarantine is being changed: try again";
    Err(Failed::Other(StoreError::not_applied(ErrorKind::Busy, changed)))
}

pub(super) enum Outcome {
    Answer(Swapped),
    Quarantine(Option<Timestamp>),
}

async fn send(
    inner: &Inner,
    lent: &mut Lent,
    swap: &Swap,
    draft: &Arc<Draft>,
    deadline: Instant,
) -> Result<Outcome, Failed> {
    let quarantine = inner.quarantine();
    let written = match quarantine {
        None => Written::Counted(draft.clone()),
        Some(before) => {
            let now = clock(inner, lent, deadline).await.map_err(Failed::Other)?;
            Written::of(draft, before, now)
        }
    };
    let values = values(inner, swap, &written, quarantine, Whose::Own).map_err(Failed::Other)?;
    // Half of a call's time at most: where the network swallows it, there is time for another copy.
    let deadline = deadline.min(Instant::now() + inner.options.call_timeout / 2);
    let rows = lent.send(Intent::Writes, DOING, CLAIM, values, deadline).await?.rows;
    // The call was answered, and what it wrote is not known.
    let unknown = || StoreError::unknown(ErrorKind::Unknown, format!("{DOING}: the server answered no row"));
    let row = rows.first().ok_or_else(unknown).map_err(Failed::Other)?;
    outcome(inner, swap, written, row).map_err(Failed::Other)
}

/// What became of one claim.
pub(super) fn outcome(
    inner: &Inner,
    swap: &Swap,
    written: Written,
    row: &mysql_async::Row,
) -> Result<Outcome, StoreError> {
    let at = rows::time(row, 1)?;
    inner.pace.learn(at);
    let now = Now::at(at);
    Ok(match get::<String>(row, 0)?.as_str() {
        "won" => Outcome::Answer(Swapped::Won { record: Some(written.at(at)), now }),
        "late" => Outcome::Answer(Swapped::TooLate { now }),
        "quarantined" => Outcome::Quarantine(get::<Option<i64>>(row, 2)?.map(Timestamp::from_millis)),
        "volatile" => return Err(super::volatile()),
        _ => {
            let stands = rows::standing(row, 3).map_err(|error| rows::named(error, &swap.identity))?.map(Arc::new);
            Outcome::Answer(Swapped::Lost { stands, now })
        }
    })
}

/// What a claim writes: times that count from the write, or, under a quarantine, what was decided just before it.
pub(super) enum Written {
    Counted(Arc<Draft>),
    Decided(Arc<Record>),
}

impl Written {
    /// Decided under the quarantine `before`, at the server's time `now`.
    pub(super) fn of(draft: &Arc<Draft>, before: Timestamp, now: Timestamp) -> Self {
        let record = draft.at(now, Some(before));
        // A draft that may run now may run a moment later too.
        if record.state == State::Running { Self::Counted(draft.clone()) } else { Self::Decided(Arc::new(record)) }
    }

    fn at(self, now: Timestamp) -> Arc<Record> {
        match self {
            Self::Counted(draft) => Arc::new(draft.at(now, None)),
            Self::Decided(record) => record,
        }
    }
}

/// Whose transaction a write is in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Whose {
    /// One of its own.
    Own,
    /// The caller's.
    Callers,
}

pub(super) fn values(
    inner: &Inner,
    swap: &Swap,
    written: &Written,
    quarantine: Option<Timestamp>,
    whose: Whose,
) -> Result<Vec<Value>, StoreError> {
    let (columns, counted, claimed_at) = match written {
        Written::Counted(draft) => {
            (Columns::of(&draft.at(ZERO, None))?, true, draft.claimed_at.map(Timestamp::as_millis))
        }
        Written::Decided(record) => (Columns::of(record)?, false, Some(record.claimed_at.as_millis())),
    };
    let mut values = rows::parts(&swap.identity).to_vec();
    values.extend(expected(swap.expected)?);
    inner.must_fit(&columns.bytes)?;
    values.extend([
        columns.version.into(),
        Value::Bytes(columns.lease),
        columns.state.into(),
        counted.into(),
        claimed_at.into(),
        Value::Bytes(columns.bytes),
        swap.not_after.map(Timestamp::as_millis).into(),
        quarantine.map(Timestamp::as_millis).into(),
        inner.no_wait_s.into(),
        (whose == Whose::Callers).into(),
    ]);
    Ok(values)
}

/// What must stand, as two parameters.
pub(super) fn expected(expected: Expected) -> Result<[Value; 2], StoreError> {
    Ok(match expected {
        Expected::Absent => [Value::NULL, Value::NULL],
        Expected::Record { version, lease } => [rows::version(version)?.into(), rows::bytes(lease.as_bytes())],
    })
}
