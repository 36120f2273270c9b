//! `receipts list`, `show` and `export`: what is shown, what is hidden, and where it is printed.

use crate::fixture::{Fixture, identity};

fn states(fixture: &Fixture, arguments: &[&str]) -> Vec<(String, String)> {
    let mut all = vec!["receipts", "list", "--json", "--show-key"];
    all.extend_from_slice(arguments);
    let run = fixture.run(&all);
    assert_eq!((run.code, run.err.as_str()), (0, ""), "{run:?}");
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    run.json().iter().map(|row| (text(&row["key"]), text(&row["state"]))).collect()
}

fn pairs(rows: &[(&str, &str)]) -> Vec<(String, String)> {
    rows.iter().map(|(key, state)| ((*key).to_owned(), (*state).to_owned())).collect()
}

#[tokio::test]
async fn states_as_of_now() {
    let fixture = Fixture::full().await;
    let (done, doubt, fresh) = (("done", "done"), ("doubt", "unknown"), ("fresh-doubt", "unknown"));
    let (running, old) = (("running", "running"), ("old", "absent"));
    assert_eq!(states(&fixture, &[]), pairs(&[done, doubt, fresh, running, old]));
    assert_eq!(states(&fixture, &["--state", "unknown"]), pairs(&[doubt, fresh]));
    assert_eq!(states(&fixture, &["--state", "running,absent"]), pairs(&[running, old]));
    assert_eq!(states(&fixture, &["--state", "lapsed"]), pairs(&[]));
    assert_eq!(states(&fixture, &["--older-than", "15m"]), pairs(&[]));
    assert_eq!(states(&fixture, &["--limit", "2"]), pairs(&[done, doubt]));
}

#[tokio::test]
async fn people_read_standard_error_and_no_key() {
    let fixture = Fixture::full().await;
    let listed = fixture.run(&["receipts", "list"]);
    assert_eq!((listed.code, listed.out.as_str()), (0, ""));
    let lines: Vec<&str> = listed.err.lines().collect();
    assert_eq!(lines.len(), 6, "{listed:?}");
    assert!(lines[0].trim_start().starts_with("DIGEST"), "{listed:?}");
    assert!(lines[1].contains(&identity("done").digest().to_string()), "{listed:?}");
    assert!(lines[1].contains("done") && lines[1].contains("201") && lines[1].contains("create-order"), "{listed:?}");
    assert!(lines[2].contains("unknown") && lines[2].contains("doubted"), "{listed:?}");
    assert!(!listed.err.contains("fresh-doubt") && !listed.err.contains('\u{1b}'), "{listed:?}");
    let keyed = fixture.run(&["receipts", "list", "--show-key", "--limit", "1"]);
    keyed.said(0, "there are more than 1");
    fixture.run(&["receipts", "list", "--state", "expired"]).said(0, "no such record");
}

#[tokio::test]
async fn one_record() {
    let fixture = Fixture::full().await;
    let digest = identity("done").digest();
    for name in ["done", &digest.to_string(), &digest.to_hex(), &digest.to_string()[..6]] {
        let shown = fixture.run(&["receipts", "show", name, "--json"]);
        let [row] = &shown.json()[..] else { panic!("{shown:?}") };
        assert_eq!((row["state"].as_str(), row["status"].as_u64()), (Some("done"), Some(201)), "{name}");
        assert_eq!(row["body"].as_str(), Some("{\"id\":1}"));
        assert_eq!(row["headers"][0][1].as_str(), Some("/orders/1"));
        assert_eq!((row["scope"]["principal"].as_str(), row["key"].as_str()), (Some("alice"), None));
    }
    let doubt = fixture.run(&["receipts", "show", "doubt"]);
    assert_eq!((doubt.code, doubt.out.as_str()), (0, ""));
    let version = fixture.version("doubt");
    for part in [
        "state        unknown (doubted) since".to_owned(),
        format!("receipts resolve {} --version {version} --happened result.json", identity("doubt").digest()),
        format!("--version {version} --did-not-happen --owner-stopped"),
    ] {
        assert!(doubt.err.contains(&part), "{part} in {}", doubt.err);
    }
    fixture.run(&["receipts", "show", "nothing"]).said(3, "no record has this key");
    // Three digits are too few to name a record by its digest.
    fixture.run(&["receipts", "show", &digest.to_string()[..3]]).said(3, "no record has this key");
}

#[tokio::test]
async fn export_is_complete() {
    let fixture = Fixture::full().await;
    let hidden = fixture.run(&["receipts", "export"]);
    assert_eq!((hidden.code, hidden.err.as_str()), (0, "5 records were exported\n"));
    let rows = hidden.json();
    assert_eq!(rows.len(), 5);
    assert!(rows.iter().all(|row| row.get("key").is_none()));
    assert_eq!(rows[0]["body"].as_str(), Some("{\"id\":1}"));
    let shown = fixture.run(&["receipts", "export", "--show-key"]);
    assert_eq!(shown.json()[2]["key"].as_str(), Some("fresh-doubt"));
}

#[test]
fn a_store_must_exist() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in [&["receipts", "list"][..], &["receipts", "sweep"], &["receipts", "quarantine", "--lift"]] {
        crate::command::run(folder.path(), arguments).said(1, "counterfoil migrate");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is made by looking");
    crate::command::run(folder.path(), &["receipts", "list", "--store", "memory:"]).said(2, "a memory belongs to");
    crate::command::run(folder.path(), &["migrate"]).said(0, "sqlite:counterfoil.db: made");
    crate::command::run(folder.path(), &["migrate"]).said(0, "already up to date");
    crate::command::run(folder.path(), &["receipts", "list"]).said(0, "no such record");
}
