//! Claim, effect and receipt in one transaction of the store's own: nothing or everything, whatever breaks.
//! Transactions of callers stand in `callers`.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use counterfoil_core::{Asked, Claim, Policy, Receipt, Rule};
use counterfoil_store::postgres::tokio_postgres::{self, Transaction};
use counterfoil_store::postgres::trial::Wire;
use counterfoil_store::postgres::{Effecting, PostgresStore};
use counterfoil_store::sqlite::{Executed, Origin};
use counterfoil_store::{Applied, ErrorKind, StoreError};
use tokio::sync::Notify;

use super::{Place, claim, identity, record};

/// As it is sent: other statements hold the word, too.
const COMMIT: &str = "COMMIT\0";

type Ended = Result<Executed<tokio_postgres::Error>, StoreError>;

/// A store with `connections` behind a wire, and a table that effects go into.
struct Shop {
    place: Place,
    wire: Wire,
    store: Arc<PostgresStore>,
    effects: Arc<AtomicUsize>,
}

impl Shop {
    async fn new(connections: usize) -> Self {
        let place = Place::new().await;
        place.database.psql(&["CREATE TABLE orders (item text NOT NULL UNIQUE)"]).unwrap();
        let wire = Wire::to(place.database.server().port()).await.unwrap();
        let mut options = place.options();
        options.connections = connections;
        let store = PostgresStore::open(&place.database.url_through(wire.port()), options).await.unwrap();
        Self { place, wire, store, effects: Arc::default() }
    }

