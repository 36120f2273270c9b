//! The table of claims on stores of different sizes, and beside a sweeper.
//!
//! A store of 1,000,000 receipts takes a minute to fill, so it is kept under the directory of databases and copied;
//! delete `receipts-*.db` there to have it made anew. How it is filled belongs to `filling`.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use counterfoil_store::{Begun, Ended, Gate, RecordStore as _};
use tempfile::TempDir;

use crate::keys::{Keys, Order};
use crate::load::{self, Did, Load, Tally, Window};
use crate::options::Options;
use crate::ours::{self, Claims};
use crate::sample::Sample;
use crate::table::{Check, Row, Table};
use crate::{Fault, filling};

const CALLERS: usize = 64;
/// Receipts of the small store.
const FEW: u64 = 10_000;
/// Rows of one call of the sweeper, as the proxy's.
const SWEPT_AT_ONCE: usize = 1_000;

const GATE_RANDOM: [&str; 2] = ["claim and completion, UUIDv4, few receipts", "claim and completion, UUIDv4, many"];
const GATE_TIME: [&str; 2] = ["claim and completion, UUIDv7, few receipts", "claim and completion, UUIDv7, many"];
const COUPLED: [&str; 2] = ["effect and receipt, UUIDv4, few receipts", "effect and receipt, UUIDv4, many"];
const AT_WORK: &str = "claim and completion, UUIDv4, many, sweeper at work";

pub(crate) fn table(options: &Options) -> Table {
    let many = options.receipts_many;
    let mut rows = Vec::new();
    for (names, door, order) in [
        (GATE_RANDOM, Door::Gate, Order::Random),
        (GATE_TIME, Door::Gate, Order::Time),
        (COUPLED, Door::Execute, Order::Random),
    ] {
        let [few, more] = names;
        let small = Copies::each_time(FEW);
        rows.push(Row::new(few, CALLERS, move |options| measured(options, &small.get(options)?, door, order)));
        let large = Copies::once(many);
        let row = Row::new(more, CALLERS, move |options| measured(options, &large.get(options)?, door, order));
        rows.push(row.at_least(0.8, few, CALLERS));
    }
    let swept = Copies::each_time(many);
    let row = Row::new(AT_WORK, CALLERS, move |options| {
        measured(options, &swept.get(options)?, Door::GateBesideSweeper, Order::Random)
    });
    rows.push(row.beside(GATE_RANDOM[1], CALLERS));
    Table {
        title: "SQLite in process: claims as the store grows",
        about: format!(
            "{FEW} receipts are few and {many} are many, plus a fifth as many that have expired. A claim and its \
             completion are two commits, and count as one; times are of the claim alone. The sweeper removes \
             {SWEPT_AT_ONCE} rows after {SWEPT_AT_ONCE} without a pause."
        ),
        rows,
        checks: vec![
            Check::Longest { of: (AT_WORK, CALLERS), millis: 50.0, against: (GATE_RANDOM[1], CALLERS) },
            Check::NoErrors { of: (AT_WORK, CALLERS) },
        ],
    }
}

/// Through which door claims come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Door {
    /// The gate: claim, then completion.
    Gate,
    /// The same, while expired receipts are swept.
    GateBesideSweeper,
    /// Effect and receipt in one transaction.
    Execute,
}

/// Copies of a filled store: what is measured writes to it.
struct Copies {
    receipts: u64,
    kept: Option<std::cell::OnceCell<Store>>,
}

/// A copy and where it stands.
struct Store {
    path: PathBuf,
    _dir: TempDir,
}

/// A copy that is kept for the next repetition, or not.
enum Copy<'c> {
    Kept(&'c Store),
    Own(Store),
}

impl Copy<'_> {
    fn path(&self) -> &Path {
        match self {
            Self::Kept(store) => &store.path,
            Self::Own(store) => &store.path,
        }
    }
}

impl Copies {
    /// Another copy for each repetition.
    const fn each_time(receipts: u64) -> Self {
        Self { receipts, kept: None }
    }

    /// One copy for all repetitions, which grows by what they claim: little beside what stands.
    const fn once(receipts: u64) -> Self {
        Self { receipts, kept: Some(std::cell::OnceCell::new()) }
    }

