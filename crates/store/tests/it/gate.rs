//! The gate over a store that loses replies and steps its clock: what a lost answer, a lapsed lease and a late call
//! come to. Rules are tested in core, stores by the contract.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use counterfoil_core::action::{Confirmation, Refused, Verdict};
use counterfoil_core::{
    Asked, Claim, Effect, Expiry, Identity, Key, Operation, Policy, Receipt, Record, Rule, Scope, State, Timestamp, Why,
};
use counterfoil_store::clock::TestClock;
use counterfoil_store::faulty::{Fault, Faulty, Hold, Method};
use counterfoil_store::gate::Signed;
use counterfoil_store::seam::{Expected, NoteKind, Swapped};
use counterfoil_store::{Begun, Ended, ErrorKind, Gate, MemoryStore, Permit, RecordStore};

const LEASE: Duration = Duration::from_secs(30);

struct World {
    clock: TestClock,
    store: Arc<Faulty<MemoryStore>>,
    gate: Gate,
}

fn world() -> World {
    let clock = TestClock::new(Timestamp::from_millis(1_750_000_000_000));
    let store = Arc::new(Faulty::new(MemoryStore::with_clock(Arc::new(clock.clone()))));
    let gate = Gate::new(store.clone()).unwrap();
    World { clock, store, gate }
}

/// One action of every kind: claimed, renewed, completed or released, and replayed.
#[cfg(any(feature = "postgres", feature = "mysql"))]
pub(crate) async fn every_way_through_the_gate(store: Arc<dyn RecordStore>, claim: fn(&str) -> Claim) -> Gate {
    let gate = Gate::new(store).unwrap();
    let mut permits = Vec::new();
    for key in ["a", "b"] {
        match gate.begin(&mut claim(key), &Policy::default()).await.unwrap() {
            Begun::Execute(permit) => permits.push(permit),
            other => panic!("{other:?}"),
        }
    }
    for mut permit in permits {
        gate.renew(&mut permit).await.unwrap().unwrap();
        if permit.identity().key.as_str() == "a" {
            gate.complete(&mut permit, &Receipt::new(201, "made")).await.unwrap();
        } else {
            gate.release(&mut permit).await.unwrap();
        }
    }
    let replay = gate.begin(&mut claim("a"), &Policy::default()).await.unwrap();
    assert!(matches!(replay, Begun::Replay { .. }));
    gate
}

fn policy(effect: Effect) -> Policy {
    Policy { lease: LEASE, effect, ..Policy::default() }
}

fn identity() -> Identity {
    Identity::new(Scope::single_tenant(), Operation::new("create-order").unwrap(), Key::new("k").unwrap())
}

fn claim() -> Claim {
    Claim::new(identity(), Asked::bytes("order"), &Rule::bytes()).unwrap()
}

fn receipt() -> Receipt {
    Receipt::new(201, "made")
}

impl World {
    async fn begin(&self, effect: Effect) -> Begun {
        self.gate.begin(&mut claim(), &policy(effect)).await.unwrap()
    }

    async fn permit(&self, effect: Effect) -> Box<Permit> {
        match self.begin(effect).await {
            Begun::Execute(permit) => permit,
            other => panic!("not granted: {other:?}"),
        }
    }

    async fn stands(&self) -> Option<Record> {
        self.store.inner().read(&identity()).await.unwrap().record.map(Arc::unwrap_or_clone)
    }

    async fn resolve(&self, verdict: Verdict) -> Result<(), Refused> {
        let record = self.stands().await.unwrap();
        let by = Signed { who: "op".into(), why: "looked".into() };
        let expected = Expected::record(&record);
        self.gate.resolve(&identity(), expected, &verdict, Confirmation::OwnerStopped, &by).await.unwrap()
    }

    async fn alarms(&self) -> usize {
        let notes = self.store.history(&identity()).await.unwrap();
        notes.iter().filter(|note| note.kind == NoteKind::LateCompletion).count()
    }
}

#[tokio::test]
async fn an_end_whose_reply_is_lost_is_known_by_repeating_it() {
    for released in [false, true] {
        let world = world();
        let mut permit = world.permit(Effect::Other).await;
        world.store.script(Method::Swap, [Fault::LoseReply, Fault::LoseReply]);
        let ended = if released {
            world.gate.release(&mut permit).await.unwrap()
        } else {
            world.gate.complete(&mut permit, &receipt()).await.unwrap()
        };
        assert!(matches!(ended, Ended::Written { .. }), "{ended:?}");
        assert_eq!(world.stands().await.is_none(), released);
        assert_eq!(world.alarms().await, 0);
    }
}

