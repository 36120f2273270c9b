//! Coupled operations over PostgreSQL: effect and receipt in the store's own transaction or in the handler's, and the record
//! decides the answer. What SQLite shares with it stands in `coupled`.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use counterfoil_core::{Effect, Policy, Receipt};
use counterfoil_middleware::{Body, Coupled, GuardLayer, Terms};
use counterfoil_store::postgres::tokio_postgres::{self, NoTls, error::SqlState};
use counterfoil_store::postgres::trial::{Database, Server, Wire};
use counterfoil_store::postgres::{Options, PostgresStore};
use counterfoil_store::sqlite::Missing;
use counterfoil_store::{Begun, Ended, Gate};
use http::Response;
use tower::{Layer as _, ServiceExt as _};

use crate::kit::{Answer, Handler, collected, handler, post, post_body, read, settings};

/// As it is sent: other statements hold the word, too.
const COMMIT: &str = "COMMIT\0";

struct House {
    database: Database,
    wire: Wire,
    layer: GuardLayer,
    handler: Handler,
}

impl House {
    async fn new(run: impl Fn(Arc<PostgresStore>, String) -> Handler) -> Self {
        let database = Server::shared().unwrap().empty().unwrap();
        let wire = Wire::to(database.server().port()).await.unwrap();
        let mut options = Options::default();
        options.missing = Missing::Create;
        let url = database.url_through(wire.port());
        let store = PostgresStore::open(&url, options).await.unwrap();
        database.psql(&["CREATE TABLE orders (item text NOT NULL UNIQUE)"]).unwrap();
        let policy = Policy { effect: Effect::Coupled, ..Policy::default() };
        let settings = settings(Terms { policy, ..Terms::default() });
        let layer = GuardLayer::new(Gate::new(store.clone()).unwrap(), settings).unwrap();
        Self { database, wire, layer, handler: run(store, url) }
    }

    fn send(&self, key: &str, item: &'static str) -> Pin<Box<dyn Future<Output = Answer> + Send>> {
        let answering = self.layer.layer(self.handler.clone()).oneshot(post_body(key, item));
        Box::pin(async move { read(answering.await.unwrap()).await })
    }

    fn orders(&self) -> String {
        self.database.psql(&["SELECT count(*) FROM orders"]).unwrap()
    }
}

/// Inserts the body as an order in the store's transaction; an order that exists is a 409 of the application's own, and `fail`
/// is whatever the server is told to fail with.
fn ordering(store: Arc<PostgresStore>, _: String) -> Handler {
    handler(move |request| {
        let store = store.clone();
        async move {
            let coupled = request.extensions().get::<Coupled>().cloned().unwrap();
            let item = String::from_utf8(collected(request.into_body()).await.to_vec()).unwrap();
            let answer = coupled.execute_on_postgres(&store, move |tx| {
                Box::pin(async move {
                    if item == "deadlock" {
                        let fails = "DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '40P01'; END $$";
                        drop(tx.batch_execute(fails).await);
                        return Ok(Receipt::new(201, "swallowed"));
                    }
                    tx.execute("INSERT INTO orders VALUES ($1)", &[&item]).await?;
                    Ok::<_, tokio_postgres::Error>(Receipt::new(201, item).with_header("location", "/orders/1"))
                })
            });
            Ok(answer.await.unwrap_or_else(|error| {
                assert_eq!(error.code(), Some(&SqlState::UNIQUE_VIOLATION));
                Response::builder().status(409).body(Body::from("it exists")).unwrap()
            }))
        }
    })
}

/// The same in a transaction of the handler's own.
fn ordering_itself(store: Arc<PostgresStore>, url: String) -> Handler {
    handler(move |request| {
        let (store, url) = (store.clone(), url.clone());
        async move {
            let coupled = request.extensions().get::<Coupled>().cloned().unwrap();
            let item = String::from_utf8(collected(request.into_body()).await.to_vec()).unwrap();
            let (mut client, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
            tokio::spawn(connection);
            let tx = client.transaction().await.unwrap();
            let begun = store.begin_in(&tx, &mut coupled.claim(), coupled.policy()).await;
            let mut permit = match begun.unwrap() {
                Begun::Execute(permit) => permit,
                told => return Ok(coupled.told(told)),
            };
            if tx.execute("INSERT INTO orders VALUES ($1)", &[&item]).await.is_err() {
                return Ok(Response::builder().status(409).body(Body::from("it exists")).unwrap());
            }
            let receipt = Receipt::new(201, item).with_header("location", "/orders/1");
            let ended = store.complete_in(&tx, &mut permit, &receipt).await.unwrap();
            assert!(matches!(ended, Ended::Written { .. }));
            match tx.commit().await {
                Ok(()) => Ok(coupled.committed(receipt, &ended)),
                Err(_) => Ok(Response::builder().status(500).body(Body::from("COMMIT gave no answer")).unwrap()),
            }
        }
    })
}

async fn racers_make_one_order(run: impl Fn(Arc<PostgresStore>, String) -> Handler) {
    let house = House::new(run).await;
    let sent: Vec<_> = (0..8).map(|_| tokio::spawn(house.send("k", "tea"))).collect();
    let mut fresh = 0;
    for sent in sent {
        match sent.await.unwrap().line().as_str() {
            "201 replayed=false" => fresh += 1,
            "201 replayed=true" | "409 in-progress" => {}
            other => panic!("{other}"),
        }
    }
    assert_eq!((fresh, house.orders()), (1, "1".to_owned()));
    // An effect that fails leaves nothing, and its key is free.
    let table = [
        ("k", "tea", "201 replayed=true"),
        ("l", "tea", "409 replayed=false"),
        ("l", "tea", "409 replayed=false"),
        ("l", "milk", "201 replayed=false"),
        ("k", "milk", "422 mismatch"),
    ];
    for (key, item, expected) in table {
        assert_eq!(house.send(key, item).await.line(), expected, "{key} {item}");
    }
    assert_eq!(house.orders(), "2");
    // COMMIT went through, and nobody heard of it.
    house.wire.lose_reply_of(COMMIT);
    let answer = house.send("lost", "salt").await;
    house.wire.lost().await;
    assert_eq!((answer.status, answer.header("location"), house.orders()), (201, Some("/orders/1"), "3".to_owned()));
    assert_eq!(house.send("lost", "salt").await.line(), "201 replayed=true");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn in_the_stores_transaction_racers_make_one_order() {
    racers_make_one_order(ordering).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn in_the_handlers_transaction_racers_make_one_order() {
    racers_make_one_order(ordering_itself).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_that_the_server_undid_is_a_503_and_its_key_is_free() {
    let house = House::new(ordering).await;
    let answer = house.send("k", "deadlock").await;
    assert_eq!(answer.line(), "503 store-unavailable");
    assert_eq!(house.send("k", "tea").await.line(), "201 replayed=false");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_without_its_receipt_is_not_believed() {
    let forgetful = |_, _| handler(|_| async { Ok(Response::new(Body::from("done, honestly"))) });
    let house = House::new(forgetful).await;
    let answering = house.layer.layer(house.handler.clone()).oneshot(post("k"));
    assert_eq!(read(answering.await.unwrap()).await.line(), "502 outcome-unknown");
    assert_eq!(house.send("k", r#"{"item": "tea"}"#).await.line(), "409 outcome-unknown");
}
