//! A server that stops in order, and one that is killed in the middle of a request.
//!
//! What does not belong here: crashes at named points of the gate (`crash`).

use std::thread;

use rustix::process::Signal;

use super::{
    curl::{Sent, get, post, try_curl},
    served::{Served, in_doubt, receipts, try_receipts},
    upstream::Upstream,
};

/// How often something new is tried until the order to stop has taken hold.
const TRIES: usize = 100;

#[test]
fn sigterm_lets_what_runs_end_and_begins_nothing_new() {
    let home = tempfile::tempdir().expect("a directory");
    let store = home.path().join("counterfoil.db");
    let upstream = Upstream::start();
    let mut served = Served::start(&store, upstream.url());
    let held = served.url("/hold");
    let running = thread::spawn(move || post(&held, "k-running"));
    upstream.wait_held();

    served.process.signal(Signal::TERM);
    served.process.logs("stopping");
    assert_eq!(get(&served.admin_url("/readyz")).status, 503);
    let refused = (0..TRIES).find_map(|new| {
        let calls = upstream.calls();
        let answer = post(&served.url("/orders"), &format!("k-{new}"));
        (answer.status != 201).then_some((answer, calls))
    });
    let (refused, calls) = refused.expect("something new is refused");
    refused.is_problem(503, "too-many-running");
    assert!(!refused.header("retry-after").is_empty(), "{refused:?}");
    assert_eq!(upstream.calls(), calls, "what is refused never reaches the service");
    // What stands is still told.
    post(&served.url("/hold"), "k-running").is_problem(409, "in-progress");

    upstream.release();
    let answer = running.join().expect("it is answered");
    answer.is(201, "false");
    let status = served.process.end();
    assert!(status.success(), "{status}");

    let served = Served::start(&store, upstream.url());
    assert_eq!(post(&served.url("/hold"), "k-running").is(201, "true").body, answer.body);
    served.stop();
}

#[test]
fn sigkill_leaves_a_doubt_that_an_operator_settles() {
    let home = tempfile::tempdir().expect("a directory");
    let store = home.path().join("counterfoil.db");
    let upstream = Upstream::start();
    let mut served = Served::start(&store, upstream.url());
    let url = served.url("/hold");
    let cut = thread::spawn(move || try_curl("POST", &url, Sent { key: "k-1", body: "{}", headers: &[] }));
    upstream.wait_held();
    served.process.kill();
    assert!(cut.join().expect("curl ends").is_err(), "nobody answers");

    // Its lease is ended by the restart, and not only after it has lapsed.
    let served = Served::start(&store, upstream.url());
    let url = served.url("/hold");
    post(&url, "k-1").is_problem(409, "outcome-unknown");
    let doubts = in_doubt(&store);
    let [doubt] = doubts.as_slice() else { panic!("one is in doubt: {doubts:?}") };
    let text = |name: &str| doubt.get(name).and_then(|value| value.as_str()).unwrap_or_else(|| panic!("{doubt}"));
    assert_eq!((text("key"), text("operation")), ("k-1", "POST /hold"));

    let (digest, version) = (text("digest"), text("version"));
    let signed = ["--version", version, "--who", "ada", "--why", "asked the warehouse"];
    // What was sent may still arrive, so nobody can know yet that it did not happen.
    let early = try_receipts(&store, &[&["resolve", digest, "--did-not-happen"], &signed[..]].concat());
    assert_eq!(early.status.code(), Some(3), "{}", String::from_utf8_lossy(&early.stderr));

    let result = home.path().join("result.json");
    std::fs::write(&result, r#"{"status": 201, "headers": [["x-no", "1"]], "body": "made by hand"}"#).expect("a file");
    let result = result.to_str().expect("a path of text");
    receipts(&store, &[&["resolve", digest, "--happened", result], &signed[..]].concat());
    assert_eq!(post(&url, "k-1").is(201, "true").body, "made by hand");
    assert_eq!((in_doubt(&store).len(), upstream.calls()), (0, 1));
    let again = try_receipts(&store, &[&["resolve", digest, "--happened", result], &signed[..]].concat());
    assert_eq!(again.status.code(), Some(3), "settled once: {}", String::from_utf8_lossy(&again.stderr));
    served.stop();
}
