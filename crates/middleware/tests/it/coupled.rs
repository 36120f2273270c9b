//! Coupled operations over a SQLite file: effect and receipt together, and the record decides the answer.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use counterfoil_core::{Effect, Policy, Receipt, State, Why};
use counterfoil_middleware::{Body, Coupled, Fault, GuardLayer, Settings, Terms};
use counterfoil_store::sqlite::{Options, rusqlite};
use counterfoil_store::{Gate, RecordStore as _, SqliteStore};
use http::{Request, Response};
use tempfile::TempDir;
use tower::{Layer as _, ServiceExt as _};

use crate::kit::{Answer, Handler, collected, handler, identity, post, post_body, read, settings};

struct House {
    _dir: TempDir,
    store: Arc<SqliteStore>,
    layer: GuardLayer,
    handler: Handler,
}

impl House {
    fn new(run: impl Fn(Arc<SqliteStore>) -> Handler) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("orders.db");
        let store = SqliteStore::open(&path, Options::default()).unwrap();
        let own = rusqlite::Connection::open(&path).unwrap();
        own.execute_batch("CREATE TABLE orders (item TEXT NOT NULL UNIQUE)").unwrap();
        let policy = Policy { effect: Effect::Coupled, ..Policy::default() };
        let settings: Settings = settings(Terms { policy, ..Terms::default() });
        let layer = GuardLayer::new(Gate::new(store.clone()).unwrap(), settings).unwrap();
        let handler = run(store.clone());
        Self { _dir: dir, store, layer, handler }
    }

    fn send(&self, request: Request<Body>) -> Pin<Box<dyn Future<Output = Answer> + Send>> {
        let answering = self.layer.layer(self.handler.clone()).oneshot(request);
        Box::pin(async move { read(answering.await.unwrap()).await })
    }

    async fn orders(&self) -> i64 {
        let path = self.store.about().await.unwrap().place;
        let path = path.strip_prefix("sqlite:").unwrap_or(&path).to_owned();
        let own = rusqlite::Connection::open(path).unwrap();
        own.query_row("SELECT count(*) FROM orders", [], |row| row.get(0)).unwrap()
    }

    async fn state(&self) -> Option<State> {
        self.store.read(&identity("k")).await.unwrap().record.map(|record| record.state.clone())
    }
}

/// Inserts the body as an order; an order that exists is a 409 of the application's own.
async fn ordered(store: &SqliteStore, request: Request<Body>) -> Result<Response<Body>, Fault> {
    let coupled = request.extensions().get::<Coupled>().cloned().unwrap();
    let item = String::from_utf8(collected(request.into_body()).await.to_vec()).unwrap();
    let answer = coupled.execute(store, move |tx| {
        tx.execute("INSERT INTO orders (item) VALUES (?1)", [&item])?;
        Ok::<_, rusqlite::Error>(Receipt::new(201, item).with_header("location", "/orders/1"))
    });
    Ok(answer.await.unwrap_or_else(|_| Response::builder().status(409).body(Body::from("it exists")).unwrap()))
}

