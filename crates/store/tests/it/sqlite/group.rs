//! Many callers, few transactions: bounds, and hand-over of the lead. In which order jobs run is told from inside.
//! What one effect does to its neighbours stands in `effects`.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use counterfoil_core::{Policy, Receipt};
use counterfoil_store::seam::{RecordStore as _, Swapped};
use counterfoil_store::sqlite::{Executed, Origin};
use counterfoil_store::{ErrorKind, SqliteStore};
use tokio::task::JoinHandle;

use super::{Place, claim, claiming, identity, order, origin, record, refused};

/// Longer than anything takes that does not wait for the writer.
const AT_ONCE: Duration = Duration::from_secs(30);

/// An effect that holds the writer until it is let go.
struct Held {
    go: Sender<()>,
    holding: JoinHandle<()>,
}

impl Held {
    async fn by(store: &Arc<SqliteStore>) -> Self {
        let (started, has_started) = channel();
        let (go, gone): (_, Receiver<()>) = channel();
        let store = Arc::clone(store);
        let holding = tokio::spawn(async move {
            let held = move |_: &counterfoil_store::sqlite::Handle<'_>| {
                started.send(()).unwrap();
                gone.recv().unwrap();
                Ok::<_, String>(Receipt::new(200, ""))
            };
            assert_eq!(origin(store.execute(claim("holding"), &Policy::default(), held).await), Origin::Fresh);
        });
        tokio::task::spawn_blocking(move || has_started.recv().unwrap()).await.unwrap();
        Self { go, holding }
    }

    async fn let_go(self) {
        self.go.send(()).unwrap();
        self.holding.await.unwrap();
    }
}

