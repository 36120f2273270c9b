//! An application of its own process couples by permit and goes wrong in every way: what the caller is answered, what a
//! retry gets, and how often the effect happened. With `hold` it never happens without its receipt.
//! What takes several proxies, or a transaction that stays open, stands in `coupled_open`.

use std::process::Command;
use std::sync::Arc;

use counterfoil_store::postgres::trial::{Database, Server};
use tempfile::TempDir;

use super::curl::{Answer, Sent, curl, post};
use super::process::Process;
use super::python::{program, python};
use super::served::{Served, run};

/// Two tests may make the role at once: that is the unique violation.
const TABLES: [&str; 5] = [
    "CREATE TABLE effects (key text NOT NULL)",
    "DO $$ BEGIN CREATE ROLE app LOGIN; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$",
    "GRANT SELECT, INSERT ON effects TO app",
    "GRANT USAGE ON SCHEMA counterfoil TO app",
    "GRANT EXECUTE ON FUNCTION counterfoil.hold(text), counterfoil.settle(text, integer, jsonb, bytea) TO app",
];

/// A database with the store, the application with a role of its own in it, and proxies.
pub(super) struct World {
    pub(super) home: TempDir,
    pub(super) database: Database,
    pub(super) app: Process,
    pub(super) app_url: String,
}

impl World {
    pub(super) fn start() -> Self {
        Self::on(&Server::shared().expect("PostgreSQL starts"))
    }

    pub(super) fn on(server: &Arc<Server>) -> Self {
        let home = tempfile::tempdir().expect("a directory");
        let database = server.empty().expect("a database");
        let migrated = run(&["migrate", "--store", &database.url()], home.path());
        assert!(migrated.status.success(), "{}", String::from_utf8_lossy(&migrated.stderr));
        database.psql(&TABLES).expect("the application's table and role");
        let mut command: Command = python();
        let url = database.url().replace("postgres@", "app@");
        let app = Process::start(command.arg(program("coupled_app.py")).env("DATABASE_URL", url));
        let app_url = app.line();
        Self { home, database, app, app_url }
    }

    /// A proxy in front of the application: every case is an operation on `terms`.
    pub(super) fn proxy(&self, terms: &str) -> Served {
        let config = self.home.path().join("counterfoil.toml");
        let text = format!(
            "upstream = \"{}\"\nstore = \"{}\"\nprincipal.from = \"none\"\n[defaults]\neffect = \"coupled\"\n{terms}\n\
             [[operation]]\nname = \"case\"\nmatch = \"POST /{{case}}/{{how}}\"\n",
            self.app_url,
            self.database.url()
        );
        std::fs::write(&config, text).expect("a file");
        Served::with(&["--config", config.to_str().expect("a path of text")], None)
    }

    /// Asks for `case`, its key being its own name and `how`.
    pub(super) fn ask(&self, proxy: &Served, case: &str, how: &str) -> Answer {
        let body = format!("{{\"key\": \"{case}-{how}\"}}");
        self.ask_with(proxy, case, how, &body)
    }

    fn ask_with(&self, proxy: &Served, case: &str, how: &str, body: &str) -> Answer {
        let key = format!("{case}-{how}");
        curl("POST", &proxy.url(&format!("/{case}/{how}")), Sent { key: &key, body, headers: &[] })
    }

    pub(super) fn open(&self, gate: &str) {
        assert_eq!(post(&format!("{}/open/{gate}", self.app_url), "").status, 204);
    }

    /// Waits until the application says `line`.
    pub(super) fn says(&self, line: &str) {
        while self.app.line() != line {}
    }

    pub(super) fn effects(&self, key: &str) -> usize {
        let count = format!("SELECT count(*) FROM effects WHERE key = '{key}'");
        self.database.psql(&[&count]).expect("a count").parse().expect("a number")
    }
}

/// An answer in a cell: the receipt's, the application's own words, or a problem.
fn shown(answer: &Answer) -> String {
    assert!(answer.header("idempotency-permit").is_empty(), "{answer:?}");
    let replayed = if answer.header("idempotent-replayed") == "true" { " again" } else { "" };
    let words = match answer.body.as_str() {
        "settled" => {
            assert_eq!((answer.header("content-type"), answer.header("location")), ("text/plain", "/orders/7"));
            "settled".to_owned()
        }
        own if !own.starts_with('{') => own.to_owned(),
        _ => answer.member("type").rsplit(':').next().unwrap_or_default().to_owned(),
    };
    format!("{} {words}{replayed}", answer.status)
}

