//! The faulty store does to a call what it was told, and nothing else; and the gate keeps its word on top of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use counterfoil_core::claim::Draft;
use counterfoil_core::{
    Asked, Claim, Effect, Identity, Key, LeaseId, Operation, Policy, Receipt, Record, Rule, Scope, Timestamp,
};
use counterfoil_store::clock::TestClock;
use counterfoil_store::contract::{Maker, OnTestClock, Subject};
use counterfoil_store::faulty::{Fault, Faulty, Hold, Method, Rates};
use counterfoil_store::seam::{Answer, Expected, New, Query, Swap, Swapped};
use counterfoil_store::{Applied, Begun, ErrorKind, Gate, MemoryStore, RecordStore};

use crate::contract::must_hold;

fn identity(key: &str) -> Identity {
    let operation = Operation::new("create-order").unwrap();
    Identity::new(Scope::single_tenant(), operation, Key::new(key).unwrap())
}

fn claim(key: &str) -> Claim {
    Claim::new(identity(key), Asked::bytes("order"), &Rule::bytes()).unwrap()
}

fn insert(key: &str, lease: u8) -> Swap {
    let draft = Draft::new(&claim(key), &Policy::default(), LeaseId::from_bytes([lease; 16]), None);
    let new = New::claim(draft);
    Swap { identity: identity(key), expected: Expected::Absent, new, not_after: None, note: None }
}

fn start() -> (TestClock, Faulty<MemoryStore>) {
    let clock = TestClock::new(Timestamp::from_millis(1_750_000_000_000));
    let store = Faulty::new(MemoryStore::with_clock(Arc::new(clock.clone())));
    (clock, store)
}

async fn stands(store: &Faulty<MemoryStore>, key: &str) -> Option<Record> {
    store.inner().read(&identity(key)).await.unwrap().record.map(Arc::unwrap_or_clone)
}

struct Quiet;

