//! Intents that an application's transaction leaves behind in the store's file: with the effect, or not at all.
//! What a relay makes of them is tested in the client.

use counterfoil_core::intent::{Difference, Outbound, Recorded};
use counterfoil_core::{Error, Identity, Policy, Receipt, child_key};
use counterfoil_store::seam::RecordStore as _;
use counterfoil_store::sqlite::rusqlite::{Connection, Transaction, TransactionBehavior};
use counterfoil_store::sqlite::{Executed, Handle, Origin};
use counterfoil_store::{Begun, ErrorKind, IntentStore as _, SqliteStore};

use super::{Place, claim, identity, origin, record, refused};
use crate::intents::{self, due, outbound, profile};

const MAIL: &str = r#"{"to":"order 1"}"#;

fn begin(conn: &mut Connection) -> Transaction<'_> {
    conn.transaction_with_behavior(TransactionBehavior::Immediate).unwrap()
}

fn recorded(store: &SqliteStore, tx: &Transaction<'_>, outbound: &Outbound) -> Recorded {
    store.record_in(tx, outbound, &profile()).unwrap()
}

async fn key(store: &SqliteStore, name: &str) -> String {
    let name = intents::draft(name, MAIL).name;
    store.intent(&name).await.unwrap().expect("it was committed").request.key.as_str().to_owned()
}

fn child(parent: &Identity, step: &str) -> String {
    child_key(parent, step, 0).as_str().to_owned()
}

#[tokio::test]
async fn the_seam_is_kept() {
    intents::check(Place::new().open().as_ref()).await;
}

#[tokio::test]
async fn an_intent_is_committed_by_the_caller_or_not_at_all() {
    let place = Place::new();
    let store = place.with_orders();
    let mut conn = place.outside();
    let mail = outbound("order-1/mail", MAIL, Some(identity("a")));
    let tx = begin(&mut conn);
    tx.execute("INSERT INTO orders VALUES ('1')", []).unwrap();
    assert_eq!(recorded(&store, &tx, &mail), Recorded::Written);
    tx.rollback().unwrap();
    assert_eq!((place.orders(), due(store.as_ref(), 10).await), (0, Vec::new()));

    let tx = begin(&mut conn);
    tx.execute("INSERT INTO orders VALUES ('1')", []).unwrap();
    assert_eq!(recorded(&store, &tx, &mail), Recorded::Written);
    assert_eq!(recorded(&store, &tx, &mail), Recorded::Stands);
    assert_eq!(due(store.as_ref(), 10).await, Vec::<String>::new(), "nothing is due before the commit");
    tx.commit().unwrap();
    assert_eq!((place.orders(), due(store.as_ref(), 10).await), (1, vec!["order-1/mail".to_owned()]));
}