fn ordering(store: Arc<SqliteStore>) -> Handler {
    handler(move |request| {
        let store = store.clone();
        async move { ordered(&store, request).await }
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn eight_racers_make_one_order() {
    let house = House::new(ordering);
    let sent: Vec<_> = (0..8).map(|_| tokio::spawn(house.send(post_body("k", "tea")))).collect();
    let mut lines = Vec::new();
    for sent in sent {
        let answer = sent.await.unwrap();
        assert_eq!((answer.body.as_ref(), answer.header("location")), (&b"tea"[..], Some("/orders/1")));
        assert!(answer.header("idempotency-expires").is_some());
        lines.push(answer.line());
    }
    lines.sort();
    assert_eq!(lines[0], "201 replayed=false");
    assert!(lines[1..].iter().all(|line| line == "201 replayed=true"), "{lines:?}");
    assert_eq!(house.orders().await, 1);
}

#[tokio::test]
async fn an_effect_that_fails_leaves_nothing() {
    let house = House::new(ordering);
    let table = [
        ("k", "tea", "201 replayed=false"),
        ("l", "tea", "409 replayed=false"),
        ("l", "tea", "409 replayed=false"),
        ("l", "milk", "201 replayed=false"),
        ("k", "milk", "422 mismatch"),
        ("k", "tea", "201 replayed=true"),
    ];
    for (key, item, expected) in table {
        assert_eq!(house.send(post_body(key, item)).await.line(), expected, "{key} {item}");
    }
    assert_eq!(house.orders().await, 2);
}

#[tokio::test]
async fn an_answer_without_its_receipt_is_not_believed() {
    let forgetful = |_: Arc<SqliteStore>| handler(|_| async { Ok(Response::new(Body::from("done, honestly"))) });
    let house = House::new(forgetful);
    assert_eq!(house.send(post("k")).await.line(), "502 outcome-unknown");
    let state = house.state().await;
    assert!(matches!(state, Some(State::Unknown { why: Why::AnsweredWithoutSettle, .. })), "{state:?}");
    assert_eq!(house.send(post("k")).await.line(), "409 outcome-unknown");
}

#[tokio::test]
async fn other_ends_without_a_receipt_leave_nothing() {
    type Case = (&'static str, fn(Arc<SqliteStore>) -> Handler, &'static str);
    let table: [Case; 4] = [
        (
            "404",
            |_| handler(|_| async { Ok(Response::builder().status(404).body(Body::empty()).unwrap()) }),
            "404 replayed=false",
        ),
        (
            "500",
            |_| handler(|_| async { Ok(Response::builder().status(500).body(Body::empty()).unwrap()) }),
            "500 replayed=false",
        ),
        ("panic", |_| handler(|_| async { panic!("before the effect") }), "502 outcome-unknown"),
        ("error", |_| handler(|_| async { Err(Fault::Broken("broken".to_owned())) }), "502 outcome-unknown"),
    ];
    for (what, run, expected) in table {
        let house = House::new(run);
        assert_eq!(house.send(post("k")).await.line(), expected, "{what}");
        assert_eq!(house.state().await, None, "{what}");
    }
}

#[tokio::test]
async fn a_committed_receipt_answers_whatever_the_handler_says() {
    let table: [fn(Arc<SqliteStore>) -> Handler; 3] = [
        |store| {
            handler(move |request| {
                let store = store.clone();
                async move {
                    ordered(&store, request).await?;
                    panic!("after the commit")
                }
            })
        },
        |store| {
            handler(move |request| {
                let store = store.clone();
                async move {
                    ordered(&store, request).await?;
                    Ok(Response::builder().status(500).body(Body::from("forgot it")).unwrap())
                }
            })
        },
        |store| {
            handler(move |request| {
                let store = store.clone();
                async move {
                    ordered(&store, request).await?;
                    Err(Fault::Broken("broken".to_owned()))
                }
            })
        },
    ];
    for run in table {
        let house = House::new(run);
        for expected in ["201 replayed=false", "201 replayed=true"] {
            let answer = house.send(post_body("k", "tea")).await;
            assert_eq!((answer.line().as_str(), answer.body.as_ref()), (expected, &b"tea"[..]));
        }
        assert_eq!(house.orders().await, 1);
    }
}

#[tokio::test]
async fn what_a_handler_adds_to_the_records_answer_stays() {
    let adding = |store: Arc<SqliteStore>| {
        handler(move |request| {
            let store = store.clone();
            async move {
                let mut answer = ordered(&store, request).await?;
                answer.headers_mut().insert("set-cookie", http::HeaderValue::from_static("seen=1"));
                Ok(answer)
            }
        })
    };
    let house = House::new(adding);
    assert_eq!(house.send(post_body("k", "tea")).await.header("set-cookie"), Some("seen=1"));
    assert_eq!(house.send(post_body("k", "tea")).await.header("set-cookie"), None);
}

#[tokio::test]
async fn a_store_that_is_closed_is_said_and_nothing_runs() {
    let house = House::new(ordering);
    house.store.close();
    let drained = house.layer.drain();
    assert_eq!(house.send(post_body("k", "tea")).await.line(), "503 store-unavailable");
    assert_eq!(drained.drain(Duration::ZERO).await.doubted, 0);
}