async fn until_waiting(store: &SqliteStore, count: usize) {
    while store.waiting() < count {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_waits_is_committed_as_one_transaction() {
    let place = Place::new();
    let store = place.with_orders();
    let held = Held::by(&store).await;
    let before = store.batches();
    let callers: Vec<_> = (0..100_usize)
        .map(|caller| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                let key = format!("key-{caller}");
                store.swap(claiming(&key, 1, &store)).await.unwrap()
            })
        })
        .collect();
    until_waiting(&store, 100).await;
    held.let_go().await;
    for caller in callers {
        assert!(matches!(caller.await.unwrap(), Swapped::Won { .. }));
    }
    // The holding one's, and one or two for a hundred: a batch ends after some milliseconds of work.
    let taken = store.batches() - before;
    assert!(taken <= 20, "100 writes took {taken} commits");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_batch_carries_no_more_than_its_bound() {
    let place = Place::new();
    let mut options = place.options();
    options.batch_max = 3;
    let store = place.open_with(options).unwrap();
    let held = Held::by(&store).await;
    let before = store.batches();
    let callers: Vec<_> = (0..9_usize)
        .map(|caller| {
            let store = Arc::clone(&store);
            tokio::spawn(async move { store.swap(claiming(&format!("key-{caller}"), 1, &store)).await.unwrap() })
        })
        .collect();
    until_waiting(&store, 9).await;
    held.let_go().await;
    for caller in callers {
        caller.await.unwrap();
    }
    assert!(store.batches() - before >= 4, "ten writes in batches of three took {}", store.batches() - before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_full_queue_is_busy_and_nothing_of_it_is_applied() {
    let place = Place::new();
    let mut options = place.options();
    options.queue_max = 2;
    let store = place.open_with(options).unwrap();
    let held = Held::by(&store).await;
    let callers: Vec<_> = (0..2_usize)
        .map(|caller| {
            let store = Arc::clone(&store);
            tokio::spawn(async move { store.swap(claiming(&format!("key-{caller}"), 1, &store)).await.unwrap() })
        })
        .collect();
    until_waiting(&store, 2).await;
    let refusal = tokio::time::timeout(AT_ONCE, store.swap(claiming("one more", 1, &store))).await;
    refused(refusal.expect("it waited with the others"), ErrorKind::Busy, "2 writes wait");
    held.let_go().await;
    for caller in callers {
        assert!(matches!(caller.await.unwrap(), Swapped::Won { .. }));
    }
    assert_eq!(record(&store, "one more").await, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nobody_is_answered_before_the_commit() {
    let place = Place::new();
    let store = place.with_orders();
    let (started, has_started) = channel();
    let (go, gone) = channel::<()>();
    let first = {
        let store = Arc::clone(&store);
        tokio::spawn(async move { store.execute(claim("a"), &Policy::default(), order("1")).await })
    };
    assert_eq!(origin(first.await.unwrap()), Origin::Fresh);
    let blocking = {
        let store = Arc::clone(&store);
        tokio::spawn(async move {
            let effect = move |handle: &counterfoil_store::sqlite::Handle<'_>| {
                handle.execute("INSERT INTO orders VALUES ('2')", []).map_err(|error| error.to_string())?;
                started.send(()).unwrap();
                gone.recv().unwrap();
                Ok::<_, String>(Receipt::new(200, ""))
            };
            store.execute(claim("b"), &Policy::default(), effect).await
        })
    };
    tokio::task::spawn_blocking(move || has_started.recv().unwrap()).await.unwrap();
    assert_eq!(record(&store, "b").await, None, "a record is read before its commit");
    assert_eq!(place.orders(), 1, "an effect is read before its commit");
    go.send(()).unwrap();
    assert_eq!(origin(blocking.await.unwrap()), Origin::Fresh);
    assert!(record(&store, "b").await.is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_batch_is_not_cancelled_with_the_caller_that_leads_it() {
    let place = Place::new();
    let store = place.with_orders();
    let held = Held::by(&store).await;
    let leaving = {
        let store = Arc::clone(&store);
        tokio::spawn(async move { store.execute(claim("leaves"), &Policy::default(), order("leaves")).await })
    };
    until_waiting(&store, 1).await;
    leaving.abort();
    held.holding.abort();
    held.go.send(()).unwrap();
    let next = store.execute(claim("next"), &Policy::default(), order("next")).await;
    assert_eq!(origin(next), Origin::Fresh);
    for key in ["holding", "leaves"] {
        assert!(store.read(&identity(key)).await.unwrap().record.is_some(), "{key} was cancelled");
    }
}

#[test]
fn the_lead_goes_from_a_runtime_that_ends_to_whoever_waits() {
    let place = Place::new();
    let store = place.with_orders();
    for round in 0..20 {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
        for caller in 0..8 {
            let (store, key) = (Arc::clone(&store), format!("async-{round}-{caller}"));
            drop(runtime.spawn(async move { store.swap(claiming(&key, 1, &store)).await }));
        }
        let threads: Vec<_> = (0..4)
            .map(|caller| {
                let (store, key) = (Arc::clone(&store), format!("thread-{round}-{caller}"));
                std::thread::spawn(move || {
                    let claim = counterfoil_core::Claim::new(
                        identity(&key),
                        counterfoil_core::Asked::bytes("order"),
                        &counterfoil_core::Rule::bytes(),
                    );
                    store.execute_blocking(claim.unwrap(), &Policy::default(), order(&key))
                })
            })
            .collect();
        runtime.shutdown_background();
        for thread in threads {
            assert!(matches!(thread.join().unwrap().unwrap(), Executed::Done { origin: Origin::Fresh, .. }));
        }
    }
    // Nobody was left with the lead and without a thread.
    assert_eq!(origin(store.execute_blocking(claim("last"), &Policy::default(), order("last"))), Origin::Fresh);
}

/// A leader that never gets its thread, because the runtime that would give it ends first, leads where it is dropped.
#[test]
fn a_leader_without_a_thread_leads_all_the_same() {
    let place = Place::new();
    let store = place.with_orders();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).max_blocking_threads(1).build().unwrap();
    let (started, has_started) = channel();
    let (go, gone) = channel::<()>();
    drop(runtime.spawn_blocking(move || {
        started.send(()).unwrap();
        gone.recv().unwrap();
    }));
    has_started.recv().unwrap();
    // It finds nobody who leads, and waits for the one thread.
    let leading = Arc::clone(&store);
    drop(runtime.spawn(async move { leading.swap(claiming("left", 1, &leading)).await }));
    while store.waiting() < 1 {
        std::thread::yield_now();
    }
    runtime.shutdown_background();
    go.send(()).unwrap();
    let (tell, told) = channel();
    let next = Arc::clone(&store);
    std::thread::spawn(move || {
        tell.send(next.execute_blocking(claim("next"), &Policy::default(), order("next"))).unwrap();
    });
    let answer = told.recv_timeout(AT_ONCE).expect("nobody leads any more");
    assert_eq!(origin(answer), Origin::Fresh);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    assert!(runtime.block_on(record(&store, "left")).is_some(), "it went with its leader");
}