impl Maker for Quiet {
    fn fresh(&self) -> Answer<'_, Box<dyn Subject>> {
        let (clock, store) = start();
        let subject: Box<dyn Subject> = Box::new(OnTestClock { clock, store: Arc::new(store) });
        Box::pin(std::future::ready(Ok(subject)))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_faults_it_is_the_store_behind_it() {
    must_hold(&Quiet, &["reopened-store-remembers", "damage-is-no-absence"]).await;
}

#[tokio::test]
async fn a_write_meets_what_was_scripted() {
    // The fault; what is known of the write (`None`: it is answered); whether it stands at once; copies under way.
    let table = [
        (Fault::Pass, None, true, 0),
        (Fault::Fail(ErrorKind::Busy), Some((Applied::No, ErrorKind::Busy)), false, 0),
        (Fault::LoseReply, Some((Applied::Unknown, ErrorKind::Unknown)), true, 0),
        (Fault::ApplyLater, Some((Applied::Unknown, ErrorKind::Unknown)), false, 1),
        (Fault::Twice, None, true, 1),
    ];
    for (fault, error, at_once, copies) in table {
        let (_clock, store) = start();
        store.script(Method::Swap, [fault.clone()]);
        let found = store.swap(insert("k", 1)).await.err().map(|error| (error.applied, error.kind));
        assert_eq!(found, error, "{fault:?}");
        assert_eq!(stands(&store, "k").await.is_some(), at_once, "{fault:?}");
        assert_eq!(store.delayed(), copies, "{fault:?}");
        let landed = store.land().await;
        let won = landed.iter().filter(|landed| matches!(landed, Ok(Swapped::Won { .. }))).count();
        assert_eq!((landed.len(), won), (copies, usize::from(!at_once) * copies), "{fault:?}: {landed:?}");
        store.swap(insert("other", 2)).await.unwrap();
        assert_eq!((store.calls(Method::Swap), store.calls(Method::Read)), (2, 0), "{fault:?}");
    }
}

#[tokio::test]
async fn a_lost_read_has_certainly_changed_nothing() {
    let (_clock, store) = start();
    store.script(Method::Read, [Fault::LoseReply]);
    store.script(Method::List, [Fault::Pass, Fault::Fail(ErrorKind::Busy)]);
    let lost = store.read(&identity("k")).await.unwrap_err();
    assert_eq!((lost.applied, lost.kind), (Applied::No, ErrorKind::Unavailable));
    let query = Query { limit: 1, ..Query::default() };
    assert!(store.list(query.clone()).await.is_ok());
    assert_eq!(store.list(query.clone()).await.unwrap_err().kind, ErrorKind::Busy);
    assert!(store.list(query).await.is_ok());
    let calls: Vec<u64> = Method::ALL.iter().map(|method| store.calls(*method)).collect();
    assert_eq!(calls, [1, 0, 3, 0, 0, 0, 0, 0, 0]);
}

#[tokio::test]
async fn a_held_call_waits_until_it_is_released() {
    for applied in [false, true] {
        let (_clock, store) = start();
        let store = Arc::new(store);
        let hold = Hold::new();
        let fault = if applied { Fault::HoldAfter(hold.clone()) } else { Fault::HoldBefore(hold.clone()) };
        store.script(Method::Swap, [fault]);
        let call = tokio::spawn({
            let store = store.clone();
            async move { store.swap(insert("k", 1)).await }
        });
        hold.arrived().await;
        assert!(!call.is_finished());
        assert_eq!(stands(&store, "k").await.is_some(), applied);
        hold.release();
        assert!(matches!(call.await.unwrap(), Ok(Swapped::Won { .. })));
        assert!(stands(&store, "k").await.is_some());
    }
}

/// What calls in a row come to, as text.
async fn run(seed: u64) -> Vec<String> {
    let rates = Rates { fail: 100, lose_reply: 100, apply_later: 100, twice: 100 };
    let clock = TestClock::new(Timestamp::from_millis(1_750_000_000_000));
    let store = Faulty::seeded(MemoryStore::with_clock(Arc::new(clock)), seed, rates);
    let mut told = Vec::new();
    for number in 0..60 {
        let key = format!("k{}", number % 7);
        let answer = match store.swap(insert(&key, number)).await {
            Ok(Swapped::Won { .. }) => "won".to_owned(),
            Ok(Swapped::Lost { .. }) => "lost".to_owned(),
            Ok(Swapped::TooLate { .. }) => "too late".to_owned(),
            Ok(Swapped::Held { .. }) => "held".to_owned(),
            Err(error) => error.to_string(),
        };
        told.push(format!("{answer}, {} under way", store.delayed()));
    }
    told
}

#[tokio::test]
async fn the_same_seed_gives_the_same_faults() {
    let told = run(7).await;
    assert_eq!(told, run(7).await);
    assert_ne!(told, run(8).await);
    let faults = told.iter().filter(|answer| answer.contains("on demand")).count();
    assert!((5..40).contains(&faults), "{faults} of 60 calls met a fault: {told:#?}");
    assert!(told.iter().any(|answer| answer.ends_with("1 under way")), "{told:#?}");
}

#[tokio::test]
async fn a_claim_whose_reply_is_lost_is_granted_once_and_its_late_copy_changes_nothing() {
    let (clock, store) = start();
    let store = Arc::new(store);
    store.script(Method::Swap, [Fault::ApplyLater, Fault::LoseReply]);
    let gate = Gate::new(store.clone()).unwrap();
    let Begun::Execute(mut permit) = gate.begin(&mut claim("k"), &Policy::default()).await.unwrap() else {
        panic!("a free key is granted")
    };
    assert!(store.calls(Method::Swap) >= 3, "the same write is repeated until it is answered");
    let held = stands(&store, "k").await;
    assert_eq!(held.as_ref().map(|record| record.lease.id), Some(permit.lease()));
    gate.complete(&mut permit, &Receipt::new(201, "made")).await.unwrap();
    let done = stands(&store, "k").await;
    clock.advance(Policy::default().retention);
    store.sweep(10).await.unwrap();
    assert!(done.is_some() && stands(&store, "k").await.is_none());
    for landed in store.land().await {
        assert!(matches!(landed, Ok(Swapped::TooLate { .. })), "a copy of a claim landed: {landed:?}");
    }
    assert!(stands(&store, "k").await.is_none());
}

/// Clients that repeat one action until they have its result, on a store that loses, delays and repeats.
async fn effects_of_one_action(seed: u64) -> usize {
    let clock = TestClock::new(Timestamp::from_millis(1_750_000_000_000));
    let rates = Rates { fail: 60, lose_reply: 80, apply_later: 60, twice: 60 };
    let store = Arc::new(Faulty::seeded(MemoryStore::with_clock(Arc::new(clock)), seed, rates));
    let gate = Gate::new(store.clone()).unwrap();
    let effects = Arc::new(AtomicUsize::new(0));
    let policy = Policy { effect: Effect::Other, lease: Duration::from_secs(30), ..Policy::default() };
    let mut clients = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let (gate, effects, policy) = (gate.clone(), effects.clone(), policy.clone());
        clients.spawn(async move {
            for _ in 0..20 {
                match gate.begin(&mut claim("k"), &policy).await {
                    Ok(Begun::Execute(mut permit)) => {
                        effects.fetch_add(1, Ordering::SeqCst);
                        while gate.complete(&mut permit, &Receipt::new(201, "made")).await.is_err() {}
                    }
                    Ok(Begun::Replay { .. }) => return,
                    Ok(_) | Err(_) => tokio::task::yield_now().await,
                }
            }
        });
    }
    while let Some(client) = clients.join_next().await {
        client.unwrap();
    }
    store.set_rates(Rates::default());
    store.land().await;
    assert_eq!(store.delayed(), 0);
    let record = stands(&store, "k").await;
    assert!(record.is_some() || effects.load(Ordering::SeqCst) == 0, "seed {seed}: an effect without a record");
    effects.load(Ordering::SeqCst)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_action_has_one_effect_whatever_is_lost_on_the_way() {
    let mut seeds = tokio::task::JoinSet::new();
    for seed in 0..24 {
        seeds.spawn(async move { (seed, effects_of_one_action(seed).await) });
    }
    let mut once = 0;
    while let Some(found) = seeds.join_next().await {
        let (seed, effects) = found.unwrap();
        assert!(effects <= 1, "seed {seed}: {effects} effects");
        once += effects;
    }
    assert!(once >= 20, "of 24 actions only {once} happened");
}
