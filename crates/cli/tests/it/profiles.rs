//! `profile`: what is built in, a file of one's own, and what a service publishes.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;

use serde_json::{Value, json};

use crate::command::run;

#[test]
fn what_is_listed_is_shown_and_is_good() {
    let folder = tempfile::tempdir().unwrap();
    let listed = run(folder.path(), &["profile", "list", "--json"]);
    let rows = listed.json();
    assert_eq!((listed.code, rows.len()), (0, 15), "{listed:?}");
    for row in rows {
        let id = row["id"].as_str().unwrap();
        let shown = run(folder.path(), &["profile", "show", id]);
        assert_eq!(shown.code, 0, "{shown:?}");
        std::fs::write(folder.path().join("own.toml"), shown.out).unwrap();
        run(folder.path(), &["profile", "check", "own.toml"]).said(0, &format!("profile `{id}`"));
    }
    run(folder.path(), &["profile", "show", "strype"]).said(2, "`counterfoil profile list` shows");
    std::fs::write(folder.path().join("bad.toml"), "id = \"own\"\nversion = 1\n[key]\nheader = \"k\"\nlong = 3\n")
        .unwrap();
    let bad = run(folder.path(), &["profile", "check", "bad.toml"]);
    bad.said(2, "title: missing");
    bad.said(2, "key.long: unknown setting");
    bad.said(2, "a promise without a source is a guess");
}

fn promise(name: &str, pattern: &str, seconds: u64) -> Value {
    json!({
        "name": name,
        "match": pattern,
        "key": {
            "required": true,
            "carriers": [{ "header": "Idempotency-Key", "first_sent": null }],
            "spellings": ["quoted", "bare"],
            "length_max": 255,
        },
        "scope": ["account"],
        "retention": { "seconds": seconds, "from": "completion" },
        "after_expiry": { "then": "refused", "seconds": 2592000 },
    })
}

fn document(contract: u32) -> Value {
    json!({
        "contract": contract,
        "operations": [promise("create-order", "POST /orders", 86400), promise("refund", "PUT /refunds/{id}", 3600)],
        "unlisted": { "guarded": false },
        "problem_documents": { "media_type": "application/problem+json", "type_prefix": "urn:counterfoil:problem:" },
    })
}

/// A service that gives one answer to one request at its well-known place, and 404 elsewhere.
fn service(document: &Value) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let said = document.to_string();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut first = String::new();
        BufReader::new(&stream).read_line(&mut first).unwrap();
        let status = if first.starts_with("GET /.well-known/idempotency ") { "200 OK" } else { "404 Not Found" };
        write!(stream, "HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{said}", said.len()).unwrap();
    });
    url
}

#[test]
fn what_a_service_publishes_becomes_a_profile() {
    let folder = tempfile::tempdir().unwrap();
    let fetch = |contract: u32, path: &str, more: &[&str]| {
        let url = format!("{}{path}", service(&document(contract)));
        run(folder.path(), &[&["profile", "fetch", &url], more].concat())
    };
    for (more, span, id) in
        [(&[][..], "3600000ms", "127-0-0-1"), (&["--operation", "create-order", "--id", "shop"], "86400000ms", "shop")]
    {
        let fetched = fetch(1, "", more);
        assert_eq!(fetched.code, 0, "{fetched:?}");
        let window = format!("[window]\nspan = \"{span}\"\nfrom = \"completed\"\nafter = \"refused\"\n");
        assert!(fetched.out.contains(&window) && fetched.out.contains(&format!("id = \"{id}\"\n")), "{fetched:?}");
        assert!(fetched.out.contains("scope = [\"account\"]\n") && fetched.out.contains("\"POST\""), "{fetched:?}");
        std::fs::write(folder.path().join("own.toml"), fetched.out).unwrap();
        run(folder.path(), &["profile", "check", "own.toml"]).said(0, "is good");
    }
    fetch(1, "", &["--operation", "refunds"]).said(3, "but: create-order, refund");
    fetch(1, "/contract", &[]).said(3, "status 404");
    fetch(2, "", &[]).said(3, "of another form");
}
