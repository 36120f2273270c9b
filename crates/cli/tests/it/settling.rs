//! `receipts resolve`: what is accepted, what is refused with its reason, and what a retry gets then.

use crate::command::run_with;
use crate::fixture::Fixture;

const RESULT: &str = r#"{"status":201,"headers":[["location","/orders/7"]],"body":"seven"}"#;
const SIGNED: [&str; 4] = ["--who", "ann", "--why", "asked the bank"];

fn resolve(fixture: &Fixture, key: &str, version: &str, more: &[&str]) -> crate::command::Run {
    let mut arguments = vec!["receipts", "resolve", key, "--version", version];
    arguments.extend_from_slice(more);
    arguments.extend_from_slice(&SIGNED);
    run_with(&fixture.path(), &arguments, RESULT, &[])
}

#[tokio::test]
async fn it_happened() {
    let fixture = Fixture::full().await;
    let version = fixture.version("doubt");
    resolve(&fixture, "doubt", &version, &["--happened", "-"]).said(0, "it happened; a retry gets status 201 for 1d");
    let shown = fixture.run(&["receipts", "show", "doubt", "--json"]).json().remove(0);
    assert_eq!((shown["state"].as_str(), shown["author"].as_str()), (Some("done"), Some("operator")));
    assert_eq!((shown["body"].as_str(), shown["headers"][0][1].as_str()), (Some("seven"), Some("/orders/7")));
    let note = &shown["history"][0];
    assert_eq!(
        (note["kind"].as_str(), note["who"].as_str(), note["why"].as_str()),
        (Some("resolved-happened"), Some("ann"), Some("asked the bank"))
    );
    resolve(&fixture, "doubt", &fixture.version("doubt"), &["--happened", "-"]).said(3, "it is done already");
}

#[tokio::test]
async fn it_did_not_happen() {
    let fixture = Fixture::full().await;
    let version = fixture.version("doubt");
    // Its owner, this process, still lives.
    resolve(&fixture, "doubt", &version, &["--did-not-happen"]).said(3, "then say --owner-stopped");
    let stopped = ["--did-not-happen", "--owner-stopped"];
    resolve(&fixture, "doubt", &version, &stopped).said(0, "it did not happen; the next attempt runs");
    fixture.run(&["receipts", "show", "doubt"]).said(3, "no record has this key");
}

#[tokio::test]
async fn the_owner_says_when() {
    let fixture = Fixture::full().await;
    let version = fixture.version("fresh-doubt");
    resolve(&fixture, "fresh-doubt", &version, &["--happened", "-"]).said(3, "say --owner-stopped, or wait until 20");
    resolve(&fixture, "fresh-doubt", &version, &["--did-not-happen", "--owner-stopped"])
        .said(3, "may still arrive: wait until 20");
    resolve(&fixture, "fresh-doubt", &version, &["--happened", "-", "--owner-stopped", "--retention", "7d"])
        .said(0, "for 7d");
    let version = fixture.version("running");
    resolve(&fixture, "running", &version, &["--happened", "-"]).said(3, "its owner renewed the lease");
    let version = fixture.version("old");
    resolve(&fixture, "old", &version, &["--happened", "-"]).said(3, "its receipt has expired");
}

#[tokio::test]
async fn versions() {
    let fixture = Fixture::full().await;
    let version = fixture.version("doubt");
    let (number, lease) = version.split_once(':').unwrap();
    let other: String = lease.chars().rev().collect();
    resolve(&fixture, "doubt", "9", &["--happened", "-"]).said(3, "the record changed since you looked");
    resolve(&fixture, "doubt", &format!("{number}:{other}"), &["--happened", "-"])
        .said(3, &format!("at version {version} now"));
    resolve(&fixture, "doubt", "x", &["--happened", "-"]).said(2, "is no version");
    resolve(&fixture, "doubt", "1:zz", &["--happened", "-"]).said(2, "4 to 32 hexadecimal digits");
    resolve(&fixture, "nothing", "1", &["--happened", "-"]).said(3, "no record has this key");
    resolve(&fixture, "doubt", number, &["--happened", "-"]).said(0, "it happened");
}

#[tokio::test]
async fn results_from_files() {
    let fixture = Fixture::full().await;
    let version = fixture.version("doubt");
    resolve(&fixture, "doubt", &version, &["--happened", "absent.json"]).said(2, "--happened absent.json:");
    let path = fixture.path().join("result.json");
    std::fs::write(&path, "{\"status\": 99, \"extra\": 1}").unwrap();
    let refused = resolve(&fixture, "doubt", &version, &["--happened", "result.json"]);
    refused.said(2, "extra: unknown; accepted: status, headers, body, body_base64; status: accepted:");
    std::fs::write(&path, "{\"status\": 201}").unwrap();
    resolve(&fixture, "doubt", &version, &["--happened", "result.json"]).said(0, "it happened");
    fixture.run(&["receipts", "show", "doubt"]).said(0, "body not kept, written by the operator");
}

/// The operation's own retention is used where the configuration is named.
#[tokio::test]
async fn retention_of_the_operation() {
    let fixture = Fixture::full().await;
    let text = "upstream = \"http://127.0.0.1:9\"\nprincipal = { from = \"none\" }\n[[operation]]\nname = \"create-order\"\nmatch = \"POST /orders\"\nretention = \"3d\"\n";
    std::fs::write(fixture.path().join("c.toml"), text).unwrap();
    let version = fixture.version("doubt");
    resolve(&fixture, "doubt", &version, &["--happened", "-", "--config", "c.toml"]).said(0, "for 3d");
}
