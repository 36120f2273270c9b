//! `counterfoil.hold` and `counterfoil.settle` against the rule in core: every state and call, judged by both, and the record
//! that a settlement makes.
//! What transactions and savepoints do to them stands in `commits`.

use std::time::Duration;

use counterfoil_core::action::{Refused, hold, settle};
use counterfoil_core::record::{Author, Why};
use counterfoil_core::{Effect, Expiry, Policy, Receipt, Record, State};
use counterfoil_store::postgres::PostgresStore;
use counterfoil_store::postgres::tokio_postgres::{Client, Error, NoTls};
use counterfoil_store::seam::{Expected, New, RecordStore as _, Swap, Swapped};
use counterfoil_store::{Begun, Gate, Permit};

use super::{Place, claim, identity, record};

/// What an application settles with.
pub(super) const SETTLE: &str = "SELECT counterfoil.settle($1, 201, '[[\"Location\", \"/orders/7\"], [\"x-two\", \"a\"], [\"x-two\", \"b\"]]', 'made')";

pub(super) fn receipt() -> Receipt {
    let receipt = Receipt::new(201, "made").with_header("location", "/orders/7");
    receipt.with_header("x-two", "a").with_header("x-two", "b")
}

pub(super) fn coupled(expiry: Expiry) -> Policy {
    Policy { effect: Effect::Coupled, expiry, retention: Duration::from_hours(1), ..Policy::default() }
}

