//! nginx as the caller: what it passes on, and what it sends again on its own.
//!
//! What does not belong here: nginx as the service (`nginx_behind`).

use std::{
    io::{Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    thread,
};

use super::{
    curl::{Sent, curl, get, post},
    nginx::Nginx,
    served::Served,
    upstream::Upstream,
};

/// Duplicates wait for the answer, so that a retry needs no second retry.
const WAIT: &str = "defaults.duplicates = \"wait 30s\"\n";
/// How often a client asks again while nginx says that nobody answers in time.
const TRIES: usize = 100;
/// nginx sends again what may have been done: the setting that its manual warns of.
const AGAIN: &str = "proxy_next_upstream error timeout http_502 http_503 http_504 non_idempotent;";

/// Where nginx sends to, in this order at first.
fn group(urls: &[String]) -> String {
    let servers = urls.iter().map(|url| format!("server {} max_fails=0;", url.trim_start_matches("http://")));
    format!("upstream guarded {{ {} keepalive 4; }}", servers.collect::<String>())
}

#[test]
fn headers_and_statuses_come_through() {
    let home = tempfile::tempdir().expect("a directory");
    let upstream = Upstream::start();
    let served = Served::start(&home.path().join("counterfoil.db"), upstream.url());
    let pass = r#"location / { proxy_pass http://guarded; proxy_http_version 1.1; proxy_set_header Connection ""; }"#;
    let nginx = Nginx::start(&group(&[served.url("")]), pass);
    let url = nginx.url("/orders");

    let fresh = post(&url, "\"k-1\"");
    assert_eq!(fresh.is(201, "false").member("call"), "1");
    let replayed = post(&url, "k-1");
    assert_eq!(replayed.is(201, "true").body, fresh.body);
    assert_eq!(replayed.header("idempotency-expires"), fresh.header("idempotency-expires"));
    assert!(!fresh.header("idempotency-expires").is_empty(), "{fresh:?}");
    let changed = Sent { key: "k-1", body: r#"{"item": "ink"}"#, headers: &[] };
    curl("POST", &url, changed).is_problem(422, "mismatch").is(422, "false");
    post(&url, "\"k-1").is_problem(400, "malformed-key");
    let ignored = curl("PUT", &url, Sent { key: "k-1", ..Sent::default() });
    assert_eq!((ignored.status, ignored.header("idempotency-status")), (201, "ignored"), "{ignored:?}");
    assert_eq!((get(&url).status, upstream.calls()), (201, 3));

    let held = nginx.url("/hold");
    let running = thread::spawn(move || post(&held, "k-1"));
    upstream.wait_held();
    let early = post(&nginx.url("/hold"), "k-1");
    assert!(!early.is_problem(409, "in-progress").header("retry-after").is_empty(), "{early:?}");
    upstream.release();
    running.join().expect("it is answered").is(201, "false");
    served.stop();
}

/// Passes everything on to `to`, whose first answer it loses.
fn loses_the_first(to: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = format!("http://{}", listener.local_addr().expect("it is bound"));
    thread::spawn(move || {
        for (nth, stream) in listener.incoming().map_while(Result::ok).enumerate() {
            let answer = exchange(&stream, to.trim_start_matches("http://")).expect("it is answered");
            if nth > 0 {
                (&stream).write_all(&answer).expect("nginx reads the answer");
            }
            // What copies from it still holds it.
            stream.shutdown(Shutdown::Both).expect("it is open");
        }
    });
    address
}

/// The whole answer to what comes: nginx asks for it to be the only one of its connection.
fn exchange(from: &TcpStream, to: &str) -> std::io::Result<Vec<u8>> {
    let (mut sent, mut answer) = (from.try_clone()?, Vec::new());
    let mut behind = TcpStream::connect(to)?;
    let mut copy = behind.try_clone()?;
    thread::spawn(move || std::io::copy(&mut sent, &mut copy));
    behind.read_to_end(&mut answer)?;
    Ok(answer)
}

#[test]
fn nginx_sends_again_what_was_done_and_passes_the_replay_on() {
    let home = tempfile::tempdir().expect("a directory");
    let upstream = Upstream::start();
    let served = Served::start(&home.path().join("counterfoil.db"), upstream.url());
    let servers = [loses_the_first(served.url("")), served.url("")];
    let nginx = Nginx::start(&group(&servers), &format!("location / {{ proxy_pass http://guarded; {AGAIN} }}"));

    let answer = post(&nginx.url("/orders"), "k-1");
    assert_eq!(answer.is(201, "true").member("call"), "1");
    assert_eq!(nginx.asked(), ["POST /orders 201 502, 201"], "nginx sent it twice");
    assert_eq!(upstream.calls(), 1);
    served.stop();
}

#[test]
fn nginx_sends_again_what_runs_and_nothing_runs_twice() {
    let home = tempfile::tempdir().expect("a directory");
    let upstream = Upstream::start();
    let servers = [(); 2].map(|()| Served::configured(home.path(), upstream.url(), WAIT));
    let pass = format!("location / {{ proxy_pass http://guarded; proxy_read_timeout 1s; {AGAIN} }}");
    let nginx = Nginx::start(&group(&[servers[0].url(""), servers[1].url("")]), &pass);
    let url = nginx.url("/hold");

    // Both servers are asked, and both wait for the one action.
    assert_eq!(post(&url, "k-1").status, 504);
    assert_eq!(nginx.asked(), ["POST /hold 504 504, 504"], "nginx sent it twice");
    upstream.wait_held();
    assert_eq!(upstream.calls(), 1);
    upstream.release();
    let retried = (0..TRIES).map(|_| post(&url, "k-1")).find(|answer| answer.status != 504).expect("an answer in time");
    assert_eq!(retried.is(201, "true").member("call"), "1");
    assert_eq!(upstream.calls(), 1);
    for served in servers {
        served.stop();
    }
}

#[test]
fn a_client_that_hangs_up_gets_its_answer_later() {
    let home = tempfile::tempdir().expect("a directory");
    let upstream = Upstream::start();
    let served = Served::configured(home.path(), upstream.url(), WAIT);
    let nginx =
        Nginx::start(&group(&[served.url("")]), &format!("location / {{ proxy_pass http://guarded; {AGAIN} }}"));
    let url = nginx.url("/hold");

    let mut client = TcpStream::connect(nginx.url("").trim_start_matches("http://")).expect("nginx listens");
    let lines = ["POST /hold HTTP/1.1", "Host: shop", "Idempotency-Key: k-1", "Content-Type: application/json"];
    client.write_all(format!("{}\r\nContent-Length: 2\r\n\r\n{{}}", lines.join("\r\n")).as_bytes()).expect("it reads");
    upstream.wait_held();
    drop(client);
    assert_eq!(nginx.done(), "POST /hold 499 -", "nginx saw it go and let go itself");

    upstream.release();
    assert_eq!(post(&url, "k-1").is(201, "true").member("call"), "1");
    assert_eq!(upstream.calls(), 1);
    served.stop();
}
