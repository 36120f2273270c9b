//! Every fault is seen by at least one case, and the verdicts stay inside a golden table of fault and case.
//!
//! The table names only what is otherwise than with the right server. What does not belong here: the faults themselves.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use counterfoil_probe::{CaseResult, Run, Verdict};
use tokio::task::JoinSet;

use crate::orders::{FAULTS, Fault, Orders};
use crate::right::{as_form, as_parts, as_repeatable, is_race, run, settings};

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/golden/faults.txt");

/// How many services are probed at once: races need the processors.
const AT_ONCE: usize = 4;

/// How often a service is probed, where its fault shows in races only and none of them came about.
const ROUNDS: usize = 8;

/// The kind of body with which a service is probed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Sent {
    Json,
    Form,
    Parts,
    Repeatable,
}

impl Sent {
    /// The kind with which a fault can show.
    fn of(fault: Fault) -> Self {
        match fault {
            Fault::FormInOrder | Fault::KeyInFormIgnored => Self::Form,
            Fault::MultipartWithBoundary | Fault::MultipartUnguarded => Self::Parts,
            Fault::FirstSentIgnored => Self::Repeatable,
            _ => Self::Json,
        }
    }

    async fn probed(self, fault: Fault) -> Run {
        let orders = Orders::start(fault).await;
        run(&match self {
            Self::Json => settings(&orders),
            Self::Form => as_form(&orders),
            Self::Parts => as_parts(&orders),
            Self::Repeatable => as_repeatable(&orders),
        })
        .await
    }
}

/// A run beside that of the right server with the same kind of body.
struct Beside {
    found: Run,
    right: Arc<Run>,
}

impl Beside {
    fn results(&self) -> impl Iterator<Item = (&CaseResult, &CaseResult)> {
        self.found.results.iter().zip(&self.right.results)
    }

    fn differs(&self) -> bool {
        self.results().any(differs)
    }
}

/// A run in which some case is otherwise than with the right server; the last one where there was none.
async fn seen(fault: Fault, right: Arc<Run>) -> (Fault, Beside) {
    let mut beside = Beside { found: Sent::of(fault).probed(fault).await, right };
    for _ in 1..ROUNDS {
        if beside.differs() {
            break;
        }
        beside.found = Sent::of(fault).probed(fault).await;
    }
    (fault, beside)
}

/// A race that did not come about shows nothing of the fault.
fn differs((found, right): (&CaseResult, &CaseResult)) -> bool {
    told(found) != told(right) && found.verdict != Verdict::Inconclusive
}

/// The verdict, with what it is a value of and what it gives the sheet; a race gives another share each time.
fn told(result: &CaseResult) -> String {
    let verdict = match result.verdict {
        Verdict::Value => format!("value: {}", result.why),
        verdict => verdict.name().to_owned(),
    };
    let fields = result.sheet.iter().filter(|_| !is_race(&result.row));
    fields.fold(verdict, |told, (field, value)| format!("{told}; {field} = {value}"))
}

async fn all() -> BTreeMap<String, Beside> {
    let mut right = BTreeMap::new();
    for sent in [Sent::Json, Sent::Form, Sent::Parts, Sent::Repeatable] {
        right.insert(sent, Arc::new(sent.probed(Fault::None).await));
    }
    let (mut runs, mut tasks) = (BTreeMap::new(), JoinSet::new());
    for fault in FAULTS {
        if tasks.len() >= AT_ONCE {
            let (fault, run) = tasks.join_next().await.unwrap().unwrap();
            runs.insert(format!("{fault:?}"), run);
        }
        tasks.spawn(seen(fault, right[&Sent::of(fault)].clone()));
    }
    while let Some(done) = tasks.join_next().await {
        let (fault, run) = done.unwrap();
        runs.insert(format!("{fault:?}"), run);
    }
    runs
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_fault_is_seen_and_stays_in_its_row() {
    let runs = all().await;
    let golden = std::fs::read_to_string(GOLDEN).unwrap_or_default();
    let mut wanted = parsed(&golden);
    if std::env::var_os("COUNTERFOIL_BLESS").is_some() {
        let table = written(&runs, &wanted);
        std::fs::write(GOLDEN, &table).unwrap();
        wanted = parsed(&table);
    }
    let mut strayed = Vec::new();
    for (fault, run) in &runs {
        assert!(run.differs(), "no case sees {fault} in {ROUNDS} rounds");
        for (found, right) in run.results() {
            let allowed = wanted.get(&(fault.clone(), found.id.clone())).cloned().unwrap_or_else(|| vec![told(right)]);
            // A race shows a fault or not, as it comes about; that it accuses nobody wrongly is the right server's test.
            let raced =
                is_race(&found.row) && (!differs((found, right)) || matches!(found.verdict, Verdict::Deviates(_)));
            let inside = allowed.contains(&told(found)) || raced;
            if !inside {
                strayed.push(format!("{fault} {}: {} ({}), allowed {allowed:?}", found.id, told(found), found.why));
            }
        }
    }
    assert!(strayed.is_empty(), "{}", strayed.join("\n"));
}

/// Allowed verdicts by fault and case.
type Table = BTreeMap<(String, String), Vec<String>>;

/// `Fault`, then lines of `  ROW ID: verdict | verdict`.
fn parsed(golden: &str) -> Table {
    let (mut table, mut fault) = (Table::new(), "");
    for line in golden.lines() {
        match line.strip_prefix("  ") {
            None => fault = line,
            Some(row) => {
                let (id, verdicts) = row.split_once(": ").unwrap();
                let id = id.split_once(' ').unwrap().1;
                table.insert((fault.to_owned(), id.to_owned()), verdicts.split(" | ").map(str::to_owned).collect());
            }
        }
    }
    table
}

/// The table of what was found; a race keeps what was allowed before, because it ends otherwise each time.
fn written(runs: &BTreeMap<String, Beside>, before: &Table) -> String {
    let mut table = String::new();
    for (fault, run) in runs {
        writeln!(table, "{fault}").unwrap();
        for (found, right) in run.results() {
            let mut allowed = vec![told(found)];
            if is_race(&found.row) {
                allowed.extend(before.get(&(fault.clone(), found.id.clone())).cloned().unwrap_or_default());
                allowed.retain(|verdict| *verdict != told(right));
                allowed.sort();
                allowed.dedup();
            }
            if !allowed.is_empty() && allowed != [told(right)] {
                writeln!(table, "  {} {}: {}", found.row, found.id, allowed.join(" | ")).unwrap();
            }
        }
    }
    table
}
