//! nginx as the service: answers of its own, and what it says of a service behind it.
//!
//! What does not belong here: nginx as the caller (`nginx_front`).

use std::thread;

use super::{
    curl::{Answer, Sent, curl, post},
    nginx::Nginx,
    served::Served,
    upstream::Upstream,
};

/// How many actions are sent one after the other.
const ACTIONS: usize = 10;

fn served(home: &tempfile::TempDir, nginx: &Nginx) -> Served {
    Served::start(&home.path().join("counterfoil.db"), &nginx.url(""))
}

#[test]
fn an_answer_of_nginx_is_replayed() {
    let home = tempfile::tempdir().expect("a directory");
    let nginx = Nginx::start(
        "",
        r#"location / {
            add_header Location /orders/7;
            add_header ETag '"7"';
            add_header Link "</orders>; rel=collection";
            add_header Set-Cookie seen=1;
            add_header X-Request-Id $request_id;
            return 201 '{"made": "$request_id"}';
        }"#,
    );
    let served = served(&home, &nginx);
    let url = served.url("/orders");
    let fresh = post(&url, "k-1");
    let replayed = post(&url, "k-1");
    assert_eq!(fresh.is(201, "false").body, replayed.is(201, "true").body);
    for (name, value) in [
        ("Location", "/orders/7"),
        ("ETag", "\"7\""),
        ("Link", "</orders>; rel=collection"),
        ("Content-Type", "application/json"),
    ] {
        assert_eq!((fresh.header(name), replayed.header(name)), (value, value), "{name}: {fresh:?} {replayed:?}");
    }
    for name in ["Set-Cookie", "X-Request-Id", "Server"] {
        assert!(!fresh.header(name).is_empty() && replayed.header(name).is_empty(), "{name}: {fresh:?} {replayed:?}");
    }

    // nginx answers before it has read what is sent.
    let large = home.path().join("large.json");
    std::fs::write(&large, format!("\"{}\"", "x".repeat(1_000_000))).expect("a file");
    let large = format!("@{}", large.display());
    let send = || curl("POST", &url, Sent { key: "k-2", body: &large, headers: &["Expect:"] });
    let fresh = send();
    assert_eq!(fresh.is(201, "false").body, send().is(201, "true").body);
    served.stop();
}

#[test]
fn a_service_behind_nginx_acts_once() {
    let home = tempfile::tempdir().expect("a directory");
    let upstream = Upstream::start();
    // It closes each connection after the second answer.
    let nginx = Nginx::start("keepalive_requests 2;", &format!("location / {{ proxy_pass {}; }}", upstream.url()));
    let served = served(&home, &nginx);
    for action in 1..=ACTIONS {
        let key = format!("k-{action}");
        let fresh = post(&served.url("/orders"), &key);
        assert_eq!(fresh.is(201, "false").member("call"), action.to_string());
        assert_eq!(post(&served.url("/orders"), &key).is(201, "true").body, fresh.body);
    }

    let url = served.url("/hold");
    let running = thread::spawn(move || post(&url, "k-1"));
    upstream.wait_held();
    post(&served.url("/hold"), "k-1").is_problem(409, "in-progress");
    upstream.release();
    let fresh = running.join().expect("it is answered");
    assert_eq!(fresh.is(201, "false").body, post(&served.url("/hold"), "k-1").is(201, "true").body);
    assert_eq!(upstream.calls(), ACTIONS + 1);
    assert_eq!(nginx.asked().len(), ACTIONS + 1);
    served.stop();
}

#[test]
fn what_nginx_says_for_a_service_that_fails_is_doubt() {
    let home = tempfile::tempdir().expect("a directory");
    let upstream = Upstream::start();
    let nginx = Nginx::start(
        "limit_req_zone all zone=few:32k rate=1r/m;",
        &format!(
            "location /gone {{ proxy_pass http://unix:{}:/; }}
            location /slow {{ proxy_pass {}/hold; proxy_read_timeout 1s; }}
            location /small {{ client_max_body_size 1; }}
            location /few {{ limit_req zone=few; limit_req_status 429; proxy_pass {}; }}",
            home.path().join("none").display(),
            upstream.url(),
            upstream.url()
        ),
    );
    let served = served(&home, &nginx);
    let ask = |path: &str, key: &str| post(&served.url(path), key);
    let doubt = |answer: &Answer, status: u16| {
        answer.is_problem(status, "outcome-unknown");
    };

    // Nobody but nginx knows whether anything was sent on.
    doubt(&ask("/gone", "k-1"), 502);
    doubt(&ask("/gone", "k-1"), 409);
    doubt(&ask("/slow", "k-1"), 504);
    doubt(&ask("/slow", "k-1"), 409);
    upstream.wait_held();
    assert_eq!(upstream.calls(), 1, "the service acted, and will not be asked again");
    upstream.release();
    // What it refuses has certainly not been done, and the key is free.
    ask("/small", "k-1").is(413, "false");
    ask("/small", "k-1").is(413, "false");
    ask("/few", "k-1").is(201, "false");
    ask("/few", "k-2").is(429, "false");
    ask("/few", "k-2").is(429, "false");
    ask("/few", "k-1").is(201, "true");
    let asked = nginx.asked();
    let wanted =
        ["/gone 502 502", "/slow 504 504", "/small 413 -", "/small 413 -", "/few 201 201", "/few 429 -", "/few 429 -"];
    assert_eq!(asked, wanted.map(|line| format!("POST {line}")));
    served.stop();
}
