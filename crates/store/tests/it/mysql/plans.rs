//! Every statement that the store sends finds its rows by an index: the plans that the server really used, statements
//! inside procedures included, on a table large enough for the choice to matter.
//! How fast that is belongs to the measurements.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use counterfoil_core::{LeaseId, Policy, Receipt};
use counterfoil_store::Begun;
use counterfoil_store::mysql::mysql_async::{Conn, Opts, TxOpts};
use counterfoil_store::mysql::trial::{Server, TestTime};
use counterfoil_store::mysql::{MysqlStore, Options};
use counterfoil_store::seam::{Note, NoteKind, Query, RecordStore as _};

use super::{claim, identity};
use crate::gate::every_way_through_the_gate;

/// The server writes down each statement with its plan, those inside procedures too.
const LOGGED: [&str; 6] = [
    "--slow-query-log=OFF",
    "--slow-query-log-file=plans.log",
    "--log-output=FILE",
    "--long-query-time=0",
    "--log-slow-verbosity=query_plan,explain",
    "--log-slow-disabled-statements=",
];

const FILLED: &str = "
    INSERT INTO counterfoil_record
        (digest, scope, operation, action_key, version, lease, state, claimed_at, expires_at, record)
    SELECT UNHEX(SHA2(seq, 256)), 's', 'o', CONCAT('k', seq), 1, 'lllllllllllllllx', 3, 0,
        IF(seq % 100 > 0, 1749999900000 + seq * 1000, NULL), '0' FROM seq_1_to_30000;
    INSERT INTO counterfoil_history (digest, at, kind, lease, who, why)
    SELECT UNHEX(SHA2(seq, 256)), 0, 'late-completion', 'lllllllllllllllx', 'w', 'w' FROM seq_1_to_30000;
    ANALYZE TABLE counterfoil_record, counterfoil_history";

/// Everything that a store is asked for.
async fn ask_everything(store: &Arc<MysqlStore>, url: &str) {
    let gate = every_way_through_the_gate(store.clone(), claim).await;
    let mut conn = Conn::new(Opts::from_url(url).unwrap()).await.unwrap();
    let mut tx = conn.start_transaction(TxOpts::default()).await.unwrap();
    for key in ["a", "c"] {
        if let Begun::Execute(mut permit) = store.begin_in(&mut tx, &mut claim(key), &Policy::default()).await.unwrap()
        {
            store.complete_in(&mut tx, &mut permit, &Receipt::new(201, "made")).await.unwrap();
        }
    }
    tx.commit().await.unwrap();
    for unsettled_only in [true, false] {
        store.list(Query { unsettled_only, after: 50, limit: 20 }).await.unwrap();
    }
    assert_eq!(store.find("a", 10).await.unwrap().len(), 1);
    let (at, kind, lease) = (store.now().at, NoteKind::LateCompletion, LeaseId::from_bytes([1; 16]));
    let note = Note { identity: identity("a"), at, kind, lease, who: "w".to_owned(), why: "w".to_owned() };
    store.note(note).await.unwrap();
    assert_eq!(store.history(&identity("a")).await.unwrap().len(), 1);
    store.set_quarantine(Some(at)).await.unwrap();
    gate.begin(&mut claim("quarantined"), &Policy::default()).await.unwrap();
    store.set_quarantine(None).await.unwrap();
    store.about().await.unwrap();
    store.sweep(150).await.unwrap();
}

/// Of a statement with its plan: the lines of the plan that walk a whole table, or a whole index, of many rows.
fn walks(statement: &str) -> Vec<&str> {
    let plan = statement.lines().filter_map(|line| line.strip_prefix("# explain: "));
    // id, select_type, table, type, possible_keys, key, key_len, ref, rows …
    plan.filter(|line| {
        let columns: Vec<&str> = line.split('\t').collect();
        let walks = columns.get(3).is_some_and(|kind| ["ALL", "index"].contains(kind));
        walks && columns.get(8).and_then(|rows| rows.parse::<u64>().ok()).is_some_and(|rows| rows > 1_000)
    })
    .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_statement_uses_its_index() {
    let server = Arc::new(Server::start(&LOGGED).unwrap());
    let database = server.with_store().await.unwrap();
    database.sql(FILLED).unwrap();
    let mut options = Options::default();
    options.clock = Arc::new(TestTime::of(&database).await.unwrap().clock);
    options.call_timeout = Duration::from_secs(30);
    database.sql("SET GLOBAL slow_query_log = ON").unwrap();
    let store = MysqlStore::open(&database.url(), options).await.unwrap();
    ask_everything(&store, &database.url()).await;
    store.close().await;
    database.sql("SET GLOBAL slow_query_log = OFF").unwrap();
    let kept = database.sql("SELECT CONCAT(@@datadir, @@slow_query_log_file)").unwrap();
    let log = String::from_utf8_lossy(&std::fs::read(Path::new(&kept)).unwrap()).into_owned();
    let statements: Vec<&str> = log.split("# User@Host:").collect();
    let ours: Vec<&&str> = statements.iter().filter(|one| one.contains("counterfoil_")).collect();
    for statement in &ours {
        // To count all rows, all rows are walked.
        let walks = if statement.contains("COUNT(*)") { Vec::new() } else { walks(statement) };
        assert!(walks.is_empty(), "a statement walks a table: {walks:?} in\n{statement}");
    }
    for seen in [
        "\tconst\tcounterfoil_identity",
        "counterfoil_due",
        "PRIMARY",
        "counterfoil_history_of",
        "INSERT INTO counterfoil_record",
        "UPDATE counterfoil_record",
        "DELETE FROM counterfoil_record",
        "SKIP LOCKED",
        "FOR UPDATE",
    ] {
        assert!(ours.iter().any(|one| one.contains(seen)), "no plan has {seen}, of {}", ours.len());
    }
}

#[test]
fn a_planted_walk_is_seen() {
    let plan = |kind, rows| format!("# explain: 1\tSIMPLE\tr\t{kind}\tNULL\tNULL\tNULL\tNULL\t{rows}\t1\nSELECT 1;\n");
    for (kind, rows, seen) in [("ALL", 30_000, 1), ("index", 30_000, 1), ("ref", 30_000, 0), ("ALL", 1, 0)] {
        assert_eq!(walks(&plan(kind, rows)).len(), seen, "{kind} {rows}");
    }
}
