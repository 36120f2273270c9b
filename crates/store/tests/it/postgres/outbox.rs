//! Intents in the database, and what applications leave behind there in transactions of their own: with the effect, or not
//! at all. What a relay makes of them is tested in the client.

use std::sync::Arc;

use counterfoil_core::intent::{Difference, Outbound, Recorded, Value};
use counterfoil_core::{Identity, child_key};
use counterfoil_store::intents::Letter;
use counterfoil_store::postgres::PostgresStore;
use counterfoil_store::postgres::tokio_postgres::{Client, NoTls, connect};
use counterfoil_store::{ErrorKind, IntentStore as _};

use super::fence::{coupled, granted};
use super::{Place, identity};
use crate::intents::{self, due, outbound, profile};

const MAIL: &str = r#"{"to":"order 1"}"#;

async fn client(place: &Place) -> Client {
    let (client, connection) = connect(&place.database.url(), NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

async fn key(store: &PostgresStore, name: &str) -> String {
    let name = intents::draft(name, MAIL).name;
    store.intent(&name).await.unwrap().expect("it was committed").request.key.as_str().to_owned()
}

fn child(parent: &Identity, step: &str) -> String {
    child_key(parent, step, 0).as_str().to_owned()
}

/// One call of the function, as SQL.
fn call(name: &str, permit: &str, body: &str) -> String {
    format!(
        "SELECT counterfoil.record_intent('{name}', {permit}, 'POST', 'http://127.0.0.1:9/mails',
           '[[\"Content-Type\", \"application/json\"]]', convert_to('{body}', 'UTF8'), 'mail')"
    )
}

async fn letters(store: &PostgresStore, again: bool) -> Vec<Letter> {
    store.letters(again.then_some(0), 10).await.unwrap()
}

/// What a relay makes of a letter.
async fn opened(store: &PostgresStore, letter: Letter) -> Recorded {
    let (draft, parent) = letter.asks.unwrap();
    store.open_letter(letter.id, &Outbound::new(draft, parent), &profile()).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_seam_is_kept() {
    intents::check(Place::new().await.open().await.as_ref()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_intent_is_committed_by_the_caller_or_not_at_all() {
    let place = Place::new().await;
    place.database.psql(&["CREATE TABLE orders (id text PRIMARY KEY)"]).unwrap();
    let store = place.open().await;
    let mut client = client(&place).await;
    let mail = outbound("order-1/mail", MAIL, Some(identity("a")));
    for commits in [false, true] {
        let tx = client.transaction().await.unwrap();
        tx.execute("INSERT INTO orders VALUES ('1')", &[]).await.unwrap();
        assert_eq!(store.record_in(&tx, &mail, &profile()).await.unwrap(), Recorded::Written);
        assert_eq!(store.record_in(&tx, &mail, &profile()).await.unwrap(), Recorded::Stands);
        assert_eq!(due(store.as_ref(), 10).await, Vec::<String>::new(), "nothing is due before the commit");
        if commits {
            tx.commit().await.unwrap();
        } else {
            tx.rollback().await.unwrap();
        }
        let orders = place.database.psql(&["SELECT count(*) FROM orders"]).unwrap();
        assert_eq!((orders == "1", due(store.as_ref(), 10).await.len() == 1), (commits, commits));
    }
    assert_eq!(key(&store, "order-1/mail").await, child(&identity("a"), "order-1/mail"));

    let tx = client.transaction().await.unwrap();
    for (again, want) in [
        (outbound("order-1/mail", r#"{ "to": "order 1" }"#, Some(identity("a"))), Recorded::Stands),
        (outbound("order-1/mail", "{}", Some(identity("a"))), Recorded::Taken(vec![Difference::Body])),
        (outbound("order-1/mail", MAIL, None), Recorded::Taken(Vec::new())),
    ] {
        assert_eq!(store.record_in(&tx, &again, &profile()).await.unwrap(), want);
    }
    tx.commit().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_intent_is_left_behind_in_the_stores_own_database() {
    let (place, elsewhere) = (Place::new().await, Place::new().await);
    elsewhere.database.psql(&["UPDATE counterfoil.store SET id = 'another'"]).unwrap();
    let store = place.open().await;
    let mut other = client(&elsewhere).await;
    let tx = other.transaction().await.unwrap();
    let error = store.record_in(&tx, &outbound("mail", MAIL, None), &profile()).await.expect_err("another database");
    assert_eq!(error.kind, ErrorKind::Misuse, "{error}");
    tx.commit().await.unwrap();
    assert_eq!(elsewhere.database.psql(&["SELECT count(*) FROM counterfoil.intent"]).unwrap(), "0");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_letter_becomes_an_intent_once() {
    let place = Place::new().await;
    let store = place.open().await;
    let write = call("mail", "NULL", MAIL);
    place.database.psql(&[&format!("BEGIN; {write}; ROLLBACK")]).unwrap();
    assert!(letters(&store, true).await.is_empty());
    assert_eq!(place.database.psql(&[&write]).unwrap(), "t");
    assert_eq!(place.database.psql(&[&write]).unwrap(), "f", "the same again is not written twice");

    let letter = letters(&store, false).await.remove(0);
    let (draft, parent) = letter.asks.clone().unwrap();
    assert_eq!((draft.name.as_str(), draft.url.as_str(), parent), ("mail", "http://127.0.0.1:9/mails", None));
    assert_eq!((draft.body.as_ref(), draft.headers[0].name.as_str()), (MAIL.as_bytes(), "content-type"));
    assert!(draft.headers[0].value == Value::Plain("application/json".into()));
    assert_eq!(opened(&store, letter.clone()).await, Recorded::Written);
    assert_eq!(opened(&store, letter).await, Recorded::Stands, "two relays at one letter");
    assert!(letters(&store, true).await.is_empty());
    assert_eq!(due(store.as_ref(), 10).await, ["mail"]);

    // Asked for again after that: nothing. Something else under the name: the transaction is told.
    assert_eq!(place.database.psql(&[&write]).unwrap(), "f");
    let other = place.database.psql(&[&call("mail", "NULL", "{}")]).unwrap_err();
    assert!(other.to_string().contains("stands for another one"), "{other}");
    assert!(letters(&store, true).await.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_letters_parent_is_the_action_of_its_permit() {
    let place = Place::new().await;
    let store = place.open().await;
    let gate = counterfoil_store::Gate::new(store.clone()).unwrap();
    let permit = granted(&gate, "a", &coupled(counterfoil_core::Expiry::NewAction)).await;
    place.database.psql(&[&call("mail", &format!("'{}'", permit.text()), MAIL)]).unwrap();
    let letter = letters(&store, false).await.remove(0);
    assert_eq!(opened(&store, letter).await, Recorded::Written);
    assert_eq!(key(&store, "mail").await, child(&identity("a"), "mail"));
    let wrong = permit.text().replace("cf1-", "cf1-0");
    let told = place.database.psql(&[&call("other", &format!("'{wrong}'"), MAIL)]).unwrap_err();
    assert!(told.to_string().contains("no record knows this permit"), "{told}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_letter_whose_name_is_taken_is_kept_with_the_reason() {
    let place = Place::new().await;
    let store = place.open().await;
    let mut client = client(&place).await;
    let tx = client.transaction().await.unwrap();
    assert_eq!(store.record_in(&tx, &outbound("mail", MAIL, None), &profile()).await.unwrap(), Recorded::Written);
    tx.commit().await.unwrap();
    // What the library wrote is not the function's to compare.
    assert_eq!(place.database.psql(&[&call("mail", "NULL", "{}")]).unwrap(), "t");
    let letter = letters(&store, false).await.remove(0);
    let id = letter.id;
    assert_eq!(opened(&store, letter).await, Recorded::Taken(vec![Difference::Body]));
    store.refuse_letter(id, "its name is taken").await.unwrap();
    assert!(letters(&store, false).await.is_empty());
    let kept = letters(&store, true).await;
    assert_eq!(kept[0].refused.as_deref(), Some("its name is taken"));
    assert!(store.letters(Some(id), 10).await.unwrap().is_empty(), "a look goes on behind a position");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_request_is_refused_by_the_function() {
    let place = Place::new().await;
    let ok = "'mail', NULL, 'POST', 'http://h/', '[]', '', 'mail'";
    for (from, to, says) in [
        ("'mail', NULL", "'', NULL", "no intent's name"),
        ("'mail', NULL", "E'a\\nb', NULL", "no intent's name"),
        ("'POST'", "NULL", "is null"),
        ("'[]'", "'{}'", "no array"),
        ("'[]'", "'[[\"a\"]]'", "no name and value"),
        ("'[]'", "'[[\"a\", \"b\\nc\"]]'", "HTTP does not carry"),
        ("NULL", "'permit'", "no record knows"),
    ] {
        let arguments = ok.replacen(from, to, 1);
        let told = place.database.psql(&[&format!("SELECT counterfoil.record_intent({arguments})")]).unwrap_err();
        assert!(told.to_string().contains(says), "{arguments}: {told}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_role_needs_the_function_and_nothing_else() {
    let place = Place::new().await;
    place.database.psql(&["DROP ROLE IF EXISTS writer", "CREATE ROLE writer LOGIN"]).unwrap();
    let grants = [
        "GRANT USAGE ON SCHEMA counterfoil TO writer",
        "GRANT EXECUTE ON FUNCTION counterfoil.record_intent(text, text, text, text, jsonb, bytea, text) TO writer",
    ];
    let write = format!("SET ROLE writer; {}", call("mail", "NULL", MAIL));
    assert!(place.database.psql(&[&write]).is_err(), "it was not granted");
    place.database.psql(&grants).unwrap();
    place.database.psql(&[&write]).unwrap();
    assert!(place.database.psql(&["SET ROLE writer; SELECT * FROM counterfoil.outbox"]).is_err());
    let store: Arc<PostgresStore> = place.open().await;
    assert_eq!(letters(&store, false).await.len(), 1);
}
