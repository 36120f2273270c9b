//! Duplicates while the action runs: refused, or waiting, in this process and beside another.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use counterfoil_core::policy::Answerer;
use counterfoil_middleware::{Body, Duplicates, Settings, Terms};
use http::Response;
use tokio::task::JoinHandle;

use crate::kit::{Answer, Held, House, created, handler, identity, post, settings};

fn waiting(span: Duration) -> Terms {
    Terms { duplicates: Duplicates::Wait(span), ..Terms::default() }
}

/// Lets every task that can go on go on until it waits.
async fn settle() {
    for _ in 0..200 {
        tokio::task::yield_now().await;
    }
}

/// Keeps the runtime busy, so that paused time stands still and no timer wakes anybody; for at most five seconds.
fn hold_time() -> tokio::task::JoinHandle<()> {
    tokio::spawn(async {
        let until = std::time::Instant::now() + Duration::from_secs(5);
        while std::time::Instant::now() < until {
            tokio::task::yield_now().await;
        }
    })
}

async fn lines(sent: Vec<JoinHandle<Answer>>) -> Vec<String> {
    let mut lines = Vec::new();
    for sent in sent {
        lines.push(sent.await.unwrap().line());
    }
    lines.sort();
    lines
}

#[tokio::test]
async fn a_duplicate_is_refused_while_the_action_runs_and_replayed_after_it() {
    let held = Held::new();
    let house = House::new(held.handler());
    let first = house.sending(post("k"));
    held.begun.notified().await;
    let second = house.send(post("k")).await;
    assert_eq!(second.line(), "409 in-progress");
    assert_eq!(second.header("retry-after"), Some("30"));
    house.store.clock.advance(Duration::from_secs(29));
    assert_eq!(house.send(post("k")).await.header("retry-after"), Some("1"));
    held.go.notify_one();
    assert_eq!(first.await.unwrap().line(), "201 replayed=false");
    assert_eq!(house.send(post("k")).await.line(), "201 replayed=true");
    assert_eq!(held.effects.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn eight_racers_make_one_created_and_seven_replays() {
    let held = Held::new();
    let house = House::with(settings(waiting(Duration::from_mins(1))), held.handler());
    let sent: Vec<_> = (0..8).map(|_| house.sending(post("k"))).collect();
    held.begun.notified().await;
    settle().await;
    assert_eq!(held.effects.load(Ordering::SeqCst), 0);
    held.go.notify_one();
    let lines = lines(sent).await;
    assert_eq!(lines[0], "201 replayed=false");
    assert!(lines[1..].iter().all(|line| line == "201 replayed=true"), "{lines:?}");
    assert_eq!(held.effects.load(Ordering::SeqCst), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn eight_racers_on_four_threads_many_times() {
    let effects = Arc::new(AtomicUsize::new(0));
    let counted = effects.clone();
    let run = handler(move |_| {
        let counted = counted.clone();
        async move {
            tokio::task::yield_now().await;
            Ok(created(counted.fetch_add(1, Ordering::SeqCst)))
        }
    });
    let house = House::with(settings(waiting(Duration::from_mins(1))), run);
    for round in 0..100 {
        let key = format!("k{round}");
        let sent: Vec<_> = (0..8).map(|_| house.sending(post(&key))).collect();
        let lines = lines(sent).await;
        assert_eq!(lines.iter().filter(|line| *line == "201 replayed=false").count(), 1, "{lines:?}");
        assert_eq!(lines.iter().filter(|line| *line == "201 replayed=true").count(), 7, "{lines:?}");
        assert_eq!(effects.load(Ordering::SeqCst), round + 1);
    }
}

#[tokio::test]
async fn a_waiter_becomes_the_owner_where_the_key_was_released() {
    let held = Held::new();
    let (begun, go, tries) = (held.begun.clone(), held.go.clone(), held.effects.clone());
    let run = handler(move |_| {
        let (begun, go, number) = (begun.clone(), go.clone(), tries.fetch_add(1, Ordering::SeqCst));
        async move {
            if number > 0 {
                return Ok(created(number));
            }
            begun.notify_one();
            go.notified().await;
            Ok(Response::builder().status(400).body(Body::from("no")).unwrap())
        }
    });
    let house = House::with(settings(waiting(Duration::from_mins(1))), run);
    let sent: Vec<_> = (0..4).map(|_| house.sending(post("k"))).collect();
    held.begun.notified().await;
    settle().await;
    held.go.notify_one();
    let expected = ["201 replayed=false", "201 replayed=true", "201 replayed=true", "400 replayed=false"];
    assert_eq!(lines(sent).await, expected);
    assert_eq!(held.effects.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn waiters_return_at_once_where_nobody_knows() {
    let held = Held::new();
    let (begun, go) = (held.begun.clone(), held.go.clone());
    let run = handler(move |_| {
        let (begun, go) = (begun.clone(), go.clone());
        async move {
            begun.notify_one();
            go.notified().await;
            panic!("half-way");
        }
    });
    let house = House::with(settings(waiting(Duration::from_hours(1))), run);
    let sent: Vec<_> = (0..3).map(|_| house.sending(post("k"))).collect();
    held.begun.notified().await;
    settle().await;
    held.go.notify_one();
    assert_eq!(lines(sent).await, ["409 outcome-unknown", "409 outcome-unknown", "502 outcome-unknown"]);
}

#[tokio::test(start_paused = true)]
async fn every_end_wakes_its_waiters_without_a_timer() {
    let table = [
        (201, "201 replayed=true"),
        (400, "400 replayed=false"),
        // Behind a proxy, that is doubt.
        (503, "409 outcome-unknown"),
    ];
    for (status, expected) in table {
        let held = Held::new();
        let (begun, go) = (held.begun.clone(), held.go.clone());
        let run = handler(move |_| {
            let (begun, go) = (begun.clone(), go.clone());
            async move {
                begun.notify_one();
                go.notified().await;
                Ok(Response::builder().status(status).body(Body::empty()).unwrap())
            }
        });
        let limits = Settings { answerer: Answerer::Upstream, ..settings(waiting(Duration::from_hours(1))) };
        let house = House::with(limits, run);
        let busy = hold_time();
        let from = tokio::time::Instant::now();
        let first = house.sending(post("k"));
        held.begun.notified().await;
        let second = house.sending(post("k"));
        settle().await;
        held.go.notify_one();
        first.await.unwrap();
        // After a release the waiter is the owner, and runs too.
        held.go.notify_one();
        assert_eq!(second.await.unwrap().line(), expected);
        assert_eq!(from.elapsed(), Duration::ZERO, "a timer woke the waiter of {status}");
        busy.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn a_waiter_gives_up_after_its_span_and_leaves_the_claim_alone() {
    let held = Held::new();
    let house = House::with(settings(waiting(Duration::from_secs(5))), held.handler());
    let first = house.sending(post("k"));
    held.begun.notified().await;
    let from = tokio::time::Instant::now();
    assert_eq!(house.send(post("k")).await.line(), "409 in-progress");
    let waited = from.elapsed();
    assert!(Duration::from_secs(5) <= waited && waited < Duration::from_secs(6), "{waited:?}");
    held.go.notify_one();
    assert_eq!(first.await.unwrap().line(), "201 replayed=false");
}

#[tokio::test]
async fn too_many_waiters_are_refused() {
    let check = async |per_key: usize, all: usize| {
        let held = Held::new();
        let limits =
            Settings { waiters_per_key_max: per_key, waiters_max: all, ..settings(waiting(Duration::from_mins(1))) };
        let house = House::with(limits, held.handler());
        let mut sent = vec![house.sending(post("k"))];
        held.begun.notified().await;
        sent.push(house.sending(post("k")));
        settle().await;
        let third = house.send(post("k")).await;
        assert_eq!(third.line(), "503 too-many-waiting", "{per_key} {all}");
        assert!(third.header("retry-after").is_some());
        held.go.notify_one();
        assert_eq!(lines(sent).await, ["201 replayed=false", "201 replayed=true"]);
    };
    check(1, 64).await;
    check(64, 1).await;
}

#[tokio::test(start_paused = true)]
async fn a_waiter_sees_the_end_of_an_owner_elsewhere() {
    let held = Held::new();
    let here = House::with(settings(waiting(Duration::from_mins(30))), held.handler());
    let there = here.beside(settings(Terms::default()));
    let from = tokio::time::Instant::now();
    let first = there.sending(post("k"));
    held.begun.notified().await;
    let second = here.sending(post("k"));
    settle().await;
    held.go.notify_one();
    assert_eq!(first.await.unwrap().line(), "201 replayed=false");
    assert_eq!(second.await.unwrap().line(), "201 replayed=true");
    assert!(from.elapsed() < Duration::from_mins(1), "it was found only at the deadline: {:?}", from.elapsed());
    assert!(here.store.stands(&identity("k")).await.is_some());
}
