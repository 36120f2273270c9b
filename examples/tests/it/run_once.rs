//! The function that runs once: twice as a process, one effect.
//!
//! What does not belong here: HTTP.

use std::path::Path;
use std::process::{Command, Output};

use counterfoil::store::sqlite::rusqlite::Connection;

use crate::process::built;

fn run(file: &Path, month: &str, basis_points: &str) -> Output {
    Command::new(built(&["examples", "run_once"])).arg(file).args([month, basis_points]).output().expect("it runs")
}

fn said(output: &Output) -> &str {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    std::str::from_utf8(&output.stdout).expect("it says text")
}

fn total(file: &Path) -> i64 {
    let bank = Connection::open(file).expect("the file opens");
    bank.query_row("SELECT sum(cents) FROM account", [], |row| row.get(0)).expect("the accounts stand")
}

#[test]
fn interest_is_credited_once() {
    let home = tempfile::tempdir().expect("a directory");
    let file = home.path().join("bank.db");

    assert_eq!(said(&run(&file, "2026-10", "25")), "fresh: 3 accounts credited, 201001 cents in all\n");
    assert_eq!(said(&run(&file, "2026-10", "25")), "replayed: 3 accounts credited, 201001 cents in all\n");
    assert_eq!(total(&file), 201_001, "the second call credited nothing");

    let other = run(&file, "2026-10", "50");
    assert!(!other.status.success(), "another rate for the same month is another action");
    let errors = String::from_utf8_lossy(&other.stderr);
    assert!(errors.contains("was asked for with another rate"), "{errors}");
    assert_eq!(total(&file), 201_001, "and it changed nothing");

    assert_eq!(said(&run(&file, "2026-11", "25")), "fresh: 3 accounts credited, 201502 cents in all\n");
}
