//! The gate: load, ask the core, write under the guard, and again where it lost. Every write of every store goes
//! through here, replies lost on the way included.
//!
//! Rules belong to `core::action`; how a store writes belongs to the store; who waits and what is answered belongs to
//! the middleware. Instants of this process's clock bound waiting only; no rule is judged by them.

mod abandon;
mod conclude;
mod end;
mod permit;
mod renewal;
mod wire;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use counterfoil_core::action::{Refused, Write};
use counterfoil_core::claim::Draft;
use counterfoil_core::{Claim, Decision, LeaseId, Now, Policy, Receipt, Record, State, Timestamp, Why, decide};
use tokio::time::Instant;

use crate::error::{Applied, ErrorKind, StoreError};
use crate::points;
use crate::seam::{Expected, New, RecordStore, Seen, Swap, Swapped};

pub use self::conclude::Conclusion;
pub use self::end::{Ended, Signed};
pub use self::permit::Permit;
pub use self::renewal::Renewal;
pub use self::wire::Wire;

/// How often a call loads again before it gives up as busy: losing needs somebody else to win, so this is generous.
const ROUNDS_MAX: usize = 16;

/// How long one write is repeated where its fate is unknown.
const WRITE_DEADLINE: Duration = Duration::from_secs(5);

/// The pause between two sendings of a write of unknown fate.
const REPEAT_PAUSE: Duration = Duration::from_millis(50);

/// What is said to be left of a run whose claim is not committed yet, so that nobody can see its lease.
pub(crate) const HELD_FOR: Duration = Duration::from_secs(1);

/// The answer to a claim, carried out.
#[derive(Debug)]
pub enum Begun {
    /// Run it: this is the right to.
    Execute(Box<Permit>),
    /// It is done: this is the result.
    Replay {
        /// The result.
        receipt: Receipt,
        /// Live before this instant.
        expires_at: Timestamp,
    },
    /// The key names an action with other parameters.
    Mismatch,
    /// Somebody runs it.
    InProgress {
        /// The rest of their lease.
        remaining: Duration,
    },
    /// Nobody knows whether it happened.
    Unknown {
        /// Since when.
        since: Timestamp,
        /// And why.
        why: Why,
    },
    /// The key was used and its receipt has expired.
    Expired {
        /// Until when it is refused.
        until: Timestamp,
    },
}

/// Every way into a store. Cheap to clone.
#[derive(Clone)]
pub struct Gate {
    store: Arc<dyn RecordStore>,
    renewals: Arc<renewal::Thread>,
}

/// The leases that one call to [`Gate::begin`] has minted, and whether a copy of a claim may still be under way.
#[derive(Default)]
struct Mine {
    leases: Vec<LeaseId>,
    doubtful: bool,
}

/// Whether a record that somebody's open transaction has locked is waited for, as long as the store does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Patience {
    Waits,
    Passes,
}

/// What became of a transition.
enum Changed {
    /// This stands now.
    Written(Option<Arc<Record>>),
    Refused(Refused),
    /// Somebody's open transaction has the record locked, and nothing was written.
    Held,
}

/// What one round of a claim came to: an answer, or what stands now.
type Round = ControlFlow<Begun, Seen>;

impl Gate {
    /// A gate to `store`.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`] where the operating system gives no thread for renewals.
    pub fn new(store: Arc<dyn RecordStore>) -> Result<Self, StoreError> {
        Ok(Self { store, renewals: Arc::new(renewal::Thread::start()?) })
    }

