//! When a pass begins, where, and what follows it.

use counterfoil_core::{Asked, Claim, Identity, Key, Operation, Policy, Receipt, Rule, Scope};
use tempfile::TempDir;

use super::*;
use crate::error::Applied;
use crate::seam::RecordStore as _;
use crate::sqlite::{Executed, Origin, SqliteStore};

fn at(moved: u32, begun_at: u32) -> Progress {
    Progress { moved, begun_at, running: false, closed: false }
}

#[test]
fn a_log_is_moved_beside_the_writer_and_finished_by_it() {
    let check = |progress: Progress, frames, wanted| {
        let about = format!("{progress:?} at {frames}");
        let mut progress = progress;
        assert_eq!(progress.need(frames), wanted, "{about}");
        assert_eq!(progress.running, wanted != Need::Nothing, "{about}");
        if wanted != Need::Nothing {
            assert_eq!(progress.begun_at, frames, "{about}");
        }
    };
    check(at(0, 0), 0, Need::Nothing);
    check(at(0, 0), PASS_AFTER - 1, Need::Nothing);
    check(at(0, 0), PASS_AFTER, Need::Beside);
    check(at(900, 1_000), 1_999, Need::Nothing);
    check(at(900, 1_000), 2_000, Need::Beside);
    // Little is left, and the log is long: or it is not, or nothing is left.
    check(at(LONG - LITTLE, 3_000), LONG - 1, Need::Nothing);
    check(at(LONG - LITTLE, 3_000), LONG, Need::Here);
    check(at(LONG - LITTLE - 1, 3_001), LONG, Need::Nothing);
    check(at(LONG, 3_500), LONG, Need::Nothing);
    // A reader holds it: it is tried again when more was written, beside the writer as long as that can help.
    check(at(0, 15_000), TOO_LONG - 1, Need::Nothing);
    check(at(0, 14_000), TOO_LONG - 1, Need::Beside);
    check(at(0, 15_000), TOO_LONG, Need::Here);
    check(at(0, TOO_LONG), TOO_LONG + PASS_AFTER - 1, Need::Nothing);
    // A log that has begun anew.
    check(at(5_000, 4_900), 60, Need::Nothing);
    check(at(5_000, 4_900), PASS_AFTER, Need::Beside);
    // One pass at a time, and none once the store is closed.
    for (running, closed) in [(true, false), (false, true)] {
        let mut progress = Progress { running, closed, ..at(0, 0) };
        assert_eq!(progress.need(TOO_LONG), Need::Nothing);
    }
}

#[test]
fn a_pass_follows_another_where_the_log_is_long_and_it_helped() {
    let check = |before: Progress, moved, frames, wanted| {
        let about = format!("{before:?}, {moved} of {frames}");
        let mut progress = before;
        assert_eq!(progress.passed(moved, frames), wanted, "{about}");
        assert_eq!(progress.moved, moved, "{about}");
    };
    check(at(0, 1_000), 1_000, 2_000, false);
    check(at(0, LONG), LONG, LONG + LITTLE + 1, true);
    check(at(0, LONG), LONG, LONG + LITTLE, false);
    // It did not help: a reader holds the log, or another process is at it.
    check(at(LONG, LONG), LONG, LONG + LITTLE + 1, false);
    check(at(LONG, LONG), 0, LONG + LITTLE + 1, false);
    check(Progress { closed: true, ..at(0, LONG) }, LONG, LONG + LITTLE + 1, false);
}

/// Has `count` actions run, each with a receipt of 64 KiB: 17 frames or more.
fn written(store: &SqliteStore, run: &str, count: usize) -> Vec<Result<Executed<rusqlite::Error>, StoreError>> {
    let execute = |number| {
        let identity = Identity::new(
            Scope::single_tenant(),
            Operation::new("keep").unwrap(),
            Key::new(format!("{run}-{number}")).unwrap(),
        );
        let claim = Claim::new(identity, Asked::bytes("long"), &Rule::bytes()).unwrap();
        store.execute_blocking(claim, &Policy::default(), |_| Ok(Receipt::new(200, vec![b'x'; 64 * 1024])))
    };
    (0..count).map(execute).collect()
}

