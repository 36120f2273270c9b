//! SIGKILL at random moments under load: what was answered has its receipt and exactly one effect.
//!
//! One file lives through all rounds, and the keys are few, so that each round meets what earlier ones left in doubt.
//! What does not belong here: single actions killed at named points (`points.rs`).

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{BufRead, BufReader},
    path::Path,
    sync::Arc,
};

use counterfoil_core::{Body, Record, State};
use counterfoil_store::{Gate, RecordStore, SqliteStore, seam::Query};

use super::{
    action::{self, Flow, Told},
    process::{self, say},
};

const SEED: u64 = 0x5eed_c0de;
const ROUNDS: u64 = 10;
const TASKS: u64 = 8;
const KEYS: u32 = 400;

/// The process: eight tasks that draw keys, until somebody kills it.
pub(super) async fn work(directory: &Path, seed: u64) {
    let store = action::open(directory);
    let gate = Gate::new(store.clone()).expect("a gate opens");
    let mut tasks = tokio::task::JoinSet::new();
    for task in 0..TASKS {
        let (store, gate, directory) = (store.clone(), gate.clone(), directory.to_owned());
        tasks.spawn(async move {
            let mut random = fastrand::Rng::with_seed(seed * TASKS + task);
            loop {
                let key = format!("key-{}", random.u32(..KEYS));
                let flow = random.choice([Flow::Complete, Flow::Coupled, Flow::Owned]).expect("one of three");
                let told = match flow {
                    Flow::Coupled => action::coupled(&store, &key).await,
                    Flow::Owned => owned(&store, &directory, &key).await,
                    Flow::Complete | Flow::Release | Flow::Doubt => {
                        action::elsewhere(&gate, &directory, flow, &key, || {}).await
                    }
                };
                match told {
                    Told::Answered(_) => say(&format!("answered {} {key}", flow.as_str())),
                    Told::Ended(_) | Told::InProgress | Told::Unknown(_) => say("went on"),
                }
            }
        });
    }
    while tasks.join_next().await.is_some() {}
}

/// In a transaction of the caller's own, on a thread that may block.
pub(crate) async fn owned(store: &Arc<SqliteStore>, directory: &Path, key: &str) -> Told {
    let (store, directory, key) = (store.clone(), directory.to_owned(), key.to_owned());
    let told = tokio::task::spawn_blocking(move || action::owned(&store, &directory, &key, || {})).await;
    told.expect("no action panics")
}

/// Starts it, and kills it: from inside at a point, or from outside at a line that it says.
fn round(directory: &Path, round: u64, random: &mut fastrand::Rng) -> BTreeSet<(Flow, String)> {
    let seed = random.u64(..1 << 32);
    let (pass, line) =
        if round.is_multiple_of(2) { (random.u32(20..2_000), None) } else { (0, Some(random.usize(1..400))) };
    let role = format!("load {seed} {pass}");
    let mut child = process::command(&role, directory, &[]).spawn().expect("the test binary runs");
    let mut said = BufReader::new(child.stdout.take().expect("its output is piped"));
    let mut answered = BTreeSet::new();
    let (mut text, mut lines) = (String::new(), 0);
    while said.read_line(&mut text).expect("it says text") > 0 {
        let mut words = text.split_whitespace();
        if let (Some("answered"), Some(flow), Some(key)) = (words.next(), words.next(), words.next()) {
            answered.insert((Flow::named(flow), key.to_owned()));
            lines += 1;
            if Some(lines) == line {
                child.kill().expect("it lives");
            }
        }
        text.clear();
    }
    use std::os::unix::process::ExitStatusExt;
    let status = child.wait().expect("it ends");
    assert_eq!(status.signal(), Some(9), "{role}: {status}");
    answered
}

/// Every record of the store, by operation and key.
pub(crate) async fn records(store: &SqliteStore) -> BTreeMap<(String, String), Record> {
    let (mut records, mut after) = (BTreeMap::new(), 0);
    loop {
        let page = store.list(Query { unsettled_only: false, after, limit: 1_000 }).await.expect("the store answers");
        for row in page.rows {
            after = row.position;
            let name = (row.identity.operation.as_str().to_owned(), row.identity.key.as_str().to_owned());
            records.insert(name, row.record.expect("it can be decoded"));
        }
        if !page.more {
            return records;
        }
    }
}

/// The result that a record remembers.
pub(crate) fn result(record: &Record) -> Option<String> {
    let State::Done { receipt, .. } = &record.state else { return None };
    let Body::Kept(bytes) = &receipt.body else { panic!("a small body is kept") };
    Some(String::from_utf8(bytes.to_vec()).expect("results are text"))
}

/// That effects and receipts agree, and that all of `answered` is there.
pub(crate) fn agree(
    directory: &Path,
    records: &BTreeMap<(String, String), Record>,
    answered: &BTreeSet<(Flow, String)>,
    moment: &str,
) {
    let of = |operation: &str, key: &str| records.get(&(operation.to_owned(), key.to_owned()));
    let coupled: BTreeMap<String, Vec<String>> = records
        .iter()
        .filter(|((operation, _), _)| operation == "coupled")
        .map(|((_, key), record)| (key.clone(), result(record).into_iter().collect()))
        .collect();
    assert_eq!(action::coupled_effects(directory), coupled, "{moment}: effects are receipts");
    let effects = action::effects(directory);
    for (key, count) in &effects {
        assert_eq!(*count, 1, "{moment}: the effect of {key} was repeated");
        assert!(of("elsewhere", key).is_some(), "{moment}: {key} ran, and its claim is not there");
    }
    for (flow, key) in answered {
        let record = records.get(&(flow.identity(key).operation.as_str().to_owned(), key.clone()));
        let record = record.unwrap_or_else(|| panic!("{moment}: {flow:?} {key} was answered and is not there"));
        let result = result(record).unwrap_or_else(|| panic!("{moment}: {flow:?} {key} was answered: {record:?}"));
        if *flow == Flow::Complete {
            assert_eq!((result.as_str(), effects.get(key)), (key.as_str(), Some(&1)), "{moment}: {key}");
        }
    }
}

#[tokio::test]
async fn what_was_answered_under_load_stands() {
    let home = tempfile::tempdir().expect("there is room for temporary files");
    action::born(home.path());
    let mut random = fastrand::Rng::with_seed(SEED);
    let (mut answered, mut doubtful) = (BTreeSet::new(), 0);
    for number in 0..ROUNDS {
        answered.extend(round(home.path(), number, &mut random));
        let store: Arc<SqliteStore> = action::open(home.path());
        let records = records(&store).await;
        agree(home.path(), &records, &answered, &format!("seed {SEED:#x}, round {number}"));
        doubtful = records.values().filter(|record| result(record).is_none()).count();
    }
    assert!(answered.len() > 100, "the load was {} actions", answered.len());
    assert!(doubtful > 0, "no kill caught an action between claim and end");
}
