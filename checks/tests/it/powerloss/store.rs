//! The power goes while our store works: nothing answered is lost, and nothing claimed is forgotten.
//!
//! What does not belong here: the simulation (`disk.rs`, `trace.rs`).

use std::{collections::BTreeSet, fs::File, path::Path, sync::Arc};

use counterfoil_core::{State, Why, record::Standing};
use counterfoil_store::{Gate, RecordStore, SqliteStore};

use super::{run, trace::Event};
use crate::crash::{
    action::{self, Flow, Told},
    load,
    process::{self, say},
};

const SEED: u64 = 0x0ff;
const TASKS: u32 = 4;
const ACTIONS: u32 = 6;

/// The process: a store made, and then the same.
pub(crate) async fn work_anew(directory: &Path, seed: u64) {
    action::born(directory);
    // The effects elsewhere are this test's own, and so is the directory's sync for them.
    File::open(directory).and_then(|directory| directory.sync_all()).expect("a directory can be synced");
    say("born");
    work(directory, seed).await;
}

/// The process: a store used, closed, and used again, while another connection moves its log into the file.
pub(crate) async fn work(directory: &Path, seed: u64) {
    for life in 0..2 {
        let store = action::open(directory);
        let gate = Gate::new(store.clone()).expect("a gate opens");
        let mut tasks = tokio::task::JoinSet::new();
        for task in 0..TASKS {
            let (store, gate, directory) = (store.clone(), gate.clone(), directory.to_owned());
            tasks.spawn(async move {
                let mut random = fastrand::Rng::with_seed(seed + u64::from(task));
                for number in 0..ACTIONS {
                    let key = format!("key-{life}-{task}-{number}");
                    act(&store, &gate, &directory, &key, random.u8(..8)).await;
                }
            });
        }
        while let Some(ended) = tasks.join_next().await {
            ended.expect("no task panics");
        }
    }
}

async fn act(store: &Arc<SqliteStore>, gate: &Gate, directory: &Path, key: &str, draw: u8) {
    let flow = match draw {
        0 => Flow::Doubt,
        1..4 => Flow::Complete,
        4 => Flow::Owned,
        _ => Flow::Coupled,
    };
    let told = match flow {
        Flow::Coupled => action::coupled(store, key).await,
        Flow::Owned => load::owned(store, directory, key).await,
        Flow::Complete | Flow::Release | Flow::Doubt => {
            action::elsewhere(gate, directory, flow, key, || say(&format!("claimed {key}"))).await
        }
    };
    match told {
        Told::Answered(_) => say(&format!("answered {} {key}", flow.as_str())),
        Told::Ended(_) => say(&format!("doubted {key}")),
        Told::InProgress | Told::Unknown(_) => panic!("{key} is claimed once"),
    }
    if draw == 7 {
        let moved = action::raw(directory).query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| row.get::<_, i64>(0));
        moved.expect("a passive checkpoint is never in the way");
    }
}

/// What the process has said so far.
#[derive(Default)]
struct Said {
    born: bool,
    claimed: BTreeSet<String>,
    doubted: BTreeSet<String>,
    answered: BTreeSet<(Flow, String)>,
}

impl Said {
    fn hear(&mut self, line: &str) {
        match line.split(' ').collect::<Vec<_>>()[..] {
            ["born"] => self.born = true,
            ["claimed", key] => drop(self.claimed.insert(key.to_owned())),
            ["doubted", key] => drop(self.doubted.insert(key.to_owned())),
            ["answered", flow, key] => drop(self.answered.insert((Flow::named(flow), key.to_owned()))),
            _ => {}
        }
    }

    /// That all of it stands in `directory`, which a loss of power left.
    fn stands(&self, directory: &Path, moment: &str) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts");
        if !self.born {
            action::made(directory);
            return;
        }
        runtime.block_on(async {
            let store = action::open(directory);
            let records = load::records(&store).await;
            load::agree(directory, &records, &self.answered, moment);
            let elsewhere = |key: &String| records.get(&("elsewhere".to_owned(), key.clone()));
            for key in &self.claimed {
                assert!(elsewhere(key).is_some(), "{moment}: {key} may run, and its claim is not there");
            }
            let now = store.now();
            for ((_, key), record) in &records {
                let running = matches!(record.standing(now), Standing::Running { .. });
                assert!(!running, "{moment}: the process is gone, and {key} is not in doubt");
            }
            for key in &self.doubted {
                let state = elsewhere(key).map(|record| &record.state);
                let doubted = matches!(state, Some(State::Unknown { why: Why::Doubted, .. }));
                assert!(doubted, "{moment}: {key} was put in doubt: {state:?}");
            }
        });
        let whole: String = action::raw(directory)
            .query_row("PRAGMA integrity_check", [], |row| row.get(0))
            .expect("the file can be checked");
        assert_eq!(whole, "ok", "{moment}");
    }
}

/// Cuts the power again and again while a process works in `role`, and looks what stands after each cut.
fn check(role: &str, born: impl FnOnce(&Path)) {
    let recorded = run(&format!("{role} {SEED}"), born);
    let mut random = fastrand::Rng::with_seed(SEED);
    let mut said = Said { born: role == "power", ..Said::default() };
    let mut cuts = 0;
    recorded.cuts(|disk, event| {
        if let Event::Said { line } = event {
            said.hear(line);
        }
        cuts += 1;
        for (kind, image) in [("strict", disk.strict()), ("lucky", disk.lucky(&mut random))] {
            let directory = super::written(&image);
            said.stands(directory.path(), &format!("{role}, seed {SEED:#x}, cut {cuts}, {kind}"));
        }
    });
    assert_eq!(said.answered.len() + said.doubted.len(), 2 * (TASKS * ACTIONS) as usize, "every action is told");
    assert!(!said.doubted.is_empty() && !said.claimed.is_empty(), "every kind of action is told");
    assert!(cuts > 100, "the power was cut {cuts} times");
}

#[test]
fn nothing_answered_is_lost() {
    check("power", action::born);
}

/// The files that a killed process left are used: nothing is made anew.
#[test]
fn nothing_answered_after_a_crash_is_lost() {
    check("power", |directory| {
        action::born(directory);
        process::run("action complete 9", directory).killed();
    });
}

/// The store itself is made while the power may go.
#[test]
fn nothing_answered_by_a_new_store_is_lost() {
    check("power-new", |_| {});
}
