//! Long histories of one identity, drawn by chance: claims, late calls of every lease ever granted, operators, dead
//! processes, sweeps and stepped clocks, beside a model that knows only what was promised.

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;

use crate::action::tests::catalogue::{DIFFERENT, ELSEWHERE, HOME, SAME, claim, receipt};
use crate::action::{
    Completed, Confirmation, Decision, Refused, Verdict, Write, complete, decide, doubt, end_lease, leaves_upstream,
    release, renew, resolve, sweep,
};
use crate::claim::{Claim, Draft};
use crate::policy::{Effect, Expiry, Policy};
use crate::record::tests::{EFFECTS, at};
use crate::record::{Author, LeaseId, Record, Standing, State, Why};
use crate::time::{Now, Timestamp};

#[derive(Clone, Debug)]
enum Event {
    Advance(u64),
    /// Whether the clock that judges retention stands still from here on.
    Freeze(bool),
    Claim {
        same: bool,
        effect: Effect,
        quarantine: bool,
    },
    Renew(usize),
    Complete(usize),
    Release(usize),
    Doubt(usize, Why),
    Resolve {
        happened: bool,
        stopped: bool,
        stale: bool,
    },
    EndLease {
        home: bool,
    },
    Sweep,
}

fn events() -> impl Strategy<Value = Event> {
    let effect = prop::sample::select(EFFECTS.to_vec());
    let why = prop::sample::select(vec![Why::Doubted, Why::AnsweredWithoutSettle, Why::WindowClosed]);
    let which = 0..8_usize;
    prop_oneof![
        4 => (1..70_u64).prop_map(Event::Advance),
        1 => any::<bool>().prop_map(Event::Freeze),
        5 => (prop::bool::weighted(0.8), effect, prop::bool::weighted(0.1))
            .prop_map(|(same, effect, quarantine)| Event::Claim { same, effect, quarantine }),
        2 => which.clone().prop_map(Event::Renew),
        2 => which.clone().prop_map(Event::Complete),
        1 => which.clone().prop_map(Event::Release),
        2 => (which, why).prop_map(|(which, why)| Event::Doubt(which, why)),
        2 => (any::<bool>(), any::<bool>(), prop::bool::weighted(0.2))
            .prop_map(|(happened, stopped, stale)| Event::Resolve { happened, stopped, stale }),
        1 => any::<bool>().prop_map(|home| Event::EndLease { home }),
        2 => Just(Event::Sweep),
    ]
}

/// What stands between the world and the next run, as the promises say it.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Barrier {
    /// Nothing: it never ran, was given back, or an operator said so.
    Open,
    /// A run; where `heals`, until the time, after which the next may take over.
    Run { heals: bool, until: Timestamp },
    /// Doubt.
    Unknown,
    /// A receipt and any refusal after it, until the time.
    Receipt { until: Timestamp },
}

struct World {
    now: i64,
    frozen: Option<i64>,
    record: Option<Record>,
    /// Every lease ever granted, newest last.
    leases: Vec<LeaseId>,
    barrier: Barrier,
    policy: Policy,
    same: Claim,
    different: Claim,
}

impl World {
    fn new(expiry: Expiry) -> Self {
        // A window that never closes here: `upstream` has those that do.
        let window = Duration::from_hours(24 * 365);
        let policy = Policy { retention: Duration::from_secs(60), expiry, window, ..Policy::default() };
        Self {
            now: 1_000,
            frozen: None,
            record: None,
            leases: Vec::new(),
            barrier: Barrier::Open,
            policy,
            same: claim("json", SAME),
            different: claim("json", DIFFERENT),
        }
    }

    fn clock(&self) -> Now {
        Now { at: at(self.now), expiry_at: at(self.frozen.unwrap_or(self.now)) }
    }

    /// One of the last granted leases; the newest is 0.
    fn lease(&self, which: usize) -> LeaseId {
        let newest_first = self.leases.iter().rev().nth(which).or(self.leases.first());
        newest_first.copied().unwrap_or(LeaseId::from_bytes([0xff; 16]))
    }

    fn step(&mut self, event: &Event) -> TestCaseResult {
        let before = self.record.clone();
        match event {
            Event::Advance(seconds) => self.now += i64::try_from(*seconds).unwrap(),
            Event::Freeze(freeze) => self.frozen = freeze.then_some(self.frozen.unwrap_or(self.now)),
            Event::Claim { same, effect, quarantine } => self.claim(*same, *effect, *quarantine)?,
            Event::Renew(which) => self.renew(self.lease(*which))?,
            Event::Complete(which) => self.complete(self.lease(*which))?,
            Event::Release(which) => self.release(self.lease(*which))?,
            Event::Doubt(which, why) => self.doubt(self.lease(*which), *why)?,
            Event::Resolve { happened, stopped, stale } => self.resolve(*happened, *stopped, *stale)?,
            Event::EndLease { home } => self.end_lease(*home),
            Event::Sweep => self.sweep()?,
        }
        self.invariants(before.as_ref(), event)
    }

