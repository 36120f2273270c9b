//! `counterfoil relay` on PostgreSQL, as applications in any language use it: what they recorded by the SQL function is sent
//! once it is committed, and what cannot be sent is kept.
//! Kills stand in `outbox_kills`.

use std::process::Command;
use std::thread;
use std::time::Duration;

use counterfoil_store::postgres::trial::Server;
use rustix::process::Signal;

use super::process::{Process, counterfoil};
use super::served::run;
use super::upstream::Upstream;

/// A relay of the outbox at `store`, once it runs.
pub(super) fn relay(store: &str) -> Process {
    let process = Process::start(Command::new(counterfoil()).args(["relay", "--store", store]));
    process.logs("relaying ");
    process
}

#[test]
fn what_sql_recorded_is_sent_once_it_is_committed() {
    let home = tempfile::tempdir().expect("a directory");
    let database = Server::shared().and_then(|server| server.empty()).expect("PostgreSQL starts");
    let migrated = run(&["migrate", "--store", &database.url()], home.path());
    assert!(migrated.status.success(), "{}", String::from_utf8_lossy(&migrated.stderr));
    let upstream = Upstream::start();
    let ask = |sql: &str| database.psql(&[sql]).expect("the database answers");
    let record = |name: &str, profile: &str| {
        let (url, headers) = (upstream.url(), r#"[["content-type", "application/json"]]"#);
        format!(
            "SELECT counterfoil.record_intent('{name}', NULL, 'POST', '{url}/mails', '{headers}', '{{}}', '{profile}')"
        )
    };
    let mut first = relay(&database.url());
    // With no right but this function, and a secret of the relay's own environment.
    let stolen =
        record("stolen", "ietf").replace(r#""application/json"]"#, r#""application/json"], ["x-token", "env:PATH"]"#);
    assert_eq!(ask(&stolen), "t");
    first.logs("`env:PATH` is not among what may be sent to or read here");
    ask("DELETE FROM counterfoil.outbox");
    ask(&format!("BEGIN; {}; ROLLBACK", record("never", "ietf")));
    assert_eq!(ask(&record("mail-1", "ietf")), "t");
    assert_eq!(ask(&record("mail-2", "unheard-of")), "t");
    first.logs("it cannot be sent and is kept");
    while ask("SELECT count(*) FROM counterfoil.intent WHERE due_at IS NULL") != "1" {
        thread::park_timeout(Duration::from_millis(50));
    }
    assert_eq!((upstream.calls(), ask(&record("mail-1", "ietf")).as_str()), (1, "f"));
    first.signal(Signal::TERM);
    assert!(first.end().success());

    // Another relay tries again what could not be sent, and tells it again.
    let mut second = relay(&database.url());
    second.logs("it cannot be sent and is kept");
    second.signal(Signal::TERM);
    assert!(second.end().success());
    let kept = ask("SELECT string_agg(name || ': ' || refused, '') FROM counterfoil.outbox");
    assert!(kept.starts_with("mail-2: there is no profile `unheard-of`"), "{kept}");
    assert_eq!(upstream.calls(), 1);
}

/// What a person sees of an outbox in a database, and settles there.
#[test]
fn an_outbox_in_postgresql_is_looked_after_as_a_journal_is() {
    let home = tempfile::tempdir().expect("a directory");
    let database = Server::shared().and_then(|server| server.empty()).expect("PostgreSQL starts");
    let place = database.url();
    let told = |words: &[&str]| {
        let output = run(&[words, &["--journal", &place]].concat(), home.path());
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    assert_eq!(run(&["migrate", "--store", &place], home.path()).status.code(), Some(0));
    let record = |name: &str, profile: &str| {
        let sql = format!(
            "SELECT counterfoil.record_intent('{name}', NULL, 'POST', 'http://127.0.0.1:9/mails', '[]', '{{}}', '{profile}')"
        );
        assert_eq!(database.psql(&[&sql]).expect("the database answers"), "t");
    };
    record("mail-1", "ietf");
    record("mail-2", "unheard-of");
    let mut relay = relay(&place);
    relay.logs("it cannot be sent and is kept");
    relay.logs("not done so far");
    relay.signal(Signal::TERM);
    assert!(relay.end().success());

    let (code, _, listed) = told(&["intents", "list"]);
    assert_eq!(code, Some(0), "{listed}");
    let line =
        |name: &str| listed.lines().find(|line| line.trim_start().starts_with(name)).unwrap_or_default().to_owned();
    assert!(line("mail-1").contains("waiting"), "{listed}");
    assert!(line("mail-2").contains("kept") && listed.contains("there is no profile `unheard-of`"), "{listed}");
    let (_, exported, _) = told(&["intents", "export"]);
    assert_eq!(exported.lines().count(), 2, "{exported}");
    let shown: serde_json::Value =
        serde_json::from_str(&told(&["intents", "show", "mail-1", "--json"]).1).expect("it is shown");
    let version = shown["version"].to_string();
    let word =
        ["intents", "resolve", "mail-1", "--did-not-happen", "--who", "ann", "--why", "nobody listens", "--version"];
    let (code, _, said) = told(&[&word[..], &[&version]].concat());
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(
        database.psql(&["SELECT count(*) FROM counterfoil.intent WHERE due_at IS NULL"]).expect("an answer"),
        "1"
    );
}
