//! An intent through restarts, lost answers and second thoughts: one key, one action.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use counterfoil_client::{Client, ClientError, Outcome, Wish, unwatched};
use counterfoil_core::Timestamp;
use counterfoil_core::intent::{Difference, Draft, Header, Name, ProfileRef, Secret, State, Value};
use counterfoil_store::SqliteStore;
use counterfoil_store::clock::TestClock;
use counterfoil_store::sqlite::Options;
use http::Method;
use tempfile::TempDir;

use crate::provider::{Provider, Reply, answered, lost, not_sent};

const ORDER: &str = r#"{"item":"copper kettle","quantity":2}"#;
const MINUTE: Duration = Duration::from_mins(1);

/// A journal that can be opened again, as another process does.
struct Place {
    directory: TempDir,
    clock: TestClock,
}

impl Place {
    fn new() -> Self {
        let begin = Timestamp::from_millis(1_800_000_000_000);
        Self { directory: TempDir::new().unwrap(), clock: TestClock::new(begin) }
    }

    fn client(&self, provider: &Provider) -> Client {
        self.client_with(provider, None)
    }

    /// A client whose journal may not grow beyond so many pages.
    fn client_with(&self, provider: &Provider, pages_max: Option<u32>) -> Client {
        let mut options = Options::default();
        options.pages_max = pages_max;
        options.clock = Arc::new(self.clock.clone());
        let store = SqliteStore::open(self.directory.path().join("journal.db"), options).unwrap();
        Client::new(store, Arc::new(provider.clone()))
    }
}

fn draft(name: &str, body: &str) -> Draft {
    let header = |name: &str, value: &str| Header {
        name: name.to_owned(),
        value: Value::Plain(Bytes::copy_from_slice(value.as_bytes())),
    };
    Draft {
        name: Name::new(name).unwrap(),
        method: Method::POST,
        url: "http://127.0.0.1:9/orders".to_owned(),
        headers: vec![header("content-type", "application/json")],
        body: Bytes::copy_from_slice(body.as_bytes()),
        scope: None,
        profile: ProfileRef { id: "counterfoil".to_owned(), version: 1 },
    }
}

pub(crate) fn order(name: &str) -> Wish {
    Wish::new(draft(name, ORDER))
}

async fn sent(client: &Client, wish: &Wish) -> Outcome {
    client.send(wish, Duration::ZERO).await.unwrap()
}

pub(crate) fn word(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Succeeded { .. } => "succeeded",
        Outcome::Refused { .. } => "refused",
        Outcome::Uncertain { .. } => "uncertain",
        Outcome::Overdue { .. } => "overdue",
        Outcome::NotDone { .. } => "not done",
        Outcome::WindowClosed => "window closed",
        Outcome::InProgress { .. } => "in progress",
        Outcome::Mismatch(_) => "mismatch",
        Outcome::Blocked => "blocked",
    }
}

#[tokio::test]
async fn a_lost_answer_is_asked_for_again_under_the_same_key_by_another_process() {
    let place = Place::new();
    let provider = Provider::new([lost(), not_sent(), answered(201, "made")]);
    let mut outcomes = Vec::new();
    for _ in 0..4 {
        let client = place.client(&provider);
        outcomes.push(word(&sent(&client, &order("order-1")).await));
        place.clock.advance(MINUTE);
    }
    assert_eq!(outcomes, ["uncertain", "uncertain", "succeeded", "succeeded"]);
    let keys = provider.keys();
    assert_eq!(keys.len(), 3, "what is settled is not sent");
    assert!(keys.iter().all(|key| *key == keys[0]), "{keys:?}");
    assert!(provider.sent().iter().all(|request| request.body == ORDER));
}

