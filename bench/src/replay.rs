//! The table of replays in process: the answer of an action that is done, given again.
//!
//! What the baselines do belongs to `seed`, what ours does to `ours`.

use std::path::Path;
use std::sync::Arc;

use crate::create::POOL;
use crate::keys::{Keys, Order};
use crate::load::{self, Usage, Window};
use crate::options::Options;
use crate::sample::Sample;
use crate::seed::{self, Outcome, Pool};
use crate::table::{Check, Row, Table};
use crate::{Fault, ours};

const EACH: &str = "a connection per call, BEGIN IMMEDIATE";
const LOCK_FIRST: &str = "pool of 16, BEGIN IMMEDIATE first";
const BLOCKING: &str = "ours, blocking callers";
const ASYNC: &str = "ours, async callers";

const CALLERS: usize = 64;
/// Keys that are replayed, in no order.
const REPLAYED: usize = 1000;

pub(crate) fn table() -> Table {
    Table {
        title: "SQLite in process: replays",
        about: "1,000 keys that are done, drawn at random; whatever replays must not run the effect.".into(),
        rows: vec![
            Row::new(EACH, CALLERS, |options| baseline(options, None)),
            Row::new(LOCK_FIRST, CALLERS, |options| baseline(options, Some(POOL))),
            Row::new(ASYNC, CALLERS, tasks).at_least(2.5, LOCK_FIRST, CALLERS),
            Row::new(BLOCKING, CALLERS, threads).at_least(2.5, LOCK_FIRST, CALLERS),
        ],
        checks: vec![Check::NoErrors { of: (ASYNC, CALLERS) }],
    }
}

fn replayed(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Replayed(_))
}

/// The seed's protocol, on a pool or on a connection that is opened for each call.
fn baseline(options: &Options, pool: Option<usize>) -> Result<Sample, Fault> {
    let dir = tempfile::tempdir_in(&options.dir)?;
    let path = dir.path().join("seed.db");
    let path = path.as_path();
    seed::create(path)?;
    let keys = remembered(path)?;
    let pool = pool.map(|size| Pool::open(path, size)).transpose()?;
    let (keys, pool) = (&keys, &pool);
    let load = load::threads(CALLERS, Window::begin(options), Usage::own, || {
        let mut source = Keys::new(Order::Random);
        move || {
            let key = &keys[source.below(keys.len())];
            let answer = match pool {
                Some(pool) => pool.lend().with(|connection| seed::execute(connection, key, 2, 0)),
                None => seed::connect(path).and_then(|mut connection| seed::execute(&mut connection, key, 2, 0)),
            };
            seed::did(answer, replayed)
        }
    })?;
    judged(path, load)
}

/// Runs the actions that will be replayed.
fn remembered(path: &Path) -> Result<Vec<String>, Fault> {
    let mut connection = seed::connect(path)?;
    let mut source = Keys::new(Order::Time);
    let keys: Vec<String> = (0..REPLAYED).map(|_| source.next().to_string()).collect();
    for key in &keys {
        seed::execute(&mut connection, key, 2, 0)?;
    }
    Ok(keys)
}

fn tasks(options: &Options) -> Result<Sample, Fault> {
    let dir = tempfile::tempdir_in(&options.dir)?;
    let path = dir.path().join("ours.db");
    let store = Arc::new(ours::Sqlite::open(&path)?);
    let runtime = load::runtime()?;
    let keys: Arc<[String]> = store.remember(REPLAYED)?.into();
    let window = Window::begin(options);
    let caller = || {
        let (store, keys) = (store.clone(), keys.clone());
        let mut source = Keys::new(Order::Random);
        load::calls(window, move |_| store.replay(&keys[source.below(keys.len())]))
    };
    let load = runtime.block_on(load::tasks(CALLERS, window, || store.usage(), caller))?;
    judged(&path, load)
}

fn threads(options: &Options) -> Result<Sample, Fault> {
    let dir = tempfile::tempdir_in(&options.dir)?;
    let path = dir.path().join("ours.db");
    let store = ours::Sqlite::open(&path)?;
    let keys = store.remember(REPLAYED)?;
    let (keys, store) = (&keys, &store);
    let load = load::threads(
        CALLERS,
        Window::begin(options),
        || store.usage(),
        || {
            let mut source = Keys::new(Order::Random);
            move || store.replay_blocking(&keys[source.below(keys.len())])
        },
    )?;
    judged(&path, load)
}

/// Nothing was run again.
fn judged(path: &Path, load: load::Load) -> Result<Sample, Fault> {
    let effects = seed::effects(path)?;
    if effects != REPLAYED as u64 {
        return Err(format!("{REPLAYED} effects were made before, {effects} stand after the replays").into());
    }
    if let Some(why) = &load.tally.first_failure {
        eprintln!("\na call failed: {why}");
    }
    Ok(load.into())
}
