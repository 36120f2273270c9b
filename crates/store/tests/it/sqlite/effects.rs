//! Effects that misbehave, each between innocent neighbours in one batch: they alone fail, or nobody's write is
//! applied; never an effect without its receipt.
//! What a well-behaved effect does stands in `coupled`.

use std::sync::Arc;
use std::sync::mpsc::channel;

use counterfoil_core::{Policy, Receipt};
use counterfoil_store::seam::RecordStore as _;
use counterfoil_store::sqlite::{Executed, Handle, Origin};
use counterfoil_store::{Applied, ErrorKind, SqliteStore, StoreError};

use super::{Place, claim, order, origin, record, refused};

type Answer = Result<Executed<String>, StoreError>;

/// Runs `culprit` as the fourth of seven innocent effects, all of one batch.
async fn beside_innocents(
    store: &Arc<SqliteStore>,
    culprit: impl FnOnce(&Handle<'_>) -> Result<Receipt, String> + Send + 'static,
) -> (Answer, Vec<Answer>) {
    let (started, has_started) = channel();
    let (go, gone) = channel::<()>();
    let holding = {
        let store = Arc::clone(store);
        tokio::spawn(async move {
            store
                .execute(claim("holding"), &Policy::default(), move |_| {
                    started.send(()).unwrap();
                    gone.recv().unwrap();
                    Ok::<_, String>(Receipt::new(200, ""))
                })
                .await
        })
    };
    tokio::task::spawn_blocking(move || has_started.recv().unwrap()).await.unwrap();
    // The holding effect's batch takes no more in: it works for longer than a batch may, by the barrier below.
    let mut culprit = Some(culprit);
    let mut innocents = Vec::new();
    let mut accused = None;
    for place in 0..8 {
        let store_of = Arc::clone(store);
        if place == 3 {
            let culprit = culprit.take().unwrap();
            accused =
                Some(tokio::spawn(
                    async move { store_of.execute(claim("culprit"), &Policy::default(), culprit).await },
                ));
        } else {
            let key = format!("innocent-{place}");
            innocents.push(tokio::spawn(async move {
                let claim = counterfoil_core::Claim::new(
                    super::identity(&key),
                    counterfoil_core::Asked::bytes("order"),
                    &counterfoil_core::Rule::bytes(),
                );
                store_of.execute(claim.unwrap(), &Policy::default(), order(&key)).await
            }));
        }
        while store.waiting() < place + 1 {
            tokio::task::yield_now().await;
        }
    }
    go.send(()).unwrap();
    holding.await.unwrap().ok();
    let mut answers = Vec::new();
    for innocent in innocents {
        answers.push(innocent.await.unwrap());
    }
    (accused.unwrap().await.unwrap(), answers)
}

/// That the culprit alone failed, whatever it had written.
async fn alone(place: &Place, store: &Arc<SqliteStore>, innocents: Vec<Answer>) {
    for innocent in innocents {
        assert_eq!(origin(innocent), Origin::Fresh);
    }
    assert_eq!((place.orders(), record(store, "culprit").await), (7, None));
    // And its key is free.
    assert_eq!(origin(store.execute(claim("culprit"), &Policy::default(), order("again")).await), Origin::Fresh);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_panic_rolls_back_alone() {
    let place = Place::new();
    let store = place.with_orders();
    let (answer, innocents) = beside_innocents(&store, |handle| {
        handle.execute("INSERT INTO orders VALUES ('half')", []).unwrap();
        panic!("half way")
    })
    .await;
    let error = refused(answer, ErrorKind::Misuse, "panicked");
    assert!(error.to_string().contains("half way") && error.applied == Applied::No, "{error}");
    alone(&place, &store, innocents).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_that_could_end_the_transaction_is_allowed() {
    for statement in [
        "COMMIT",
        "commit /* counterfoil_ */",
        "COMMIT /* counterfoil_ */",
        "END",
        "ROLLBACK",
        "BEGIN",
        "BEGIN IMMEDIATE /* counterfoil_ */",
        "SAVEPOINT mine",
        "SAVEPOINT counterfoil_job",
        "RELEASE counterfoil_job",
        "ROLLBACK TO counterfoil_job",
        "ATTACH ':memory:' AS other",
        "DETACH main",
        "PRAGMA synchronous = OFF",
        "PRAGMA foreign_keys = OFF",
        "PRAGMA defer_foreign_keys = ON",
        "SELECT * FROM pragma_journal_mode",
        "DELETE FROM counterfoil_record",
        "SELECT key FROM Counterfoil_Record",
        "INSERT INTO counterfoil_history SELECT 1,1,1,1,1,1,1,1,1",
        "UPDATE main.counterfoil_store SET quarantine_before = NULL WHERE one = 1",
        "DROP TABLE counterfoil_record",
        "DROP INDEX counterfoil_record_due",
        "ALTER TABLE counterfoil_record ADD COLUMN x",
        "CREATE INDEX mine ON counterfoil_record (key)",
        "CREATE TEMP TABLE counterfoil_record (id)",
        "CREATE TEMP VIEW counterfoil_record AS SELECT 1",
        "CREATE TRIGGER mine AFTER INSERT ON counterfoil_record BEGIN SELECT 1; END",
        "CREATE TEMP TRIGGER mine AFTER INSERT ON counterfoil_record BEGIN SELECT 1; END",
        "WITH gone AS (SELECT 1) DELETE FROM counterfoil_record WHERE 1 IN gone",
        "VACUUM",
    ] {
        let place = Place::new();
        let store = place.with_orders();
        // The store's own statements stand in the cache that effects share.
        store.execute(claim("warm"), &Policy::default(), order("warm")).await.unwrap();
        for cached in [false, true] {
            let answer = store
                .execute(claim("culprit"), &Policy::default(), move |handle| {
                    handle.execute("INSERT INTO orders VALUES ('half')", []).unwrap();
                    let refused = if cached {
                        handle.prepare_cached(statement).and_then(|mut prepared| prepared.raw_execute()).err()
                    } else {
                        handle.prepare(statement).and_then(|mut prepared| prepared.raw_execute()).err()
                    };
                    Err::<Receipt, _>(refused.map(|error| error.to_string()))
                })
                .await
                .unwrap();
            assert!(
                matches!(&answer, Executed::EffectFailed(Some(_))),
                "`{statement}` (cached: {cached}) is allowed: {answer:?}"
            );
        }
        assert_eq!(place.orders(), 1, "`{statement}` committed half an effect");
        assert_eq!(origin(store.execute(claim("next"), &Policy::default(), order("next")).await), Origin::Fresh);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_trigger_or_view_reaches_our_tables_no_more_than_a_statement() {
    let place = Place::new();
    let store = place.with_orders();
    place
        .outside()
        .execute_batch(
            "CREATE TRIGGER sly AFTER INSERT ON orders BEGIN DELETE FROM counterfoil_record; END;
             CREATE VIEW peek AS SELECT key FROM counterfoil_record;",
        )
        .unwrap();
    for statement in ["INSERT INTO orders VALUES ('1')", "SELECT * FROM peek"] {
        let answer = store
            .execute(claim("culprit"), &Policy::default(), move |handle| match handle.prepare(statement) {
                Ok(_) => Ok(Receipt::new(200, "allowed")),
                Err(error) => Err(error.to_string()),
            })
            .await
            .unwrap();
        assert!(matches!(answer, Executed::EffectFailed(_)), "{statement}: {answer:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_refused_commit_rolls_back_alone() {
    let place = Place::new();
    let store = place.with_orders();
    let (answer, innocents) = beside_innocents(&store, |handle| {
        handle.execute("INSERT INTO orders VALUES ('half')", []).unwrap();
        handle.execute("COMMIT", []).map_err(|error| error.to_string())?;
        Ok(Receipt::new(200, "committed"))
    })
    .await;
    assert!(matches!(&answer, Ok(Executed::EffectFailed(says)) if says.contains("authorized")), "{answer:?}");
    alone(&place, &store, innocents).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_violated_deferred_constraint_rolls_back_alone() {
    let place = Place::new();
    let store = place.with_orders();
    let (answer, innocents) = beside_innocents(&store, |handle| {
        handle.execute("INSERT INTO lines (of) VALUES ('no such order')", []).map_err(|error| error.to_string())?;
        Ok(Receipt::new(200, ""))
    })
    .await;
    refused(answer, ErrorKind::Misuse, "foreign key");
    alone(&place, &store, innocents).await;
    // Mended before the end, it is none.
    let mended = store
        .execute(claim("mended"), &Policy::default(), |handle| {
            handle.execute("INSERT INTO lines (of) VALUES ('late')", [])?;
            handle.execute("INSERT INTO orders VALUES ('late')", [])?;
            Ok::<_, counterfoil_store::sqlite::rusqlite::Error>(Receipt::new(200, ""))
        })
        .await;
    assert_eq!(origin(mended), Origin::Fresh);
}

/// That of one batch either all is applied or nothing, and that everybody was told so.
async fn nobody(place: &Place, store: &Arc<SqliteStore>, innocents: Vec<Answer>) {
    let mut fresh = 0;
    for innocent in innocents {
        match innocent {
            // Not yet begun when the transaction ended, and then committed by the next one.
            Ok(Executed::Done { origin: Origin::Fresh, .. }) => fresh += 1,
            Err(error) => {
                assert_eq!(error.applied, Applied::No, "{error}");
                assert!(matches!(error.kind, ErrorKind::Unavailable | ErrorKind::Busy), "{error}");
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(fresh < 7, "nobody was in the culprit's batch");
    assert_eq!(place.orders(), fresh, "an effect without its receipt, or a receipt without its effect");
    assert_eq!(record(store, "culprit").await, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_error_that_ends_the_transaction_applies_nobody_s_write() {
    for keeps_on in [false, true] {
        let place = Place::new();
        let store = place.with_orders();
        place.outside().execute_batch("INSERT INTO orders VALUES ('taken'); DELETE FROM lines").unwrap();
        let (answer, innocents) = beside_innocents(&store, move |handle| {
            let ended = handle.execute("INSERT OR ROLLBACK INTO orders VALUES ('taken')", []).map(|_| ());
            if !keeps_on {
                return Err(ended.unwrap_err().to_string());
            }
            // Outside the transaction nothing is taken any more.
            let after = handle.execute("INSERT INTO orders VALUES ('after')", []).unwrap_err();
            assert!(after.to_string().contains("ended the transaction"), "{after}");
            Ok(Receipt::new(200, "pretends"))
        })
        .await;
        let error = refused(answer, ErrorKind::Unavailable, "whole transaction");
        assert_eq!(error.applied, Applied::No);
        place.outside().execute_batch("DELETE FROM orders WHERE id = 'taken'").unwrap();
        nobody(&place, &store, innocents).await;
        assert_eq!(origin(store.execute(claim("next"), &Policy::default(), order("next")).await), Origin::Fresh);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_statement_prepared_before_the_end_writes_nothing_after_it() {
    let place = Place::new();
    let store = place.with_orders();
    place.outside().execute_batch("INSERT INTO orders VALUES ('taken')").unwrap();
    let (answer, _) = beside_innocents(&store, |handle| {
        let mut prepared = handle.prepare("INSERT INTO orders VALUES ('after')").unwrap();
        handle.execute("INSERT OR ROLLBACK INTO orders VALUES ('taken')", []).unwrap_err();
        prepared.execute([]).map(|_| Receipt::new(200, "")).map_err(|error| error.to_string())
    })
    .await;
    answer.unwrap_err();
    let after: i64 =
        place.outside().query_row("SELECT count(*) FROM orders WHERE id = 'after'", [], |row| row.get(0)).unwrap();
    assert_eq!(after, 0, "a statement committed itself");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_statement_left_running_rolls_back_alone() {
    let place = Place::new();
    let store = place.with_orders();
    let (answer, innocents) = beside_innocents(&store, |handle| {
        let mut statement = handle.prepare("INSERT INTO orders VALUES ('a'), ('b') RETURNING id").unwrap();
        let mut rows = statement.query([]).unwrap();
        rows.next().unwrap();
        std::mem::forget(rows);
        std::mem::forget(statement);
        Ok(Receipt::new(200, ""))
    })
    .await;
    refused(answer, ErrorKind::Misuse, "left a statement running");
    alone(&place, &store, innocents).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_full_file_refuses_and_loses_nothing() {
    let place = Place::new();
    let mut options = place.options();
    let store = place.with_orders();
    assert_eq!(origin(store.execute(claim("before"), &Policy::default(), order("before")).await), Origin::Fresh);
    drop(store);
    let pages: u32 = place.outside().query_row("PRAGMA page_count", [], |row| row.get(0)).unwrap();
    options.pages_max = Some(pages + 2);
    let store = place.open_with(options).unwrap();
    let (answer, innocents) = beside_innocents(&store, |handle| {
        for row in 0..1000 {
            let id = format!("{row}-{}", "x".repeat(4000));
            handle.execute("INSERT INTO orders VALUES (?1)", [&id]).map_err(|error| error.to_string())?;
        }
        Ok(Receipt::new(200, ""))
    })
    .await;
    assert!(!matches!(answer, Ok(Executed::Done { .. })), "{answer:?}");
    let fresh = innocents.iter().filter(|innocent| innocent.is_ok()).count();
    assert_eq!(usize::try_from(place.orders()).unwrap(), fresh + 1, "half an effect, or a receipt without its effect");
    drop(store);
    // Room again: nothing is lost.
    let store = place.open();
    assert_eq!(origin(store.execute(claim("before"), &Policy::default(), order("no")).await), Origin::Replayed);
    assert_eq!(origin(store.execute(claim("culprit"), &Policy::default(), order("yes")).await), Origin::Fresh);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_effect_may_not_write_to_its_own_store() {
    let place = Place::new();
    let store = place.with_orders();
    let inside = Arc::clone(&store);
    let answer = store
        .execute(claim("outer"), &Policy::default(), move |_| {
            let inner = inside.execute_blocking(claim("inner"), &Policy::default(), order("inner"));
            Err::<Receipt, _>(inner.unwrap_err().kind)
        })
        .await
        .unwrap();
    assert_eq!(answer, Executed::EffectFailed(ErrorKind::Misuse));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_effect_that_blocks_fails_readiness_and_new_calls() {
    let place = Place::new();
    let mut options = place.options();
    options.stall_after = std::time::Duration::ZERO;
    let store = place.open_with(options).unwrap();
    place.make_orders();
    let (started, has_started) = channel();
    let (go, gone) = channel::<()>();
    let blocking = {
        let store = Arc::clone(&store);
        tokio::spawn(async move {
            store
                .execute(claim("blocks"), &Policy::default(), move |_| {
                    started.send(()).unwrap();
                    gone.recv().unwrap();
                    Ok::<_, String>(Receipt::new(200, ""))
                })
                .await
        })
    };
    tokio::task::spawn_blocking(move || has_started.recv().unwrap()).await.unwrap();
    refused(store.health(), ErrorKind::Busy, "an effect that blocks must end");
    refused(store.execute(claim("new"), &Policy::default(), order("new")).await, ErrorKind::Busy, "must end");
    // Reads go on.
    assert_eq!(record(&store, "blocks").await, None);
    go.send(()).unwrap();
    assert_eq!(origin(blocking.await.unwrap()), Origin::Fresh);
    store.health().unwrap();
}