/// A connection of the application's own.
pub(super) async fn application(place: &Place) -> Client {
    let (client, connection) =
        counterfoil_store::postgres::tokio_postgres::connect(&place.database.url(), NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

pub(super) async fn granted(gate: &Gate, key: &str, policy: &Policy) -> Box<Permit> {
    match gate.begin(&mut claim(key), policy).await.unwrap() {
        Begun::Execute(permit) => permit,
        other => panic!("not granted: {other:?}"),
    }
}

/// The code that the server refused with.
pub(super) fn code(error: &Error) -> String {
    error.code().map(|code| code.code().to_owned()).unwrap_or_else(|| panic!("not the server's: {error}"))
}

const fn refused_as(refused: Refused) -> &'static str {
    match refused {
        Refused::Absent => "CF003",
        Refused::OtherLease | Refused::Unknown => "CF001",
        Refused::Done | Refused::SettledByOperator | Refused::Expired => "CF002",
        Refused::Changed
        | Refused::OwnerAlive { .. }
        | Refused::OwnerNotStopped
        | Refused::MayStillArrive { .. }
        | Refused::WindowClosed
        | Refused::NotKeyed => "no call of an application's",
    }
}

const STATES: [&str; 15] = [
    "absent",
    "running",
    "lapsed",
    "ended",
    "unknown.lapsed",
    "unknown.doubted",
    "unknown.answered-without-settle",
    "unknown.window-closed",
    "unknown.quarantined",
    "done.owner",
    "done.operator",
    "over",
    "spent",
    "taken-over",
    "claimed-anew",
];

/// Puts the permit's record into the state of that name.
async fn bring(place: &Place, store: &PostgresStore, gate: &Gate, permit: &mut Permit, state: &str) {
    let now = store.now().at;
    let done = |author, expires_at| State::Done {
        receipt: Receipt::new(200, "before"),
        author,
        completed_at: now,
        expires_at,
        refuse_until: None,
    };
    let key = permit.identity().key.as_str().to_owned();
    let state = match state {
        "running" => return,
        "absent" => {
            gate.release(permit).await.unwrap();
            return;
        }
        "lapsed" => return place.time.advance(Duration::from_secs(30)).await.unwrap(),
        "ended" => {
            gate.doubt(permit, Why::Doubted).await.unwrap();
            return;
        }
        "taken-over" => {
            gate.doubt(permit, Why::Doubted).await.unwrap();
            return drop(granted(gate, &key, &coupled(Expiry::NewAction)).await);
        }
        "claimed-anew" => {
            gate.release(permit).await.unwrap();
            return drop(granted(gate, &key, &coupled(Expiry::NewAction)).await);
        }
        "done.owner" => done(Author::Owner, now.plus(Duration::from_secs(9))),
        "done.operator" => done(Author::Operator, now.plus(Duration::from_secs(9))),
        "over" => done(Author::Owner, now),
        "spent" => State::Spent { until: now.plus(Duration::from_secs(9)) },
        unknown => {
            let whys = [Why::Lapsed, Why::Doubted, Why::AnsweredWithoutSettle, Why::WindowClosed, Why::Quarantined];
            let why = whys.into_iter().find(|why| unknown.ends_with(why.as_str())).unwrap();
            State::Unknown { since: now, why }
        }
    };
    let stands = permit.record().as_ref().clone();
    let next = Record { version: stands.version + 1, state, ..stands.clone() };
    let (identity, expected) = (permit.identity().clone(), Expected::record(&stands));
    let swap = Swap { identity, expected, new: New::put(next), not_after: None, note: None };
    assert!(matches!(store.swap(swap).await.unwrap(), Swapped::Won { .. }));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_state_is_judged_as_core_judges_it() {
    let place = Place::new().await;
    let store = place.open().await;
    let gate = Gate::new(store.clone()).unwrap();
    let mut application = application(&place).await;
    let (mut held, mut refused) = (0, 0);
    for state in STATES {
        for expiry in [Expiry::NewAction, Expiry::Refuse(Duration::from_mins(5))] {
            let key = format!("{state}-{expiry:?}");
            let mut permit = granted(&gate, &key, &coupled(expiry)).await;
            bring(&place, &store, &gate, &mut permit, state).await;
            let (lease, text) = (permit.lease(), permit.text());
            let stands = record(store.as_ref(), &key).await;
            let by_rule = hold(stands.as_ref(), lease).err();

            let tx = application.transaction().await.unwrap();
            let said: bool = tx.query_one("SELECT counterfoil.hold($1)", &[&text]).await.unwrap().get(0);
            assert_eq!(said, by_rule.is_none(), "{key}: hold");
            let committed = tx.commit().await.expect_err("it was held and not settled, or refused");
            assert_eq!(code(&committed), by_rule.map_or("CF004", refused_as), "{key}: commit after hold");
            assert_eq!(record(store.as_ref(), &key).await, stands, "{key}: hold changes nothing");

            let retention = Duration::from_hours(1);
            let by_rule = settle(stands.as_ref(), lease, receipt(), retention, expiry, store.now().at);
            let tx = application.transaction().await.unwrap();
            let settled = tx.execute(SETTLE, &[&text]).await;
            match (by_rule, settled) {
                (Ok(done), Ok(_)) => {
                    tx.commit().await.unwrap();
                    assert_eq!(record(store.as_ref(), &key).await.as_ref(), Some(&done), "{key}");
                    held += 1;
                }
                (Err(by_rule), Err(error)) => {
                    assert_eq!(code(&error), refused_as(by_rule), "{key}: settle");
                    drop(tx);
                    assert_eq!(record(store.as_ref(), &key).await, stands, "{key}: a refused settle changes nothing");
                    refused += 1;
                }
                (by_rule, settled) => panic!("{key}: the rule says {by_rule:?}, the database {settled:?}"),
            }
        }
    }
    assert_eq!((held, refused), (8, 22), "states that may settle, and states that may not");
    assert_eq!(place.database.psql(&["SELECT count(*) FROM counterfoil.held"]).unwrap(), "0", "marks are left behind");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_settled_record_is_like_any_other() {
    let place = Place::new().await;
    let store = place.open().await;
    let gate = Gate::new(store.clone()).unwrap();
    let application = application(&place).await;
    for (key, expiry) in [("new", Expiry::NewAction), ("refuse", Expiry::Refuse(Duration::from_mins(5)))] {
        let permit = granted(&gate, key, &coupled(expiry)).await;
        application.execute(SETTLE, &[&permit.text()]).await.unwrap();
        let replay = gate.begin(&mut claim(key), &coupled(expiry)).await.unwrap();
        assert!(matches!(&replay, Begun::Replay { receipt: kept, .. } if *kept == receipt()), "{replay:?}");
    }
    let about = store.about().await.unwrap();
    let promised = store.now().at.plus(Duration::from_mins(65));
    assert_eq!((about.records, about.running, about.promised_until), (2, 0, Some(promised)));
    store.set_quarantine(Some(store.now().at)).await.unwrap();
    let promised = store.about().await.unwrap().promised_until;
    assert_eq!(promised, Some(store.now().at.plus(Duration::from_mins(65))), "what a restore may have lost");
    store.set_quarantine(None).await.unwrap();
    let listed = store.find("new", 5).await.unwrap();
    assert!(matches!(listed.first().map(|row| &row.record), Some(Ok(Record { state: State::Done { .. }, .. }))));
    // Neither a moment early nor late.
    place.time.advance(Duration::from_millis(3_599_999)).await.unwrap();
    assert_eq!(store.sweep(10).await.unwrap().expired, 0);
    place.time.advance(Duration::from_millis(1)).await.unwrap();
    assert_eq!(store.sweep(10).await.unwrap().expired, 2);
    assert_eq!(record(store.as_ref(), "new").await, None);
    let spent = record(store.as_ref(), "refuse").await.unwrap();
    assert!(matches!(spent.state, State::Spent { .. }), "{spent:?}");
    place.time.advance(Duration::from_mins(5)).await.unwrap();
    assert_eq!(store.sweep(10).await.unwrap().spent, 1);
    assert_eq!(record(store.as_ref(), "refuse").await, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_settlement_that_rots_is_corrupt_and_never_absent() {
    let place = Place::new().await;
    let store = place.open().await;
    let gate = Gate::new(store.clone()).unwrap();
    let permit = granted(&gate, "a", &coupled(Expiry::NewAction)).await;
    application(&place).await.execute(SETTLE, &[&permit.text()]).await.unwrap();
    let length: usize =
        place.database.psql(&["SELECT octet_length(settlement) FROM counterfoil.record"]).unwrap().parse().unwrap();
    for at in [0, 1, 8, 16, 25, 29, 33, 40, length - 9, length - 8, length - 1] {
        let flip = "UPDATE counterfoil.record SET settlement = set_byte(settlement, $1, get_byte(settlement, $1) # 1)";
        let flip = flip.replace("$1", &at.to_string());
        place.database.psql(&[&flip]).unwrap();
        let read = store.read(&identity("a")).await;
        assert!(read.is_err(), "byte {at} was changed unseen");
        place.database.psql(&[&flip]).unwrap();
    }
    assert!(record(store.as_ref(), "a").await.is_some());
}
