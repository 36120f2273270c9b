//! Child keys over time: an upstream that remembers each for its window beside the record that decides when one is sent.
//! What a claim or an end comes to in every single state belongs to the tables.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;

use crate::action::tests::catalogue::{Case, HOME, MINE, NOW, OTHERS, SAME, claim, doubted, receipt, record, states};
use crate::action::{
    Completed, Confirmation, Decision, Sending, Verdict, Write, complete, decide, doubt, leaves_upstream, may_send,
    release, resolve, sweep,
};
use crate::claim::Draft;
use crate::policy::{Effect, Expiry, Policy};
use crate::record::tests::{EFFECTS, at};
use crate::record::{Keyed, LeaseId, Record, State, Why};
use crate::time::{Now, Timestamp};

const LIMIT: Duration = Duration::from_secs(60);
/// A run begins up to 240 s after the first: margin 300 s, one run 60 s.
const WINDOW: Duration = Duration::from_secs(600);

#[test]
fn what_may_be_sent_in_every_state() {
    let expected = |case: &Case| match case.name.as_str() {
        "running.other" | "running.coupled" | "running.keyed" | "doubted.keyed" => Sending::Go,
        "closed.keyed" => Sending::WindowClosed { may_have_arrived: true },
        _ => Sending::NotOurs,
    };
    for case in states() {
        assert_eq!(may_send(case.record.as_ref(), MINE, NOW), expected(&case), "{}", case.name);
        assert_eq!(may_send(case.record.as_ref(), OTHERS, NOW), Sending::NotOurs, "{}", case.name);
    }
    let mut first = doubted(record(Effect::KeyedUpstream, State::Running, 1), Duration::ZERO);
    first.keyed = first.keyed.map(|keyed| Keyed { doubt: false, ..keyed });
    assert_eq!(may_send(Some(&first), MINE, NOW), Sending::WindowClosed { may_have_arrived: false });
}

#[test]
fn no_other_effect_may_claim_what_has_used_child_keys() {
    for (case, effect) in states().iter().flat_map(|case| EFFECTS.map(|effect| (case, effect))) {
        let keyed = case.record.as_ref().is_some_and(|record| record.effect == Effect::KeyedUpstream);
        let expected = keyed && effect != Effect::KeyedUpstream;
        assert_eq!(leaves_upstream(case.record.as_ref(), effect), expected, "{} {effect:?}", case.name);
    }
}

/// A take-over goes on under the window of the first send, and a new generation begins its own.
#[test]
fn a_window_never_grows_while_its_child_key_may_have_been_sent() {
    let policy = Policy { effect: Effect::KeyedUpstream, window: WINDOW, ..Policy::default() };
    let drafted = |inherited| {
        let draft = Draft::new(&claim("json", SAME), &policy, MINE, None);
        Draft { inherited, ..draft }.at(NOW, None).keyed.unwrap()
    };
    let kept = |window, doubt| Keyed { generation: 5, window, attempt_limit: Duration::ZERO, doubt };
    let (shorter, longer) = (WINDOW / 2, WINDOW * 2);
    let rows = [
        (None, (0, WINDOW, false)),
        (Some(kept(shorter, true)), (5, shorter, true)),
        (Some(kept(longer, true)), (5, WINDOW, true)),
        (Some(kept(shorter, false)), (5, WINDOW, false)),
    ];
    for (inherited, expected) in rows {
        let Keyed { generation, window, attempt_limit, doubt } = drafted(inherited);
        assert_eq!((generation, window, doubt), expected, "{inherited:?}");
        assert_eq!(attempt_limit, policy.attempt_limit);
    }
}

#[derive(Clone, Debug)]
enum Event {
    Advance(u64),
    Claim,
    /// The newest run sends, and its request arrives so many seconds later, at most within its limit.
    Send(u64),
    Complete,
    Release,
    Doubt,
    Resolve(u8),
    Sweep,
}

fn events() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => prop_oneof![1..40_u64, 100..400_u64].prop_map(Event::Advance),
        4 => Just(Event::Claim),
        4 => (0..60_u64).prop_map(Event::Send),
        1 => Just(Event::Complete),
        2 => Just(Event::Release),
        2 => Just(Event::Doubt),
        1 => (0..3_u8).prop_map(Event::Resolve),
        1 => Just(Event::Sweep),
    ]
}

#[derive(Default)]
struct Upstream {
    /// When it first saw a child key.
    seen: BTreeMap<u32, Timestamp>,
    effects: BTreeMap<u32, u32>,
}

impl Upstream {
    fn receives(&mut self, generation: u32, now: Timestamp) {
        if self.seen.get(&generation).is_none_or(|first| now >= first.plus(WINDOW)) {
            self.seen.insert(generation, now);
            *self.effects.entry(generation).or_default() += 1;
        }
    }
}

struct World {
    now: Timestamp,
    record: Option<Record>,
    granted: u8,
    /// Whether a run of this lease has sent.
    sent: bool,
    upstream: Upstream,
    policy: Policy,
}

impl World {
    fn lease(&self) -> LeaseId {
        LeaseId::from_bytes([self.granted; 16])
    }

    fn generation(&self) -> Option<u32> {
        self.record.as_ref()?.keyed.map(|keyed| keyed.generation)
    }