    fn get(&self, options: &Options) -> Result<Copy<'_>, Fault> {
        let Some(kept) = &self.kept else { return Ok(Copy::Own(self.copy(options)?)) };
        if let Some(store) = kept.get() {
            return Ok(Copy::Kept(store));
        }
        let copied = self.copy(options)?;
        Ok(Copy::Kept(kept.get_or_init(|| copied)))
    }

    fn copy(&self, options: &Options) -> Result<Store, Fault> {
        let filled = filling::filled(&options.dir, self.receipts, self.receipts / 5)?;
        let dir = tempfile::tempdir_in(&options.dir)?;
        let path = dir.path().join("ours.db");
        std::fs::copy(filled, &path)?;
        // Or the first commits that are measured would write the copy out.
        File::open(&path)?.sync_all()?;
        Ok(Store { path, _dir: dir })
    }
}

fn measured(options: &Options, copy: &Copy<'_>, door: Door, order: Order) -> Result<Sample, Fault> {
    let store = Arc::new(ours::Sqlite::open(copy.path())?);
    let gate = Gate::new(store.store().clone())?;
    let load = load::runtime()?.block_on(async {
        let window = Window::begin(options);
        let sweeper = (door == Door::GateBesideSweeper).then(|| tokio::spawn(sweep(store.clone(), window)));
        let caller = || {
            let (store, gate) = (store.clone(), gate.clone());
            async move {
                match door {
                    Door::Execute => execute(store, window, order).await,
                    Door::Gate | Door::GateBesideSweeper => begin_and_complete(gate, window, order).await,
                }
            }
        };
        let load = load::tasks(CALLERS, window, || store.usage(), caller).await?;
        if let Some(sweeper) = sweeper {
            sweeper.await??;
        }
        Ok::<Load, Fault>(load)
    })?;
    if let Some(why) = &load.tally.first_failure {
        eprintln!("\na call failed: {why}");
    }
    Ok(load.into())
}

async fn execute(store: Arc<ours::Sqlite>, window: Window, order: Order) -> Tally {
    let mut keys = Keys::new(order);
    load::calls(window, move |_| store.create(&keys.next().to_string(), false)).await
}

/// Claims, measures that, and completes.
pub(crate) async fn begin_and_complete(gate: Gate, window: Window, order: Order) -> Tally {
    let (mut keys, mut tally, receipt) = (Keys::new(order), Tally::default(), filling::receipt());
    let claims = match Claims::new() {
        Ok(claims) => claims,
        Err(fault) => {
            tally.note(&window, Instant::now(), Did::Failed(fault.to_string()));
            return tally;
        }
    };
    while window.open() {
        let begun = Instant::now();
        let mut claim = match claims.claim(&keys.next().to_string()) {
            Ok(claim) => claim,
            Err(fault) => {
                tally.note(&window, begun, Did::Failed(fault.to_string()));
                return tally;
            }
        };
        let mut permit = match gate.begin(&mut claim, &claims.policy).await {
            Ok(Begun::Execute(permit)) => permit,
            Ok(other) => {
                tally.note(&window, begun, Did::Failed(format!("a fresh claim was answered {other:?}")));
                continue;
            }
            Err(error) => {
                tally.note(&window, begun, ours::refused(&error));
                continue;
            }
        };
        tally.note(&window, begun, Did::Done);
        match gate.complete(&mut permit, &receipt).await {
            Ok(Ended::Written { .. }) => {}
            Ok(other) => tally.note(&window, begun, Did::Failed(format!("a completion was answered {other:?}"))),
            Err(error) => tally.note(&window, begun, ours::refused(&error)),
        }
    }
    tally
}

/// Sweeps until the window closes. A sweeper that ran out of work would prove nothing.
async fn sweep(store: Arc<ours::Sqlite>, window: Window) -> Result<(), Fault> {
    while window.open() {
        if !store.store().sweep(SWEPT_AT_ONCE).await?.more && window.open() {
            return Err("the sweeper ran out of expired receipts: measure for a shorter time".into());
        }
    }
    Ok(())
}
