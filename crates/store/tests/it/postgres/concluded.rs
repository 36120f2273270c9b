//! What the gate concludes of a forwarded run while the application's transaction is open, committed, rolled back, or
//! taken over; and that a renewal passes by a record that it has locked.
//! The rule itself is tested in core.

use std::sync::Arc;
use std::time::Duration;

use counterfoil_core::action::{Concluded, Heard};
use counterfoil_core::record::Why;
use counterfoil_core::{Expiry, Hold, Policy, State};
use counterfoil_store::gate::Conclusion;
use counterfoil_store::postgres::PostgresStore;
use counterfoil_store::postgres::tokio_postgres::Client;
use counterfoil_store::seam::{Expected, New, RecordStore as _, Swap, Swapped};
use counterfoil_store::{Begun, Gate, Permit};

use super::fence::{SETTLE, application, coupled, granted, receipt};
use super::{Place, claim, identity, record};

struct World {
    place: Place,
    store: Arc<PostgresStore>,
    gate: Gate,
    permit: Box<Permit>,
    application: Client,
}

fn policy() -> Policy {
    coupled(Expiry::NewAction)
}

async fn world() -> World {
    let place = Place::new().await;
    let store = place.open().await;
    let gate = Gate::new(store.clone()).unwrap();
    let permit = granted(&gate, "a", &policy()).await;
    World { application: application(&place).await, place, store, gate, permit }
}

impl World {
    async fn conclude(&mut self, heard: Heard, hold: Hold) -> Conclusion {
        self.gate.conclude(&mut self.permit, heard, hold).await.unwrap()
    }