#[tokio::test]
async fn a_name_stands_for_one_action() {
    let place = Place::new();
    let store = place.open();
    let mut conn = place.outside();
    let tx = begin(&mut conn);
    let parent = || Some(identity("a"));
    assert_eq!(recorded(&store, &tx, &outbound("mail", MAIL, parent())), Recorded::Written);
    tx.commit().unwrap();
    let tx = begin(&mut conn);
    for (what, again, want) in [
        ("itself", outbound("mail", MAIL, parent()), Recorded::Stands),
        ("spelled otherwise", outbound("mail", r#"{ "to": "order 1" }"#, parent()), Recorded::Stands),
        ("another body", outbound("mail", "{}", parent()), Recorded::Taken(vec![Difference::Body])),
        ("another parent", outbound("mail", MAIL, Some(identity("b"))), Recorded::Taken(Vec::new())),
        ("no parent", outbound("mail", MAIL, None), Recorded::Taken(Vec::new())),
    ] {
        assert_eq!(recorded(&store, &tx, &again), want, "{what}");
    }
    tx.commit().unwrap();
    assert_eq!(store.intents(0, 10).await.unwrap().rows.len(), 1);
}

#[tokio::test]
async fn its_key_is_a_child_key() {
    let (place, elsewhere) = (Place::new(), Place::new());
    let mut keys = Vec::new();
    for place in [&place, &elsewhere] {
        let store = place.open();
        let mut conn = place.outside();
        let tx = begin(&mut conn);
        let step = Outbound { step: Some("mail".to_owned()), ..outbound("named", MAIL, Some(identity("a"))) };
        let others = [outbound("child", MAIL, Some(identity("a"))), outbound("orphan", MAIL, None)];
        for outbound in others.iter().chain([&step]) {
            assert_eq!(recorded(&store, &tx, outbound), Recorded::Written);
        }
        tx.commit().unwrap();
        keys.push([key(&store, "child").await, key(&store, "named").await, key(&store, "orphan").await]);
    }
    for home in &keys {
        assert_eq!(home[..2], [child(&identity("a"), "child"), child(&identity("a"), "mail")]);
    }
    assert_ne!(keys[0][2], keys[1][2], "without a parent, each store has actions of its own");
}

#[tokio::test]
async fn a_transaction_that_could_lose_it_is_refused() {
    let (place, elsewhere) = (Place::new(), Place::new());
    let store = place.open();
    elsewhere.open();
    let mail = outbound("mail", MAIL, None);
    let mut other = elsewhere.outside();
    refused(store.record_in(&begin(&mut other), &mail, &profile()), ErrorKind::Misuse, "not on the store's file");
    let mut conn = place.outside();
    let late = conn.transaction().unwrap();
    refused(store.record_in(&late, &mail, &profile()), ErrorKind::Misuse, "IMMEDIATE");
    late.rollback().unwrap();
    let tx = begin(&mut conn);
    let told = store.record_in(&tx, &Outbound { draft: intents::draft("get", MAIL), ..mail.clone() }, &{
        let mut other = profile();
        other.id = "other".to_owned();
        other
    });
    refused(told, ErrorKind::Misuse, "another profile");
}

/// An order, and an intent beside it.
fn order_with(mail: Outbound) -> impl FnOnce(&Handle<'_>) -> Result<Receipt, String> + Send + 'static {
    move |handle| {
        handle.execute("INSERT OR IGNORE INTO orders VALUES ('1')", []).map_err(|error| error.to_string())?;
        match handle.record(&mail, &profile()).map_err(|error| error.to_string())? {
            Recorded::Written => Ok(Receipt::new(201, "made")),
            told @ (Recorded::Stands | Recorded::Taken(_)) => Err(format!("{told:?}")),
        }
    }
}

#[tokio::test]
async fn effect_receipt_and_intent_are_one_commit() {
    let place = Place::new();
    let store = place.with_orders();
    let policy = Policy::default();
    let failed = store
        .execute(claim("a"), &policy, |handle| {
            order_with(outbound("mail", MAIL, None))(handle).unwrap();
            Err::<Receipt, _>("out of stock")
        })
        .await
        .unwrap();
    assert_eq!(failed, Executed::EffectFailed("out of stock"));
    assert_eq!((place.orders(), due(store.as_ref(), 10).await.len()), (0, 0));

    for want in [Origin::Fresh, Origin::Replayed] {
        let done = store.execute(claim("a"), &policy, order_with(outbound("mail", MAIL, None))).await;
        assert_eq!(origin(done), want);
    }
    assert!(record(&store, "a").await.is_some());
    assert_eq!((place.orders(), due(store.as_ref(), 10).await), (1, vec!["mail".to_owned()]));
    assert_eq!(key(&store, "mail").await, child(&identity("a"), "mail"), "the parent is the action at hand");
    // Another action that wants the name is told, and its effect with it.
    let taken = store.execute(claim("b"), &policy, order_with(outbound("mail", MAIL, None))).await.unwrap();
    assert!(matches!(&taken, Executed::EffectFailed(told) if told.contains("Taken")), "{taken:?}");
}

#[tokio::test]
async fn beside_it_the_stores_tables_stay_closed() {
    let place = Place::new();
    let store = place.with_orders();
    let told = store
        .execute(claim("a"), &Policy::default(), |handle| {
            assert_eq!(handle.record(&outbound("mail", MAIL, None), &profile()).unwrap(), Recorded::Written);
            for sql in ["DELETE FROM counterfoil_intent", "SELECT name FROM main.counterfoil_intent"] {
                let error = handle.prepare(sql).map(drop).unwrap_err();
                assert!(
                    error.to_string().contains("not authorized") || error.to_string().contains("prohibited"),
                    "{error}"
                );
            }
            Ok::<_, String>(Receipt::new(201, "made"))
        })
        .await;
    assert_eq!(origin(told), Origin::Fresh);
    assert_eq!(due(store.as_ref(), 10).await, ["mail"]);
}

#[tokio::test]
async fn beside_a_claim_in_a_callers_transaction_all_three_are_committed() {
    let place = Place::new();
    let store = place.with_orders();
    let mut conn = place.outside();
    let tx = begin(&mut conn);
    let Begun::Execute(mut permit) = store.begin_in(&tx, &mut claim("a"), &Policy::default()).unwrap() else {
        panic!("it may run")
    };
    let mail = outbound("mail", MAIL, Some(permit.identity().clone()));
    assert_eq!(recorded(&store, &tx, &mail), Recorded::Written);
    store.complete_in(&tx, &mut permit, &Receipt::new(201, "made")).unwrap();
    tx.commit().unwrap();
    assert!(store.read(&identity("a")).await.unwrap().record.is_some());
    assert_eq!(key(&store, "mail").await, child(&identity("a"), "mail"));
}

#[test]
fn what_a_profile_cannot_take_is_refused() {
    let mut strict = profile();
    strict.key.format = counterfoil_core::profile::Format::Uuid4;
    let told = outbound("mail", MAIL, None).freeze("store", &strict, super::BEGIN).unwrap_err();
    assert!(matches!(told, Error::Request(why) if why.contains("version 5")), "{told}");
}