    fn step(&mut self, event: &Event) -> TestCaseResult {
        let (before, stood) = (self.generation(), self.record.clone());
        let now = self.now;
        match event {
            Event::Advance(seconds) => self.now = now.plus(Duration::from_secs(*seconds)),
            Event::Claim => self.claim(),
            Event::Send(after) => self.send(*after),
            Event::Complete => {
                let Policy { retention, expiry, .. } = self.policy;
                // Nothing is completed that was not answered.
                if self.sent
                    && let Ok(Completed::Write(record)) =
                        complete(stood.as_ref(), self.lease(), receipt(), retention, expiry, now)
                {
                    self.record = Some(record);
                }
            }
            // Only what certainly had no effect is released.
            Event::Release if !self.sent => {
                if let Ok(write) = release(stood.as_ref(), self.lease(), now) {
                    self.put(write)?;
                }
            }
            Event::Release => {}
            Event::Doubt => {
                if let Ok(Some(record)) = doubt(stood.as_ref(), self.lease(), Why::Doubted, now) {
                    self.record = Some(record);
                }
            }
            Event::Resolve(verdict) => self.resolve(*verdict)?,
            Event::Sweep => {
                if let Some(write) = stood.as_ref().and_then(|record| sweep(record, Now::at(now))) {
                    self.put(write)?;
                }
            }
        }
        self.invariants(before, stood.as_ref(), event)
    }

    fn invariants(&self, before: Option<u32>, stood: Option<&Record>, event: &Event) -> TestCaseResult {
        for (generation, effects) in &self.upstream.effects {
            prop_assert!(*effects == 1, "generation {} had {} effects", generation, effects);
        }
        prop_assert!(before.is_none() || self.record.is_some(), "a generation is forgotten by {:?}", event);
        if let (Some(before), Some(after)) = (before, self.generation()) {
            let done = stood.is_some_and(|record| matches!(record.state, State::Done { .. }));
            let may_rise = matches!(event, Event::Resolve(_)) || done;
            prop_assert!(
                after == before || (after == before + 1 && may_rise),
                "{} to {} by {:?}",
                before,
                after,
                event
            );
        }
        let freed = matches!(self.record.as_ref().map(|record| &record.state), Some(State::Spent { .. }));
        let in_doubt = stood.is_some_and(|record| {
            matches!(record.state, State::Running) && record.keyed.is_some_and(|keyed| keyed.doubt)
        });
        prop_assert!(!freed || !in_doubt || matches!(event, Event::Resolve(_)), "a doubt was released by {:?}", event);
        Ok(())
    }

    fn put(&mut self, write: Write) -> TestCaseResult {
        match write {
            Write::Put(record) => self.record = Some(record),
            Write::Delete | Write::Claim { .. } => prop_assert!(false, "{:?} of an action with child keys", write),
        }
        Ok(())
    }

    fn claim(&mut self) {
        let claim = claim("json", SAME);
        match decide(self.record.as_ref(), &claim, Now::at(self.now)) {
            (Decision::Execute, Some(Write::Claim { version, claimed_at, keyed: inherited })) => {
                self.granted += 1;
                self.sent = false;
                let draft = Draft::new(&claim, &self.policy, self.lease(), Some(HOME));
                let draft = Draft { version, claimed_at, inherited, ..draft };
                self.record = Some(draft.at(self.now, None));
            }
            (_, Some(Write::Put(record))) => self.record = Some(record),
            (_, Some(Write::Delete | Write::Claim { .. }) | None) => {}
        }
    }

    fn send(&mut self, after: u64) {
        if may_send(self.record.as_ref(), self.lease(), self.now) != Sending::Go {
            return;
        }
        self.sent = true;
        let generation = self.generation().unwrap();
        self.upstream.receives(generation, self.now.plus(Duration::from_secs(after)));
    }

    /// An operator, who knows what the upstream did: another child key only where the last one had no effect.
    fn resolve(&mut self, verdict: u8) -> TestCaseResult {
        let Some(record) = self.record.clone() else { return Ok(()) };
        let happened = self.upstream.effects.contains_key(&record.keyed.unwrap().generation);
        let Policy { retention, expiry, .. } = self.policy;
        let verdict = match verdict {
            0 => Verdict::Happened { receipt: receipt(), retention, expiry },
            1 => Verdict::DidNotHappen,
            _ if happened => return Ok(()),
            _ => Verdict::SendAnew,
        };
        let now = Now::at(self.now);
        let confirmed = Confirmation::OwnerStopped;
        if let Ok(write) = resolve(Some(&record), record.version, record.lease.id, verdict, confirmed, now) {
            self.put(write)?;
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2048))]
    /// Also where the operator is wrong about "did not happen": the same child key is sent while the upstream remembers it,
    /// and never after.
    #[test]
    fn an_upstream_has_one_effect_for_each_generation(
        expiry in prop_oneof![Just(Expiry::NewAction), Just(Expiry::Refuse(Duration::from_secs(45)))],
        events in vec(events(), 1..80),
    ) {
        let policy = Policy {
            effect: Effect::KeyedUpstream,
            window: WINDOW,
            attempt_limit: LIMIT,
            retention: Duration::from_secs(50),
            expiry,
            ..Policy::default()
        };
        let (record, upstream) = (None, Upstream::default());
        let mut world = World { now: at(1_000), record, granted: 0, sent: false, upstream, policy };
        for event in &events {
            world.step(event)?;
        }
    }
}
