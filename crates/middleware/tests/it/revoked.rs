//! Callers whose right is taken away, or who become somebody else, while they wait for the end of another's run. Who is
//! known at all, and in which order, is tested in `order`.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use counterfoil_core::Scope;
use counterfoil_middleware::{Body, Duplicates, Fault, Principal, PrincipalAnswer, PrincipalFault, Settings, Terms};
use http::Response;
use http::request::Parts;
use tokio::sync::Notify;

use crate::kit::{House, created, handler, post, settings};

/// Whoever asks is who it was last told, and counts how often it was asked.
#[derive(Clone)]
struct Told {
    who: Arc<Mutex<Option<&'static str>>>,
    asked: Arc<AtomicUsize>,
}

impl Told {
    fn new() -> Self {
        Self { who: Arc::new(Mutex::new(Some("ann"))), asked: Arc::default() }
    }

    fn is(&self, who: Option<&'static str>) {
        *self.who.lock().unwrap() = who;
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

impl Principal for Told {
    fn principal<'a>(&'a self, _: &'a Parts) -> PrincipalAnswer<'a> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let who = *self.who.lock().unwrap();
        let known = who.map(|who| Scope::principal(who).unwrap());
        let revoked = PrincipalFault::Forbidden { detail: "no longer".to_owned() };
        Box::pin(std::future::ready(known.ok_or(revoked)))
    }
}

/// How the run ends that is waited for.
#[derive(Clone, Copy, Debug)]
enum End {
    Answers(u16),
    Panics,
    /// Not while anybody waits.
    Never,
}

/// A first caller, and a second that waits for it; `then` happens while it waits. What the second was answered, how
/// often the principal was asked on its behalf, and how often the handler began.
async fn second(end: End, then: impl FnOnce(&Told)) -> (String, usize, usize) {
    let (begun, go, runs) = (Arc::new(Notify::new()), Arc::new(Notify::new()), Arc::new(AtomicUsize::new(0)));
    let (told_begun, let_go, counted) = (begun.clone(), go.clone(), runs.clone());
    let run = handler(move |_| {
        let (begun, go) = (told_begun.clone(), let_go.clone());
        let number = counted.fetch_add(1, Ordering::SeqCst);
        async move {
            if number > 0 {
                return Ok::<_, Fault>(created(number));
            }
            begun.notify_one();
            go.notified().await;
            match end {
                End::Answers(status) => Ok(Response::builder().status(status).body(Body::from("secret")).unwrap()),
                End::Panics => panic!("half-way"),
                End::Never => std::future::pending().await,
            }
        }
    });
    let told = Told::new();
    let terms = Terms { duplicates: Duplicates::Wait(Duration::from_secs(5)), ..Terms::default() };
    let house = House::with(Settings { principal: Arc::new(told.clone()), ..settings(terms) }, run);
    drop(house.sending(post("k")));
    begun.notified().await;
    let second = house.sending(post("k"));
    for _ in 0..200 {
        tokio::task::yield_now().await;
    }
    assert_eq!(told.asked(), 2, "it was asked before the end of the wait");
    then(&told);
    go.notify_one();
    let answer = second.await.unwrap();
    assert!(answer.status == 201 || !answer.body.windows(6).any(|six| six == b"secret"), "it was shown the result");
    (answer.line(), told.asked() - 1, runs.load(Ordering::SeqCst))
}

#[tokio::test(start_paused = true)]
async fn whoever_lost_the_right_while_it_waited_gets_what_a_fresh_request_would_get() {
    let table = [
        (End::Answers(201), "201 replayed=true", 1),
        (End::Answers(400), "201 replayed=false", 2),
        (End::Panics, "409 outcome-unknown", 1),
        (End::Never, "409 in-progress", 1),
    ];
    for (end, known, runs) in table {
        // Once before the wait, and once after it.
        assert_eq!(second(end, |_| {}).await, (known.to_owned(), 2, runs), "{end:?}");
        assert_eq!(second(end, |told| told.is(None)).await, ("403 forbidden".to_owned(), 2, 1), "{end:?}");
        let another = second(end, |told| told.is(Some("bob"))).await;
        assert_eq!(another, ("503 principal-unavailable".to_owned(), 2, 1), "{end:?}");
    }
}
