//! The transitions of a record that exists: renew, complete, release, doubt, resolve, end of a dead owner's lease,
//! sweep. None creates a record, and each is guarded by the lease id. The claim is `action::decide`.

use std::time::Duration;

use crate::action::Write;
use crate::policy::{Effect, Expiry};
use crate::receipt::Receipt;
use crate::record::{Author, Holder, Keyed, Lease, LeaseId, Record, Standing, State, Why};
use crate::time::{Now, Timestamp};

/// Why a late call changed nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Refused {
    /// No record stands.
    Absent,
    /// The record belongs to another lease.
    OtherLease,
    /// The record changed since it was looked at: look again.
    Changed,
    /// It is done already.
    Done,
    /// An operator has settled it: whoever completes it now contradicts that, or is too late to matter.
    SettledByOperator,
    /// Its receipt has expired.
    Expired,
    /// Its outcome is unknown, and this call cannot settle that.
    Unknown,
    /// The owner renewed within one lease and may still run: stop it, wait until this instant, or say that it is
    /// stopped.
    OwnerAlive {
        /// When the lease would be over.
        until: Timestamp,
    },
    /// "Did not happen" needs the confirmation that the owner is stopped or fenced.
    OwnerNotStopped,
    /// Something that the owner sent before may still arrive: wait until this instant.
    MayStillArrive {
        /// When nothing can.
        until: Timestamp,
    },
    /// The upstream may have forgotten the child key, so it is not sent again: say that it happened, or that it is to be
    /// sent anew.
    WindowClosed,
    /// It runs without child keys, so it cannot be sent anew with another one.
    NotKeyed,
}

impl Refused {
    /// The word that logs, metrics and the history show.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Absent => "absent",
            Self::OtherLease => "other-lease",
            Self::Changed => "changed",
            Self::Done => "done",
            Self::SettledByOperator => "settled-by-operator",
            Self::Expired => "expired",
            Self::Unknown => "unknown",
            Self::OwnerAlive { .. } => "owner-alive",
            Self::OwnerNotStopped => "owner-not-stopped",
            Self::MayStillArrive { .. } => "may-still-arrive",
            Self::WindowClosed => "window-closed",
            Self::NotKeyed => "not-keyed",
        }
    }
}

pub(super) fn guarded(record: Option<&Record>, lease: LeaseId) -> Result<&Record, Refused> {
    let record = record.ok_or(Refused::Absent)?;
    if record.lease.id == lease { Ok(record) } else { Err(Refused::OtherLease) }
}

/// The same record, one version on, in another state.
pub(super) fn moved(record: &Record, lease: Lease, state: State) -> Record {
    Record { version: record.version.saturating_add(1), lease, state, ..record.clone() }
}

/// Renews a lease for `span` from now. It leads back from Unknown only where the lease lapsed.
///
/// # Errors
/// [`Refused`] where the lease is not this one's any more or the run has an end.
pub fn renew(record: Option<&Record>, lease: LeaseId, span: Duration, now: Timestamp) -> Result<Record, Refused> {
    let record = guarded(record, lease)?;
    match &record.state {
        State::Running | State::Unknown { why: Why::Lapsed, .. } => {
            let lease = Lease { renewed_at: now, span, until: now.plus(span), ..record.lease.clone() };
            Ok(moved(record, lease, State::Running))
        }
        State::Unknown {
            why: Why::Doubted | Why::AnsweredWithoutSettle | Why::WindowClosed | Why::Quarantined,
            ..
        } => Err(Refused::Unknown),
        State::Done { author: Author::Owner, .. } => Err(Refused::Done),
        State::Done { author: Author::Operator, .. } => Err(Refused::SettledByOperator),
        State::Spent { .. } => Err(Refused::Expired),
    }
}

/// What became of a completion.
#[derive(Clone, PartialEq, Eq, Debug)]
#[expect(clippy::large_enum_variant, reason = "made once for a completion and moved into the store's write")]
pub enum Completed {
    /// Write this.
    Write(Record),
    /// The same lease has completed it: a repeat of our own.
    Already,
}

/// Writes the result of a run. It settles Unknown as well, however late it comes.
///
/// # Errors
/// [`Refused`] where the lease is not this one's any more, or an operator has settled the record.
pub fn complete(
    record: Option<&Record>,
    lease: LeaseId,
    receipt: Receipt,
    retention: Duration,
    expiry: Expiry,
    now: Timestamp,
) -> Result<Completed, Refused> {
    let record = guarded(record, lease)?;
    match &record.state {
        State::Running | State::Unknown { .. } => {
            Ok(Completed::Write(done(record, receipt, Author::Owner, retention, expiry, now)))
        }
        State::Done { author: Author::Owner, .. } => Ok(Completed::Already),
        State::Done { author: Author::Operator, .. } => Err(Refused::SettledByOperator),
        State::Spent { .. } => Err(Refused::Expired),
    }
}