#[tokio::test]
async fn our_own_claim_that_lapsed_before_we_heard_of_it_is_renewed_before_it_runs() {
    let world = world();
    let hold = Hold::new();
    world.store.script(Method::Swap, [Fault::LoseReply, Fault::HoldBefore(hold.clone())]);
    let began = tokio::spawn({
        let gate = world.gate.clone();
        async move { gate.begin(&mut claim(), &policy(Effect::Other)).await }
    });
    hold.arrived().await;
    world.clock.advance(LEASE + Duration::from_secs(1));
    hold.release();
    let Begun::Execute(permit) = began.await.unwrap().unwrap() else { panic!("it is ours") };
    let record = world.stands().await.unwrap();
    assert_eq!(record.lease.id, permit.lease());
    assert!(record.lease.until > world.store.now().at, "it runs only under a live lease");
    assert_eq!(record.version, 2);
}

#[tokio::test]
async fn our_own_claim_that_somebody_marked_unknown_meanwhile_is_never_run_unrenewed() {
    let world = world();
    let hold = Hold::new();
    world.store.script(Method::Swap, [Fault::LoseReply, Fault::HoldBefore(hold.clone())]);
    let began = tokio::spawn({
        let gate = world.gate.clone();
        async move { gate.begin(&mut claim(), &policy(Effect::Other)).await }
    });
    hold.arrived().await;
    world.clock.advance(LEASE);
    assert!(matches!(world.begin(Effect::Other).await, Begun::Unknown { why: Why::Lapsed, .. }));
    hold.release();
    assert!(matches!(began.await.unwrap().unwrap(), Begun::Unknown { why: Why::Lapsed, .. }));
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_is_given_up_is_released_in_the_background() {
    let world = world();
    // Every repeat of the claim is applied and its reply lost, until the deadline.
    world.store.script(Method::Swap, std::iter::repeat_n(Fault::LoseReply, 150));
    let error = world.gate.begin(&mut claim(), &policy(Effect::Other)).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unknown);
    // The renewals' thread has a clock of its own that is not paused; it reads and releases within its pause.
    while world.stands().await.is_some() {
        tokio::task::yield_now().await;
    }
    world.store.script(Method::Swap, []);
}

#[tokio::test(start_paused = true)]
async fn a_lost_copy_of_a_claim_that_was_given_back_does_not_keep_the_key() {
    let world = world();
    // The claim is lost on its way and repeated; the repeat wins, and its run gives the key back.
    world.store.script(Method::Swap, [Fault::ApplyLater]);
    let mut permit = world.permit(Effect::Other).await;
    assert_eq!(world.store.delayed(), 1);
    assert_eq!(world.gate.release(&mut permit).await.unwrap(), Ended::Written { expires_at: None });
    let landed = world.store.land().await;
    assert!(matches!(landed[..], [Ok(Swapped::Won { .. })]), "the lost copy finds the key free: {landed:?}");
    while world.stands().await.is_some() {
        tokio::task::yield_now().await;
    }
    assert!(matches!(world.begin(Effect::Other).await, Begun::Execute(_)));
}

#[tokio::test]
async fn a_late_completion_of_the_same_lease_settles_what_was_unknown() {
    let world = world();
    let mut permit = world.permit(Effect::Other).await;
    world.clock.advance(LEASE);
    assert!(matches!(world.begin(Effect::Other).await, Begun::Unknown { why: Why::Lapsed, .. }));
    assert!(matches!(world.stands().await.unwrap().state, State::Unknown { .. }), "it is made visible");
    let ended = world.gate.complete(&mut permit, &receipt()).await.unwrap();
    assert!(matches!(ended, Ended::Written { expires_at: Some(_) }));
    assert!(matches!(world.begin(Effect::Other).await, Begun::Replay { receipt: found, .. } if found == receipt()));
}

