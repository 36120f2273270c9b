//! What the proxy keeps in memory: after many receipts in SQLite, and while a bounded load goes on.
//!
//! How fast it is belongs to `proxy`. Resident memory is the kernel's figure of the server's process.

use std::time::Duration;

use crate::Fault;
use crate::http::child::Child;
use crate::http::client::{self, Asks};
use crate::load::Window;
use crate::options::Options;
use crate::proxy::{Store, start};

/// Receipts that are made first.
const RECEIPTS: usize = 100_000;
/// What is wanted at most, in KiB.
const WANTED: u64 = 64 * 1024;
/// Connections of the load, each with one request in each of these spans: 500 a second in all.
const CONNECTIONS: usize = 64;
const PACE: Duration = Duration::from_millis(128);
const LOAD_LEAST: Duration = Duration::from_secs(10);
const PARTS: u32 = 4;

/// Measures and prints.
pub(crate) fn measure(options: &Options) -> Result<(), Fault> {
    let dir = tempfile::tempdir_in(&options.dir)?;
    let upstream = Child::start("upstream@", dir.path())?;
    let server = start(Store::Sqlite, upstream.address(), dir.path())?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let span = options.span.max(LOAD_LEAST);
    println!("## Memory of the proxy\n");
    println!(
        "Resident memory of the proxy's process with SQLite: at its start, after {RECEIPTS} receipts as fast as they are \
         answered, then while {CONNECTIONS} connections ask for {:.0} new actions a second for {} s.\n",
        CONNECTIONS as f64 / PACE.as_secs_f64(),
        span.as_secs_f64()
    );
    println!("| when | receipts | KiB | |\n|---|--:|--:|---|");
    println!("| started | 0 | {} | |", server.resident()?);
    eprint!("\r\x1b[Kmemory: {RECEIPTS} receipts");
    runtime.block_on(client::remember(server.address(), Asks::fresh(true), RECEIPTS))?;
    let first = server.resident()?;
    let verdict = if first < WANTED { "met" } else { "missed" };
    println!("| receipts made | {RECEIPTS} | {first} | wanted < {WANTED}: {verdict} |");
    let mut made = RECEIPTS as u64;
    for part in 1..=PARTS {
        eprint!("\r\x1b[Kmemory: load, part {part} of {PARTS}");
        let part_of = Options { span: span / PARTS, warm_up: Duration::ZERO, ..options.clone() };
        let load = runtime.block_on(client::run_paced(&server, CONNECTIONS, Window::begin(&part_of), PACE))?;
        if let Some(why) = &load.tally.first_failure {
            return Err(format!("a request failed: {why}").into());
        }
        made += load.tally.done;
        println!("| {part}/{PARTS} of the load | {made} | {} | |", server.resident()?);
    }
    let last = server.resident()?;
    eprint!("\r\x1b[K");
    println!(
        "\nAt the end of the load to its beginning: {:.2}; wanted < {WANTED} KiB at the end too: {}.\n",
        last as f64 / first as f64,
        if last < WANTED { "met" } else { "missed" }
    );
    drop(server);
    upstream.stop()
}