/// Waits until no pass is under way.
fn settled(log: &Log) {
    drop(log.idle.wait_while(log.progress(), |progress| progress.running).unwrap());
}

#[test]
fn the_log_of_a_busy_store_begins_anew() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("store.db");
    let store = SqliteStore::open(&path, Options::default()).unwrap();
    let log = &store.inner.log;
    let mut run = 0;
    while log.frames() < LONG {
        assert!(written(&store, &format!("long-{run}"), 10).iter().all(Result::is_ok));
        run += 1;
        assert!(run < 50, "{} frames after {run} runs", log.frames());
    }
    // The passes beside the writer have moved nearly all of it; the next batch moves the rest, and the one after that
    // writes at the log's beginning.
    settled(log);
    let before = log.frames();
    assert!(written(&store, "last", 2).iter().all(Result::is_ok));
    settled(log);
    assert!(written(&store, "anew", 1).iter().all(Result::is_ok));
    assert!(log.frames() < 100 && before >= LONG, "{before} frames, then {}", log.frames());
    // What was moved stands in the file itself, and what is read is the same as before.
    let moved = std::fs::metadata(&path).unwrap().len();
    assert!(moved > u64::from(LONG - LITTLE) * 4096 / 2, "{moved} bytes");
    for answer in written(&store, "long-0", 10) {
        assert!(matches!(answer, Ok(Executed::Done { origin: Origin::Replayed, .. })), "{answer:?}");
    }
}

#[test]
fn a_reader_that_stays_keeps_the_log_and_stops_nobody() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("store.db");
    let store = SqliteStore::open(&path, Options::default()).unwrap();
    assert!(written(&store, "first", 1).iter().all(Result::is_ok));
    let outside = Connection::open(&path).unwrap();
    outside.execute_batch("BEGIN").unwrap();
    let count =
        || outside.query_row("SELECT count(*) FROM counterfoil_record", [], |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(count(), 1);
    let log = &store.inner.log;
    for run in 0..25 {
        assert!(written(&store, &format!("beside-{run}"), 10).iter().all(Result::is_ok));
    }
    settled(log);
    let kept = log.frames();
    assert!(kept > LONG, "{kept}");
    assert_eq!(count(), 1, "its snapshot stands");
    outside.execute_batch("COMMIT").unwrap();
    assert_eq!(count(), 251);
    while log.frames() >= kept {
        assert!(written(&store, &format!("after-{}", log.frames()), 5).iter().all(Result::is_ok));
        settled(log);
        assert!(log.frames() < TOO_LONG, "{}", log.frames());
    }
}

#[test]
fn nothing_is_decided_once_the_disk_lost_what_was_moved() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("store.db");
    let store = SqliteStore::open(&path, Options::default()).unwrap();
    let log = &store.inner.log;
    assert!(written(&store, "before", 1).iter().all(Result::is_ok));
    log.fail_sync.store(true, Ordering::Relaxed);
    let mut run = 0;
    let refused = loop {
        let answers = written(&store, &format!("run-{run}"), 10);
        settled(log);
        run += 1;
        assert!(run < 30, "nothing was refused after {} frames", log.frames());
        if log.failed.load(Ordering::Relaxed) {
            break written(&store, "before", 1).into_iter().chain(answers);
        }
    };
    // A replay is refused as well: what it would read may be gone from the file.
    let refusals: Vec<StoreError> = refused.filter_map(Result::err).collect();
    assert!(!refusals.is_empty());
    for error in &refusals {
        assert_eq!((error.kind, error.applied), (ErrorKind::Unavailable, Applied::No), "{error}");
        assert!(error.detail.contains("look at the disk, then restart"), "{error}");
    }
    store.health().unwrap_err();
    drop(store);
    let store = SqliteStore::open(&path, Options::default()).unwrap();
    for answer in written(&store, "before", 1) {
        assert!(matches!(answer, Ok(Executed::Done { origin: Origin::Replayed, .. })), "{answer:?}");
    }
}