#[tokio::test]
async fn a_lapsed_run_that_certainly_sent_nothing_still_gives_its_key_back() {
    let world = world();
    let mut permit = world.permit(Effect::Other).await;
    world.clock.advance(LEASE);
    assert!(matches!(world.begin(Effect::Other).await, Begun::Unknown { .. }));
    assert_eq!(world.gate.release(&mut permit).await.unwrap(), Ended::Written { expires_at: None });
    assert!(world.stands().await.is_none());
}

#[tokio::test]
async fn what_was_doubted_is_not_released() {
    let world = world();
    let mut permit = world.permit(Effect::Other).await;
    world.gate.doubt(&mut permit, Why::Doubted).await.unwrap();
    assert_eq!(world.gate.release(&mut permit).await.unwrap(), Ended::Refused(Refused::Unknown));
    assert!(matches!(world.begin(Effect::Other).await, Begun::Unknown { why: Why::Doubted, .. }));
}

#[tokio::test]
async fn a_completion_after_the_operators_word_is_refused_and_alarms() {
    let happened =
        Verdict::Happened { receipt: receipt(), retention: Duration::from_secs(60), expiry: Expiry::NewAction };
    for (verdict, refused) in [(Verdict::DidNotHappen, Refused::Absent), (happened, Refused::SettledByOperator)] {
        let world = world();
        let mut permit = world.permit(Effect::Other).await;
        world.gate.doubt(&mut permit, Why::Doubted).await.unwrap();
        world.clock.advance(Duration::from_secs(60));
        assert_eq!(world.resolve(verdict).await, Ok(()));
        let before = world.stands().await;
        let ended = world.gate.complete(&mut permit, &Receipt::new(500, "late")).await.unwrap();
        assert_eq!(ended, Ended::Refused(refused));
        assert_eq!(world.stands().await, before);
        assert_eq!(world.alarms().await, 1);
    }
}

#[tokio::test]
async fn resolving_is_signed_and_survives_a_lost_reply_but_not_a_change() {
    let world = world();
    let mut permit = world.permit(Effect::Other).await;
    let seen = Expected::record(&world.stands().await.unwrap());
    world.gate.doubt(&mut permit, Why::Doubted).await.unwrap();
    let by = Signed { who: "op".into(), why: "bank statement".into() };
    let happened =
        || Verdict::Happened { receipt: receipt(), retention: Duration::from_secs(60), expiry: Expiry::NewAction };
    let stale = world.gate.resolve(&identity(), seen, &happened(), Confirmation::OwnerStopped, &by).await.unwrap();
    assert_eq!(stale, Err(Refused::Changed));
    world.store.script(Method::Swap, [Fault::LoseReply]);
    assert_eq!(world.resolve(happened()).await, Ok(()));
    let notes = world.store.history(&identity()).await.unwrap();
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert!(matches!(world.begin(Effect::Other).await, Begun::Replay { .. }));
    let absent = world.gate.resolve(&identity(), Expected::Absent, &happened(), Confirmation::None, &by).await;
    assert_eq!(absent.unwrap_err().kind, ErrorKind::Misuse);
}

#[tokio::test]
async fn a_coupled_run_that_lapsed_is_taken_over_and_its_old_owner_touches_nothing() {
    let world = world();
    let mut old = world.permit(Effect::Coupled).await;
    world.gate.doubt(&mut old, Why::Doubted).await.unwrap();
    let mut new = world.permit(Effect::Coupled).await;
    assert_ne!(old.lease(), new.lease());
    assert_eq!(world.gate.renew(&mut old).await.unwrap(), Err(Refused::OtherLease));
    assert_eq!(world.gate.release(&mut old).await.unwrap(), Ended::Refused(Refused::OtherLease));
    assert_eq!(world.gate.doubt(&mut old, Why::Doubted).await.unwrap(), Ended::Refused(Refused::OtherLease));
    let late = world.gate.complete(&mut old, &receipt()).await.unwrap();
    assert_eq!(late, Ended::Refused(Refused::OtherLease));
    assert!(matches!(world.gate.complete(&mut new, &receipt()).await.unwrap(), Ended::Written { .. }));
}