fn done(
    record: &Record,
    receipt: Receipt,
    author: Author,
    retention: Duration,
    expiry: Expiry,
    now: Timestamp,
) -> Record {
    let expires_at = now.plus(retention);
    let refuse_until = match expiry {
        Expiry::NewAction => None,
        Expiry::Refuse(span) => Some(expires_at.plus(span)),
    };
    let state = State::Done { receipt, author, completed_at: now, expires_at, refuse_until };
    moved(record, record.lease.clone(), state)
}

/// Gives the key back, because the effect certainly did not happen.
///
/// An action that runs by child keys keeps its generation in a row of its own. Where an earlier run of that generation is in
/// doubt this one knows of itself alone: only its lease ends, or the doubt is written once the upstream may have forgotten.
///
/// # Errors
/// [`Refused`] where the lease is not this one's any more or the record is not Running.
pub fn release(record: Option<&Record>, lease: LeaseId, now: Timestamp) -> Result<Write, Refused> {
    let record = guarded(record, lease)?;
    match &record.state {
        State::Running => Ok(match record.keyed {
            None => Write::Delete,
            Some(keyed) if !keyed.doubt => Write::Put(spent(record, keyed, Timestamp::MIN)),
            Some(_) if record.closed_at(now).is_some() => {
                let state = State::Unknown { since: now, why: Why::WindowClosed };
                Write::Put(moved(record, record.lease.clone(), state))
            }
            Some(_) => Write::Put(ended(record, now)),
        }),
        State::Unknown { .. } => Err(Refused::Unknown),
        State::Done { author: Author::Owner, .. } => Err(Refused::Done),
        State::Done { author: Author::Operator, .. } => Err(Refused::SettledByOperator),
        State::Spent { .. } => Err(Refused::Expired),
    }
}

/// Says that nobody knows whether the effect happened. Where a take-over heals that, only the lease ends, so that a
/// late completion still wins until somebody takes over. `None`: the record says so already.
///
/// # Errors
/// [`Refused`] where the lease is not this one's any more or the run has an end.
pub fn doubt(record: Option<&Record>, lease: LeaseId, why: Why, now: Timestamp) -> Result<Option<Record>, Refused> {
    let record = guarded(record, lease)?;
    match (&record.state, record.effect, why) {
        (State::Running, Effect::Other, _)
        | (State::Running, Effect::Coupled, Why::AnsweredWithoutSettle)
        | (State::Running, Effect::KeyedUpstream, Why::AnsweredWithoutSettle | Why::WindowClosed) => {
            Ok(Some(moved(record, record.lease.clone(), State::Unknown { since: now, why })))
        }
        (State::Running, Effect::Coupled | Effect::KeyedUpstream, _)
            if record.lease.until <= now && record.keyed.is_none_or(|keyed| keyed.doubt) =>
        {
            Ok(None)
        }
        (State::Running, Effect::Coupled | Effect::KeyedUpstream, _) => {
            let keyed = record.keyed.map(|keyed| Keyed { doubt: true, ..keyed });
            Ok(Some(Record { keyed, ..ended(record, now) }))
        }
        // A lapse says less than its owner knows, and a stray renewal must not lead back from the owner's own doubt.
        (State::Unknown { since, why: Why::Lapsed }, _, why) if why != Why::Lapsed => {
            Ok(Some(moved(record, record.lease.clone(), State::Unknown { since: *since, why })))
        }
        (State::Unknown { .. }, _, _) => Ok(None),
        (State::Done { author: Author::Owner, .. }, _, _) => Err(Refused::Done),
        (State::Done { author: Author::Operator, .. }, _, _) => Err(Refused::SettledByOperator),
        (State::Spent { .. }, _, _) => Err(Refused::Expired),
    }
}

/// The record with its lease over, at `now` at the latest.
pub(super) fn ended(record: &Record, now: Timestamp) -> Record {
    let lease = Lease { until: record.lease.until.min(now), ..record.lease.clone() };
    moved(record, lease, State::Running)
}

/// The row that stands for an absent action that runs by child keys.
fn spent(record: &Record, keyed: Keyed, until: Timestamp) -> Record {
    Record { keyed: Some(keyed), ..moved(record, record.lease.clone(), State::Spent { until }) }
}

/// What an operator found out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It happened, with this result.
    Happened {
        /// The result that later claims replay.
        receipt: Receipt,
        /// How long it is promised, from now.
        retention: Duration,
        /// What answers after that.
        expiry: Expiry,
    },
    /// It did not happen and no longer can. With child keys, the next run sends the same one, as long as the upstream
    /// remembers it.
    DidNotHappen,
    /// As that, but the next run sends another child key: of use where the upstream keeps answering the old one, or may
    /// have forgotten it.
    SendAnew,
}

