//! `counterfoil probe` against servers that others wrote, started from their packages: what it finds here is what
//! docs/reference/probed.md says of them, as far as no race is needed to see it.
//!
//! The services around the packages stand in checks/peers and bench/peers. What does not belong here: the whole matrix,
//! which `checks/probed` makes.

use std::{
    collections::BTreeMap,
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use serde_json::Value;
use tempfile::TempDir;

use super::curl::get;
use super::process::Process;
use super::served::run;

const PEERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/peers");
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/reference/probed.md");
const STARTS_WITHIN: Duration = Duration::from_mins(1);

/// Where `./test` has put what others wrote.
fn packages(place: &str) -> PathBuf {
    let home = std::env::var_os("COUNTERFOIL_PEERS")
        .expect("COUNTERFOIL_PEERS names no packages: run ./test, which installs them and sets it");
    let place = Path::new(&home).join(place);
    assert!(place.exists(), "{} is not there: run ./checks/peers/install --all", place.display());
    place
}

/// A running server, and where it is asked.
struct Peer {
    process: Process,
    orders: String,
    refunds: String,
    /// What tells the number of effects.
    count: String,
    _behind: Option<Process>,
    _home: TempDir,
}

impl Peer {
    /// A service that says where it listens.
    fn telling(command: &mut Command, home: TempDir) -> Self {
        let process = Process::attended(command.current_dir(home.path()));
        let at = format!("http://{}", process.line());
        let [orders, refunds] = ["orders", "refunds"].map(|path| format!("{at}/{path}"));
        Self { process, count: orders.clone(), orders, refunds, _behind: None, _home: home }
    }

    fn python(program: &str, arguments: &[&str]) -> Self {
        let mut command = Command::new(packages("py/bin/python"));
        command.arg(format!("{PEERS}/python/{program}")).args(arguments);
        Self::telling(&mut command, tempfile::tempdir().expect("a directory"))
    }

    fn node(program: &str) -> Self {
        // Node looks for packages beside the program.
        let home = tempfile::tempdir().expect("a directory");
        std::os::unix::fs::symlink(packages("node/node_modules"), home.path().join("node_modules")).expect("a link");
        for file in [program, "orders.mjs"] {
            std::fs::copy(format!("{PEERS}/node/{file}"), home.path().join(file)).expect("a copy");
        }
        Self::telling(Command::new("node").arg(program).env("NODE_ENV", "production"), home)
    }

    fn rust(program: &str) -> Self {
        let mut command = Command::new(packages("build/debug").join(program));
        Self::telling(&mut command, tempfile::tempdir().expect("a directory"))
    }

    /// The proxy, in front of a service that knows nothing of keys.
    fn proxy() -> Self {
        let behind = Self::rust("bare");
        let home = tempfile::tempdir().expect("a directory");
        // It does not start without the file.
        std::fs::write(home.path().join(".env"), "").expect("a file");
        let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port");
        let mut command = Command::new(packages("rust/bin/idempotent-proxy-server"));
        command.current_dir(home.path()).env("SERVER_ADDR", free.to_string()).env("LOG_LEVEL", "error");
        command.env("URL_ORDERS", &behind.orders).env("URL_REFUNDS", &behind.refunds);
        let process = Process::attended(&mut command);
        let begun = Instant::now();
        while TcpStream::connect(free).is_err() {
            assert!(begun.elapsed() < STARTS_WITHIN, "it does not listen:\n{}", process.log());
            std::thread::yield_now();
        }
        let [orders, refunds] = ["URL_ORDERS", "URL_REFUNDS"].map(|path| format!("http://{free}/{path}"));
        Self { process, orders, refunds, count: behind.count, _behind: Some(behind.process), _home: home }
    }

    /// The verdicts of these cases and of those that they need, each in a word.
    fn probed(&self, cases: &[(&str, &str)], more: &[&str]) -> BTreeMap<String, String> {
        let home = tempfile::tempdir().expect("a directory");
        let body = r#"{"product":"tea","quantity":2,"tags":["a","b"]}"#;
        let mut asked = vec!["probe", &self.orders, "--body", body, "--vary", "/quantity", "--id", "/id"];
        asked.extend(["--count-url", &self.count, "--count", "/count", "--report", "json=result.json"]);
        asked.extend(cases.iter().flat_map(|(case, _)| ["--case", case]));
        asked.extend(more);
        let output = run(&asked, home.path());
        let said = String::from_utf8_lossy(&output.stderr);
        let deviates = cases.iter().any(|(_, verdict)| verdict.starts_with("deviates"));
        assert_eq!(output.status.code(), Some(i32::from(deviates)), "{said}\n{}", self.process.log());
        let result = std::fs::read_to_string(home.path().join("result.json")).expect("the result was written");
        let result: Value = serde_json::from_str(&result).expect("it is JSON");
        let word = |verdict: &Value| match verdict["deviates"].as_str() {
            Some(severity) => format!("deviates ({severity})"),
            None => verdict.as_str().expect("a word").to_owned(),
        };
        let all = result["results"].as_array().expect("results");
        all.iter().map(|one| (one["id"].as_str().expect("an id").to_owned(), word(&one["verdict"]))).collect()
    }

    fn check(&self, column: &str, cases: &[(&str, &str)]) {
        self.check_with(column, cases, &["--also", &format!("other={}", self.refunds)]);
    }

    /// What is found, and what the page says of it.
    fn check_with(&self, column: &str, cases: &[(&str, &str)], more: &[&str]) {
        let found = self.probed(cases, more);
        for (case, verdict) in cases {
            assert_eq!(found.get(*case).map(String::as_str), Some(*verdict), "{column}, {case}: {found:?}");
            assert_eq!(published(column, case), *verdict, "docs/reference/probed.md of {column}, {case}");
        }
    }
}

/// The verdict in the page's matrix: `column` is the head of a column, without its number and the version.
fn published(column: &str, case: &str) -> String {
    let page = std::fs::read_to_string(PAGE).expect("the page stands");
    let cells = |line: &str| line.split('|').map(|cell| cell.trim().replace("**", "")).collect::<Vec<_>>();
    let rows: Vec<Vec<String>> = page.lines().filter(|line| line.starts_with('|')).map(cells).collect();
    let heads = rows.iter().find(|row| row.get(2).is_some_and(|cell| cell == "case")).expect("a matrix");
    let is = |head: &String| {
        // `3 fastapi-idempotency 0.1.1, keys only`
        let words: Vec<&str> = head.splitn(3, ' ').collect();
        let [_, name, rest] = words.as_slice() else { return false };
        let variant = rest.split_once(", ").map_or(String::new(), |(_, variant)| format!(", {variant}"));
        format!("{name}{variant}") == column
    };
    let at = heads.iter().position(is).unwrap_or_else(|| panic!("no column {column} in {heads:?}"));
    let named = format!("`{case}`");
    let row = rows.iter().find(|row| row.get(2) == Some(&named)).unwrap_or_else(|| panic!("no row {case}"));
    row.get(at).cloned().unwrap_or_default()
}

#[test]
fn servers_in_python_are_found_as_published() {
    Peer::python("asgi_idempotency_header.py", &[]).check(
        "asgi-idempotency-header",
        &[
            ("seq/one-effect", "conforms"),
            ("mism/value", "deviates (major)"),
            ("scope/other-operation", "deviates (critical)"),
            ("fail/corrected", "deviates (major)"),
            ("fail/refused-twice", "conforms"),
        ],
    );
    Peer::python("fastapi_idempotency_app.py", &[]).check(
        "fastapi-idempotency",
        &[("control/no-key-twice", "deviates (critical)"), ("seq/one-effect", "depends-on-failed")],
    );
    Peer::python("fastapi_idempotency_app.py", &["keys-only"]).check(
        "fastapi-idempotency, keys only",
        &[
            ("seq/one-effect", "conforms"),
            ("mism/value", "conforms"),
            ("scope/other-operation", "conforms"),
            ("fail/corrected", "conforms"),
            ("meta/problem", "deviates (minor)"),
        ],
    );
}

#[test]
fn moto_is_found_as_published() {
    Peer::python("moto_ec2.py", &[]).check_with(
        "moto, EC2 ClientToken",
        &[
            ("control/distinct-keys", "conforms"),
            ("key/length", "deviates (major)"),
            ("seq/one-effect", "deviates (critical)"),
            ("mism/value", "deviates (critical)"),
        ],
        &["--contract", "ec2", "--key", "header:Idempotency-Key"],
    );
}

#[test]
fn servers_in_node_are_found_as_published() {
    Peer::node("express_idempotency.mjs").check(
        "express-idempotency",
        &[
            ("seq/one-effect", "conforms"),
            ("mism/value", "deviates (minor)"),
            ("mism/long-number", "deviates (major)"),
            ("scope/other-operation", "conforms"),
            ("fail/corrected", "conforms"),
        ],
    );
    Peer::node("node_idempotency_core.mjs").check(
        "@node-idempotency/core",
        &[
            ("seq/one-effect", "conforms"),
            ("mism/value", "conforms"),
            ("mism/query", "deviates (critical)"),
            ("mism/long-number", "deviates (major)"),
            ("scope/other-operation", "conforms"),
        ],
    );
}

#[test]
fn servers_in_rust_are_found_as_published() {
    Peer::proxy().check(
        "idempotent-proxy-server",
        &[
            ("key/missing", "deviates (minor)"),
            ("seq/one-effect", "conforms"),
            ("mism/value", "deviates (major)"),
            ("scope/other-operation", "deviates (critical)"),
        ],
    );
    Peer::rust("idempotent").check(
        "idempotent",
        &[
            ("seq/one-effect", "conforms"),
            ("mism/value", "deviates (minor)"),
            ("fail/corrected", "deviates (major)"),
            ("scope/other-operation", "conforms"),
        ],
    );
    let sessions = Peer::rust("axum-idempotent");
    let begun = get(&sessions.orders.replace("/orders", "/session"));
    let cookie = begun.header("set-cookie").split(';').next().unwrap_or_default();
    sessions.check_with(
        "axum-idempotent",
        &[
            ("key/missing", "deviates (minor)"),
            ("seq/one-effect", "conforms"),
            ("mism/value", "deviates (major)"),
            ("scope/other-operation", "deviates (critical)"),
        ],
        &["--also", &format!("other={}", sessions.refunds), "--header", &format!("Cookie: {cookie}")],
    );
}