    fn invariants(&self, before: Option<&Record>, event: &Event) -> TestCaseResult {
        match (before, &self.record) {
            (Some(before), Some(after)) if before != after => {
                prop_assert!(after.version > before.version, "the version rises with every write");
                if before.lease.id != after.lease.id {
                    prop_assert!(matches!(event, Event::Claim { .. }), "only a claim gives a lease: {:?}", event);
                }
            }
            (None, Some(after)) => {
                prop_assert!(matches!(event, Event::Claim { .. }), "only a claim makes a record: {:?}", event);
                prop_assert_eq!(after.version, 1);
            }
            (_, None) | (Some(_), Some(_)) => {}
        }
        let doubtful = before.is_some_and(|before| matches!(before.standing(self.clock()), Standing::Unknown { .. }));
        if doubtful && !matches!(self.record.as_ref().map(|record| &record.state), Some(State::Unknown { .. })) {
            let still = self.record.as_ref().map(|record| record.standing(self.clock()).as_str());
            let settled =
                matches!(event, Event::Complete(_) | Event::Renew(_) | Event::Resolve { .. } | Event::Release(_));
            prop_assert!(settled || still == Some("unknown"), "unknown ended by {:?}", event);
            let marked = before.is_some_and(|before| matches!(before.state, State::Unknown { .. }));
            prop_assert!(!(marked && matches!(event, Event::Release(_))), "unknown was released");
        }
        if self.frozen.is_some() {
            let settled = before.is_some_and(|b| matches!(b.state, State::Done { .. } | State::Spent { .. }));
            let fell_due = before.and_then(Record::sweep_at).is_some_and(|due| due <= self.clock().expiry_at);
            let spent = before
                .is_some_and(|before| before.keyed.is_some() && before.standing(self.clock()) == Standing::Absent);
            prop_assert!(
                !settled || fell_due || spent || before == self.record.as_ref(),
                "expired on a clock in doubt"
            );
        }
        Ok(())
    }

    fn claim(&mut self, same: bool, effect: Effect, quarantine: bool) -> TestCaseResult {
        let (now, claim) = (self.clock(), if same { self.same.clone() } else { self.different.clone() });
        let free = match self.barrier {
            Barrier::Open => true,
            Barrier::Run { heals, until } => heals && until <= now.at,
            Barrier::Unknown => false,
            Barrier::Receipt { until } => until <= now.expiry_at,
        };
        let (decision, write) = decide(self.record.as_ref(), &claim, now);
        if decision == Decision::Execute && leaves_upstream(self.record.as_ref(), effect) {
            return Ok(());
        }
        match (decision, write) {
            (Decision::Execute, Some(Write::Claim { version, claimed_at, keyed: inherited })) => {
                prop_assert!(free, "a second effect behind {:?}", self.barrier);
                let lease = LeaseId::from_bytes(u128::try_from(self.leases.len()).unwrap().to_be_bytes());
                let policy = Policy { effect, ..self.policy.clone() };
                let draft = Draft { version, claimed_at, inherited, ..Draft::new(&claim, &policy, lease, Some(HOME)) };
                let record = draft.at(now.at, quarantine.then_some(now.at));
                self.leases.push(lease);
                self.barrier = match record.state {
                    State::Running => Barrier::Run { heals: effect != Effect::Other, until: record.lease.until },
                    State::Unknown { .. } => Barrier::Unknown,
                    State::Done { .. } | State::Spent { .. } => panic!("a draft has no end"),
                };
                self.record = Some(record);
            }
            (Decision::Execute, other) => prop_assert!(false, "executes with {:?}", other),
            (Decision::Mismatch, None) => prop_assert!(!free || self.barrier != Barrier::Open),
            (Decision::Unknown { .. }, Some(Write::Put(record))) => self.record = Some(record),
            (Decision::Replay { .. } | Decision::InProgress { .. } | Decision::Expired { .. }, None)
            | (Decision::Unknown { .. }, None) => prop_assert!(!free, "refused behind {:?}", self.barrier),
            (other, write) => prop_assert!(false, "{:?} with {:?}", other, write),
        }
        Ok(())
    }

    /// A call of `lease` wrote: it must be the record's own.
    fn own(&self, lease: LeaseId) -> TestCaseResult {
        prop_assert_eq!(self.record.as_ref().map(|record| record.lease.id), Some(lease), "a stale lease wrote");
        prop_assert_eq!(self.leases.last(), Some(&lease), "a lease came back");
        Ok(())
    }

    fn renew(&mut self, lease: LeaseId) -> TestCaseResult {
        let Ok(record) = renew(self.record.as_ref(), lease, self.policy.lease, at(self.now)) else { return Ok(()) };
        self.own(lease)?;
        prop_assert!(matches!(self.barrier, Barrier::Run { .. }), "renewed behind {:?}", self.barrier);
        self.barrier = Barrier::Run { heals: record.effect != Effect::Other, until: record.lease.until };
        self.record = Some(record);
        Ok(())
    }

    fn receipt_until(&self) -> Timestamp {
        let expires_at = at(self.now).plus(self.policy.retention);
        match self.policy.expiry {
            Expiry::NewAction => expires_at,
            Expiry::Refuse(span) => expires_at.plus(span),
        }
    }

