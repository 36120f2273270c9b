//! Who is kept, and for how long. That leases are renewed in time is tested from outside.

use counterfoil_core::{Asked, Claim, Identity, Key, Operation, Policy, Rule, Scope};

use super::*;
use crate::faulty::{Fault, Faulty, Hold, Method};
use crate::gate::Begun;
use crate::memory::MemoryStore;

async fn permit(gate: &Gate, key: &str) -> Permit {
    permit_for(gate, key, &Policy::default()).await
}

async fn permit_for(gate: &Gate, key: &str, policy: &Policy) -> Permit {
    let identity = Identity::new(Scope::single_tenant(), Operation::new("run").unwrap(), Key::new(key).unwrap());
    let mut claim = Claim::new(identity, Asked::bytes("asked"), &Rule::bytes()).unwrap();
    match gate.begin(&mut claim, policy).await.unwrap() {
        Begun::Execute(permit) => *permit,
        other => panic!("it is free: {other:?}"),
    }
}

fn kept(gate: &Gate) -> usize {
    gate.renewals.agenda.locked().permits.len()
}

#[tokio::test]
async fn nothing_is_kept_of_a_run_that_has_ended() {
    let gate = Gate::new(Arc::new(MemoryStore::new())).unwrap();
    let stopped = gate.keep(permit(&gate, "stopped").await);
    let dropped = gate.keep(permit(&gate, "dropped").await);
    assert_eq!(kept(&gate), 2);
    let permit = stopped.stop().await.unwrap();
    assert_eq!(kept(&gate), 1);
    drop(dropped);
    assert_eq!(kept(&gate), 0);
    // The same permit may be kept again.
    let again = gate.keep(permit);
    assert_eq!(kept(&gate), 1);
    drop(again.stop().await.unwrap());
    assert_eq!(kept(&gate), 0);
}

/// Nobody is there to take it out later: it would be renewed for ever, and its action never be free.
#[tokio::test]
async fn a_run_that_is_dropped_while_its_lease_is_renewed_is_not_kept_again() {
    let store = Arc::new(Faulty::new(MemoryStore::new()));
    let gate = Gate::new(store.clone()).unwrap();
    let policy = Policy { lease: Duration::from_millis(30), ..Policy::default() };
    let permit = permit_for(&gate, "dropped", &policy).await;
    let under_way = Hold::new();
    store.script(Method::Swap, [Fault::HoldBefore(under_way.clone())]);
    let renewal = gate.keep(permit);
    under_way.arrived().await;
    let kept = Arc::downgrade(&renewal.kept);
    drop(renewal);
    under_way.release();
    let gone = async {
        while kept.strong_count() > 0 {
            tokio::task::yield_now().await;
        }
    };
    let gone = tokio::time::timeout(Duration::from_secs(10), gone).await;
    assert!(gone.is_ok(), "a lease is renewed for a run that has ended");
}
