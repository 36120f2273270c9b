//! What transactions left behind is sent, once for each action, by any number of relays that come and go.
//! How an intent gets into an outbox is tested in the store.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use counterfoil_client::{Client, Heard, Outgoing, Reach, Relay, Sending, Transport, profiles};
use counterfoil_core::intent::{Draft, Header, Name, Outbound, ProfileRef, Recorded, Secret, State, Value};
use counterfoil_core::{Identity, Key, Operation, Receipt, Scope, Timestamp, child_key};
use counterfoil_store::clock::TestClock;
use counterfoil_store::intents::INTENTS_MAX;
use counterfoil_store::sqlite::Options;
use counterfoil_store::sqlite::rusqlite::{Connection, TransactionBehavior};
use counterfoil_store::{IntentStore as _, SqliteStore};
use http::Method;
use tempfile::TempDir;
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::provider::{Provider, answered, lost};

const POLL: Duration = Duration::from_millis(2);
const MINUTE: Duration = Duration::from_mins(1);

/// An application's file with an outbox in it.
struct Place {
    directory: TempDir,
    clock: TestClock,
}

fn parent(key: &str) -> Identity {
    Identity::new(Scope::principal("acme").unwrap(), Operation::new("create-order").unwrap(), Key::new(key).unwrap())
}

fn mail(name: &str) -> Draft {
    Draft {
        name: Name::new(name).unwrap(),
        method: Method::POST,
        url: "http://127.0.0.1:9/mails".to_owned(),
        headers: Vec::new(),
        body: Bytes::from_static(b"{}"),
        scope: None,
        profile: ProfileRef { id: "counterfoil".to_owned(), version: 1 },
    }
}

impl Place {
    fn new() -> Self {
        let begin = Timestamp::from_millis(1_800_000_000_000);
        Self { directory: TempDir::new().unwrap(), clock: TestClock::new(begin) }
    }

    fn open(&self) -> Arc<SqliteStore> {
        let mut options = Options::default();
        options.clock = Arc::new(self.clock.clone());
        SqliteStore::open(self.directory.path().join("app.db"), options).unwrap()
    }

    /// One transaction that leaves these behind, each as a step of the action of its name.
    fn leave(&self, store: &SqliteStore, drafts: impl IntoIterator<Item = Draft>) {
        let mut conn = Connection::open(self.directory.path().join("app.db")).unwrap();
        conn.busy_timeout(MINUTE).unwrap();
        conn.execute_batch("PRAGMA synchronous = FULL").unwrap();
        let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
        let profile = profiles::builtin("counterfoil").unwrap();
        for draft in drafts {
            let action = parent(draft.name.as_str());
            let recorded = store.record_in(&tx, &Outbound::new(draft, Some(action)), profile).unwrap();
            assert_eq!(recorded, Recorded::Written);
        }
        tx.commit().unwrap();
    }
}

/// A relay at work, and how to end it.
struct Running {
    stop: oneshot::Sender<()>,
    task: JoinHandle<usize>,
}

impl Running {
    fn of(relay: Relay) -> Self {
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(async move {
            relay
                .run(async {
                    stopped.await.ok();
                })
                .await
        });
        Self { stop, task }
    }

    async fn end(self) -> usize {
        self.stop.send(()).unwrap();
        self.task.await.unwrap()
    }
}

fn relay(store: Arc<SqliteStore>, transport: Arc<dyn Transport>) -> Relay {
    Relay::new(Client::new(store, transport)).with_poll(POLL)
}

/// Until that is so, for a minute at the most.
async fn until(what: &str, mut so: impl AsyncFnMut() -> bool) {
    let limit = Instant::now() + MINUTE;
    while !so().await {
        assert!(Instant::now() < limit, "{what}");
        tokio::task::yield_now().await;
    }
}

async fn settled(store: &SqliteStore, count: usize) -> bool {
    let page = store.intents(0, 1_000).await.unwrap();
    page.rows.iter().filter(|(_, row)| matches!(row.as_ref().unwrap().state, State::Settled { .. })).count() == count
}