#[tokio::test]
async fn what_is_not_the_same_action_is_refused_and_not_sent() {
    let place = Place::new();
    let provider = Provider::new([lost(), answered(201, "made")]);
    let client = place.client(&provider);
    let first = Wish { key: Some("k-first".to_owned()), ..order("order-1") };
    assert_eq!(word(&sent(&client, &first).await), "uncertain");

    let more = Wish::new(draft("order-1", r#"{"item":"copper kettle","quantity":3}"#));
    assert_eq!(sent(&client, &more).await, Outcome::Mismatch(vec![Difference::Body]));
    let other_key = Wish { key: Some("k-second".to_owned()), ..order("order-1") };
    assert_eq!(sent(&client, &other_key).await, Outcome::Blocked);
    let again = Wish { again: true, ..order("order-1") };
    assert_eq!(sent(&client, &again).await, Outcome::Blocked);
    assert_eq!(provider.keys().len(), 1);

    // The same, its members in another order.
    place.clock.advance(MINUTE);
    let turned = Wish::new(draft("order-1", r#"{"quantity":2,"item":"copper kettle"}"#));
    assert_eq!(word(&sent(&client, &turned).await), "succeeded");
    assert_eq!(provider.sent()[1].body, ORDER, "the frozen bytes are sent");
    // Once it is settled, a second action is another key, and is asked for on purpose.
    assert_eq!(word(&sent(&client, &again).await), "succeeded");
    let keys = provider.keys();
    assert_eq!(keys.len(), 3);
    assert_eq!(keys[0], keys[1]);
    assert_ne!(keys[1], keys[2]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_64_at_once_with_one_name_one_is_sent() {
    let place = Place::new();
    let provider = Provider::new([answered(201, "made")]);
    let client = place.client(&provider);
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..64 {
        let client = client.clone();
        tasks.spawn(async move { client.send(&order("order-1"), MINUTE).await.unwrap() });
    }
    let outcomes = tasks.join_all().await;
    assert!(outcomes.iter().all(|outcome| word(outcome) == "succeeded"), "{outcomes:?}");
    assert_eq!(provider.keys().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_64_at_once_with_their_own_names_each_has_its_own_key() {
    let place = Place::new();
    let provider = Provider::new([answered(201, "made")]);
    let client = place.client(&provider);
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..64 {
        let client = client.clone();
        tasks.spawn(async move { client.send(&order(&format!("order-{number}")), MINUTE).await.unwrap() });
    }
    let outcomes = tasks.join_all().await;
    assert!(outcomes.iter().all(|outcome| word(outcome) == "succeeded"), "{outcomes:?}");
    assert_eq!(provider.keys().into_iter().collect::<BTreeSet<_>>().len(), 64);
}

#[tokio::test]
async fn past_its_window_nothing_is_sent() {
    let place = Place::new();
    let provider = Provider::new([lost()]);
    let client = place.client(&provider);
    let wish = Wish { window: Some(MINUTE * 10), ..order("order-1") };
    assert_eq!(word(&sent(&client, &wish).await), "uncertain");
    // Ten minutes less the margin of five, less the time that an attempt may take.
    place.clock.advance(MINUTE * 5 - wish.attempt_limit);
    assert_eq!(word(&sent(&client, &wish).await), "uncertain");
    assert_eq!(provider.keys().len(), 2);
    place.clock.advance(Duration::from_secs(1));
    assert_eq!(word(&sent(&client, &wish).await), "overdue");
    assert_eq!(provider.keys().len(), 2);
}

#[tokio::test]
async fn what_was_never_sent_ends_as_certainly_not_done() {
    let place = Place::new();
    let provider = Provider::new([not_sent(), answered(201, "made")]);
    let client = place.client(&provider);
    assert_eq!(word(&sent(&client, &order("order-1")).await), "not done");
    place.clock.advance(MINUTE);
    assert_eq!(word(&sent(&client, &order("order-1")).await), "succeeded");
}

#[tokio::test]
async fn a_future_that_is_dropped_leaves_an_intent_to_go_on_with() {
    let place = Place::new();
    let provider = Provider::new([Reply::Never, answered(201, "made")]);
    let client = place.client(&provider);
    let wish = order("order-1");
    {
        let mut sending = Box::pin(client.send(&wish, Duration::ZERO));
        while provider.keys().is_empty() {
            tokio::select! {
                biased;
                outcome = &mut sending => panic!("{outcome:?}"),
                () = tokio::task::yield_now() => {}
            }
        }
    }
    // As long as its attempt may still be under way, nobody else sends.
    assert_eq!(word(&sent(&client, &wish).await), "in progress");
    drop(client);
    // Another process knows that this one is gone.
    let client = place.client(&provider);
    assert_eq!(word(&sent(&client, &wish).await), "succeeded");
    let keys = provider.keys();
    assert_eq!(keys.len(), 2);
    assert_eq!(keys[0], keys[1]);
}

#[tokio::test]
async fn where_the_disk_is_full_nothing_is_sent() {
    let place = Place::new();
    let provider = Provider::new([answered(201, "made")]);
    drop(place.client(&provider));
    let wish = Wish::new(draft("order-1", &format!(r#"{{"note":"{}"}}"#, "x".repeat(256 << 10))));
    let refused = place.client_with(&provider, Some(1)).send(&wish, Duration::ZERO).await.unwrap_err();
    assert!(matches!(refused, ClientError::Journal(_)), "{refused}");
    assert!(provider.keys().is_empty());
    assert_eq!(word(&sent(&place.client(&provider), &wish).await), "succeeded");
}

#[tokio::test]
async fn patience_without_an_end_is_patience() {
    let place = Place::new();
    let provider = Provider::new([not_sent(), answered(201, "made")]);
    let client = place.client(&provider);
    let mut wish = order("order-1");
    wish.attempt_limit = Duration::MAX;
    let sending = tokio::spawn(async move { client.send(&wish, Duration::MAX).await });
    while provider.keys().is_empty() {
        tokio::task::yield_now().await;
    }
    place.clock.advance(MINUTE);
    assert_eq!(word(&sending.await.unwrap().unwrap()), "succeeded");
}

#[tokio::test]
async fn the_first_attempt_s_instant_travels_with_every_attempt() {
    let place = Place::new();
    let provider = Provider::new([lost(), answered(201, "made")]);
    let client = place.client(&provider);
    let mut wish = order("order-1");
    wish.draft.profile.id = "oasis".to_owned();
    for _ in 0..2 {
        let _ = sent(&client, &wish).await;
        place.clock.advance(MINUTE);
    }
    let dates: Vec<_> =
        provider.sent().iter().map(|request| request.headers["repeatability-first-sent"].clone()).collect();
    assert_eq!(dates, ["Fri, 15 Jan 2027 08:00:00 GMT"; 2]);
}

#[tokio::test]
async fn an_intent_whose_contract_is_gone_is_not_sent() {
    let place = Place::new();
    let provider = Provider::new([answered(201, "made")]);
    let mut own = counterfoil_client::profiles::builtin("ietf").unwrap().clone();
    own.id = "own".to_owned();
    let mut wish = order("order-1");
    wish.draft.profile.id = "own".to_owned();
    let written = place.client(&provider).with_profiles(vec![own]).write_down(&wish).await.unwrap().unwrap();
    let refused = place.client(&provider).deliver(written, Duration::ZERO, &unwatched).await.unwrap_err();
    assert!(matches!(refused, ClientError::NoProfile(_)), "{refused}");
    assert!(provider.keys().is_empty());
}

/// What nobody sends any more needs no secret, and its end is told whatever is missing.
#[tokio::test]
async fn a_secret_that_is_nowhere_does_not_hide_that_an_intent_is_overdue() {
    let place = Place::new();
    let client = place.client(&Provider::new([lost()]));
    let mut wish = order("order-1");
    let file = place.directory.path().join("token");
    std::fs::write(&file, "t0p-s3cret").unwrap();
    let secret = Secret::parse(&format!("Bearer file:{}", file.display())).unwrap();
    wish.draft.headers.push(Header { name: "authorization".to_owned(), value: Value::Secret(secret) });
    assert_eq!(word(&sent(&client, &wish).await), "uncertain");
    std::fs::remove_file(&file).unwrap();
    place.clock.advance(MINUTE * 60 * 24 * 60);
    assert_eq!(word(&sent(&client, &wish).await), "overdue");
}

#[tokio::test]
async fn a_secret_that_is_nowhere_costs_no_attempt() {
    let place = Place::new();
    let provider = Provider::new([answered(201, "made")]);
    let client = place.client(&provider);
    let mut wish = order("order-1");
    let file = place.directory.path().join("token");
    let secret = Secret::parse(&format!("Bearer file:{}", file.display())).unwrap();
    wish.draft.headers.push(Header { name: "authorization".to_owned(), value: Value::Secret(secret) });
    let refused = client.send(&wish, Duration::ZERO).await.unwrap_err();
    assert!(matches!(refused, ClientError::Secret { .. }), "{refused}");
    let intent = client.intent(&wish.draft.name).await.unwrap();
    assert_eq!((intent.state, intent.attempted), (State::Ready, 0));

    std::fs::write(&file, "t0p-s3cret\n").unwrap();
    assert_eq!(word(&sent(&client, &wish).await), "succeeded");
    assert_eq!(provider.sent()[0].headers["authorization"], "Bearer t0p-s3cret");
    drop(client);
    for entry in std::fs::read_dir(place.directory.path()).unwrap() {
        let path = entry.unwrap().path();
        let bytes = std::fs::read(&path).unwrap();
        let kept = bytes.windows(10).any(|window| window == b"t0p-s3cret");
        assert_eq!(kept, path == file, "{}", path.display());
    }
}