    /// The store behind it.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn RecordStore> {
        &self.store
    }

    /// Decides `claim` on what stands, without writing: the answer, or what was seen where it would run.
    ///
    /// # Errors
    /// [`StoreError`] where the store cannot be read or the record cannot be decoded.
    pub async fn look(&self, claim: &mut Claim) -> Result<ControlFlow<Begun, Seen>, StoreError> {
        let seen = self.store.read(claim.identity()).await?;
        let (decision, _) = decided(claim, &seen);
        Ok(settled(decision, &seen))
    }

    /// Decides `claim` and takes the lease where it is granted: the caller that gets [`Begun::Execute`] is the only
    /// one that may run, until its lease is over.
    ///
    /// Do not drop the future before it is ready: a claim that was written then stands until its lease is over.
    ///
    /// # Errors
    /// [`StoreError`]; nothing runs then. A claim of unknown fate is released in the background.
    pub async fn begin(&self, claim: &mut Claim, policy: &Policy) -> Result<Begun, StoreError> {
        points::pass("gate.begin.before-read");
        let seen = self.store.read(claim.identity()).await?;
        self.begin_on(claim, policy, seen).await
    }

    /// [`Gate::begin`] for a caller that has just [looked](Self::look): what it saw is not read again.
    ///
    /// # Errors
    /// The same.
    pub async fn begin_on(&self, claim: &mut Claim, policy: &Policy, seen: Seen) -> Result<Begun, StoreError> {
        let mut mine = Mine::default();
        let mut begun = self.rounds(claim, policy, seen, &mut mine).await;
        if mine.doubtful {
            let lasting = claim_limit(policy).saturating_add(policy.lease);
            if let Ok(Begun::Execute(permit)) = &mut begun {
                mine.leases.retain(|lease| *lease != permit.lease());
                permit.copies_until(Instant::now() + lasting);
            }
            self.abandon(claim.identity().clone(), mine.leases, lasting);
        }
        begun
    }

    async fn rounds(
        &self,
        claim: &mut Claim,
        policy: &Policy,
        mut seen: Seen,
        mine: &mut Mine,
    ) -> Result<Begun, StoreError> {
        for _ in 0..ROUNDS_MAX {
            match self.round(claim, policy, seen, mine).await? {
                Round::Break(begun) => return Ok(begun),
                Round::Continue(next) => seen = next,
            }
        }
        Err(StoreError::not_applied(ErrorKind::Busy, "the record changed too often while it was claimed: try again"))
    }

    async fn round(
        &self,
        claim: &mut Claim,
        policy: &Policy,
        seen: Seen,
        mine: &mut Mine,
    ) -> Result<Round, StoreError> {
        if let Some(record) = seen.record.as_ref().filter(|record| mine.leases.contains(&record.lease.id)) {
            return self.own(claim, policy, record.clone(), seen.now).await;
        }
        let (decision, write) = decided(claim, &seen);
        let Some(write) = write else { return Ok(settled(decision, &seen)) };
        let swap = self.planned(claim, policy, &seen, write, mine)?;
        let claims = matches!(swap.new, New::Claim(_));
        if claims {
            points::pass("gate.begin.before-claim");
        }
        let mut doubtful = false;
        let sent = self.send(swap, &mut doubtful).await;
        mine.doubtful |= claims && doubtful;
        match sent {
            Ok(Swapped::Won { record: Some(record), now }) if claims => {
                points::pass("gate.begin.claimed");
                self.own(claim, policy, record, now).await
            }
            Ok(Swapped::Won { .. }) => Ok(settled(decision, &seen)),
            Ok(Swapped::Lost { stands, now }) => Ok(Round::Continue(Seen { record: stands, now })),
            Ok(Swapped::TooLate { .. }) => Ok(Round::Continue(self.store.read(claim.identity()).await?)),
            Ok(Swapped::Held { .. }) => Ok(Round::Break(Begun::InProgress { remaining: HELD_FOR })),
            Err(error) if !claims => {
                tracing::warn!(digest = %claim.identity().digest(), %error, "a lapsed run could not be marked");
                Ok(settled(decision, &seen))
            }
            Err(error) => Err(error),
        }
    }

    /// What a decision writes. A claim mints its lease here.
    fn planned(
        &self,
        claim: &Claim,
        policy: &Policy,
        seen: &Seen,
        write: Write,
        mine: &mut Mine,
    ) -> Result<Swap, StoreError> {
        let expected = seen.record.as_deref().map_or(Expected::Absent, Expected::record);
        let (new, not_after) = match write {
            Write::Claim { version, claimed_at, keyed: inherited } => {
                stays(seen.record.as_deref(), claim, policy)?;
                let lease = LeaseId::from_bytes(random()?);
                mine.leases.push(lease);
                let draft = Draft::new(claim, policy, lease, self.store.holder());
                let draft = Draft { version, claimed_at, inherited, ..draft };
                (New::claim(draft), Some(seen.now.at.plus(claim_limit(policy))))
            }
            // It only makes visible what was decided: whoever loses this write decides the same on what stands.
            Write::Put(record) => (New::put(record), None),
            Write::Delete => (New::Delete, None),
        };
        Ok(Swap { identity: claim.identity().clone(), expected, new, not_after, note: None })
    }

    /// A record under our own lease id: won only while it runs and its lease is live. A lapsed one is renewed first;
    /// Unknown never runs.
    async fn own(
        &self,
        claim: &mut Claim,
        policy: &Policy,
        record: Arc<Record>,
        now: Now,
    ) -> Result<Round, StoreError> {
        match record.state {
            State::Running if now.at < record.lease.until => Ok(Round::Break(Begun::Execute(Box::new(Permit::new(
                claim.identity().clone(),
                record,
                policy.clone(),
            ))))),
            State::Running => {
                let mut permit = Permit::new(claim.identity().clone(), record, policy.clone());
                // Rare: in a box, so that it adds nothing to the size of every claim.
                match Box::pin(self.renew(&mut permit)).await? {
                    Ok(()) => Ok(Round::Break(Begun::Execute(Box::new(permit)))),
                    Err(_) => Ok(Round::Continue(self.store.read(claim.identity()).await?)),
                }
            }
            State::Unknown { .. } | State::Done { .. } | State::Spent { .. } => {
                let seen = Seen { record: Some(record), now };
                let (decision, _) = decided(claim, &seen);
                Ok(settled(decision, &seen))
            }
        }
    }

    /// Renews the permit's lease for another span from now. The inner `Err` says that the lease is lost.
    ///
    /// # Errors
    /// [`StoreError`] where the store gave no answer.
    pub async fn renew(&self, permit: &mut Permit) -> Result<Result<(), Refused>, StoreError> {
        match self.renew_or_pass(permit).await? {
            Changed::Written(_) => Ok(Ok(())),
            Changed::Refused(refused) => Ok(Err(refused)),
            Changed::Held => Err(locked()),
        }
    }

    /// [`Gate::renew`] that does not wait for a record that somebody's open transaction has locked: that is the run
    /// itself at work, so its lease counts as alive.
    async fn renew_or_pass(&self, permit: &mut Permit) -> Result<Changed, StoreError> {
        let (lease, span) = (permit.lease(), permit.policy().lease);
        let change = |record: Option<&Record>, now: Timestamp| {
            counterfoil_core::action::renew(record, lease, span, now).map(|record| Some(New::put(record)))
        };
        self.change_by(permit, change, Patience::Passes).await
    }

    /// Applies one transition to the permit's record: on what we know to stand, then on what we lost to.
    async fn change(
        &self,
        permit: &mut Permit,
        transition: impl Fn(Option<&Record>, Timestamp) -> Result<Option<New>, Refused>,
    ) -> Result<Result<Option<Arc<Record>>, Refused>, StoreError> {
        match self.change_by(permit, transition, Patience::Waits).await? {
            Changed::Written(record) => Ok(Ok(record)),
            Changed::Refused(refused) => Ok(Err(refused)),
            Changed::Held => Err(locked()),
        }
    }

    async fn change_by(
        &self,
        permit: &mut Permit,
        transition: impl Fn(Option<&Record>, Timestamp) -> Result<Option<New>, Refused>,
        patience: Patience,
    ) -> Result<Changed, StoreError> {
        let mut stands = Some(permit.record().clone());
        let mut remembered = true;
        for _ in 0..ROUNDS_MAX {
            let new = match transition(stands.as_deref(), self.store.now().at) {
                Ok(Some(new)) => new,
                // What we remember may be older than what stands: the store has the last word.
                Ok(None) | Err(_) if remembered => {
                    stands = self.store.read(permit.identity()).await?.record;
                    remembered = false;
                    continue;
                }
                Ok(None) => return Ok(Changed::Written(stands)),
                Err(refused) => return Ok(Changed::Refused(refused)),
            };
            remembered = false;
            let deletes = new == New::Delete;
            let puts = if let New::Put(record) = &new { Some(record.clone()) } else { None };
            let expected = stands.as_deref().map_or(Expected::Absent, Expected::record);
            let identity = permit.identity().clone();
            let swap = Swap { identity, expected, new, not_after: None, note: None };
            let mut doubtful = false;
            match self.send_by(swap, &mut doubtful, patience).await? {
                Swapped::Won { record, .. } => {
                    if let Some(record) = &record {
                        permit.moved(record.clone());
                    }
                    return Ok(Changed::Written(record));
                }
                // The first copy of our own write was applied, and its reply was lost.
                Swapped::Lost { stands: None, .. } if deletes && doubtful => return Ok(Changed::Written(None)),
                Swapped::Lost { stands: Some(ours), .. } if doubtful && puts.as_ref() == Some(&ours) => {
                    permit.moved(ours.clone());
                    return Ok(Changed::Written(Some(ours)));
                }
                Swapped::Lost { stands: other, .. } => stands = other,
                Swapped::Held { .. } => return Ok(Changed::Held),
                Swapped::TooLate { .. } => stands = self.store.read(permit.identity()).await?.record,
            }
        }
        Err(StoreError::not_applied(ErrorKind::Busy, "the record changed too often while it was written: try again"))
    }

    /// Sends one write until its fate is known or the deadline has passed: always the same write.
    /// `doubtful` becomes true where a copy of it may be under way.
    async fn send(&self, swap: Swap, doubtful: &mut bool) -> Result<Swapped, StoreError> {
        self.send_by(swap, doubtful, Patience::Waits).await
    }

    async fn send_by(&self, swap: Swap, doubtful: &mut bool, patience: Patience) -> Result<Swapped, StoreError> {
        let until = Instant::now() + WRITE_DEADLINE;
        loop {
            let sent = match patience {
                Patience::Waits => self.store.swap(swap.clone()),
                Patience::Passes => self.store.try_swap(swap.clone()),
            };
            let error = match sent.await {
                Err(error) if error.applied == Applied::Unknown => error,
                answer => return answer,
            };
            *doubtful = true;
            if Instant::now() >= until {
                return Err(error);
            }
            tracing::warn!(digest = %swap.identity.digest(), %error, "a write of unknown fate is repeated");
            tokio::time::sleep(REPEAT_PAUSE).await;
        }
    }
}