/// What an operator confirms about the owner.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Confirmation {
    /// Nothing.
    None,
    /// The owner and its workers are stopped or fenced.
    OwnerStopped,
}

/// Settles a record in doubt as it is at `now`, a lapsed run included.
///
/// # Errors
/// [`Refused`] where the record changed since the operator saw `version` and `lease`, is not in doubt, where its
/// owner may still run, or where what it sent may still arrive.
pub fn resolve(
    record: Option<&Record>,
    version: u64,
    lease: LeaseId,
    verdict: Verdict,
    confirmed: Confirmation,
    now: Now,
) -> Result<Write, Refused> {
    let record = record.ok_or(Refused::Absent)?;
    if record.version != version || record.lease.id != lease {
        return Err(Refused::Changed);
    }
    // Under quarantine the run in question is one that this store has forgotten: only the operator can know of it.
    let forgotten = matches!(record.state, State::Unknown { why: Why::Quarantined, .. });
    let stopped = confirmed == Confirmation::OwnerStopped || (record.lease.is_ended() && !forgotten);
    match record.standing(now) {
        Standing::Absent | Standing::Expired { .. } => return Err(Refused::Expired),
        Standing::Done { .. } => return Err(Refused::Done),
        Standing::Running { .. } | Standing::Lapsed | Standing::Unknown { .. } => {}
    }
    let alive_until = record.lease.renewed_at.plus(record.lease.span);
    if !stopped && now.at < alive_until {
        return Err(Refused::OwnerAlive { until: alive_until });
    }
    match verdict {
        Verdict::Happened { receipt, retention, expiry } => {
            Ok(Write::Put(done(record, receipt, Author::Operator, retention, expiry, now.at)))
        }
        Verdict::DidNotHappen | Verdict::SendAnew if !stopped => Err(Refused::OwnerNotStopped),
        Verdict::DidNotHappen | Verdict::SendAnew if now.at < record.lease.attempt_until => {
            Err(Refused::MayStillArrive { until: record.lease.attempt_until })
        }
        Verdict::DidNotHappen => match record.keyed {
            None => Ok(Write::Delete),
            Some(_) if record.closed_at(now.at).is_some() => Err(Refused::WindowClosed),
            Some(keyed) => Ok(Write::Put(spent(record, Keyed { doubt: true, ..keyed }, Timestamp::MIN))),
        },
        Verdict::SendAnew => match record.keyed {
            None => Err(Refused::NotKeyed),
            Some(keyed) => Ok(Write::Put(spent(record, keyed.next(), Timestamp::MIN))),
        },
    }
}

/// Ends the lease of a process that is known to be gone, at once. `None`: the record is not that process's, or has
/// an end.
#[must_use]
pub fn end_lease(record: &Record, gone: Holder, now: Timestamp) -> Option<Record> {
    if record.lease.holder != Some(gone) {
        return None;
    }
    match &record.state {
        State::Running | State::Unknown { .. } => {
            let until = record.lease.until.min(now);
            let lease = Lease { holder: None, span: Duration::ZERO, until, ..record.lease.clone() };
            Some(moved(record, lease, record.state.clone()))
        }
        State::Done { .. } | State::Spent { .. } => None,
    }
}

/// What a sweep makes of a record: expired Done becomes absent or Spent, Spent past its time absent. `None`: it is
/// left alone. A sweep never changes a decision, and never forgets which child key comes next.
#[must_use]
pub fn sweep(record: &Record, now: Now) -> Option<Write> {
    match (record.standing(now), &record.state, record.keyed) {
        (Standing::Absent, State::Done { .. }, Some(keyed)) => {
            Some(Write::Put(spent(record, keyed.next(), Timestamp::MIN)))
        }
        (Standing::Expired { until }, State::Done { .. }, Some(keyed)) => {
            Some(Write::Put(spent(record, keyed.next(), until)))
        }
        (Standing::Absent, State::Done { .. } | State::Spent { .. }, None) => Some(Write::Delete),
        (Standing::Expired { until }, State::Done { .. }, None) => {
            Some(Write::Put(moved(record, record.lease.clone(), State::Spent { until })))
        }
        (Standing::Expired { .. }, State::Spent { .. }, _)
        | (Standing::Absent, State::Spent { .. }, Some(_))
        | (Standing::Done { .. } | Standing::Running { .. } | Standing::Lapsed | Standing::Unknown { .. }, _, _)
        | (Standing::Absent | Standing::Expired { .. }, State::Running | State::Unknown { .. }, _) => None,
    }
}
