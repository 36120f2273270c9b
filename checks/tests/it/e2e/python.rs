//! Python packages as they are: `stripe` and `httpx` as clients, `httpbin` as the service.
//!
//! `./test` installs them, pinned, and names their interpreter in `COUNTERFOIL_PYTHON`. What does not belong here: what
//! our own service can show as well (`proxied`).

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    process::Command,
};

use rustix::process::Signal;
use serde_json::Value;

use super::{
    curl::{get, post},
    process::Process,
    served::Served,
    upstream::Upstream,
};

pub(super) fn python() -> Command {
    let interpreter = std::env::var_os("COUNTERFOIL_PYTHON")
        .expect("COUNTERFOIL_PYTHON names no interpreter: run ./test, which installs the packages and sets it");
    Command::new(interpreter)
}

/// A program that stands beside this file.
pub(super) fn program(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/e2e").join(name)
}

/// `httpbin` on a free port, with one worker, so that its log has the requests in order.
struct Httpbin {
    process: Process,
    url: String,
}

impl Httpbin {
    fn start(home: &Path) -> Self {
        let mut command = python();
        command.args(["-m", "gunicorn", "--bind", "127.0.0.1:0", "--workers", "1", "--access-logfile", "-"]);
        let process = Process::start(command.args(["--access-logformat", "%(r)s", "httpbin:app"]).current_dir(home));
        let told = process.logs("Listening at: ");
        let url = told.split(' ').next().expect("an address").to_owned();
        Self { process, url }
    }

    /// What it was asked so far, each as `POST /path HTTP/1.1`.
    fn asked(&self, proxy: &Served) -> Vec<String> {
        get(&proxy.url("/get?last"));
        let lines = std::iter::repeat_with(|| self.process.line());
        lines.take_while(|line| !line.contains("/get?last")).collect()
    }
}

impl Drop for Httpbin {
    fn drop(&mut self) {
        // Its worker is a process of its own, and ends when it is told to.
        self.process.signal(Signal::TERM);
        self.process.end();
    }
}

