//! The table over HTTP on loopback: axum with ours, beside axum with nothing and axum with the seed's protocol.
//!
//! Each server is a process of its own (this program again, with an argument), so that its processor time is its own;
//! the callers are 64 connections on one thread of the measuring process. What the servers do belongs to `server`.

pub(crate) mod child;
pub(crate) mod client;
mod server;

use std::path::Path;

pub(crate) use self::server::serve;

use self::child::Child;
use self::client::Asks;
use self::server::Mode;
use crate::Fault;
use crate::load::Window;
use crate::options::Options;
use crate::sample::Sample;
use crate::table::{Check, Row, Table};

/// Connections, each with one request under way.
const CONNECTIONS: usize = 64;
/// Keys that are replayed.
const REPLAYED: usize = 1000;

const BARE: &str = "bare handler";
const SEED: &str = "seed's protocol, pool of 8, fresh";
const SEED_REPLAY: &str = "seed's protocol, pool of 8, replay";
const COUPLED: &str = "ours, SQLite, coupled, fresh";
const REPLAY: &str = "ours, SQLite, coupled, replay";
const OTHER: &str = "ours, SQLite, effect elsewhere, fresh";
const MEMORY: &str = "ours, memory, fresh";
const MEMORY_REPLAY: &str = "ours, memory, replay";

/// What one row asks of which server.
#[derive(Clone, Copy)]
enum Keys {
    Fresh,
    Replayed,
}

pub(crate) fn table() -> Table {
    let row = |name, mode, keys| Row::new(name, CONNECTIONS, move |options| measured(options, mode, keys));
    Table {
        title: "axum over HTTP",
        about: "POST of 46 bytes of JSON, 64 kept connections on loopback, fresh UUIDv7 keys or 1,000 keys replayed; \
                the same axum, router and handler everywhere. SQLite is WAL, `synchronous=FULL`. CPU is the server's \
                alone."
            .into(),
        rows: vec![
            row(BARE, Mode::Bare, Keys::Fresh),
            row(SEED, Mode::Seed, Keys::Fresh),
            row(SEED_REPLAY, Mode::Seed, Keys::Replayed).beside(BARE, CONNECTIONS),
            row(COUPLED, Mode::Coupled, Keys::Fresh).at_least(3.0, SEED, CONNECTIONS),
            row(REPLAY, Mode::Coupled, Keys::Replayed).at_least(0.6, BARE, CONNECTIONS),
            row(OTHER, Mode::Other, Keys::Fresh).beside(SEED, CONNECTIONS),
            row(MEMORY, Mode::Memory, Keys::Fresh).at_least(0.75, BARE, CONNECTIONS),
            row(MEMORY_REPLAY, Mode::Memory, Keys::Replayed).at_least(0.75, BARE, CONNECTIONS),
        ],
        checks: vec![
            Check::NoErrors { of: (COUPLED, CONNECTIONS) },
            Check::P99 { of: (COUPLED, CONNECTIONS), at_most: 0.5, against: (SEED, CONNECTIONS) },
            Check::Cpu { of: (COUPLED, CONNECTIONS), at_most: 0.35, against: (SEED, CONNECTIONS) },
            Check::Cpu { of: (REPLAY, CONNECTIONS), at_most: 1.8, against: (BARE, CONNECTIONS) },
        ],
    }
}

fn measured(options: &Options, mode: Mode, keys: Keys) -> Result<Sample, Fault> {
    let dir = tempfile::tempdir_in(&options.dir)?;
    let server = Child::start(mode.word(), dir.path())?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let load = runtime.block_on(async {
        let asks = match keys {
            Keys::Fresh => Asks::fresh(mode.guards()),
            Keys::Replayed => client::remember(server.address(), Asks::fresh(mode.guards()), REPLAYED).await?,
        };
        client::run(server.address(), || server.usage(), CONNECTIONS, Window::begin(options), asks).await
    })?;
    server.stop()?;
    if let Some(why) = &load.tally.first_failure {
        eprintln!("\na request failed: {why}");
    }
    judged(dir.path(), mode, keys, load.tally.done)?;
    Ok(load.into())
}

/// Where effects are kept, each answer has one and a replay has none.
fn judged(dir: &Path, mode: Mode, keys: Keys, done: u64) -> Result<(), Fault> {
    let Some(effects) = server::effects(dir, mode)? else { return Ok(()) };
    let wanted = match keys {
        Keys::Fresh => done,
        Keys::Replayed => REPLAYED as u64,
    };
    if effects < wanted || (matches!(keys, Keys::Replayed) && effects != wanted) {
        return Err(format!("{wanted} effects were answered, {effects} stand in the database").into());
    }
    Ok(())
}