/// A case, what the first request and a retry are answered, and how often the effect happened after each.
const CASES: [[&str; 5]; 17] = [
    ["whole/hold", "201 settled", "1", "201 settled again", "1"],
    ["whole/bare", "201 settled", "1", "201 settled again", "1"],
    ["forgotten/hold", "500 refused as CF004", "0", "500 refused as CF004", "0"],
    // Outside the promise, and said so: it may have happened.
    ["forgotten/bare", "502 outcome-unknown", "1", "409 outcome-unknown", "1"],
    ["forgotten-500/hold", "500 refused as CF004", "0", "500 refused as CF004", "0"],
    // Outside the promise: it says that it failed, and has committed.
    ["forgotten-500/bare", "500 failed", "1", "500 failed", "2"],
    ["reply-lost/hold", "201 settled", "1", "201 settled again", "1"],
    ["reply-lost/bare", "201 settled", "1", "201 settled again", "1"],
    ["own-retry/hold", "201 settled", "1", "201 settled again", "1"],
    ["own-retry/bare", "201 settled", "1", "201 settled again", "1"],
    ["swallowed/hold", "500 refused as CF004", "0", "500 refused as CF004", "0"],
    ["swallowed/bare", "502 outcome-unknown", "1", "409 outcome-unknown", "1"],
    ["twice/hold", "500 refused as CF002", "0", "500 refused as CF002", "0"],
    ["twice/bare", "500 refused as CF002", "0", "500 refused as CF002", "0"],
    ["nothing-once/hold", "502 outcome-unknown", "0", "409 outcome-unknown", "0"],
    ["nothing-once/bare", "502 outcome-unknown", "0", "409 outcome-unknown", "0"],
    ["none/hold", "502 outcome-unknown", "0", "409 outcome-unknown", "0"],
];

#[test]
fn every_wrong_turn_of_an_application() {
    let world = World::start();
    let proxy = world.proxy("");
    let mut faults = Vec::new();
    for [name, first, once, retry, twice] in CASES {
        let (case, how) = name.split_once('/').expect("a case and how");
        let mut found = Vec::new();
        for _attempt in 0..2 {
            found.push(shown(&world.ask(&proxy, case, how)));
            found.push(world.effects(&format!("{case}-{how}")).to_string());
        }
        if found != [first, once, retry, twice] {
            faults.push(format!("{name}: expected {:?}, found {found:?}", [first, once, retry, twice]));
        }
    }
    assert_eq!(faults, Vec::<String>::new(), "{}", proxy.process.log());
    let numbers = super::curl::get(&proxy.admin_url("/metrics")).body;
    let counted = "counterfoil_answered_without_settle_total{operation=\"case\"} 5";
    assert!(numbers.lines().any(|line| line == counted), "{numbers}");
    proxy.stop();
}

#[test]
fn where_hold_is_always_taken_a_success_without_a_receipt_is_run_again() {
    let world = World::start();
    let proxy = world.proxy("hold = \"always\"");
    world.ask(&proxy, "nothing-once", "hold").is_problem(502, "outcome-unknown");
    world.ask(&proxy, "nothing-once", "hold").is(201, "false");
    world.ask(&proxy, "nothing-once", "hold").is(201, "true");
    assert_eq!(world.effects("nothing-once-hold"), 1);
    proxy.stop();
}

#[test]
fn no_other_permit_settles() {
    let world = World::start();
    let proxy = world.proxy("");
    world.ask(&proxy, "whole", "hold").is(201, "false");
    let record = "SELECT 'cf1-' || encode(lease, 'hex') || '-' || encode(digest, 'hex') FROM counterfoil.record";
    let stale = world.database.psql(&[record]).expect("the permit of what is done");
    let forged = format!("cf1-{}-{}", "0".repeat(32), "0".repeat(64));
    let permits = [
        ("", "CF003"),
        ("no-permit", "CF003"),
        (&forged, "CF003"),
        (&stale, "CF002"),
        ("MINE0", "CF003"),
        (&stale.replacen(&stale[4..12], "00000000", 1), "CF001"),
    ];
    for (permit, code) in permits {
        let body = format!("{{\"key\": \"other\", \"permit\": \"{permit}\"}}");
        for (how, expected) in [("hold", "500 not held".to_owned()), ("bare", format!("500 refused as {code}"))] {
            assert_eq!(shown(&world.ask_with(&proxy, "other-permit", how, &body)), expected, "{permit:?} {how}");
        }
    }
    assert_eq!(world.effects("other"), 0);
    // What a caller sends in that header reaches nobody.
    let headers = [format!("Idempotency-Permit: {stale}"), format!("Idempotency_Permit: {stale}")];
    let headers = headers.each_ref().map(String::as_str);
    let sent = Sent { key: "whole-header", body: "{\"key\": \"header\"}", headers: &headers };
    curl("POST", &proxy.url("/whole/hold"), sent).is(201, "false");
    assert_eq!(world.effects("header"), 1);
    proxy.stop();
}
