//! Every fault is seen by at least one case, and the verdicts stay inside a golden table of fault and case.
//!
//! The table names only what is otherwise than with the right server. What does not belong here: the faults themselves.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use counterfoil_probe::{CaseResult, Run, Verdict};
use tokio::task::JoinSet;

use crate::orders::{FAULTS, Fault, Orders};
use crate::right::{is_race, run, settings};

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/golden/faults.txt");

/// How many services are probed at once: races need the processors.
const AT_ONCE: usize = 4;

async fn probed(fault: Fault) -> (Fault, Run) {
    let orders = Orders::start(fault).await;
    (fault, run(&settings(&orders)).await)
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

async fn all() -> BTreeMap<String, Run> {
    let (mut runs, mut tasks) = (BTreeMap::new(), JoinSet::new());
    for fault in FAULTS {
        if tasks.len() >= AT_ONCE {
            let (fault, run) = tasks.join_next().await.unwrap().unwrap();
            runs.insert(format!("{fault:?}"), run);
        }
        tasks.spawn(probed(fault));
    }
    while let Some(done) = tasks.join_next().await {
        let (fault, run) = done.unwrap();
        runs.insert(format!("{fault:?}"), run);
    }
    runs
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_fault_is_seen_and_stays_in_its_row() {
    let (_, right) = probed(Fault::None).await;
    let runs = all().await;
    let golden = std::fs::read_to_string(GOLDEN).unwrap_or_default();
    let mut wanted = parsed(&golden);
    if std::env::var_os("COUNTERFOIL_BLESS").is_some() {
        let table = written(&runs, &right, &wanted);
        std::fs::write(GOLDEN, &table).unwrap();
        wanted = parsed(&table);
    }
    let mut strayed = Vec::new();
    for (fault, run) in &runs {
        let other = |(found, right): (&CaseResult, &CaseResult)| {
            told(found) != told(right) && found.verdict != Verdict::Inconclusive
        };
        assert!(run.results.iter().zip(&right.results).any(other), "no case sees {fault}");
        for (found, right) in run.results.iter().zip(&right.results) {
            let allowed = wanted.get(&(fault.clone(), found.id.clone())).cloned().unwrap_or_else(|| vec![told(right)]);
            // A race that did not come about shows nothing of the fault.
            let missed = found.verdict == Verdict::Inconclusive || told(found) == told(right);
            let inside = allowed.contains(&told(found)) || (is_race(&found.row) && missed);
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
fn written(runs: &BTreeMap<String, Run>, right: &Run, before: &Table) -> String {
    let mut table = String::new();
    for (fault, run) in runs {
        writeln!(table, "{fault}").unwrap();
        for (found, right) in run.results.iter().zip(&right.results) {
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
