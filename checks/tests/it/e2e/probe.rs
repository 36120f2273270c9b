//! `counterfoil probe` against `counterfoil serve` in front of a service that knows nothing of keys.
//!
//! What does not belong here: wrong servers, which stand beside the probe.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Write,
    net::{TcpListener, TcpStream},
    path::Path,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use rustix::process::Signal;
use serde_json::Value;

use super::outbox_kills::example;
use super::process::Process;
use super::schema;
use super::served::{Served, run};
use super::upstream::read_request;

/// Orders without any idea of keys: a POST with a quantity is one more, a GET tells how many there are.
pub(super) fn orders() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = format!("http://{}", listener.local_addr().expect("it is bound"));
    let made = Arc::new(AtomicUsize::new(0));
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let made = made.clone();
            // A caller that has gone needs no answer.
            std::thread::spawn(move || answer(&stream, &made).is_ok());
        }
    });
    address
}

fn answer(mut stream: &TcpStream, made: &AtomicUsize) -> std::io::Result<()> {
    let (first, body) = read_request(stream)?;
    let order: Value = serde_json::from_slice(&body).unwrap_or_default();
    let (status, said) = if first.starts_with("GET ") {
        ("200 OK", format!("{{\"count\": {}}}", made.load(Ordering::SeqCst)))
    } else if order["quantity"].is_number() {
        ("201 Created", format!("{{\"id\": {}}}", made.fetch_add(1, Ordering::SeqCst) + 1))
    } else {
        ("400 Bad Request", "{\"error\": \"no quantity\"}".to_owned())
    };
    let head = "Content-Type: application/json\r\nConnection: close\r\nContent-Length: ";
    write!(stream, "HTTP/1.1 {status}\r\n{head}{}\r\n\r\n{said}", said.len())
}

