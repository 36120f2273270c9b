//! A handler that sends an upstream its child keys: it gets the same in every run, and is told at the wire when nothing may
//! be sent any more. The proxy's way is tested in the server.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use counterfoil_core::policy::{Remember, StillRunning};
use counterfoil_core::record::Standing;
use counterfoil_core::{Effect, Policy, child_key};
use counterfoil_middleware::{Body, ChildKeys, Fault, Terms};
use counterfoil_store::RecordStore as _;
use http::Request;

use crate::kit::{House, created, handler, identity, post, settings};
use crate::store::Hands;

/// A lease that outlasts every test, so that only windows close.
const LEASE: Duration = Duration::from_hours(48);
const SENDS_FOR: Duration = Duration::from_mins(24 * 60 - 6);

fn terms() -> Terms {
    let window = Duration::from_hours(24);
    let policy = Policy { effect: Effect::KeyedUpstream, window, lease: LEASE, ..Policy::default() };
    let in_progress = StillRunning { statuses: vec![409], problems: Vec::new() };
    Terms { policy, remember: Remember { in_progress, ..Remember::default() }, ..Terms::default() }
}

/// What a handler does before it sends, and then.
#[derive(Clone, Copy, PartialEq)]
enum Run {
    Sends,
    /// It sends, and gets no answer.
    Breaks,
    /// It comes to send only when the window has closed.
    Dawdles,
}

/// A handler that runs as it is told, and notes the keys that it sent.
fn house(runs: &[Run], sent: &Arc<Mutex<Vec<String>>>) -> House {
    let (runs, number, noted) = (runs.to_vec(), Arc::new(AtomicUsize::new(0)), sent.clone());
    let clock: Arc<Mutex<Option<Arc<Hands>>>> = Arc::default();
    let hands = clock.clone();
    let house = House::with(
        settings(terms()),
        handler(move |request: Request<Body>| {
            let run = runs.get(number.fetch_add(1, Ordering::SeqCst)).copied().unwrap_or(Run::Sends);
            let keys = request.extensions().get::<ChildKeys>().cloned().unwrap();
            if run == Run::Dawdles {
                hands.lock().unwrap().as_ref().unwrap().advance(SENDS_FOR);
            }
            let sent = keys.may_send().map(|()| noted.lock().unwrap().push(keys.key("charge").as_str().to_owned()));
            async move {
                sent?;
                if run == Run::Breaks { Err(Fault::Broken("cut off".to_owned())) } else { Ok(created(1)) }
            }
        }),
    );
    *clock.lock().unwrap() = Some(house.store.clock.clone());
    house
}

async fn standing(house: &House) -> String {
    let seen = house.store.read(&identity("k")).await.unwrap();
    match seen.record.as_deref().map(|record| record.standing(seen.now)) {
        None => "nothing".to_owned(),
        Some(Standing::Unknown { why, .. }) => format!("unknown ({})", why.as_str()),
        Some(standing) => standing.as_str().to_owned(),
    }
}

async fn check(runs: &[Run], answers: &[(&str, &str)], sends: usize) {
    let sent = Arc::default();
    let house = house(runs, &sent);
    for (answer, stands) in answers {
        assert_eq!(house.send(post("k")).await.line(), *answer);
        assert_eq!(standing(&house).await, *stands, "{answer}");
    }
    let key = child_key(&identity("k"), "charge", 0).as_str().to_owned();
    assert_eq!(*sent.lock().unwrap(), vec![key; sends]);
}

#[tokio::test]
async fn every_run_sends_the_same_key() {
    let answers = [
        ("502 outcome-unknown", "lapsed"),
        ("502 outcome-unknown", "lapsed"),
        ("201 replayed=false", "done"),
        ("201 replayed=true", "done"),
    ];
    check(&[Run::Breaks, Run::Breaks], &answers, 3).await;
}

#[tokio::test]
async fn a_first_run_that_comes_too_late_to_send_gives_the_key_back() {
    let answers = [("502 upstream-unreachable", "absent"), ("201 replayed=false", "done")];
    check(&[Run::Dawdles], &answers, 1).await;
}

#[tokio::test]
async fn behind_a_doubt_a_run_that_comes_too_late_leaves_it_unknown() {
    let answers = [
        ("502 outcome-unknown", "lapsed"),
        ("409 outcome-unknown", "unknown (window-closed)"),
        ("409 outcome-unknown", "unknown (window-closed)"),
    ];
    check(&[Run::Breaks, Run::Dawdles], &answers, 1).await;
}
