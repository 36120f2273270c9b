//! `config check` and `config print`: where they print, and how they end. What is accepted is tried in the server.

use crate::command::{run, run_with};
use crate::golden;

const GOOD: &str = "upstream = \"http://127.0.0.1:9000\"\n[principal]\nfrom = \"none\"\n";

#[test]
fn check() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("good.toml"), GOOD).unwrap();
    let bad = "upstream = \"https://x\"\ncolour = 1\n[principal]\nfrom = \"jwt\"\n[[operation]]\nname = \"a\"\n";
    std::fs::write(folder.path().join("bad.toml"), bad).unwrap();
    for (name, arguments) in [
        ("good", &["config", "check", "--config", "good.toml"][..]),
        ("bad", &["config", "check", "--config", "bad.toml", "--store", "redis://x"]),
        ("nothing", &["config", "check"]),
        ("absent", &["config", "check", "--config", "absent.toml"]),
        ("serve-bad", &["serve", "--config", "bad.toml"]),
        ("print-bad", &["config", "print", "--config", "bad.toml"]),
    ] {
        golden::check(&format!("golden/config-{name}.txt"), &run(folder.path(), arguments).told());
    }
}

#[test]
fn print() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("good.toml"), GOOD).unwrap();
    let arguments = ["config", "print", "--config", "good.toml", "--listen", "127.0.0.1:1"];
    let printed =
        run_with(folder.path(), &arguments, "", &[("COUNTERFOIL_STORE", "memory:"), ("COUNTERFOIL_ADMIN", "")]);
    assert_eq!((printed.code, printed.err.as_str()), (0, ""));
    let head: Vec<&str> = printed.out.lines().take(4).collect();
    assert_eq!(
        head,
        [
            "listen = \"127.0.0.1:1\" # --listen",
            "admin = \"127.0.0.1:8788\" # default",
            "upstream = \"http://127.0.0.1:9000\" # file",
            "store = \"memory:\" # COUNTERFOIL_STORE",
        ]
    );
}