/// The arguments of a run, with its result in `home`.
fn probe(served: &Served, home: &Path, report: &str) -> (Option<i32>, String) {
    let body = r#"{"product":"tea","quantity":2,"tags":["a","b"]}"#;
    let (url, count, other) =
        (served.url("/orders"), served.url("/orders"), format!("other={}", served.url("/refunds")));
    let asked = ["probe", &url, "--body", body, "--vary", "/quantity", "--id", "/id"];
    let seen = ["--count-url", &count, "--count", "/count", "--also", &other, "--report", report];
    let output = run(&[&asked[..], &seen[..]].concat(), home);
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

fn verdicts(result: &Path) -> BTreeMap<String, String> {
    let text = std::fs::read_to_string(result).expect("the result was written");
    let result: Value = serde_json::from_str(&text).expect("it is JSON");
    let all = result["results"].as_array().expect("results").clone();
    all.iter().map(|one| (one["id"].to_string(), one["verdict"].to_string())).collect()
}

fn read(home: &Path, name: &str) -> String {
    std::fs::read_to_string(home.join(name)).expect("the result was written")
}

/// The summary, and every line beside it.
fn as_the_schema_says(summary: &str, lines: &str) {
    let schema = schema::read("probe.schema.json");
    let summary: Value = serde_json::from_str(summary).expect("it is JSON");
    assert_eq!(schema::faults(&schema, &summary), Vec::<String>::new());
    let mut without = summary.clone();
    without["results"][0].as_object_mut().expect("a result").remove("verdict");
    assert_eq!(schema::faults(&schema, &without).len(), 1, "what is missing is seen");
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect();
    assert_eq!(Value::from(lines), summary["exchanges"], "a line is an exchange of the summary");
}

#[test]
fn our_own_proxy_keeps_what_it_promises_three_times_over() {
    let home = tempfile::tempdir().expect("a directory");
    let served = Served::start(&home.path().join("counterfoil.db"), &orders());
    let mut seen: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for number in 0..3 {
        let reports = format!("json={number}.json,sheet={number}.toml,lines={number}.jsonl");
        let (code, said) = probe(&served, home.path(), &reports);
        assert_eq!(code, Some(0), "{said}");
        for (id, verdict) in verdicts(&home.path().join(format!("{number}.json"))) {
            assert!(!verdict.contains("deviates") && !verdict.contains("failed"), "{id}: {verdict}\n{said}");
            seen.entry(id).or_default().insert(verdict);
        }
    }
    assert!(seen.len() > 43, "{seen:?}");
    as_the_schema_says(&read(home.path(), "0.json"), &read(home.path(), "0.jsonl"));
    for (id, mut verdicts) in seen {
        verdicts.remove("\"inconclusive\"");
        assert!(verdicts.len() <= 1, "{id}: {verdicts:?}");
    }
    let same = run(&["probe", "diff", "0.toml", "1.toml"], home.path());
    assert_eq!(same.status.code(), Some(0), "{}", String::from_utf8_lossy(&same.stdout));
    let changed = std::fs::read_to_string(home.path().join("0.toml")).expect("a sheet").replace("= 422", "= 409");
    std::fs::write(home.path().join("changed.toml"), changed).expect("a file");
    let drift = run(&["probe", "diff", "0.toml", "changed.toml"], home.path());
    let said = String::from_utf8_lossy(&drift.stdout);
    assert_eq!(drift.status.code(), Some(1));
    assert!(said.contains("mismatch.status: 422 -> 409 (changed)"), "{said}");
}

/// Its orders have numbers that exist once, so each action comes with a number of its own.
#[test]
fn our_own_service_in_axum_keeps_what_it_promises() {
    let home = tempfile::tempdir().expect("a directory");
    let mut service = Process::start(example("axum_orders").arg(home.path().join("orders.db")).arg("127.0.0.1:0"));
    let said = service.line();
    let url = said.strip_prefix("listening on ").expect("it says where").trim().to_owned();
    let stocked = Command::new("curl")
        .args(["-sS", "-f", "-X", "PUT", "-H", "Content-Type: application/json", "-d", "{\"stock\":100000}"])
        .arg(format!("{url}/items/pen"))
        .status();
    assert!(stocked.expect("curl runs").success());
    let url = format!("{url}/orders");
    let count = "python3 -c 'import sqlite3; print(sqlite3.connect(\"orders.db\").execute(\"SELECT count(*) FROM orders\").fetchone()[0])'";
    let body = "{\"number\":\"{{fresh}}\",\"item\":\"pen\",\"quantity\":2}";
    let asked = ["probe", &url, "--body", body, "--vary", "/quantity", "--id", "/number"];
    let output = run(&[&asked[..], &["--count-command", count, "--report", "json=axum.json"]].concat(), home.path());
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let found = verdicts(&home.path().join("axum.json"));
    assert!(found.values().filter(|verdict| *verdict == "\"conforms\"").count() > 33, "{said}");
    for (id, verdict) in found {
        assert!(!verdict.contains("deviates") && !verdict.contains("failed"), "{id}: {verdict}\n{said}");
    }
    service.signal(Signal::INT);
    assert!(service.end().success());
}

/// What was seen is what a caller goes by.
#[test]
fn a_sheet_is_a_profile_to_send_with() {
    let home = tempfile::tempdir().expect("a directory");
    let served = Served::start(&home.path().join("counterfoil.db"), &orders());
    let documented =
        "[documented.\"retention.span\"]\nvalue = \"24h\"\nfrom = \"our own setting\"\ndate = \"2026-12-01\"\n";
    std::fs::write(home.path().join("probe.toml"), documented).expect("a file");
    let (url, count) = (served.url("/orders"), served.url("/orders"));
    let asked = ["probe", &url, "--config", "probe.toml", "--body", "{\"quantity\":1}", "--count-url", &count];
    let seen = ["--count", "/count", "--case", "B", "--case", "C1", "--case", "D1", "--report", "sheet=sheet.toml"];
    let output = run(&[&asked[..], &seen[..]].concat(), home.path());
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let checked = run(&["profile", "check", "sheet.toml"], home.path());
    assert_eq!(checked.status.code(), Some(0), "{}", String::from_utf8_lossy(&checked.stderr));
    let send = ["send", "--profile", "sheet.toml", "--journal", "sqlite:journal.db", "--intent", "order-1"];
    let send = [&send[..], &["--json", "{\"quantity\":3}", &url]].concat();
    let (first, again) = (run(&send, home.path()), run(&send, home.path()));
    assert_eq!(
        (first.status.code(), again.status.code()),
        (Some(0), Some(0)),
        "{}",
        String::from_utf8_lossy(&first.stderr)
    );
    assert_eq!(first.stdout, again.stdout);
    let said = String::from_utf8_lossy(&first.stderr);
    assert!(!said.contains("assumed"), "the documented window is taken: {said}");

    let bare = orders();
    let asked =
        ["probe", &format!("{bare}/orders"), "--body", "{\"quantity\":1}", "--count-url", &bare, "--count", "/count"];
    run(&[&asked[..], &["--case", "B1", "--report", "sheet=bare.toml"]].concat(), home.path());
    let refused = run(&["profile", "check", "bare.toml"], home.path());
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(said.contains("field.replay.is: the target was not seen to keep keys"), "{said}");
}

#[test]
fn a_service_without_keys_is_seen() {
    let home = tempfile::tempdir().expect("a directory");
    let url = format!("{}/orders", orders());
    let asked = ["probe", &url, "--body", "{\"quantity\":1}", "--count-url", &url, "--count", "/count", "--case", "B1"];
    let output = run(&asked, home.path());
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("B1 seq/one-effect: deviates (critical)") && said.contains("left behind: 6 effects"),
        "{said}"
    );
}