/// Refuses a claim under another effect than child keys where they have been used.
pub(crate) fn stays(stands: Option<&Record>, claim: &Claim, policy: &Policy) -> Result<(), StoreError> {
    if !counterfoil_core::action::leaves_upstream(stands, policy.effect) {
        return Ok(());
    }
    let digest = claim.identity().digest();
    let detail = format!(
        "record {digest} has used child keys, and its operation is not keyed-upstream any more: set its effect back, or \
         give what has another effect another name"
    );
    Err(StoreError::not_applied(ErrorKind::Misuse, detail))
}

fn locked() -> StoreError {
    StoreError::not_applied(ErrorKind::Busy, "an open transaction holds the record: try again")
}

/// Decides on what was seen, learning the record's rule where that is another. One record has one rule, so one lesson
/// is enough.
fn decided(claim: &mut Claim, seen: &Seen) -> (Decision, Option<Write>) {
    match decide(seen.record.as_deref(), claim, seen.now) {
        (Decision::NeedsFingerprint(rule), _) => {
            claim.learn(&rule);
            decide(seen.record.as_deref(), claim, seen.now)
        }
        decided => decided,
    }
}

fn settled(decision: Decision, seen: &Seen) -> Round {
    match answer(decision, seen) {
        Some(begun) => Round::Break(begun),
        None => Round::Continue(seen.clone()),
    }
}

/// The decision as an answer; `None` where it would run (or its fingerprint could not be learned, which never runs
/// either: the caller decides again).
fn answer(decision: Decision, seen: &Seen) -> Option<Begun> {
    match decision {
        Decision::Execute | Decision::NeedsFingerprint(_) => None,
        Decision::Replay { receipt, expires_at } => Some(Begun::Replay { receipt, expires_at }),
        Decision::Mismatch => Some(Begun::Mismatch),
        Decision::InProgress { until } => Some(Begun::InProgress { remaining: until.since(seen.now.at) }),
        Decision::Unknown { since, why } => Some(Begun::Unknown { since, why }),
        Decision::Expired { until } => Some(Begun::Expired { until }),
    }
}

/// How long after its reading a claim may still be applied: shorter than one lease, so that a delayed copy of a claim
/// that was given up cannot outlive what was promised about it.
fn claim_limit(policy: &Policy) -> Duration {
    (policy.lease / 2).min(WRITE_DEADLINE)
}

/// Bytes of the operating system's randomness.
pub(crate) fn random() -> Result<[u8; 16], StoreError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| {
        StoreError::not_applied(ErrorKind::Unavailable, format!("the operating system gives no randomness: {error}"))
    })?;
    Ok(bytes)
}
