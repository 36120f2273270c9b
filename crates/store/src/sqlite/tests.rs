//! What can only be tried from inside: commits that fail, and a writer that fails itself.
//! What callers can do stands in the crate's integration tests.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Sender, channel};

use counterfoil_core::claim::Draft;
use counterfoil_core::{Asked, Claim, Identity, Key, LeaseId, Operation, Policy, Receipt, Record, Rule, Scope};
use rusqlite::Connection;
use tempfile::TempDir;
use tokio::task::JoinHandle;

use super::job::Rank;
use super::{Executed, Options, Origin, SqliteStore};
use crate::error::{Applied, ErrorKind, StoreError};
use crate::seam::{Expected, New, Query, RecordStore as _, Swap, Swapped};

fn open(directory: &TempDir) -> Arc<SqliteStore> {
    let options = Options { busy_timeout: std::time::Duration::from_millis(20), ..Options::default() };
    let store = SqliteStore::open(directory.path().join("store.db"), options).unwrap();
    outside(directory).execute_batch("CREATE TABLE IF NOT EXISTS orders (id TEXT PRIMARY KEY)").unwrap();
    store
}

fn outside(directory: &TempDir) -> Connection {
    Connection::open(directory.path().join("store.db")).unwrap()
}

fn identity(key: &str) -> Identity {
    Identity::new(Scope::single_tenant(), Operation::new("create-order").unwrap(), Key::new(key).unwrap())
}

fn claim(key: &str) -> Claim {
    Claim::new(identity(key), Asked::bytes("order"), &Rule::bytes()).unwrap()
}

fn claiming(key: &str, lease: u8) -> Swap {
    let draft = Draft::new(&claim(key), &Policy::default(), LeaseId::from_bytes([lease; 16]), None);
    Swap { identity: identity(key), expected: Expected::Absent, new: New::claim(draft), not_after: None, note: None }
}

async fn record(store: &SqliteStore, key: &str) -> Option<Arc<Record>> {
    store.read(&identity(key)).await.unwrap().record
}

async fn execute(store: &SqliteStore, key: &'static str) -> Result<Executed<rusqlite::Error>, StoreError> {
    let effect = move |handle: &super::Handle<'_>| {
        handle.execute("INSERT INTO orders VALUES (?1)", [key])?;
        Ok(Receipt::new(201, key))
    };
    store.execute(claim(key), &Policy::default(), effect).await
}

fn is_fresh<E>(executed: &Executed<E>) -> bool {
    matches!(executed, Executed::Done { origin: Origin::Fresh, .. })
}

fn fail_next_commit(store: &SqliteStore) {
    store.inner.writer.lock().unwrap().guard.fail_commit.store(true, Ordering::Relaxed);
}

type Work<T> = std::pin::Pin<Box<dyn Future<Output = T> + Send>>;

/// A batch that is under way until the sender is told to go: what is asked for meanwhile waits, and joins it then.
async fn held(store: &Arc<SqliteStore>) -> (JoinHandle<Result<(), StoreError>>, Sender<()>) {
    let (started, has_started) = channel();
    let (go, gone) = channel::<()>();
    let inner = Arc::clone(&store.inner);
    let holding = tokio::spawn(async move {
        let hold = move |_: &super::batch::Batch<'_>| {
            started.send(()).unwrap();
            gone.recv().unwrap();
            Ok(())
        };
        inner.ask(Rank::Urgent, hold).await
    });
    tokio::task::spawn_blocking(move || has_started.recv().unwrap()).await.unwrap();
    (holding, go)
}

