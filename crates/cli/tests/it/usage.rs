//! Wrong arguments: exit code 2 and what would be right, by golden file.

use crate::command::run;
use crate::golden;

#[test]
fn wrong_arguments() {
    let folder = tempfile::tempdir().unwrap();
    for (name, arguments) in [
        ("nothing", &[][..]),
        ("unknown-command", &["receipt"]),
        ("unknown-flag", &["serve", "--port", "80"]),
        ("unknown-state", &["receipts", "list", "--state", "lost"]),
        ("wrong-span", &["receipts", "list", "--older-than", "soon"]),
        ("wrong-store", &["migrate", "--store", "redis://x"]),
        ("no-verdict", &["receipts", "resolve", "k", "--version", "1", "--who", "a", "--why", "b"]),
        (
            "two-verdicts",
            &[
                "receipts",
                "resolve",
                "k",
                "--version",
                "1",
                "--who",
                "a",
                "--why",
                "b",
                "--did-not-happen",
                "--happened",
                "x",
            ],
        ),
        ("unsigned", &["receipts", "resolve", "k", "--version", "1", "--did-not-happen"]),
        (
            "empty-reason",
            &["receipts", "resolve", "k", "--version", "1", "--did-not-happen", "--who", "a", "--why", " "],
        ),
    ] {
        golden::check(&format!("golden/usage-{name}.txt"), &run(folder.path(), arguments).told());
    }
}

#[test]
fn version() {
    let folder = tempfile::tempdir().unwrap();
    let run = run(folder.path(), &["--version"]);
    assert_eq!((run.code, run.out), (0, format!("counterfoil {}\n", env!("CARGO_PKG_VERSION"))));
}