    async fn state(&self) -> Option<State> {
        record(self.store.as_ref(), "a").await.map(|record| record.state)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_heard_decides_where_nothing_is_committed() {
    let mut one = world().await;
    let concluded = one.conclude(Heard::Success, Hold::Optional).await;
    assert_eq!(concluded, Conclusion::Concluded(Concluded::WithoutSettle));
    assert!(matches!(one.state().await, Some(State::Unknown { why: Why::AnsweredWithoutSettle, .. })));
    // Never taken over, and settled by a commit that comes late.
    let other = one.gate.begin(&mut claim("a"), &policy()).await.unwrap();
    assert!(matches!(other, Begun::Unknown { why: Why::AnsweredWithoutSettle, .. }), "{other:?}");
    one.application.execute(SETTLE, &[&one.permit.text()]).await.unwrap();
    let replay = one.gate.begin(&mut claim("a"), &policy()).await.unwrap();
    assert!(matches!(&replay, Begun::Replay { receipt: kept, .. } if *kept == receipt()), "{replay:?}");

    for (heard, hold, expected) in [
        (Heard::Nothing, Hold::Optional, Concluded::Ended),
        (Heard::Nothing, Hold::Always, Concluded::Ended),
        (Heard::Success, Hold::Always, Concluded::WithoutSettle),
    ] {
        let mut one = world().await;
        assert_eq!(one.conclude(heard, hold).await, Conclusion::Concluded(expected), "{heard:?} {hold:?}");
        assert_eq!(one.state().await, Some(State::Running));
        // The next claim takes over, and the old attempt can no longer commit.
        let mut next = granted(&one.gate, "a", &policy()).await;
        let refused = one.application.execute(SETTLE, &[&one.permit.text()]).await.expect_err("it was superseded");
        assert_eq!(super::fence::code(&refused), "CF001");
        assert_eq!(one.conclude(heard, hold).await, Conclusion::Concluded(Concluded::Superseded));
        let ended = one.gate.conclude(&mut next, Heard::Failure, hold).await.unwrap();
        assert_eq!(ended, Conclusion::Concluded(Concluded::Released));
        assert_eq!(one.conclude(heard, hold).await, Conclusion::Concluded(Concluded::InDoubt));
    }

    for heard in [Heard::Failure, Heard::NotSent] {
        let mut one = world().await;
        assert_eq!(one.conclude(heard, Hold::Optional).await, Conclusion::Concluded(Concluded::Released));
        assert_eq!(one.state().await, None);
        let refused = one.application.execute(SETTLE, &[&one.permit.text()]).await.expect_err("the key was given back");
        assert_eq!(super::fence::code(&refused), "CF003");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_committed_decides_whatever_was_heard() {
    for heard in [Heard::Success, Heard::Failure, Heard::Nothing, Heard::NotSent] {
        let mut one = world().await;
        one.application.execute(SETTLE, &[&one.permit.text()]).await.unwrap();
        let concluded = one.conclude(heard, Hold::Optional).await;
        let done =
            matches!(&concluded, Conclusion::Concluded(Concluded::Done { receipt: kept, .. }) if *kept == receipt());
        assert!(done, "{heard:?}: {concluded:?}");
    }
}

/// The application's transaction is open when the run is concluded, and ends while the record is waited for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_open_transaction_is_waited_for_and_then_judged_anew() {
    for (heard, commits) in
        [(Heard::Nothing, true), (Heard::Nothing, false), (Heard::Success, true), (Heard::Failure, false)]
    {
        let World { store, gate, mut permit, application, place: _place } = world().await;
        application.batch_execute("BEGIN").await.unwrap();
        application.execute(SETTLE, &[&permit.text()]).await.unwrap();
        let lease = permit.lease();
        let task = tokio::spawn(async move { gate.conclude(&mut permit, heard, Hold::Always).await.unwrap() });
        // It meets the lock: its write is passed over.
        let stands = record(store.as_ref(), "a").await.unwrap();
        assert_eq!((stands.lease.id, &stands.state), (lease, &State::Running));
        application.batch_execute(if commits { "COMMIT" } else { "ROLLBACK" }).await.unwrap();
        let concluded = task.await.unwrap();
        match (&concluded, commits, heard) {
            (Conclusion::Concluded(Concluded::Done { .. }), true, _)
            | (Conclusion::Concluded(Concluded::Ended), false, Heard::Nothing)
            | (Conclusion::Concluded(Concluded::Released), false, Heard::Failure) => {}
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_it_stays_open_nobody_takes_over_and_nothing_is_written() {
    let mut one = world().await;
    one.application.batch_execute("BEGIN").await.unwrap();
    let held: bool =
        one.application.query_one("SELECT counterfoil.hold($1)", &[&one.permit.text()]).await.unwrap().get(0);
    assert!(held);
    let before = record(one.store.as_ref(), "a").await.unwrap();
    // Lapsed by the clock: whoever claims is told that it runs.
    one.place.time.advance(Duration::from_mins(2)).await.unwrap();
    let other = one.gate.begin(&mut claim("a"), &policy()).await.unwrap();
    assert!(matches!(other, Begun::InProgress { .. }), "{other:?}");
    for heard in [Heard::Success, Heard::Failure, Heard::Nothing] {
        assert_eq!(one.conclude(heard, Hold::Optional).await, Conclusion::Locked, "{heard:?}");
    }
    assert_eq!(record(one.store.as_ref(), "a").await.unwrap(), before);
    one.application.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(one.conclude(Heard::Nothing, Hold::Optional).await, Conclusion::Concluded(Concluded::Ended));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_renewal_passes_by_a_locked_record_and_counts_it_as_alive() {
    let World { store, gate, application, place: _place, .. } = world().await;
    let permit = granted(&gate, "short", &Policy { lease: Duration::from_millis(30), ..policy() }).await;
    let text = permit.text();
    application.batch_execute("BEGIN").await.unwrap();
    let held: bool = application.query_one("SELECT counterfoil.hold($1)", &[&text]).await.unwrap().get(0);
    assert!(held);
    let stands = permit.record().as_ref().clone();
    let next = counterfoil_core::Record { version: stands.version + 1, ..stands.clone() };
    let expected = Expected::record(&stands);
    let swap = Swap { identity: identity("short"), expected, new: New::put(next), not_after: None, note: None };
    assert!(matches!(store.try_swap(swap).await.unwrap(), Swapped::Held { .. }));
    // Renewed every 10 ms: each passes by, and none says that the lease is lost.
    let renewal = gate.keep(*permit);
    while renewal.passed() < 3 {
        tokio::task::yield_now().await;
    }
    assert!(!renewal.is_lost());
    assert_eq!(record(store.as_ref(), "short").await.unwrap(), stands, "a locked record was written");
    application.batch_execute("ROLLBACK").await.unwrap();
    let mut permit = renewal.stop().await.unwrap();
    gate.renew(&mut permit).await.unwrap().unwrap();
}
