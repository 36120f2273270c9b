//! The main line with `curl`: fresh, replay, conflict, the spellings of a key, and what passes unguarded.
//!
//! What does not belong here: crashes (`stops`), files (`files`), and clients that are programs (`python`).

use super::{
    curl::{Answer, Sent, curl, get, post},
    served::Served,
    upstream::Upstream,
};

fn post_body(url: &str, key: &str, body: &str) -> Answer {
    curl("POST", url, Sent { key, body, headers: &[] })
}

#[test]
fn a_key_names_one_action() {
    let home = tempfile::tempdir().expect("a directory");
    let upstream = Upstream::start();
    let served = Served::start(&home.path().join("counterfoil.db"), upstream.url());
    let url = served.url("/orders");

    let fresh = post_body(&url, "k-1", r#"{"item": "pen", "count": 1}"#);
    assert_eq!(fresh.is(201, "false").member("call"), "1");
    assert!(!fresh.header("idempotency-expires").is_empty(), "{fresh:?}");

    // The order of members says nothing; both spellings of the key are one key, parameters are ignored.
    for key in ["k-1", "\"k-1\"", "\"k-1\";since=2"] {
        let replayed = post_body(&url, key, r#"{"count": 1.0, "item": "pen"}"#);
        assert_eq!(replayed.is(201, "true").body, fresh.body, "{key}");
    }
    post_body(&url, "k-1", r#"{"item": "pen", "count": 2}"#).is_problem(422, "mismatch").is(422, "false");
    // Another path is another operation, another key another action.
    post_body(&served.url("/refunds"), "k-1", r#"{"item": "pen", "count": 1}"#).is(201, "false");
    post_body(&url, "k-2", r#"{"item": "pen", "count": 1}"#).is(201, "false");
    assert_eq!(upstream.calls(), 3);
    served.stop();
}

#[test]
fn what_is_not_guarded_says_so() {
    let home = tempfile::tempdir().expect("a directory");
    let upstream = Upstream::start();
    let served = Served::start(&home.path().join("counterfoil.db"), upstream.url());
    let url = served.url("/orders");

    // (method, key, what the answer says of its status)
    let rows = [
        ("GET", "k-1", "ignored"),
        ("GET", "", ""),
        ("PUT", "k-1", "ignored"),
        ("DELETE", "k-1", "ignored"),
        ("POST", "", ""),
    ];
    for (method, key, said) in rows {
        for _attempt in 0..2 {
            let answer = curl(method, &url, Sent { key, ..Sent::default() });
            assert_eq!((answer.status, answer.header("idempotency-status")), (201, said), "{method} {key}: {answer:?}");
            assert_eq!(answer.header("idempotent-replayed"), "", "{method} {key}: {answer:?}");
        }
    }
    assert_eq!(upstream.calls(), 2 * rows.len(), "all of it passes, each time");
    served.stop();
}

#[test]
fn what_is_malformed_never_reaches_the_service() {
    let home = tempfile::tempdir().expect("a directory");
    let upstream = Upstream::start();
    let served = Served::start(&home.path().join("counterfoil.db"), upstream.url());

    let (url, long) = (served.url("/orders"), "k".repeat(256));
    for key in ["\"k-1", "k-\u{e9}", long.as_str()] {
        post(&url, key).is_problem(400, "malformed-key");
    }
    let twice = Sent { key: "k-1", body: "{}", headers: &["Idempotency-Key: k-1"] };
    curl("POST", &url, twice).is_problem(400, "malformed-key");
    let large = home.path().join("large.json");
    std::fs::write(&large, "x".repeat(1 + (1 << 20))).expect("a file");
    post_body(&url, "k-1", &format!("@{}", large.display())).is_problem(413, "body-too-large");
    assert_eq!(upstream.calls(), 0);
    served.stop();
}

#[test]
fn the_admin_listener_tells_health_and_numbers() {
    let home = tempfile::tempdir().expect("a directory");
    let upstream = Upstream::start();
    let served = Served::start(&home.path().join("counterfoil.db"), upstream.url());
    post(&served.url("/orders"), "k-1").is(201, "false");
    post(&served.url("/orders"), "k-1").is(201, "true");

    assert_eq!(get(&served.admin_url("/healthz")).status, 200);
    assert_eq!(get(&served.admin_url("/readyz")).member("ready"), "true");
    let numbers = get(&served.admin_url("/metrics")).body;
    assert!(numbers.lines().any(|line| line == "counterfoil_records 1"), "{numbers}");
    assert!(!numbers.contains("k-1"), "no number holds a key: {numbers}");
    served.stop();
}
