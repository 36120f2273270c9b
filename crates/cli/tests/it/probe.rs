//! `probe` from outside: the list of cases, what is refused, and the exit codes that need no target.
//! What it finds is tested beside the probe, and against `serve` in `checks`.

use crate::command::run;
use crate::golden;

#[test]
fn the_list_of_cases() {
    let folder = tempfile::tempdir().unwrap();
    golden::check("golden/probe-list.txt", &run(folder.path(), &["probe", "--list"]).told());
}

#[test]
fn what_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("bad.toml"), "url = \"http://127.0.0.1:1/\"\nbdy = \"{}\"\n").unwrap();
    std::fs::write(folder.path().join("bad.json"), "{}").unwrap();
    for (name, arguments) in [
        ("no-url", &["probe"][..]),
        ("elsewhere", &["probe", "https://api.example.com/orders", "--dry-run"]),
        ("no-such-case", &["probe", "http://127.0.0.1:1/", "--case", "nothing"]),
        ("no-such-report", &["probe", "http://127.0.0.1:1/", "--report", "pdf=x"]),
        ("config", &["probe", "--config", "bad.toml"]),
        ("body", &["probe", "http://127.0.0.1:1/", "--body", "@absent.json"]),
        ("diff", &["probe", "diff", "bad.json", "bad.json"]),
        ("page", &["probe", "page", "-", "bad.json"]),
    ] {
        golden::check(&format!("golden/probe-{name}.txt"), &run(folder.path(), arguments).told());
    }
}

#[test]
fn a_dry_run_sends_nothing_and_a_real_one_needs_a_target() {
    let folder = tempfile::tempdir().unwrap();
    let unused = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let url = format!("http://{unused}/orders");
    std::fs::write(folder.path().join("probe.toml"), format!("url = \"{url}\"\ncase = [\"B1\"]\n")).unwrap();
    let dry = run(folder.path(), &["probe", "--config", "probe.toml", "--dry-run"]);
    assert_eq!(dry.code, 0, "{}", dry.told());
    assert!(dry.told().contains("3 cases against"), "a case brings its controls: {}", dry.told());
    let real = run(folder.path(), &["probe", "--config", "probe.toml"]);
    assert_eq!(real.code, 3, "{}", real.told());
    assert!(real.told().contains("cannot be reached"), "{}", real.told());
}