#[tokio::test]
async fn a_look_writes_nothing_and_says_what_stands() {
    let world = world();
    assert!(
        matches!(world.gate.look(&mut claim()).await.unwrap(), ControlFlow::Continue(seen) if seen.record.is_none())
    );
    let mut permit = world.permit(Effect::Other).await;
    let writes = world.store.calls(Method::Swap);
    assert!(matches!(
        world.gate.look(&mut claim()).await.unwrap(),
        ControlFlow::Break(Begun::InProgress { remaining }) if remaining == LEASE
    ));
    world.clock.advance(LEASE);
    assert!(matches!(world.gate.look(&mut claim()).await.unwrap(), ControlFlow::Break(Begun::Unknown { .. })));
    assert_eq!(world.store.calls(Method::Swap), writes);
    world.gate.complete(&mut permit, &receipt()).await.unwrap();
    let mut other = Claim::new(identity(), Asked::bytes("another order"), &Rule::bytes()).unwrap();
    assert!(matches!(world.gate.look(&mut other).await.unwrap(), ControlFlow::Break(Begun::Mismatch)));
}

#[tokio::test]
async fn a_record_is_compared_under_its_own_rule() {
    let world = world();
    let rule: Rule = "json;ignore=/sent_at".parse().unwrap();
    let asked = |body: &'static str| Asked {
        headers: http::HeaderMap::from_iter([(
            http::header::CONTENT_TYPE,
            http::HeaderValue::from_static("application/json"),
        )]),
        ..Asked::bytes(body)
    };
    let mut first = Claim::new(identity(), asked(r#"{"n":1,"sent_at":1}"#), &rule).unwrap();
    let Begun::Execute(mut permit) = world.gate.begin(&mut first, &policy(Effect::Other)).await.unwrap() else {
        panic!("it is free")
    };
    world.gate.complete(&mut permit, &receipt()).await.unwrap();
    // Today's rule is another: an honest retry is still one, and another order is still a mismatch.
    let mut retry = Claim::new(identity(), asked(r#"{"sent_at":2,"n":1.0}"#), &Rule::bytes()).unwrap();
    assert!(matches!(world.gate.begin(&mut retry, &policy(Effect::Other)).await.unwrap(), Begun::Replay { .. }));
    for body in [r#"{"n":2,"sent_at":1}"#, "no json"] {
        let mut other = Claim::new(identity(), asked(body), &Rule::bytes()).unwrap();
        assert!(matches!(world.gate.begin(&mut other, &policy(Effect::Other)).await.unwrap(), Begun::Mismatch));
    }
}

#[tokio::test]
async fn a_store_that_fails_grants_nothing() {
    for method in [Method::Read, Method::Swap] {
        let world = world();
        world.store.script(method, [Fault::Fail(ErrorKind::Unavailable)]);
        let error = world.gate.begin(&mut claim(), &policy(Effect::Other)).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Unavailable);
        assert!(world.stands().await.is_none());
    }
}

#[tokio::test]
async fn a_kept_lease_is_renewed_until_it_is_stopped() {
    let world = world();
    // A lease this short is renewed every few milliseconds of real time, and judged on the test clock.
    let short = Policy { lease: Duration::from_millis(30), ..Policy::default() };
    let Begun::Execute(permit) = world.gate.begin(&mut claim(), &short).await.unwrap() else { panic!("it is free") };
    let claimed = permit.record().lease.renewed_at;
    let renewal = world.gate.keep(*permit);
    world.clock.advance(Duration::from_millis(20));
    while world.stands().await.unwrap().lease.renewed_at == claimed {
        tokio::task::yield_now().await;
    }
    assert!(!renewal.is_lost());
    let mut permit = renewal.stop().await.unwrap();
    assert!(matches!(world.gate.complete(&mut permit, &receipt()).await.unwrap(), Ended::Written { .. }));
}

#[tokio::test]
async fn a_kept_lease_that_is_lost_says_so() {
    let world = world();
    let short = Policy { lease: Duration::from_millis(30), ..Policy::default() };
    let Begun::Execute(permit) = world.gate.begin(&mut claim(), &short).await.unwrap() else { panic!("it is free") };
    let renewal = world.gate.keep(*permit);
    while world.resolve(Verdict::DidNotHappen).await.is_err() {
        world.clock.advance(Duration::from_secs(61));
        tokio::task::yield_now().await;
    }
    while !renewal.is_lost() {
        tokio::task::yield_now().await;
    }
    assert!(world.stands().await.is_none());
    let mut permit = renewal.stop().await.unwrap();
    assert_eq!(world.gate.complete(&mut permit, &receipt()).await.unwrap(), Ended::Refused(Refused::Absent));
}
