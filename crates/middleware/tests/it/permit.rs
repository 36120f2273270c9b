//! Coupled operations behind a proxy: the record decides, whatever the application said; and a store that fails when a run
//! is concluded.
//! Applications of processes of their own are in the end-to-end checks, transactions in the store's tests.

use std::sync::Arc;
use std::time::Duration;

use counterfoil_core::action::settle;
use counterfoil_core::policy::Answerer;
use counterfoil_core::{Effect, Expiry, Hold, Policy, Receipt, State};
use counterfoil_middleware::{Body, Fault, Guarded, PermitText, Settings, Terms};
use counterfoil_store::seam::{Expected, New, RecordStore as _, Swap, Swapped};
use counterfoil_store::{ErrorKind, StoreError};
use http::{Request, Response};

use crate::kit::{Handler, House, handler, identity, post, settings};
use crate::store::Scripted;

fn coupled(hold: Hold) -> Settings {
    let policy = Policy { effect: Effect::Coupled, ..Policy::default() };
    Settings { answerer: Answerer::Upstream, ..settings(Terms { policy, hold, ..Terms::default() }) }
}

/// Settles as an application does that shows the permit of its request.
async fn settled(store: &Scripted, permit: PermitText, guarded: Guarded) {
    let (text, digest) = (permit.value().to_str().unwrap(), guarded.digest);
    let seen = store.read(&identity("k")).await.unwrap();
    let record = seen.record.unwrap();
    assert_eq!(text, format!("cf1-{}-{}", record.lease.id, digest.to_hex()));
    let (receipt, day) = (Receipt::new(201, "settled"), Duration::from_hours(24));
    let done = settle(Some(&record), record.lease.id, receipt, day, Expiry::NewAction, seen.now.at).unwrap();
    let (identity, expected) = (identity("k"), Expected::record(&record));
    let swap = Swap { identity, expected, new: New::put(done), not_after: None, note: None };
    assert!(matches!(store.swap(swap).await.unwrap(), Swapped::Won { .. }));
}

/// How the application ends.
#[derive(Clone, Copy, Debug)]
enum End {
    Answers(u16),
    Breaks,
    TimesOut,
    IsNotReached,
}

fn application(store: &Arc<std::sync::OnceLock<Arc<Scripted>>>, settles: bool, end: End) -> Handler {
    let store = store.clone();
    handler(move |request: Request<Body>| {
        let store = store.clone();
        let permit = request.extensions().get::<PermitText>().unwrap().clone();
        let guarded = request.extensions().get::<Guarded>().unwrap().clone();
        async move {
            if settles {
                settled(store.get().unwrap(), permit, guarded).await;
            }
            match end {
                End::Answers(status) => {
                    Ok(Response::builder().status(status).body(Body::from("its own words")).unwrap())
                }
                End::Breaks => Err(Fault::Broken("the connection".to_owned())),
                End::TimesOut => Err(Fault::TimedOut("no answer".to_owned())),
                End::IsNotReached => Err(Fault::NotSent("no connection".to_owned())),
            }
        }
    })
}

fn house(hold: Hold, settles: bool, end: End) -> House {
    let store = Arc::new(std::sync::OnceLock::new());
    let house = House::with(coupled(hold), application(&store, settles, end));
    assert!(store.set(house.store.clone()).is_ok());
    house
}

/// What the first request and a retry are answered, and what stands after the first.
async fn check(hold: Hold, settles: bool, end: End, first: &str, stands: &str, retry: &str) {
    let house = house(hold, settles, end);
    let answer = house.send(post("k")).await;
    let standing = match house.store.stands(&identity("k")).await {
        None => "absent",
        Some(record) => match record.state {
            State::Running if record.lease.until <= house.store.now().at => "ended",
            State::Running => "running",
            State::Unknown { .. } => "unknown",
            State::Done { .. } => "done",
            State::Spent { .. } => "spent",
        },
    };
    let again = house.send(post("k")).await;
    let found = (answer.line(), standing, again.line());
    assert_eq!((found.0.as_str(), found.1, found.2.as_str()), (first, stands, retry), "{hold:?} {settles} {end:?}");
    if settles {
        assert_eq!((&answer.body[..], &again.body[..]), (&b"settled"[..], &b"settled"[..]));
        assert!(answer.header("idempotency-expires").is_some());
    }
}

#[tokio::test]
async fn what_is_settled_is_the_answer_whatever_was_said() {
    for end in [End::Answers(201), End::Answers(404), End::Answers(500), End::Breaks, End::TimesOut, End::IsNotReached]
    {
        for hold in [Hold::Optional, Hold::Always] {
            check(hold, true, end, "201 replayed=false", "done", "201 replayed=true").await;
        }
    }
}

#[tokio::test]
async fn what_is_not_settled_is_released_ended_or_in_doubt() {
    let unknown = "502 outcome-unknown";
    for success in [200, 201, 303] {
        check(Hold::Optional, false, End::Answers(success), unknown, "unknown", "409 outcome-unknown").await;
        check(Hold::Always, false, End::Answers(success), unknown, "ended", unknown).await;
    }
    for hold in [Hold::Optional, Hold::Always] {
        for failure in [400, 404, 422, 500, 502, 503, 504] {
            let own = format!("{failure} replayed=false");
            check(hold, false, End::Answers(failure), &own, "absent", &own).await;
        }
        let late = "504 outcome-unknown";
        check(hold, false, End::Breaks, late, "ended", late).await;
        check(hold, false, End::TimesOut, late, "ended", late).await;
        let unreached = "502 upstream-unreachable";
        check(hold, false, End::IsNotReached, unreached, "absent", unreached).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_fails_is_asked_again_with_what_was_heard_first() {
    for end in [End::Answers(500), End::Answers(201), End::Breaks] {
        let house = house(Hold::Optional, false, end);
        house.store.on_swap(|swap| {
            let claims = matches!(swap.new, New::Claim(_));
            (!claims).then(|| StoreError::not_applied(ErrorKind::Unavailable, "as the test says"))
        });
        let answer = house.send(post("k")).await.line();
        assert_eq!(answer, "504 outcome-unknown", "{end:?}");
        assert_eq!(house.send(post("k")).await.line(), "409 in-progress", "{end:?}: its lease is renewed meanwhile");
        house.store.mend();
        let now = house.store.clone();
        house
            .store
            .until(&identity("k"), move |record| {
                match (end, record.map(|record| (&record.state, record.lease.until))) {
                    (End::Answers(500), found) => found.is_none(),
                    (End::Answers(_), Some((State::Unknown { .. }, _))) => true,
                    (End::Breaks, Some((State::Running, until))) => until <= now.now().at,
                    _ => false,
                }
            })
            .await;
    }
}
