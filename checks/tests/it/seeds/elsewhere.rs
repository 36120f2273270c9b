//! A shop whose orders live outside the store: claim, run, complete.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use counterfoil_core::{Body, Receipt};
use counterfoil_store::{Begun, Ended, Gate, clock::TestClock};
use serde_json::Value;

use super::{Fixture, Kept, Order, Shop, Told, policy};

pub(super) struct Elsewhere {
    fixture: Fixture,
    kept: Kept,
    clock: TestClock,
    gate: Gate,
    orders: Orders,
}

/// The orders that were made, and how one is made.
#[derive(Clone, Default)]
pub(super) struct Orders(Arc<Mutex<Vec<Value>>>);

impl Orders {
    /// The effect; `None`: it failed, and is undone.
    pub(super) fn make(&self, fixture: Fixture, order: &Order) -> Option<String> {
        let parameters = order.parameters();
        let mut orders = self.0.lock().expect("no order panics");
        orders.push(parameters.clone());
        if order.fails {
            orders.pop();
            return None;
        }
        Some(fixture.result(orders.len() as u64, &parameters))
    }

    pub(super) fn count(&self) -> u64 {
        self.0.lock().expect("no order panics").len() as u64
    }
}

impl Elsewhere {
    pub(super) fn new(fixture: Fixture, kept: Kept, clock: TestClock) -> Self {
        let gate = Gate::new(kept.connect()).expect("a gate opens");
        Self { fixture, kept, clock, gate, orders: Orders::default() }
    }
}

impl Shop for Elsewhere {
    async fn order(&self, order: Order) -> Told {
        let mut claim = order.claim();
        let mut permit = loop {
            match self.gate.begin(&mut claim, &policy()).await.expect("the store answers") {
                Begun::Execute(permit) => break permit,
                Begun::Replay { receipt, .. } => return Told::Replayed(body(receipt)),
                Begun::Mismatch => return Told::Mismatch,
                Begun::InProgress { .. } => tokio::task::yield_now().await,
                other @ (Begun::Unknown { .. } | Begun::Expired { .. }) => panic!("{other:?}"),
            }
        };
        if !self.fixture.accepts(&order.parameters()) {
            self.gate.release(&mut permit).await.expect("the store answers");
            return Told::Invalid;
        }
        let Some(result) = self.orders.make(self.fixture, &order) else {
            self.gate.release(&mut permit).await.expect("the store answers");
            return Told::Failed;
        };
        let ended = self.gate.complete(&mut permit, &Receipt::new(201, result.clone())).await;
        assert!(matches!(ended.expect("the store answers"), Ended::Written { expires_at: Some(_) }));
        Told::Created(result)
    }

    fn connected(&self) -> Self {
        self.fresh()
    }

    fn fresh(&self) -> Self {
        let gate = Gate::new(self.kept.connect()).expect("a gate opens");
        let (kept, clock, orders) = (self.kept.clone(), self.clock.clone(), self.orders.clone());
        Self { fixture: self.fixture, kept, clock, gate, orders }
    }

    async fn counts(&self) -> (u64, u64) {
        let about = self.gate.store().about().await.expect("the store answers");
        (self.orders.count(), about.records)
    }

    fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }
}

pub(super) fn body(receipt: Receipt) -> String {
    let Body::Kept(bytes) = receipt.body else { panic!("a small body is kept") };
    String::from_utf8(bytes.to_vec()).expect("it is JSON")
}
