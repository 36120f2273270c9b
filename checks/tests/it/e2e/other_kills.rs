//! An application that keeps its effects to itself (`effect = "other"`), killed as `kills` does: no action has two
//! effects, and every one that is in doubt is listed as unknown.
//!
//! What does not belong here: effects that commit with their receipt (`coupled_kills`).

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use counterfoil_store::postgres::trial::Database;
use serde_json::Value;

use super::kills::{Play, Proxies, Rounds, Stage, client};
use super::process::Process;
use super::python::{program, python};
use super::served::run;

/// How long it may take until what was under way is settled or in doubt: leases, and a server that starts.
const SETTLES_WITHIN: Duration = Duration::from_mins(1);

fn application(database: &Database, port: u16) -> Process {
    let mut command: Command = python();
    let command = command.arg(program("other_app.py")).arg(port.to_string());
    let process = Process::start(command.env("DATABASE_URL", database.url()));
    assert_eq!(process.line(), format!("orders on http://127.0.0.1:{port}"));
    process
}

fn config(upstream: &str, store: &str) -> String {
    format!(
        "upstream = \"{upstream}\"\nstore = \"{store}\"\nprincipal.from = \"none\"\n\
         [defaults]\neffect = \"other\"\nlease = \"1s\"\n\
         [[operation]]\nname = \"create-order\"\nmatch = \"POST /orders\"\nkey = \"required\"\n"
    )
}

/// What a client ends with.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum End {
    /// The application's own answer, from its run or from the receipt.
    Result(u16, String),
    /// Nobody knows, and no retry will.
    Doubt,
}

impl End {
    pub(super) fn of(status: u16, answer: &str) -> Option<Self> {
        if !answer.contains("\"type\"") {
            return Some(Self::Result(status, answer.to_owned()));
        }
        // A 502 or a 504 is about one attempt: what the record says is asked for again.
        (status == 409 && answer.contains("outcome-unknown")).then_some(Self::Doubt)
    }
}

/// The keys that begin with `prefix` and are listed as unknown in the store at `url`.
pub(super) fn listed(home: &std::path::Path, url: &str, prefix: &str) -> BTreeSet<String> {
    let arguments = ["receipts", "list", "--state", "unknown", "--json", "--show-key", "--limit", "1000000"];
    let output = run(&[&arguments[..], &["--store", url]].concat(), home);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let out = String::from_utf8(output.stdout).expect("it says text");
    let key = |line: &str| -> String {
        let row: Value = serde_json::from_str(line).expect("it lists JSON");
        row["key"].as_str().expect("a key").to_owned()
    };
    out.lines().map(key).filter(|key| key.starts_with(prefix)).collect()
}

/// What the actions of a round stand as in the end.
struct Standing {
    done: BTreeSet<String>,
    /// Listed by `receipts list --state unknown`.
    unknown: BTreeSet<String>,
    /// No record stands: a claim that was given up was taken back, because nobody had run it.
    absent: BTreeSet<String>,
}

/// Waits until nothing of the round runs any more.
fn settled(stage: &Stage, round: &str, keys: &BTreeSet<String>) -> Standing {
    let query = "SELECT state || ' ' || encode(key, 'escape') FROM counterfoil.record WHERE encode(key, 'escape') LIKE";
    let query = format!("{query} '{round}%'");
    let begun = Instant::now();
    loop {
        let rows = stage.count(&query);
        let rows: Vec<(&str, &str)> = rows.lines().filter_map(|line| line.split_once(' ')).collect();
        let of = |state: &str| rows.iter().filter(move |row| row.0 == state).map(|row| row.1.to_owned()).collect();
        let done: BTreeSet<String> = of("3");
        let unknown = listed(stage.home.path(), &stage.database.url(), round);
        let stands = |key: &String| rows.iter().any(|row| row.1 == key);
        let absent: BTreeSet<String> = keys.iter().filter(|key| !stands(key)).cloned().collect();
        if done.len() + unknown.len() + absent.len() == keys.len() && done.is_disjoint(&unknown) {
            return Standing { done, unknown, absent };
        }
        let open: Vec<_> = rows.iter().filter(|row| row.0 != "3" && !unknown.contains(row.1)).collect();
        assert!(begun.elapsed() < SETTLES_WITHIN, "neither done nor listed: {open:?}");
        thread::park_timeout(Duration::from_millis(100));
    }
}

/// How many actions came to what.
#[derive(Default)]
struct Sum {
    made: usize,
    failed: usize,
    doubts: usize,
    doubts_with_effect: usize,
    taken_back: usize,
}

impl Sum {
    fn add(&mut self, stage: &Stage, proxies: &Proxies, number: usize, answers: &BTreeMap<String, BTreeSet<End>>) {
        let round = format!("round-{number}-");
        let Standing { done, unknown, absent } = settled(stage, &round, &answers.keys().cloned().collect());
        let query = format!("SELECT reference FROM effects WHERE reference LIKE '{round}%'");
        let effects = stage.count(&query);
        let mut random = fastrand::Rng::with_seed(0);
        for (key, ends) in answers {
            let effects = effects.lines().filter(|reference| reference == key).count();
            assert!(effects <= 1, "{key} has {effects} effects");
            let results: Vec<&End> = ends.iter().filter(|end| **end != End::Doubt).collect();
            assert!(results.len() <= 1, "{key} was answered {ends:?}");
            if absent.contains(key) {
                assert!(effects == 0 && results.is_empty(), "{key} is forgotten: {ends:?}, {effects} effects");
                self.taken_back += 1;
                continue;
            }
            let later = client(proxies, &mut random, key, End::of);
            if unknown.contains(key) && later == End::Doubt {
                self.doubts += 1;
                self.doubts_with_effect += effects;
                continue;
            }
            // What was listed as unknown may have been settled since by its late completion.
            let settled = done.contains(key) || unknown.contains(key);
            assert!(settled && results.iter().all(|result| **result == later), "{key}: {ends:?}, {later:?}");
            match later {
                End::Result(201, _) => {
                    assert_eq!(effects, 1, "{key}");
                    self.made += 1;
                }
                End::Result(500, _) => self.failed += 1,
                End::Result(..) | End::Doubt => panic!("{key} is done, and answered {later:?}"),
            }
        }
        assert_eq!(stage.count(&query).lines().count(), effects.lines().count(), "{round}: a late retry had an effect");
    }
}

#[test]
fn whoever_is_killed_no_action_has_two_effects() {
    let rounds = Rounds::begin("other");
    let schema = "CREATE TABLE effects (id bigint GENERATED ALWAYS AS IDENTITY, reference text NOT NULL)".to_owned();
    let stage = Stage::start(Play { application, schema, config });
    let proxies = stage.proxies();
    let mut sum = Sum::default();
    for (number, seed) in rounds.each() {
        let round = stage.round(&proxies, (number, seed), End::of);
        sum.add(&stage, &proxies, number, &round.answers);
    }
    let Sum { made, failed, doubts, doubts_with_effect, taken_back } = sum;
    rounds.end(&format!(
        "answered 201: {made}, with one effect each; answered 500 by the application: {failed}; in doubt and listed: \
         {doubts}, {doubts_with_effect} of them with an effect; taken back before anything ran: {taken_back}; two \
         effects: 0"
    ));
}
