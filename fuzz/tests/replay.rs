//! Every input of the corpus holds, with a plain `cargo test`: the seeds, and what a search found once. And the
//! properties can fail: faults planted in what they look at are seen.
//!
//! What does not belong here: tests of what was mended, which stand in the crate that was at fault.
#![allow(clippy::unwrap_used, clippy::panic, reason = "all of this is tests, helpers included")]
#![allow(clippy::print_stdout, reason = "a failure is about the input that was named last")]

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

#[path = "../targets/mod.rs"]
mod targets;

use targets::TARGETS;
use targets::listener::{SETTINGS, played};
use targets::upstream::judge;

fn corpus(target: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    let entries = fs::read_dir(folder).unwrap();
    let mut inputs: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    inputs.sort();
    inputs
}

#[test]
fn the_corpus_holds() {
    for (target, check) in TARGETS {
        let inputs = corpus(target);
        assert!(inputs.len() >= 5, "{target} has seeds");
        for input in inputs {
            println!("{}", input.display());
            check(&fs::read(&input).unwrap());
        }
    }
}

#[test]
fn the_script_knows_every_target() {
    let script = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("run")).unwrap();
    let names = TARGETS.map(|(name, _)| name).join(" ");
    assert!(script.contains(&format!("targets=({names})")), "{names}");
    let folders = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")).unwrap();
    assert_eq!(folders.count(), TARGETS.len(), "a folder without a target is never replayed");
}

fn seed(name: &str) -> Vec<u8> {
    let path = corpus("listener").into_iter().find(|path| path.ends_with(name)).unwrap();
    fs::read(path).unwrap()
}

/// Statuses of the answers on the first and the last connection, and whether the last was replayed.
async fn statuses(name: &str) -> ([Vec<String>; 2], bool) {
    let [first, _, third] = played(SETTINGS, &seed(name)).await.unwrap();
    let read = |answer: &[u8]| {
        let text = String::from_utf8_lossy(answer).into_owned();
        text.lines().filter_map(|line| Some(line.split("HTTP/1.1 ").nth(1)?.get(..3)?.to_owned())).collect::<Vec<_>>()
    };
    let replayed = String::from_utf8_lossy(&third).contains("idempotent-replayed: true");
    ([read(&first), read(&third)], replayed)
}

/// The seeds reach what they are for, or the listener's properties would hold of nothing.
#[tokio::test(start_paused = true)]
async fn the_listeners_seeds_get_through() {
    let rows: [(&str, &[&str], &[&str], bool); 6] = [
        ("order", &["201"], &["201"], true),
        ("pipelined", &["201", "201", "422", "201"], &["201", "201", "422", "201"], true),
        ("chunked", &["201"], &["201"], true),
        ("unguarded", &["201", "201"], &["201", "201"], false),
        ("two-keys", &["400"], &["400"], false),
        ("cut", &["400"], &["400"], false),
    ];
    for (name, first, third, replayed) in rows {
        let expected = [first, third].map(|statuses| statuses.iter().map(|status| (*status).to_owned()).collect());
        assert_eq!(statuses(name).await, (expected, replayed), "{name}");
    }
}

/// Planted: a server that guards another route lets the action through on every connection, and that is seen.
#[tokio::test(start_paused = true)]
#[should_panic(expected = "reached the upstream more than once")]
async fn an_action_that_comes_twice_is_seen() {
    let elsewhere = SETTINGS.replace("POST /orders", "POST /elsewhere");
    drop(played(&elsewhere, &seed("order")).await);
}

#[test]
fn the_upstream_sees_what_it_should_never_be_sent() {
    let address = SocketAddr::from(([127, 0, 0, 1], 80));
    let fault = |request: &str| judge(request.replace("HOST", "host: 127.0.0.1:80").as_bytes(), address).err();
    let rows = [
        ("POST /orders HTTP/1.1\r\nHOST\r\nidempotency-key: k\r\ncontent-length: 2\r\n\r\n{}", None),
        ("POST /a HTTP/1.1\r\nHOST\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", None),
        ("POST  /a HTTP/1.1\r\nHOST\r\n\r\n", Some("a malformed request line")),
        ("POST /a HTTP/1.0\r\nHOST\r\n\r\n", Some("a malformed request line")),
        ("POST /a HTTP/1.1\r\nhost: other\r\n\r\n", Some("not exactly one Host, ours")),
        ("POST /a HTTP/1.1\r\nHOST\r\nHOST\r\n\r\n", Some("not exactly one Host, ours")),
        ("POST /a HTTP/1.1\r\nHOST\r\nx: 1\r\n 2\r\n\r\n", Some("a header line without a colon")),
        ("POST /a HTTP/1.1\r\nHOST\r\nx: 1\r\n a: 2\r\n\r\n", Some("a malformed header name, or a folded line")),
        ("POST /a HTTP/1.1\r\nHOST\r\nx: a\rb\r\n\r\n", Some("a control character in a header")),
        ("POST /a HTTP/1.1\r\nHOST\r\nx: a\0\r\n\r\n", Some("a NUL in the header")),
        ("POST /a HTTP/1.1\r\nHOST\r\ncontent-length: +1\r\n\r\n", Some("a Content-Length that is no number")),
        ("POST /a HTTP/1.1\r\nHOST\r\ncontent-length: 1\r\ncontent-length: 1\r\n\r\n", Some("Content-Length twice")),
        ("POST /a HTTP/1.1\r\nHOST\r\ntransfer-encoding: x\r\n\r\n", Some("an unknown Transfer-Encoding")),
        (
            "POST /a HTTP/1.1\r\nHOST\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n",
            Some("both Content-Length and Transfer-Encoding"),
        ),
        ("POST /a HTTP/1.1\r\nHOST\r\ntransfer-encoding: chunked\r\n\r\nz\r\n", Some("a chunk without its size")),
        (
            "POST /a HTTP/1.1\r\nHOST\r\ntransfer-encoding: chunked\r\n\r\n1\r\nabc",
            Some("a chunk longer than its size"),
        ),
        ("POST /%6frders?a HTTP/1.1\r\nHOST\r\n\r\n", Some("an action without the key that it needs")),
        ("PATCH /orders/1 HTTP/1.1\r\nHOST\r\nidempotency-key: \"\r\n\r\n", Some("an action with a malformed key")),
    ];
    for (request, expected) in rows {
        assert_eq!(fault(request), expected, "{request}");
    }
}
