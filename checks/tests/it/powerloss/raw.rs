//! The simulation itself, tried on plain SQLite: with every commit synced nothing is lost, and without it something is.
//!
//! What does not belong here: our store.

use std::path::Path;

use rusqlite::Connection;

use super::{disk::Image, run, trace::Event};
use crate::crash::process::say;

const FILE: &str = "raw.db";
const ROWS: u32 = 40;

/// The process: commits rows one by one, and says of each that it is committed.
pub(crate) fn work(directory: &Path, synchronous: &str) {
    let database = Connection::open(directory.join(FILE)).expect("it opens");
    database.pragma_update(None, "synchronous", synchronous).expect("it obeys");
    for row in 1..=ROWS {
        database.execute("INSERT INTO t VALUES (?1)", [row]).expect("it writes");
        say(&format!("answered {row}"));
    }
}

fn born(directory: &Path) {
    let database = Connection::open(directory.join(FILE)).expect("it opens");
    database.pragma_update(None, "journal_mode", "wal").expect("it obeys");
    database.execute_batch("CREATE TABLE t (a INTEGER NOT NULL)").expect("it writes");
}

fn rows(image: &Image) -> Vec<u32> {
    let directory = super::written(image);
    let database = Connection::open(directory.path().join(FILE)).expect("it opens");
    let mut statement = database.prepare("SELECT a FROM t ORDER BY a").expect("the table is there");
    statement.query_map([], |row| row.get(0)).expect("it reads").map(|row| row.expect("it reads")).collect()
}

/// How many rows that were answered are not there after a loss of power, at worst.
fn lost(synchronous: &str) -> usize {
    let recorded = run(&format!("raw {synchronous}"), born);
    let mut random = fastrand::Rng::with_seed(7);
    let (mut answered, mut worst, mut images) = (0, 0, 0);
    recorded.cuts(|disk, event| {
        if let Event::Said { line } = event {
            answered += usize::from(line.starts_with("answered "));
        }
        for image in [disk.strict(), disk.lucky(&mut random)] {
            let rows = rows(&image);
            assert!(rows.iter().copied().zip(1..).all(|(row, wanted)| row == wanted), "{rows:?} has a gap");
            worst = worst.max(answered.saturating_sub(rows.len()));
            images += 1;
        }
    });
    assert_eq!(answered, ROWS as usize, "every row is answered");
    assert!(images >= 2 * answered, "the power is cut at each answer at least");
    worst
}

#[test]
fn a_synced_commit_is_kept() {
    assert_eq!(lost("full"), 0);
}

#[test]
fn an_unsynced_commit_is_lost() {
    for synchronous in ["normal", "off"] {
        let lost = lost(synchronous);
        assert!(lost > 0, "{synchronous}: the simulation lost nothing");
    }
}