async fn state(store: &SqliteStore, name: &str) -> State {
    store.intent(&Name::new(name).unwrap()).await.unwrap().unwrap().state
}

/// Answers only when it is let; counts who waits.
#[derive(Default)]
struct Gate {
    inside: AtomicUsize,
    sent: AtomicUsize,
    leave: Option<Semaphore>,
}

impl Gate {
    fn shut() -> Arc<Self> {
        Arc::new(Self { leave: Some(Semaphore::new(0)), ..Self::default() })
    }

    fn open(&self) {
        self.leave.as_ref().unwrap().add_permits(1_000);
    }

    fn inside(&self) -> usize {
        self.inside.load(Ordering::SeqCst)
    }
}

impl Transport for Gate {
    fn send(&self, _: Outgoing, _: Instant) -> Sending<'_> {
        self.inside.fetch_add(1, Ordering::SeqCst);
        self.sent.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move {
            self.leave.as_ref().unwrap().acquire().await.unwrap().forget();
            self.inside.fetch_sub(1, Ordering::SeqCst);
            Heard::Answered(Receipt::new(201, "made").with_header("idempotent-replayed", "false"))
        })
    }
}

#[tokio::test]
async fn a_lost_answer_is_asked_for_again_under_the_child_key() {
    let place = Place::new();
    let store = place.open();
    let provider = Provider::new([lost(), answered(201, "made")]);
    let running = Running::of(relay(store.clone(), Arc::new(provider.clone())));
    // It is there before there is anything to do.
    place.leave(&store, [mail("mail-1")]);
    until("it is sent", async || matches!(state(&store, "mail-1").await, State::Uncertain { .. })).await;
    place.clock.advance(MINUTE);
    until("it is settled", async || settled(&store, 1).await).await;
    assert_eq!(running.end().await, 0);
    let key = format!("\"{}\"", child_key(&parent("mail-1"), "mail-1", 0).as_str());
    assert_eq!(provider.keys(), [key.clone(), key]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_relays_on_one_outbox_send_each_action_once() {
    let place = Place::new();
    let (one, other) = (place.open(), place.open());
    let provider = Provider::new([answered(201, "made")]);
    place.leave(&one, (0..60).map(|number| mail(&format!("mail-{number}"))));
    let running = [&one, &other].map(|store| Running::of(relay(store.clone(), Arc::new(provider.clone()))));
    until("all are settled", async || settled(&one, 60).await).await;
    for relay in running {
        assert_eq!(relay.end().await, 0);
    }
    let keys = provider.keys();
    assert_eq!((keys.len(), keys.into_iter().collect::<BTreeSet<_>>().len()), (60, 60));
}

#[tokio::test]
async fn no_more_than_told_are_under_way_at_once() {
    let place = Place::new();
    let store = place.open();
    let gate = Gate::shut();
    place.leave(&store, (0..10).map(|number| mail(&format!("mail-{number}"))));
    let running = Running::of(relay(store.clone(), gate.clone()).with_at_once(3));
    until("three are under way", async || gate.inside() == 3).await;
    gate.open();
    until("all are settled", async || {
        assert!(gate.inside() <= 3);
        settled(&store, 10).await
    })
    .await;
    assert_eq!(running.end().await, 0);
    assert_eq!(gate.sent.load(Ordering::SeqCst), 10);
}

#[tokio::test]
async fn told_to_end_it_ends_what_is_under_way_and_begins_nothing() {
    let place = Place::new();
    let store = place.open();
    let gate = Gate::shut();
    place.leave(&store, [mail("mail-1"), mail("mail-2")]);
    let running = Running::of(relay(store.clone(), gate.clone()).with_at_once(1));
    until("one is under way", async || gate.inside() == 1).await;
    running.stop.send(()).unwrap();
    tokio::task::yield_now().await;
    gate.open();
    assert_eq!(running.task.await.unwrap(), 0);
    assert!(matches!(state(&store, "mail-1").await, State::Settled { .. }));
    assert_eq!(state(&store, "mail-2").await, State::Ready);
}

#[tokio::test]
async fn what_takes_too_long_is_cut_off_and_gone_on_with_by_another() {
    let place = Place::new();
    let store = place.open();
    let gate = Gate::shut();
    place.leave(&store, [mail("mail-1")]);
    let running = Running::of(relay(store.clone(), gate.clone()).with_grace(Duration::ZERO));
    until("it is under way", async || gate.inside() == 1).await;
    assert_eq!(running.end().await, 1);
    drop(store);
    // Another process knows that this one is gone.
    let store = place.open();
    assert!(matches!(state(&store, "mail-1").await, State::Uncertain { .. }), "{:?}", state(&store, "mail-1").await);
    place.clock.advance(MINUTE);
    let provider = Provider::new([answered(201, "made")]);
    let running = Running::of(relay(store.clone(), Arc::new(provider.clone())));
    until("it is settled", async || settled(&store, 1).await).await;
    assert_eq!((running.end().await, provider.keys().len()), (0, 1));
}

fn broken(name: &str) -> Draft {
    let secret = Secret::parse("Bearer file:/nowhere/token").unwrap();
    Draft { headers: vec![Header { name: "authorization".to_owned(), value: Value::Secret(secret) }], ..mail(name) }
}

/// More than one look reads, and all of them before the one that can be sent.
#[tokio::test]
async fn however_many_cannot_be_sent_the_others_are() {
    let place = Place::new();
    let store = place.open();
    let provider = Provider::new([answered(201, "made")]);
    place.leave(&store, (0..=INTENTS_MAX).map(|number| broken(&format!("broken-{number}"))).chain([mail("mail")]));
    let running = Running::of(relay(store.clone(), Arc::new(provider.clone())).with_at_once(100));
    until("the other is settled", async || matches!(state(&store, "mail").await, State::Settled { .. })).await;
    assert_eq!((running.end().await, provider.keys().len()), (0, 1));
}

#[tokio::test]
async fn one_that_cannot_be_sent_does_not_hold_up_the_others() {
    let place = Place::new();
    let store = place.open();
    let provider = Provider::new([answered(201, "made")]);
    place.leave(&store, [broken("broken"), mail("mail-1"), mail("mail-2")]);
    let running = Running::of(relay(store.clone(), Arc::new(provider.clone())).with_at_once(1));
    until("the others are settled", async || settled(&store, 2).await).await;
    assert_eq!(running.end().await, 0);
    assert_eq!((provider.keys().len(), state(&store, "broken").await), (2, State::Ready));
}

/// Whoever writes to an outbox has the rights of its relay only as far as the relay was told.
#[tokio::test]
async fn what_is_out_of_reach_is_neither_read_nor_sent() {
    let place = Place::new();
    let store = place.open();
    let provider = Provider::new([answered(201, "made")]);
    let paths = ["meant", "not-meant"].map(|name| place.directory.path().join(name));
    let with = |name: &str, place: usize| {
        std::fs::write(&paths[place], "t0p-s3cret").unwrap();
        let secret = Secret::parse(&format!("Bearer file:{}", paths[place].display())).unwrap();
        Draft { headers: vec![Header { name: "authorization".to_owned(), value: Value::Secret(secret) }], ..mail(name) }
    };
    let elsewhere = Draft { url: "http://127.0.0.1:10/mails".to_owned(), ..mail("elsewhere") };
    place.leave(&store, [elsewhere, with("not-meant", 1), with("meant", 0)]);
    let meant = Secret::parse(&format!("file:{}", paths[0].display())).unwrap().source;
    let reach = Reach::default().with_origins(vec!["http://127.0.0.1:9".to_owned()]).with_secrets(vec![meant]);
    let client = Client::new(store.clone(), Arc::new(provider.clone())).with_reach(reach);
    let running = Running::of(Relay::new(client).with_poll(POLL).with_at_once(1));
    until("what is within reach is settled", async || settled(&store, 1).await).await;
    assert_eq!(running.end().await, 0);
    assert_eq!(provider.keys().len(), 1);
    for name in ["elsewhere", "not-meant"] {
        assert_eq!(state(&store, name).await, State::Ready, "{name}");
    }
}
