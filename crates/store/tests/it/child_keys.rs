//! The gate over actions that run by child keys: which one a run gets, whether it may send it, and who may not claim.
//! Rules are tested in core, what every store keeps of them by the contract.

use std::sync::Arc;
use std::time::Duration;

use counterfoil_core::action::{Confirmation, Refused, Sending, Verdict};
use counterfoil_core::{
    Asked, Claim, Effect, Identity, Key, Operation, Policy, Receipt, Record, Rule, Scope, State, Timestamp, Why,
};
use counterfoil_store::clock::TestClock;
use counterfoil_store::faulty::{Fault, Faulty, Method};
use counterfoil_store::gate::Signed;
use counterfoil_store::seam::{Expected, NoteKind};
use counterfoil_store::{Begun, Ended, ErrorKind, Gate, MemoryStore, Permit, RecordStore};

const LEASE: Duration = Duration::from_secs(30);
/// A run begins up to 4 minutes after the first.
const WINDOW: Duration = Duration::from_mins(10);

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

fn policy() -> Policy {
    Policy { lease: LEASE, effect: Effect::KeyedUpstream, window: WINDOW, ..Policy::default() }
}

fn identity() -> Identity {
    Identity::new(Scope::single_tenant(), Operation::new("create-order").unwrap(), Key::new("k").unwrap())
}

fn claim() -> Claim {
    Claim::new(identity(), Asked::bytes("order"), &Rule::bytes()).unwrap()
}

impl World {
    async fn permit(&self) -> Permit {
        match self.gate.begin(&mut claim(), &policy()).await.unwrap() {
            Begun::Execute(permit) => *permit,
            other => panic!("not granted: {other:?}"),
        }
    }

    fn child_key(&self, permit: &mut Permit) -> Key {
        self.gate.wire(permit).child_key("upstream")
    }

    async fn stands(&self) -> Record {
        Arc::unwrap_or_clone(self.store.inner().read(&identity()).await.unwrap().record.unwrap())
    }

    async fn resolve(&self, verdict: Verdict) -> Result<(), Refused> {
        let expected = Expected::record(&self.stands().await);
        let by = Signed { who: "op".into(), why: "looked".into() };
        self.gate.resolve(&identity(), expected, &verdict, Confirmation::OwnerStopped, &by).await.unwrap()
    }
}

#[tokio::test]
async fn every_run_of_an_action_has_one_child_key_and_the_next_action_another() {
    let world = world();
    let mut first = world.permit().await;
    let key = world.child_key(&mut first);
    assert_ne!(key, world.gate.wire(&mut first).child_key("another step"));
    world.gate.release(&mut first).await.unwrap();
    let mut second = world.permit().await;
    assert_eq!(world.child_key(&mut second), key, "after a release");
    world.gate.doubt(&mut second, Why::Doubted).await.unwrap();
    let mut third = world.permit().await;
    assert_eq!(world.child_key(&mut third), key, "after a doubt");
    world.clock.advance(LEASE);
    let mut fourth = world.permit().await;
    assert_eq!(world.child_key(&mut fourth), key, "after a lapse");
    world.gate.complete(&mut fourth, &Receipt::new(201, "made")).await.unwrap();
    world.clock.advance(Duration::from_hours(24));
    let mut next = world.permit().await;
    assert_ne!(world.child_key(&mut next), key, "after the receipt's expiry");
}

#[tokio::test]
async fn the_wire_follows_the_lease_and_the_window() {
    let world = world();
    let mut permit = world.permit().await;
    let wire = world.gate.wire(&mut permit);
    assert_eq!(wire.may_send(), Sending::Go);
    world.clock.advance(LEASE);
    assert_eq!(wire.may_send(), Sending::NotOurs, "at the end of the lease");
    world.gate.renew(&mut permit).await.unwrap().unwrap();
    assert_eq!(wire.may_send(), Sending::Go, "renewed by another thread");
    world.clock.advance(Duration::from_mins(4) - LEASE);
    world.gate.renew(&mut permit).await.unwrap().unwrap();
    assert_eq!(wire.may_send(), Sending::WindowClosed { may_have_arrived: false });
}

#[tokio::test]
async fn a_claim_under_another_effect_is_refused_and_changes_nothing() {
    let world = world();
    let mut permit = world.permit().await;
    for ended in [false, true] {
        if ended {
            world.gate.release(&mut permit).await.unwrap();
        }
        world.clock.advance(LEASE);
        let before = world.stands().await;
        for effect in [Effect::Coupled, Effect::Other] {
            let error = world.gate.begin(&mut claim(), &Policy { effect, ..policy() }).await.unwrap_err();
            assert_eq!(error.kind, ErrorKind::Misuse, "{error}");
            assert!(error.to_string().contains("set its effect back"), "{error}");
        }
        assert_eq!(world.stands().await, before);
    }
}

#[tokio::test]
async fn a_release_whose_reply_was_lost_is_known_as_our_own() {
    let world = world();
    let mut permit = world.permit().await;
    world.store.script(Method::Swap, [Fault::LoseReply]);
    let ended = world.gate.release(&mut permit).await.unwrap();
    assert_eq!(ended, Ended::Written { expires_at: None });
    assert!(matches!(world.stands().await.state, State::Spent { .. }));
}

#[tokio::test]
async fn an_operator_sends_anew_on_purpose() {
    let world = world();
    let mut permit = world.permit().await;
    let key = world.child_key(&mut permit);
    world.clock.advance(WINDOW);
    assert_eq!(world.resolve(Verdict::DidNotHappen).await, Err(Refused::WindowClosed));
    world.resolve(Verdict::SendAnew).await.unwrap();
    let notes = world.store.history(&identity()).await.unwrap();
    assert_eq!(notes.iter().map(|note| note.kind).collect::<Vec<_>>(), [NoteKind::ResolvedSendAnew]);
    let mut anew = world.permit().await;
    assert_eq!(anew.record().keyed.unwrap().generation, 1);
    assert_ne!(world.child_key(&mut anew), key);
    assert_eq!(world.gate.wire(&mut anew).may_send(), Sending::Go, "with a window of its own");
}
