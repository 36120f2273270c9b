//! The core is pure: no clock, file, socket, environment, thread, async or randomness in `crates/core/src`.
//!
//! Clippy bans the calls (`crates/core/clippy.toml`); this rule bans the names and checks that clippy's list stands.
//! What does not belong here: which crates the core may use (`dependencies.rs`).

use super::tokens::{lex, paths};
use super::tree::{File, files, hold, seen};

/// A name, as a run of path segments, and why the core may not say it.
const BANS: &[(&str, &str)] = &[
    ("SystemTime", "time is an argument"),
    ("Instant", "time is an argument"),
    ("UNIX_EPOCH", "time is an argument"),
    ("std::fs", "nothing is read or written in the core"),
    ("std::net", "nothing is sent in the core"),
    ("std::env", "configuration is an argument"),
    ("std::process", "nothing is started in the core"),
    ("std::thread", "nothing happens in the core"),
    ("tokio", "nothing waits in the core"),
    ("async", "nothing waits in the core"),
    ("await", "nothing waits in the core"),
    ("rand", "randomness is an argument"),
    ("getrandom", "randomness is an argument"),
    ("new_v4", "randomness is an argument"),
    ("now_v7", "time and randomness are arguments"),
];

const CLIPPY_MUST_BAN: [&str; 2] = ["std::time::SystemTime::now", "std::time::Instant::now"];

fn impure(files: &[File]) -> Vec<String> {
    let mut faults = Vec::new();
    let core = |file: &&File| file.path.starts_with("crates/core/src/") && file.is_rust() && !file.is_test();
    for file in files.iter().filter(core) {
        for path in paths(lex(file)) {
            let segments = format!("::{}::", path.text);
            let banned = BANS.iter().find(|(name, _)| segments.contains(&format!("::{name}::")));
            if let Some((name, why)) = banned {
                faults.push(format!("{}:{}: `{}` uses `{name}`: {why}", file.path, path.line, path.text));
            }
        }
    }
    faults
}

/// Clippy reads only the nearest `clippy.toml`, so a crate's own must ban what it must and repeat the root's limits.
fn unlisted(files: &[File]) -> Vec<String> {
    let parse = |file: &File| -> toml::Table {
        file.text.parse().unwrap_or_else(|error| panic!("{}: not TOML: {error}", file.path))
    };
    let mut faults = Vec::new();
    let root = files.iter().find(|file| file.path == "clippy.toml").map(parse).unwrap_or_default();
    for file in files.iter().filter(|file| file.path.ends_with("/clippy.toml")) {
        let own = parse(file);
        for (key, limit) in root.iter().filter(|(key, limit)| own.get(*key) != Some(limit)) {
            faults.push(format!("{}: must repeat `{key} = {limit}` of the root", file.path));
        }
    }
    let Some(core) = files.iter().find(|file| file.path == "crates/core/clippy.toml") else {
        faults.push("crates/core/clippy.toml: missing".to_owned());
        return faults;
    };
    let own = parse(core);
    let methods = own.get("disallowed-methods").and_then(toml::Value::as_array).cloned().unwrap_or_default();
    let path = |entry: &toml::Value| entry.get("path").unwrap_or(entry).as_str().map(str::to_owned);
    let banned: Vec<String> = methods.iter().filter_map(path).collect();
    for method in CLIPPY_MUST_BAN.iter().filter(|method| !banned.iter().any(|entry| entry == *method)) {
        faults.push(format!("{}: disallowed-methods lacks `{method}`", core.path));
    }
    faults
}

#[test]
fn nothing_happens_in_the_core() {
    hold("pass the value in from outside", &impure(&files()));
}

#[test]
fn clippy_bans_clocks_in_the_core() {
    hold("add the line to that clippy.toml", &unlisted(&files()));
}

#[test]
fn planted_faults_are_seen() {
    let rows = [
        ("use std::time::{Duration, SystemTime};", "a.rs:1: `std::time::SystemTime`"),
        ("fn f() {\n    let now = time::Instant::now();\n}", "a.rs:2: `time::Instant::now`"),
        ("use std::{fs::File, fmt};", "`std::fs`"),
        ("fn f() { let s = std::net::TcpStream::connect(a); }", "`std::net`"),
        ("fn f() { std::env::var(\"A\"); }", "`std::env`"),
        ("mod m { fn f() { std::thread::yield_now(); } }", "`std::thread`"),
        ("use tokio::sync::Mutex;", "`tokio`"),
        ("pub async fn f() {}", "`async`"),
        ("use rand::Rng;", "`rand`"),
        ("fn f() { Uuid::new_v4(); }", "`new_v4`"),
    ];
    for (planted, wanted) in rows {
        seen(planted, &impure(&[File::new("crates/core/src/a.rs", planted)]), wanted);
        assert!(impure(&[File::new("crates/store/src/a.rs", planted)]).is_empty(), "only the core is pure");
    }
    let innocent = "//! Not std::fs, not async.\nuse std::time::Duration;\nconst A: &str = \"tokio\"; // std::env\n";
    assert!(impure(&[File::new("crates/core/src/a.rs", innocent)]).is_empty());

    let root = File::new("clippy.toml", "limit = 70\n");
    let core = |text: &str| vec![root.clone(), File::new("crates/core/clippy.toml", text)];
    let both = "{ path = \"std::time::SystemTime::now\", reason = \"r\" }, \"std::time::Instant::now\"";
    assert!(unlisted(&core(&format!("limit = 70\ndisallowed-methods = [{both}]"))).is_empty());
    seen("another limit", &unlisted(&core(&format!("limit = 80\ndisallowed-methods = [{both}]"))), "`limit = 70`");
    let one = "limit = 70\ndisallowed-methods = [\"std::time::SystemTime::now\"]";
    seen("one ban", &unlisted(&core(one)), "Instant::now");
    seen("no file", &unlisted(std::slice::from_ref(&root)), "missing");
}