#[test]
fn stripe_pays_once() {
    let home = tempfile::tempdir().expect("a directory");
    let httpbin = Httpbin::start(home.path());
    let served = Served::start(&home.path().join("counterfoil.db"), &httpbin.url);
    let output = python().arg(program("stripe_client.py")).arg(served.url("/anything")).output().expect("python runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said = String::from_utf8(output.stdout).expect("it says text");
    let answers: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let [fresh, replayed, changed, quoted, other, read] = answers.as_slice() else { panic!("six answers: {said}") };

    let is = |answer: &Value, replayed: &str| answer["status"] == 200 && answer["replayed"] == replayed;
    assert!(is(fresh, "false"), "{fresh}");
    let echoed: Value = serde_json::from_str(fresh["body"].as_str().expect("a body")).expect("httpbin echoes JSON");
    assert_eq!(echoed["form"]["amount"], "1000", "the form arrived as it was sent: {echoed}");
    assert_eq!(echoed["form"]["metadata[order]"], "A-1", "{echoed}");
    for again in [replayed, quoted] {
        assert!(is(again, "true"), "a bare key and the same in quotes are one key: {again}");
        assert_eq!(again["body"], fresh["body"]);
    }
    let problem: Value = serde_json::from_str(changed["body"].as_str().expect("a body")).expect("a problem document");
    assert_eq!((&changed["status"], &problem["status"]), (&Value::from(422), &Value::from(422)), "{changed}");
    assert!(problem["type"].as_str().is_some_and(|kind| kind.ends_with("mismatch")), "{problem}");
    assert!(is(other, "false"), "{other}");
    assert!(read["status"] == 200 && read["replayed"].is_null(), "reading is not guarded: {read}");

    let asked = httpbin.asked(&served);
    let paid = asked.iter().filter(|line| line.starts_with("POST /anything/v1/payment_intents")).count();
    assert_eq!((paid, asked.len()), (2, 3), "two keys, two payments, one reading: {asked:?}");
    served.stop();
}

#[test]
fn each_status_is_kept_released_or_doubted() {
    let home = tempfile::tempdir().expect("a directory");
    let httpbin = Httpbin::start(home.path());
    let served = Served::start(&home.path().join("counterfoil.db"), &httpbin.url);
    for status in [200, 201, 302, 404, 409, 500, 501] {
        let url = served.url(&format!("/status/{status}"));
        post(&url, "k-1").is(status, "false");
        post(&url, "k-1").is(status, "true");
    }
    for status in [400, 401, 403, 422, 429] {
        let url = served.url(&format!("/status/{status}"));
        post(&url, "k-1").is(status, "false");
        post(&url, "k-1").is(status, "false");
    }
    for (status, told) in [(502, 502), (503, 502), (504, 504)] {
        let url = served.url(&format!("/status/{status}"));
        post(&url, "k-1").is_problem(told, "outcome-unknown");
        post(&url, "k-1").is_problem(409, "outcome-unknown");
    }
    let asked = httpbin.asked(&served);
    let of = |statuses: &[u16]| {
        let about = |line: &&String| statuses.iter().any(|status| line.contains(&format!("/status/{status} ")));
        asked.iter().filter(about).count()
    };
    assert_eq!(of(&[200, 201, 302, 404, 409, 500, 501]), 7, "kept: asked once each: {asked:?}");
    assert_eq!(of(&[400, 401, 403, 422, 429]), 10, "released: asked each time: {asked:?}");
    assert_eq!(of(&[502, 503, 504]), 3, "in doubt: never asked again: {asked:?}");
    served.stop();
}

/// `httpx` against `served`, whose upstream is `upstream`; how many connections it took.
fn httpx(served: &Served, upstream: &Upstream, arguments: &[&str], version: &str) -> usize {
    let mut client = Process::start(python().arg(program("httpx_client.py")).args(arguments));
    let answer = || serde_json::from_str::<Value>(&client.line()).expect("JSON");

    let (mut fresh, mut replayed, mut connections) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for _ in 0..8 {
        let answer = answer();
        assert_eq!((&answer["status"], &answer["version"]), (&201.into(), &version.into()), "{answer}");
        let of = if answer["replayed"] == "true" { &mut replayed } else { &mut fresh };
        of.insert((answer["key"].to_string(), answer["body"].to_string()));
        connections.insert(answer["connection"].to_string());
    }
    assert_eq!((fresh.len(), &fresh), (4, &replayed), "each key was run once, and its second request got the same");
    assert_eq!(upstream.calls(), 4);
    let changed = answer();
    assert_eq!((&changed["status"], &changed["type"]), (&422.into(), &"application/problem+json".into()), "{changed}");
    connections.insert(changed["connection"].to_string());

    upstream.wait_held();
    let cut = answer();
    assert_eq!(cut["error"], "ReadTimeout", "{cut}");
    // Its retry waits for what runs, or comes later and finds the receipt.
    upstream.release();
    let retried = answer();
    assert_eq!((&retried["status"], &retried["replayed"]), (&201.into(), &"true".into()), "{retried}");
    assert_eq!(upstream.calls(), 5);
    assert!(client.end().success(), "it ends in order");
    let ready = get(&served.admin_url("/readyz"));
    assert_eq!(ready.status, 200, "{ready:?}");
    connections.len()
}

const WAITING: &str = "defaults.duplicates = \"wait 30s\"\n";

#[test]
fn httpx_races_from_a_pool_and_gives_up_waiting() {
    let home = tempfile::tempdir().expect("a directory");
    let upstream = Upstream::start();
    let served = Served::configured(home.path(), upstream.url(), WAITING);
    let connections = httpx(&served, &upstream, &[&served.url("")], "HTTP/1.1");
    assert!(connections <= 2, "no answer of ours ends a connection: {connections}");
    served.stop();
}

/// `httpx` speaks HTTP/2 over TLS only.
#[test]
fn httpx_races_on_one_connection_of_http2_and_gives_up_waiting() {
    let home = tempfile::tempdir().expect("a directory");
    let issued = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("a certificate");
    let [certificate, key] = ["api.pem", "api.key"].map(|name| home.path().join(name).display().to_string());
    std::fs::write(&certificate, issued.cert.pem()).expect("a file");
    std::fs::write(&key, issued.signing_key.serialize_pem()).expect("a file");
    let upstream = Upstream::start();
    let tls = format!("{WAITING}tls = {{ certificate = \"{certificate}\", key = \"{key}\" }}\n");
    let served = Served::configured(home.path(), upstream.url(), &tls);
    let base = served.url("").replace("http:", "https:");
    let connections = httpx(&served, &upstream, &[&base, &certificate], "HTTP/2");
    assert_eq!(connections, 1, "no answer of ours ends a connection");
    served.stop();
}
