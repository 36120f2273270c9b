//! Who is kept, and for how long. That leases are renewed in time is tested from outside.

use counterfoil_core::{Asked, Claim, Identity, Key, Operation, Policy, Rule, Scope};

use super::*;
use crate::gate::Begun;
use crate::memory::MemoryStore;

async fn permit(gate: &Gate, key: &str) -> Permit {
    let identity = Identity::new(Scope::single_tenant(), Operation::new("run").unwrap(), Key::new(key).unwrap());
    let mut claim = Claim::new(identity, Asked::bytes("asked"), &Rule::bytes()).unwrap();
    match gate.begin(&mut claim, &Policy::default()).await.unwrap() {
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