    fn complete(&mut self, lease: LeaseId) -> TestCaseResult {
        let Policy { retention, expiry, .. } = self.policy;
        match complete(self.record.as_ref(), lease, receipt(), retention, expiry, at(self.now)) {
            Ok(Completed::Write(record)) => {
                self.own(lease)?;
                self.barrier = Barrier::Receipt { until: self.receipt_until() };
                self.record = Some(record);
            }
            Ok(Completed::Already) => self.own(lease)?,
            Err(Refused::SettledByOperator) => {
                let by_operator = matches!(
                    self.record.as_ref().map(|record| &record.state),
                    Some(State::Done { author: Author::Operator, .. })
                );
                prop_assert!(by_operator);
            }
            Err(_) => {}
        }
        Ok(())
    }

    fn release(&mut self, lease: LeaseId) -> TestCaseResult {
        let Ok(write) = release(self.record.as_ref(), lease, at(self.now)) else { return Ok(()) };
        self.own(lease)?;
        let keyed = self.record.as_ref().is_some_and(|record| record.keyed.is_some());
        match write {
            Write::Put(record) => {
                prop_assert!(keyed, "a release leaves {:?}", record);
                self.barrier = match record.state {
                    State::Spent { .. } => Barrier::Open,
                    _ => Barrier::Run { heals: true, until: record.lease.until },
                };
                self.record = Some(record);
            }
            Write::Delete => {
                prop_assert!(!keyed, "a generation is forgotten");
                (self.record, self.barrier) = (None, Barrier::Open);
            }
            Write::Claim { .. } => prop_assert!(false, "a release claims nothing"),
        }
        Ok(())
    }

    fn doubt(&mut self, lease: LeaseId, why: Why) -> TestCaseResult {
        let Ok(Some(record)) = doubt(self.record.as_ref(), lease, why, at(self.now)) else { return Ok(()) };
        self.own(lease)?;
        self.barrier = match record.state {
            State::Running => Barrier::Run { heals: true, until: at(self.now) },
            State::Unknown { .. } => Barrier::Unknown,
            State::Done { .. } | State::Spent { .. } => panic!("a doubt is no end"),
        };
        self.record = Some(record);
        Ok(())
    }

    fn resolve(&mut self, happened: bool, stopped: bool, stale: bool) -> TestCaseResult {
        let Some(record) = self.record.clone() else { return Ok(()) };
        let Policy { retention, expiry, .. } = self.policy;
        let verdict =
            if happened { Verdict::Happened { receipt: receipt(), retention, expiry } } else { Verdict::DidNotHappen };
        let confirmed = if stopped { Confirmation::OwnerStopped } else { Confirmation::None };
        let version = record.version - u64::from(stale);
        let Ok(write) = resolve(Some(&record), version, record.lease.id, verdict, confirmed, self.clock()) else {
            return Ok(());
        };
        prop_assert!(!stale, "a word about an older version won");
        prop_assert!(!matches!(self.barrier, Barrier::Open | Barrier::Receipt { .. }), "settled what is not in doubt");
        match write {
            Write::Put(after) => {
                self.barrier = match after.state {
                    State::Spent { .. } => Barrier::Open,
                    _ => Barrier::Receipt { until: self.receipt_until() },
                };
                self.record = Some(after);
            }
            Write::Delete => {
                prop_assert!(at(self.now) >= record.lease.attempt_until, "it may still arrive");
                (self.record, self.barrier) = (None, Barrier::Open);
            }
            Write::Claim { .. } => prop_assert!(false, "an operator claims nothing"),
        }
        Ok(())
    }

    fn end_lease(&mut self, home: bool) {
        let gone = if home { HOME } else { ELSEWHERE };
        let Some(record) = self.record.as_ref().and_then(|record| end_lease(record, gone, at(self.now))) else {
            return;
        };
        if let Barrier::Run { heals, until } = self.barrier {
            self.barrier = Barrier::Run { heals, until: until.min(at(self.now)) };
        }
        self.record = Some(record);
    }

    fn sweep(&mut self) -> TestCaseResult {
        let now = self.clock();
        match self.record.as_ref().and_then(|record| sweep(record, now)) {
            None => {}
            Some(Write::Put(record)) => self.record = Some(record),
            Some(Write::Delete) => {
                let Barrier::Receipt { until } = self.barrier else { panic!("swept {:?}", self.barrier) };
                prop_assert!(until <= now.expiry_at, "forgotten early");
                (self.record, self.barrier) = (None, Barrier::Open);
            }
            Some(Write::Claim { .. }) => prop_assert!(false, "a sweep claims nothing"),
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]
    #[test]
    fn at_most_one_effect_stands_behind_every_promise(
        expiry in prop_oneof![Just(Expiry::NewAction), Just(Expiry::Refuse(Duration::from_secs(45)))],
        events in vec(events(), 1..60),
    ) {
        let mut world = World::new(expiry);
        for event in &events {
            world.step(event)?;
        }
    }
}