/// Has all of `work` done in one batch whose commit fails.
async fn in_one_failing_batch<T: Send + 'static>(store: &Arc<SqliteStore>, work: Vec<Work<T>>) -> Vec<T> {
    let (holding, go) = held(store).await;
    let inner = Arc::clone(&store.inner);
    let trip = |batch: &super::batch::Batch<'_>| {
        batch.guard.fail_commit.store(true, Ordering::Relaxed);
        Ok(())
    };
    // It is urgent, and so in the same batch as all that waits when the holding job ends.
    let tripping = tokio::spawn(async move { inner.ask(Rank::Urgent, trip).await });
    let mut tasks = Vec::new();
    for (place, work) in work.into_iter().enumerate() {
        tasks.push(tokio::spawn(work));
        while store.waiting() < place + 2 {
            tokio::task::yield_now().await;
        }
    }
    go.send(()).unwrap();
    let mut answers = Vec::new();
    drop(holding.await.unwrap());
    tripping.await.unwrap().unwrap_err();
    for task in tasks {
        answers.push(task.await.unwrap());
    }
    answers
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_failed_commit_is_unknown_and_applies_nothing() {
    let directory = TempDir::new().unwrap();
    let store = open(&directory);
    assert!(is_fresh(&execute(&store, "before").await.unwrap()));
    fail_next_commit(&store);
    let error = store.swap(claiming("a", 1)).await.unwrap_err();
    assert_eq!((error.applied, error.kind), (Applied::Unknown, ErrorKind::Unknown), "{error}");
    fail_next_commit(&store);
    let error = execute(&store, "b").await.unwrap_err();
    assert_eq!((error.applied, error.kind), (Applied::Unknown, ErrorKind::Unknown), "{error}");
    // Read back at once, and used again: the same write may be sent again.
    assert_eq!((record(&store, "a").await, record(&store, "b").await), (None, None));
    store.health().unwrap();
    assert!(matches!(store.swap(claiming("a", 1)).await.unwrap(), Swapped::Won { .. }));
    assert!(is_fresh(&execute(&store, "b").await.unwrap()));
    assert!(matches!(execute(&store, "before").await.unwrap(), Executed::Done { origin: Origin::Replayed, .. }));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_failed_commit_is_unknown_for_all_in_its_batch() {
    let directory = TempDir::new().unwrap();
    let store = open(&directory);
    let mut work: Vec<Work<Result<String, StoreError>>> = Vec::new();
    for lease in 1..4_u8 {
        // Two of them lose to the first, which is no answer before the commit either.
        let store = Arc::clone(&store);
        work.push(Box::pin(async move { store.swap(claiming("same", lease)).await.map(|won| format!("{won:?}")) }));
    }
    for key in ["x", "y"] {
        let store = Arc::clone(&store);
        work.push(Box::pin(async move { execute(&store, key).await.map(|done| format!("{done:?}")) }));
    }
    let answers = in_one_failing_batch(&store, work).await;
    let unknown = answers.iter().filter(|answer| {
        answer.as_ref().is_err_and(|error| error.applied == Applied::Unknown && error.kind == ErrorKind::Unknown)
    });
    assert_eq!(unknown.count(), 5, "{answers:?}");
    assert_eq!(record(&store, "same").await, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_is_read_until_the_log_is_read_back() {
    let directory = TempDir::new().unwrap();
    let store = open(&directory);
    assert!(is_fresh(&execute(&store, "before").await.unwrap()));
    // Somebody reads an older state, so that the log cannot be emptied.
    let reader = outside(&directory);
    reader.execute_batch("BEGIN; SELECT count(*) FROM orders").unwrap();
    assert!(is_fresh(&execute(&store, "after").await.unwrap()));
    fail_next_commit(&store);
    let unknown = store.swap(claiming("a", 1)).await.unwrap_err();
    assert_eq!(unknown.applied, Applied::Unknown);
    let answers = [
        store.read(&identity("before")).await.map(drop),
        store.swap(claiming("a", 1)).await.map(drop),
        execute(&store, "before").await.map(drop),
        store.list(Query { limit: 1, ..Query::default() }).await.map(drop),
        store.about().await.map(drop),
        store.health(),
    ];
    for answer in answers {
        let error = answer.unwrap_err();
        assert_eq!((error.applied, error.kind), (Applied::No, ErrorKind::Unavailable), "{error}");
        assert!(error.detail.contains("read back"), "{error}");
    }
    reader.execute_batch("COMMIT").unwrap();
    // The next call wins the trust back, a mere read or a look at the health too.
    store.health().unwrap();
    assert!(record(&store, "after").await.is_some());
    assert!(matches!(store.swap(claiming("a", 1)).await.unwrap(), Swapped::Won { .. }));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_fault_of_the_writer_s_own_is_unknown_and_the_store_goes_on() {
    let directory = TempDir::new().unwrap();
    let store = open(&directory);
    let fault = |batch: &super::batch::Batch<'_>| -> Result<(), StoreError> {
        batch.conn.execute_batch("INSERT INTO orders VALUES ('half')").unwrap();
        panic!("a fault of the writer")
    };
    let error = store.inner.ask(Rank::Urgent, fault).await.unwrap_err();
    assert_eq!((error.applied, error.kind), (Applied::Unknown, ErrorKind::Unknown), "{error}");
    let orders: i64 = outside(&directory).query_row("SELECT count(*) FROM orders", [], |row| row.get(0)).unwrap();
    assert_eq!(orders, 0);
    assert!(is_fresh(&execute(&store, "next").await.unwrap()));
    let error = store.inner.ask_blocking(Rank::Urgent, fault).unwrap_err();
    assert_eq!(error.applied, Applied::Unknown);
    assert!(is_fresh(&execute(&store, "last").await.unwrap()));
}

#[test]
fn a_commit_that_the_writer_did_not_start_is_vetoed() {
    let directory = TempDir::new().unwrap();
    let store = open(&directory);
    let writer = store.inner.writer.lock().unwrap();
    let conn = writer.conn.as_ref().unwrap();
    for statements in ["INSERT INTO orders VALUES ('1')", "BEGIN; INSERT INTO orders VALUES ('1'); COMMIT"] {
        conn.execute_batch(statements).unwrap_err();
    }
    assert!(conn.is_autocommit());
    drop(writer);
    let orders: i64 = outside(&directory).query_row("SELECT count(*) FROM orders", [], |row| row.get(0)).unwrap();
    assert_eq!(orders, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_undo_that_fails_takes_the_whole_batch_with_it() {
    let directory = TempDir::new().unwrap();
    let store = open(&directory);
    let broken = |batch: &super::batch::Batch<'_>| -> Result<(), StoreError> {
        batch.alone(|| {
            batch.conn.execute_batch("INSERT INTO orders VALUES ('half'); RELEASE counterfoil_job").unwrap();
            Err(StoreError::not_applied(ErrorKind::Busy, "fails after it has left its savepoint"))
        })
    };
    store.inner.ask(Rank::Urgent, broken).await.unwrap_err();
    let orders: i64 = outside(&directory).query_row("SELECT count(*) FROM orders", [], |row| row.get(0)).unwrap();
    assert_eq!(orders, 0, "half a job was committed");
    assert!(is_fresh(&execute(&store, "next").await.unwrap()));
}

/// Has jobs of these ranks wait in this order, and answers the order in which they ran, by position.
async fn ran(store: &Arc<SqliteStore>, ranks: &[Rank]) -> Vec<usize> {
    let (holding, go) = held(store).await;
    let order = Arc::new(std::sync::Mutex::new(Vec::new()));
    let mut jobs = Vec::new();
    for (place, rank) in ranks.iter().copied().enumerate() {
        let (inner, order) = (Arc::clone(&store.inner), Arc::clone(&order));
        jobs.push(tokio::spawn(async move {
            inner
                .ask(rank, move |_| {
                    order.lock().unwrap().push(place);
                    Ok(())
                })
                .await
        }));
        while store.waiting() <= place {
            tokio::task::yield_now().await;
        }
    }
    go.send(()).unwrap();
    holding.await.unwrap().unwrap();
    for job in jobs {
        job.await.unwrap().unwrap();
    }
    order.lock().unwrap().clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_ends_or_keeps_goes_before_claims_and_sweeping_last() {
    let directory = TempDir::new().unwrap();
    let store = open(&directory);
    let ranks = [Rank::Low, Rank::Claim, Rank::Urgent, Rank::Claim, Rank::Urgent];
    assert_eq!(ran(&store, &ranks).await, [2, 4, 1, 3, 0]);
    let put = Swap { new: New::Delete, ..claiming("a", 1) };
    assert_eq!((super::swap::rank(&put), super::swap::rank(&claiming("a", 1))), (Rank::Urgent, Rank::Claim));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sweeping_waits_for_a_bounded_number_of_batches() {
    let directory = TempDir::new().unwrap();
    let options = Options { batch_max: 1, ..Options::default() };
    let store = SqliteStore::open(directory.path().join("store.db"), options).unwrap();
    let mut ranks = vec![Rank::Claim; 40];
    ranks[0] = Rank::Low;
    let order = ran(&store, &ranks).await;
    let turn = order.iter().position(|place| *place == 0).unwrap();
    assert!((1..=10).contains(&turn), "low work ran as number {turn} of 40");
}

/// A statement that reads the whole table would slow every claim down as the store grows.
#[test]
fn every_statement_finds_its_rows_by_an_index() {
    let directory = TempDir::new().unwrap();
    drop(open(&directory));
    let conn = outside(&directory);
    let (named, intents) = ("main.counterfoil_record USING", "main.counterfoil_intent USING");
    for (statement, wanted) in [
        (super::rows::SELECT, format!("SEARCH {named} INDEX sqlite_autoindex")),
        (super::rows::UPDATE, format!("SEARCH {named} INDEX sqlite_autoindex")),
        (super::rows::DELETE, format!("SEARCH {named} INDEX sqlite_autoindex")),
        (super::sweep::DUE, format!("SEARCH {named} COVERING INDEX counterfoil_record_due")),
        (super::sweep::HELD, format!("SEARCH {named} INDEX counterfoil_record_unsettled (holder=?)")),
        (super::list::ALL, format!("SEARCH {named} INTEGER PRIMARY KEY")),
        (super::list::UNSETTLED, "INDEX counterfoil_record_unsettled".to_owned()),
        (super::list::NEXT, format!("SEARCH {named} COVERING INDEX sqlite_autoindex")),
        (super::intents::SELECT, format!("SEARCH {intents} INDEX sqlite_autoindex")),
        (super::intents::UPDATE, format!("SEARCH {intents} INDEX sqlite_autoindex")),
        (super::intents::DELETE, format!("SEARCH {intents} INDEX sqlite_autoindex")),
        (super::intents::DUE, format!("SEARCH {intents} INDEX counterfoil_intent_due (due_at>? AND due_at<?)")),
        (super::intents::NEXT, format!("SEARCH {intents} COVERING INDEX counterfoil_intent_due (due_at>?)")),
        (super::intents::HELD, format!("SEARCH {intents} INDEX counterfoil_intent_held (holder=?)")),
    ] {
        let mut explained = conn.prepare(&format!("EXPLAIN QUERY PLAN {statement}")).unwrap();
        let mut steps = explained.raw_query();
        let mut plan: Vec<String> = Vec::new();
        while let Some(step) = steps.next().unwrap() {
            plan.push(step.get(3).unwrap());
        }
        assert!(plan.iter().any(|step| step.contains(&wanted)), "{statement}\nwanted {wanted}: {plan:?}");
        let sorted = plan.iter().any(|step| step.contains("TEMP B-TREE"));
        assert_eq!(sorted, statement == super::list::UNSETTLED, "{statement}: {plan:?}");
    }
}