    /// One order of `key` for each time that it is run.
    fn ordering(&self, key: &'static str) -> impl Future<Output = Ended> + Send + 'static {
        let effects = self.effects.clone();
        self.doing(key, move |tx| {
            Box::pin(async move {
                effects.fetch_add(1, Ordering::SeqCst);
                tx.execute("INSERT INTO orders VALUES ($1)", &[&key]).await?;
                Ok(Receipt::new(201, key))
            })
        })
    }

    fn doing<F>(&self, key: &'static str, effect: F) -> impl Future<Output = Ended> + Send + 'static
    where
        F: for<'t> FnOnce(&'t mut Transaction<'_>) -> Effecting<'t, tokio_postgres::Error> + Send + 'static,
    {
        let store = self.store.clone();
        async move { store.execute(claim(key), &Policy::default(), effect).await }
    }

    fn orders(&self) -> String {
        self.place.database.psql(&["SELECT count(*) FROM orders"]).unwrap()
    }

    fn effects(&self) -> usize {
        self.effects.load(Ordering::SeqCst)
    }
}

fn is_done(ended: &Ended, of: Origin) -> bool {
    matches!(ended, Ok(Executed::Done { receipt, origin, .. }) if receipt.status == 201 && *origin == of)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_eight_racers_one_runs_and_seven_replay() {
    let shop = Shop::new(4).await;
    let racers: Vec<_> = (0..8).map(|_| tokio::spawn(shop.ordering("a"))).collect();
    let mut fresh = 0;
    for racer in racers {
        match racer.await.unwrap().unwrap() {
            Executed::Done { origin: Origin::Fresh, .. } => fresh += 1,
            Executed::Done { origin: Origin::Replayed, .. } | Executed::InProgress { .. } => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((fresh, shop.effects(), shop.orders()), (1, 1, "1".to_owned()));
    assert!(is_done(&shop.ordering("a").await, Origin::Replayed));
    let other = Claim::new(identity("a"), Asked::bytes("another order"), &Rule::bytes()).unwrap();
    let policy = Policy::default();
    let told = shop.store.execute(other, &policy, |_| Box::pin(async { Ok::<_, ()>(Receipt::new(201, "")) }));
    assert!(matches!(told.await.unwrap(), Executed::Mismatch));
}

/// Nothing of it stays, the key is free, and the one connection can be used again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_effect_that_does_not_end_well_leaves_nothing() {
    let shop = Shop::new(1).await;
    let told = shop.doing("a", |tx| {
        Box::pin(async move {
            tx.execute("INSERT INTO orders VALUES ('half')", &[]).await?;
            Err(tx.execute("INSERT INTO nowhere VALUES (1)", &[]).await.expect_err("no such table"))
        })
    });
    let told = told.await;
    assert!(matches!(told, Ok(Executed::EffectFailed(_))), "{told:?}");
    // One that swallows an error of the server.
    let told = shop.doing("a", |tx| {
        Box::pin(async move {
            drop(tx.execute("INSERT INTO nowhere VALUES (1)", &[]).await);
            Ok(Receipt::new(201, "done, honestly"))
        })
    });
    let error = told.await.expect_err("the transaction is aborted");
    assert_eq!(error.applied, Applied::No, "{error}");
    for panics_late in [false, true] {
        let told = shop.doing("a", move |tx| {
            assert!(panics_late, "before its first statement");
            Box::pin(async move {
                tx.execute("INSERT INTO orders VALUES ('half')", &[]).await?;
                panic!("after it")
            })
        });
        let error = told.await.expect_err("it panicked");
        assert_eq!((error.applied, error.kind), (Applied::No, ErrorKind::Misuse), "{error}");
    }
    let (short, begun) = (Policy { attempt_limit: Duration::from_millis(100), ..Policy::default() }, Notify::new());
    let begun = Arc::new(begun);
    let says = begun.clone();
    let told = shop.store.execute(claim("a"), &short, move |tx| {
        Box::pin(async move {
            tx.execute("INSERT INTO orders VALUES ('half')", &[]).await?;
            says.notify_one();
            std::future::pending::<Result<Receipt, tokio_postgres::Error>>().await
        })
    });
    let error = told.await.expect_err("it does not end");
    begun.notified().await;
    assert_eq!((error.applied, error.kind), (Applied::No, ErrorKind::Busy), "{error}");
    assert_eq!((record(shop.store.as_ref(), "a").await, shop.orders()), (None, "0".to_owned()));
    assert!(is_done(&shop.ordering("a").await, Origin::Fresh));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deadlock_is_busy_and_runs_nothing_again() {
    let shop = Shop::new(4).await;
    shop.place.database.psql(&["CREATE TABLE stock (item int)", "INSERT INTO stock VALUES (1), (2)"]).unwrap();
    let both = Arc::new(tokio::sync::Barrier::new(2));
    let runs = Arc::new(AtomicUsize::new(0));
    let crossing = |key, first: i32, second: i32| {
        let (both, runs) = (both.clone(), runs.clone());
        tokio::spawn(shop.doing(key, move |tx| {
            Box::pin(async move {
                runs.fetch_add(1, Ordering::SeqCst);
                let lock = "SELECT FROM stock WHERE item = $1 FOR UPDATE";
                tx.query(lock, &[&first]).await?;
                both.wait().await;
                // The server's word is not looked at: that the transaction is gone shows at its end.
                drop(tx.query(lock, &[&second]).await);
                Ok(Receipt::new(201, "made"))
            })
        }))
    };
    let (one, other) = tokio::join!(crossing("a", 1, 2), crossing("b", 2, 1));
    let (one, other) = (one.unwrap(), other.unwrap());
    let (done, failed) = if one.is_ok() { (one, other) } else { (other, one) };
    assert!(is_done(&done, Origin::Fresh), "{done:?}");
    let error = failed.expect_err("the server undid one of them");
    assert_eq!(error.applied, Applied::No, "{error}");
    assert_eq!(runs.load(Ordering::SeqCst), 2, "nothing is run again by itself");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_serialization_failure_is_busy() {
    let shop = Shop::new(2).await;
    let told = shop.doing("a", |tx| {
        Box::pin(async move {
            tx.batch_execute(
                "CREATE FUNCTION pg_temp.fails() RETURNS trigger LANGUAGE plpgsql AS
                $$ BEGIN RAISE EXCEPTION USING ERRCODE = '40001'; END $$",
            )
            .await?;
            tx.batch_execute(
                "CREATE CONSTRAINT TRIGGER late AFTER INSERT ON orders DEFERRABLE INITIALLY DEFERRED
                FOR EACH ROW EXECUTE FUNCTION pg_temp.fails()",
            )
            .await?;
            tx.execute("INSERT INTO orders VALUES ('tea')", &[]).await?;
            Ok(Receipt::new(201, "made"))
        })
    });
    let error = told.await.expect_err("the COMMIT fails");
    assert_eq!((error.applied, error.kind), (Applied::No, ErrorKind::Busy), "{error}");
    assert_eq!((record(shop.store.as_ref(), "a").await, shop.orders()), (None, "0".to_owned()));
}

/// COMMIT was carried out, kept back on its way, or never arrived: asked again, each is told as it is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_commit_is_asked_about_again() {
    let shop = Shop::new(2).await;
    shop.wire.lose_reply_of(COMMIT);
    let told = shop.ordering("a").await;
    shop.wire.lost().await;
    assert!(is_done(&told, Origin::Fresh), "{told:?}");
    assert_eq!((shop.orders(), shop.effects()), ("1".to_owned(), 1));

    shop.wire.hold_request_of(COMMIT);
    let telling = tokio::spawn(shop.ordering("b"));
    shop.wire.held().await;
    let ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE state = 'idle in transaction' AND datname = current_database()";
    shop.place.database.psql(&[ended]).unwrap();
    let error = telling.await.unwrap().expect_err("its connection was cut before it arrived");
    assert_eq!(error.applied, Applied::No, "{error}");
    shop.wire.release();
    assert_eq!((record(shop.store.as_ref(), "b").await, shop.orders()), (None, "1".to_owned()));
    assert!(is_done(&shop.ordering("b").await, Origin::Fresh));
    assert_eq!((shop.orders(), shop.effects()), ("2".to_owned(), 3));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_effect_that_ends_its_transaction_is_told_so() {
    let shop = Shop::new(2).await;
    let told = shop.doing("a", |tx| {
        Box::pin(async move {
            tx.batch_execute("COMMIT").await?;
            Ok(Receipt::new(201, "made"))
        })
    });
    let error = told.await.expect_err("claim and receipt were not one");
    assert_eq!((error.applied, error.kind), (Applied::Unknown, ErrorKind::Misuse), "{error}");
}

/// The caller is dropped in the middle of the effect; it goes on, and its connection is free again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_that_gives_up_stops_nothing() {
    let shop = Shop::new(1).await;
    let (begun, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (says, waits) = (begun.clone(), go.clone());
    let calling = tokio::spawn(shop.doing("a", move |tx| {
        Box::pin(async move {
            tx.execute("INSERT INTO orders VALUES ('tea')", &[]).await?;
            says.notify_one();
            waits.notified().await;
            Ok(Receipt::new(201, "made"))
        })
    }));
    begun.notified().await;
    calling.abort();
    assert!(calling.await.is_err());
    go.notify_one();
    // It takes the one connection once the other is through.
    assert!(is_done(&shop.ordering("b").await, Origin::Fresh));
    assert!(is_done(&shop.ordering("a").await, Origin::Replayed));
    assert_eq!(shop.orders(), "2");
}
