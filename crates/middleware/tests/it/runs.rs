//! How runs end: hang-ups, panics, time-outs, faults, broken answers, lost leases; and what the record says after each.

use std::future::Future as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use counterfoil_core::{Policy, Receipt, Record, State, Why};
use counterfoil_middleware::{Body, BoxError, Fault, Guarded, Terms};
use futures_util::FutureExt as _;
use http::{Request, Response};
use http_body::Frame;

use crate::kit::{Handler, Held, House, counting, created, handler, identity, post, settings};
use crate::store::Scripted;

fn is_done(record: Option<&Record>) -> bool {
    record.is_some_and(|record| matches!(record.state, State::Done { .. }))
}

async fn standing(house: &House, key: &str) -> &'static str {
    match house.store.stands(&identity(key)).await.map(|record| record.state) {
        None => "absent",
        Some(State::Running) => "running",
        Some(State::Unknown { why, .. }) => why.as_str(),
        Some(State::Done { .. }) => "done",
        Some(State::Spent { .. }) => "spent",
    }
}

#[tokio::test]
async fn a_caller_that_hangs_up_cancels_nothing() {
    let held = Held::new();
    let house = House::new(held.handler());
    let caller = house.sending(post("k"));
    held.begun.notified().await;
    caller.abort();
    assert!(caller.await.unwrap_err().is_cancelled());
    held.go.notify_one();
    house.store.until(&identity("k"), is_done).await;
    assert_eq!(house.send(post("k")).await.line(), "201 replayed=true");
    assert_eq!(held.effects.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_caller_that_hangs_up_before_the_claim_cancels_nothing_either() {
    let effects = Arc::new(AtomicUsize::new(0));
    let house = House::new(counting(&effects));
    house.store.wait();
    let mut sending = Box::pin(house.send(post("k")));
    std::future::poll_fn(|cx| {
        assert!(sending.as_mut().poll(cx).is_pending());
        Poll::Ready(())
    })
    .await;
    drop(sending);
    house.store.until(&identity("k"), is_done).await;
    assert_eq!(effects.load(Ordering::SeqCst), 1);
}

/// A run that never waits is over with the first poll; nothing of it is left for a task.
#[tokio::test]
async fn a_run_that_never_waits_ends_where_it_began() {
    let effects = Arc::new(AtomicUsize::new(0));
    let house = House::new(counting(&effects));
    let mut sending = Box::pin(house.send(post("k")));
    let polled = std::future::poll_fn(|cx| Poll::Ready(sending.as_mut().poll(cx))).await;
    assert!(matches!(polled, Poll::Ready(answer) if answer.line() == "201 replayed=false"));
    assert!(is_done(house.store.stands(&identity("k")).await.as_ref()));
}

/// A handler that goes to sleep before its effect and after it.
fn yielding(effects: &Arc<AtomicUsize>) -> Handler {
    let effects = effects.clone();
    handler(move |_| {
        let effects = effects.clone();
        async move {
            tokio::task::yield_now().await;
            let number = effects.fetch_add(1, Ordering::SeqCst) + 1;
            tokio::task::yield_now().await;
            Ok(created(number))
        }
    })
}

#[tokio::test]
async fn a_caller_that_hangs_up_at_any_moment_changes_nothing() {
    let mut polls = 0;
    loop {
        let effects = Arc::new(AtomicUsize::new(0));
        let house = House::new(yielding(&effects));
        house.store.wait();
        let mut sending = Box::pin(house.send(post("k")));
        let mut answered = false;
        for _ in 0..polls {
            answered = std::future::poll_fn(|cx| Poll::Ready(sending.as_mut().poll(cx).is_ready())).await;
            tokio::task::yield_now().await;
        }
        drop(sending);
        let mut next = house.send(post("k")).await.line();
        for _ in 0..1_000 {
            if next != "409 in-progress" {
                break;
            }
            tokio::task::yield_now().await;
            next = house.send(post("k")).await.line();
        }
        assert_eq!(next, if polls == 0 { "201 replayed=false" } else { "201 replayed=true" }, "after {polls} polls");
        assert_eq!(effects.load(Ordering::SeqCst), 1, "after {polls} polls");
        if answered {
            break;
        }
        polls += 1;
        assert!(polls < 1_000, "it is never answered");
    }
    assert!(polls > 1, "it was answered at once: nothing was cut off");
}

/// What a handler does, what its caller gets, what stands, and what the next caller gets.
async fn check(what: &str, run: Handler, first: &str, stands: &str, next: &str) {
    let house = House::new(run);
    assert_eq!(house.send(post("k")).await.line(), first, "{what}: the first caller");
    assert_eq!(standing(&house, "k").await, stands, "{what}: the record");
    assert_eq!(house.send(post("k")).await.line(), next, "{what}: the next caller");
}

fn failing(fault: fn() -> Fault) -> Handler {
    handler(move |_| async move { Err(fault()) })
}

#[tokio::test]
async fn every_end_of_a_run() {
    let panicking = handler(|_| async { panic!("half-way") });
    let unknown = ("doubted", "409 outcome-unknown");
    check("panic", panicking, "502 outcome-unknown", unknown.0, unknown.1).await;
    check("an error", failing(|| Fault::Broken("broken".to_owned())), "502 outcome-unknown", unknown.0, unknown.1)
        .await;
    let timed_out = failing(|| Fault::TimedOut("read".to_owned()));
    check("timed out", timed_out, "504 outcome-unknown", unknown.0, unknown.1).await;
    let not_sent = failing(|| Fault::NotSent("refused".to_owned()));
    check("not sent", not_sent, "502 upstream-unreachable", "absent", "502 upstream-unreachable").await;
    let truncated = handler(|_| async { Ok(Response::new(Body::new(Cut::after("half")))) });
    check("truncated", truncated, "502 outcome-unknown", unknown.0, unknown.1).await;
    let in_body = handler(|_| async { Ok(Response::new(Body::new(Panicking))) });
    check("panic in the body", in_body, "502 outcome-unknown", unknown.0, unknown.1).await;
    let refusing = handler(|_| async { Ok(Response::builder().status(422).body(Body::from("no")).unwrap()) });
    check("refused", refusing, "422 replayed=false", "absent", "422 replayed=false").await;
    let odd = handler(|_| async { Ok(Response::builder().status(101).body(Body::empty()).unwrap()) });
    check("an upgrade", odd, "502 outcome-unknown", unknown.0, unknown.1).await;
}

/// A body that breaks off.
struct Cut(Option<&'static str>);

impl Cut {
    const fn after(text: &'static str) -> Self {
        Self(Some(text))
    }
}

impl http_body::Body for Cut {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        Poll::Ready(Some(self.0.take().map_or(Err("cut".into()), |text| Ok(Frame::data(text.into())))))
    }
}

/// A body that panics.
struct Panicking;

impl http_body::Body for Panicking {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        panic!("in the body")
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_over_its_limit_leaves_a_doubt_that_its_late_end_settles() {
    let held = Held::new();
    let house = House::new(held.handler());
    let from = tokio::time::Instant::now();
    let answer = house.send(post("k")).await;
    assert_eq!(answer.line(), "504 outcome-unknown");
    assert_eq!(from.elapsed().as_secs(), Policy::default().attempt_limit.as_secs());
    assert_eq!(answer.header("retry-after"), Some("30"));
    assert_eq!(standing(&house, "k").await, "doubted");
    assert_eq!(house.send(post("k")).await.line(), "409 outcome-unknown");
    held.go.notify_one();
    house.store.until(&identity("k"), is_done).await;
    assert_eq!(house.send(post("k")).await.line(), "201 replayed=true");
    assert_eq!(held.effects.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn a_late_refusal_does_not_settle_a_doubt() {
    let held = Held::new();
    let go = held.go.clone();
    let late = handler(move |_| {
        let go = go.clone();
        async move {
            go.notified().await;
            Ok(Response::builder().status(400).body(Body::empty()).unwrap())
        }
    });
    let house = House::new(late);
    assert_eq!(house.send(post("k")).await.line(), "504 outcome-unknown");
    held.go.notify_one();
    house.drain.drain(Duration::from_hours(1)).await;
    assert_eq!(standing(&house, "k").await, "doubted");
}

#[tokio::test]
async fn a_lease_is_renewed_while_its_handler_runs() {
    let held = Held::new();
    let policy = Policy { lease: Duration::from_millis(60), ..Policy::default() };
    let house = House::with(settings(Terms { policy, ..Terms::default() }), held.handler());
    let first = house.sending(post("k"));
    held.begun.notified().await;
    house.store.until(&identity("k"), |record| record.is_some_and(|record| record.version >= 4)).await;
    house.store.clock.advance(Duration::from_millis(59));
    let before = house.store.stands(&identity("k")).await.unwrap().version;
    house.store.until(&identity("k"), |record| record.is_some_and(|record| record.version > before)).await;
    house.store.clock.advance(Duration::from_millis(59));
    assert_eq!(house.send(post("k")).await.line(), "409 in-progress");
    held.go.notify_one();
    assert_eq!(first.await.unwrap().line(), "201 replayed=false");
}

/// The runtime has one thread and the handler keeps it, so that no task can renew anything meanwhile.
#[tokio::test]
async fn a_handler_that_blocks_its_runtime_does_not_lose_its_lease() {
    let kept = Arc::new(OnceLock::<Arc<Scripted>>::new());
    let inside = kept.clone();
    let blocking = handler(move |_| {
        let store = inside.get().unwrap().clone();
        async move {
            let until = std::time::Instant::now() + Duration::from_mins(1);
            while store.stands(&identity("k")).now_or_never().flatten().is_none_or(|record| record.version < 4) {
                assert!(std::time::Instant::now() < until, "nobody renews the lease");
                std::thread::yield_now();
            }
            Ok(created(1))
        }
    });
    let policy = Policy { lease: Duration::from_millis(60), ..Policy::default() };
    let house = House::with(settings(Terms { policy, ..Terms::default() }), blocking);
    assert!(kept.set(house.store.clone()).is_ok());
    assert_eq!(house.send(post("k")).await.line(), "201 replayed=false");
    assert_eq!(house.send(post("k")).await.line(), "201 replayed=true");
}

#[tokio::test]
async fn a_completion_that_comes_too_late_shows_what_stands_and_never_runs_again() {
    let held = Held::new();
    let house = House::new(held.handler());
    let settled = House::new(counting(&held.effects));
    settled.send(post("k")).await;
    let other = settled.store.stands(&identity("k")).await;
    let doubted = other.clone().map(|record| {
        let since = record.claimed_at;
        Record { state: State::Unknown { since, why: Why::Doubted }, ..record }
    });
    let table = [(None, "409 outcome-unknown"), (doubted, "409 outcome-unknown"), (other, "201 replayed=true")];
    for (stands, expected) in table {
        let first = house.sending(post("k"));
        held.begun.notified().await;
        house.store.put(&identity("k"), stands.clone()).await;
        held.go.notify_one();
        assert_eq!(first.await.unwrap().line(), expected, "{stands:?}");
        assert_eq!(house.store.stands(&identity("k")).await, stands, "somebody else's record was touched");
        house.store.put(&identity("k"), None).await;
    }
    assert_eq!(held.effects.load(Ordering::SeqCst), 4);
}

#[tokio::test]
async fn the_handler_gets_the_whole_request_and_learns_that_it_is_guarded() {
    let echo = handler(|request: Request<Body>| async move {
        let guarded = request.extensions().get::<Guarded>().cloned().unwrap();
        assert_eq!(guarded.operation.as_str(), "create-order");
        assert_eq!(guarded.digest, identity("k").digest());
        assert_eq!(request.headers()["idempotency-key"], "k");
        Ok(Response::new(request.into_body()))
    });
    let answer = House::new(echo).send(post("k")).await;
    assert_eq!(answer.body, r#"{"item": "tea"}"#);
}

#[tokio::test]
async fn a_receipt_that_http_cannot_carry_is_refused() {
    let effects = Arc::new(AtomicUsize::new(0));
    let house = House::new(counting(&effects));
    house.send(post("k")).await;
    let record = house.store.stands(&identity("k")).await.unwrap();
    let State::Done { author, completed_at, expires_at, refuse_until, .. } = record.state else { unreachable!() };
    let receipt = Receipt::new(7, "odd");
    let state = State::Done { receipt, author, completed_at, expires_at, refuse_until };
    house.store.put(&identity("k"), Some(Record { state, ..record })).await;
    assert_eq!(house.send(post("k")).await.line(), "503 record-unreadable");
    assert_eq!(effects.load(Ordering::SeqCst), 1);
}
