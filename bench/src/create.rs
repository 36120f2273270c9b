//! The table of actions that run for the first time, in process: an effect and its receipt, durable before the answer.
//!
//! Callers of the baselines are threads, one each. What the baselines do belongs to `seed`, what ours does to `ours`.

use std::path::Path;
use std::sync::Arc;

use crate::keys::{Keys, Order};
use crate::load::{self, Load, Usage, Window};
use crate::options::Options;
use crate::sample::Sample;
use crate::seed::{self, Outcome, Pool};
use crate::table::{Check, Row, Table};
use crate::{Fault, ours};

/// Connections of the pool, as in the measurements that the targets come from.
pub(crate) const POOL: usize = 16;

const POOLED: &str = "pool of 16 writing connections";
const MUTEXED: &str = "one connection behind a mutex";
const ASYNC: &str = "ours, async callers";
const BLOCKING: &str = "ours, blocking callers";
const FAILING: &str = "ours, one effect in ten fails";

/// Callers at once.
const CALLERS: [usize; 4] = [1, 8, 64, 256];

pub(crate) fn table() -> Table {
    let mut rows = Vec::new();
    for callers in CALLERS {
        rows.push(Row::new(POOLED, callers, move |options| baseline(options, POOL, callers)));
        rows.push(Row::new(MUTEXED, callers, move |options| baseline(options, 1, callers)));
    }
    for (name, measure) in [(ASYNC, tasks as Measure), (BLOCKING, threads)] {
        for callers in CALLERS {
            let row = Row::new(name, callers, move |options| measured(options, callers, measure));
            rows.push(match callers {
                1 => row.goal(0.8, MUTEXED, callers),
                8 => row.goal(1.5, POOLED, callers),
                64 => row.at_least(5.0, POOLED, callers),
                _ => row.at_least(15.0, POOLED, callers),
            });
        }
    }
    let failing = Row::new(FAILING, 64, |options| measured(options, 64, one_in_ten_fails));
    rows.push(failing.at_least(0.75, ASYNC, 64));
    Table {
        title: "SQLite in process: first runs",
        about: "WAL, `synchronous=FULL`; every answer is one effect row and one receipt, keys are UUIDv7. The \
                baselines follow the seed's protocol: BEGIN IMMEDIATE, SELECT, INSERT, INSERT, COMMIT, with a busy \
                timeout of 5 s."
            .into(),
        rows,
        checks: vec![
            Check::NoErrors { of: (ASYNC, 256) },
            Check::NoErrors { of: (BLOCKING, 256) },
            Check::P99 { of: (ASYNC, 64), at_most: 0.5, against: (POOLED, 64) },
        ],
    }
}

/// The seed's protocol on a pool of `size`.
fn baseline(options: &Options, size: usize, callers: usize) -> Result<Sample, Fault> {
    let dir = tempfile::tempdir_in(&options.dir)?;
    let path = dir.path().join("seed.db");
    seed::create(&path)?;
    let pool = Pool::open(&path, size)?;
    let pool = &pool;
    let load = load::threads(callers, Window::begin(options), Usage::own, || {
        let mut keys = Keys::new(Order::Time);
        move || {
            let key = keys.next().to_string();
            let answer = pool.lend().with(|connection| seed::execute(connection, &key, 2, 0));
            seed::did(answer, |outcome| matches!(outcome, Outcome::Created(_)))
        }
    })?;
    judged(&path, load)
}

/// How ours is called.
type Measure = fn(&Options, usize, Arc<ours::Sqlite>) -> Result<Load, Fault>;

fn measured(options: &Options, callers: usize, measure: Measure) -> Result<Sample, Fault> {
    let dir = tempfile::tempdir_in(&options.dir)?;
    let path = dir.path().join("ours.db");
    let store = Arc::new(ours::Sqlite::open(&path)?);
    let load = measure(options, callers, store)?;
    judged(&path, load)
}

fn tasks(options: &Options, callers: usize, store: Arc<ours::Sqlite>) -> Result<Load, Fault> {
    each_task(options, callers, store, None)
}

fn one_in_ten_fails(options: &Options, callers: usize, store: Arc<ours::Sqlite>) -> Result<Load, Fault> {
    each_task(options, callers, store, Some(10))
}

/// Tasks, of whose effects each `failing`th fails after its statement and is rolled back alone.
fn each_task(options: &Options, callers: usize, store: Arc<ours::Sqlite>, failing: Option<u64>) -> Result<Load, Fault> {
    let window = Window::begin(options);
    let caller = || {
        let store = store.clone();
        let mut keys = Keys::new(Order::Time);
        load::calls(window, move |number| {
            let fails = failing.is_some_and(|every| number.is_multiple_of(every));
            store.create(&keys.next().to_string(), fails)
        })
    };
    load::runtime()?.block_on(load::tasks(callers, window, || store.usage(), caller))
}

fn threads(options: &Options, callers: usize, store: Arc<ours::Sqlite>) -> Result<Load, Fault> {
    let store = &store;
    load::threads(
        callers,
        Window::begin(options),
        || store.usage(),
        || {
            let mut keys = Keys::new(Order::Time);
            move || store.create_blocking(&keys.next().to_string())
        },
    )
}

/// A figure counts only where every answer has its effect, and no effect is without an answer.
fn judged(path: &Path, load: Load) -> Result<Sample, Fault> {
    let effects = seed::effects(path)?;
    let least = load.tally.done;
    let most = least + load.tally.busy + load.tally.failed;
    if !(least..=most).contains(&effects) {
        return Err(format!("{least} to {most} effects were answered, {effects} stand in the database").into());
    }
    if let Some(why) = &load.tally.first_failure {
        eprintln!("\na call failed: {why}");
    }
    Ok(load.into())
}
