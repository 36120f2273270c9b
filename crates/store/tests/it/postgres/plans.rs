//! Every statement that the store sends finds its rows by an index: the plans that the server really used, statements
//! inside functions included, on a table large enough for the choice to matter.
//! How fast that is belongs to the measurements.

use std::sync::Arc;
use std::time::Duration;

use counterfoil_core::intent::{Outbound, Recorded};
use counterfoil_core::{Expiry, Policy};
use counterfoil_store::intents::Put;
use counterfoil_store::postgres::trial::{Server, TestTime};
use counterfoil_store::postgres::{Options, PostgresStore};
use counterfoil_store::seam::{Note, NoteKind, Query, RecordStore as _};
use counterfoil_store::{Gate, IntentStore as _};

use super::fence::{coupled, granted};
use super::{claim, identity};
use crate::gate::every_way_through_the_gate;
use crate::intents;

const LOGGED: [&str; 4] = [
    "session_preload_libraries = 'auto_explain'",
    "auto_explain.log_min_duration = 0",
    "auto_explain.log_nested_statements = on",
    "log_min_messages = log",
];

const FILLED: [&str; 5] = [
    "INSERT INTO counterfoil.record (scope, operation, key, version, lease, state, claimed_at, expires_at, record)
     SELECT 's', 'o', convert_to('k' || n, 'UTF8'), 1, '\\x00', 3, 0,
       CASE WHEN n % 100 > 0 THEN 1749999900000 + n::bigint * 1000 END, '\\x00'
     FROM generate_series(1, 30000) AS n",
    "INSERT INTO counterfoil.history (scope, operation, key, at, kind, lease, who, why)
     SELECT 's', 'o', convert_to('k' || n, 'UTF8'), 0, 'late-completion', '\\x00', 'w', 'w'
     FROM generate_series(1, 30000) AS n",
    "INSERT INTO counterfoil.intent (name, version, due_at, intent)
     SELECT 'n' || n, 1, CASE WHEN n % 3 > 0 THEN 1749999990000 + n::bigint * 1000 END, '\\x00'
     FROM generate_series(1, 30000) AS n",
    "INSERT INTO counterfoil.outbox (name, method, url, headers, body, profile, created_at, asked, refused)
     SELECT 'l' || n, 'POST', 'http://h/', '[]', '', 'mail', 0, '', CASE WHEN n % 100 > 0 THEN 'why' END
     FROM generate_series(1, 30000) AS n",
    "ANALYZE",
];

/// Everything that a store is asked for about intents.
async fn ask_for_intents(store: &PostgresStore) {
    let outbound = intents::outbound("one", "{}", None);
    let intent = outbound.freeze("store", &intents::profile(), store.now().at).unwrap();
    let name = intent.request.name.clone();
    assert_eq!(store.put(None, intent.clone()).await.unwrap(), Put::Won);
    assert_eq!(store.put(Some(1), intent).await.unwrap(), Put::Won);
    assert!(store.intent(&name).await.unwrap().is_some());
    assert!(store.due(None, 16).await.unwrap().next.is_some());
    assert_eq!(store.intents(100, 10).await.unwrap().rows.len(), 10);
    let letter = store.letters(None, 10).await.unwrap().remove(0);
    store.letters(Some(100), 10).await.unwrap();
    store.refuse_letter(letter.id, "why").await.unwrap();
    let (draft, parent) = letter.asks.unwrap();
    let outbound = Outbound::new(draft, parent);
    for want in [Recorded::Written, Recorded::Stands] {
        assert_eq!(store.open_letter(letter.id, &outbound, &intents::profile()).await.unwrap(), want);
    }
    assert!(store.forget(&name, 1).await.unwrap());
}

/// Everything that a store is asked for.
async fn ask_everything(store: Arc<PostgresStore>) {
    let gate = every_way_through_the_gate(store.clone(), claim).await;
    for unsettled_only in [true, false] {
        store.list(Query { unsettled_only, after: 50, limit: 20 }).await.unwrap();
    }
    assert_eq!(store.find("a", 10).await.unwrap().len(), 1);
    ask_for_intents(&store).await;
    let kind = NoteKind::LateCompletion;
    let at = store.now().at;
    let lease = counterfoil_core::LeaseId::from_bytes([1; 16]);
    let note = Note { identity: identity("a"), at, kind, lease, who: "w".to_owned(), why: "w".to_owned() };
    store.note(note).await.unwrap();
    assert_eq!(store.history(&identity("a")).await.unwrap().len(), 1);
    store.set_quarantine(Some(at)).await.unwrap();
    gate.begin(&mut claim("quarantined"), &Policy::default()).await.unwrap();
    store.set_quarantine(None).await.unwrap();
    store.about().await.unwrap();
    store.sweep(150).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_statement_uses_its_index() {
    let server = Arc::new(Server::start(&LOGGED).unwrap());
    let database = server.with_store().await.unwrap();
    database.psql(&FILLED).unwrap();
    let mut options = Options::default();
    options.clock = Arc::new(TestTime::of(&database).await.unwrap().clock);
    options.call_timeout = Duration::from_secs(30);
    let from = std::fs::read_to_string(server.data().join("log")).unwrap().len();
    let store = PostgresStore::open(&database.url(), options).await.unwrap();
    let permit = granted(&Gate::new(store.clone()).unwrap(), "settled", &coupled(Expiry::NewAction)).await;
    let hold = format!("SELECT counterfoil.hold('{}')", permit.text());
    let settle = format!("SELECT counterfoil.settle('{}', 201, NULL, NULL)", permit.text());
    database.psql(&[&format!("BEGIN; {hold}; {settle}; COMMIT")]).unwrap();
    let record = "SELECT counterfoil.record_intent('l1', NULL, 'POST', 'http://h/', NULL, NULL, 'mail')";
    database.psql(&[record]).expect_err("the name is taken");
    ask_everything(store).await;
    server.stop("fast").unwrap();
    let log = std::fs::read_to_string(server.data().join("log")).unwrap();
    let plans: Vec<&str> =
        log[from..].split("Query Text:").skip(1).filter(|plan| plan.contains("counterfoil.")).collect();
    let walks = [
        "Seq Scan on record",
        "Seq Scan on history",
        "Seq Scan on intent",
        "Seq Scan on outbox",
        "Seq Scan on counterfoil.record",
    ];
    for plan in &plans {
        // To count all rows, all rows are walked.
        let counts = plan.contains("count(*)");
        assert!(counts || !walks.iter().any(|walk| plan.contains(walk)), "a statement walks the table:\n{plan}");
    }
    for seen in [
        "FOR UPDATE SKIP LOCKED",
        "record_scope_operation_key_key",
        "record_due",
        "record_unsettled",
        "record_digest",
        "record_pkey",
        "history_of",
        "intent_due",
        "intent_name_key",
        "intent_pkey",
        "outbox_open",
        "outbox_pkey",
        "outbox_name_key",
        "DELETE FROM counterfoil.record",
        "INSERT INTO counterfoil.record",
        "UPDATE counterfoil.record",
    ] {
        assert!(plans.iter().any(|plan| plan.contains(seen)), "no plan has {seen}, of {}", plans.len());
    }
}
