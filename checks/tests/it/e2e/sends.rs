//! The second fixture, whole: `counterfoil send` against `counterfoil serve`, with lost answers and real restarts.
//!
//! What does not belong here: a `send` that is killed (`sends_killed`).

use std::{io::Write, net::TcpListener, path::Path, process::Output, sync::Arc, time::Duration};

use counterfoil_client::{Client, Http, Outcome, Wish};
use counterfoil_core::{
    Timestamp,
    intent::{Draft, Header, Name, ProfileRef, Value},
};
use counterfoil_store::{SqliteStore, clock::TestClock, sqlite::Options};
use tempfile::TempDir;

use super::{
    lossy::Lossy,
    served::{Served, run},
    shop::Shop,
    upstream::read_request,
};

const HOUR: Duration = Duration::from_hours(1);

/// A caller's directory, and the way to a guarded shop.
struct Caller {
    home: TempDir,
    shop: Shop,
    served: Option<Served>,
    way: Lossy,
}

/// What a run of the command came to.
#[derive(PartialEq, Eq, Debug)]
struct Told {
    code: i32,
    out: String,
    err: String,
}

impl Told {
    /// Passes where it ended so, wrote `out`, and told people `part`.
    #[track_caller]
    fn is(&self, code: i32, out: &str, part: &str) {
        assert_eq!((self.code, self.out.as_str()), (code, out), "{self:?}");
        assert!(self.err.contains(part), "{part:?} in {self:?}");
    }
}

fn told(output: Output) -> Told {
    let text = |bytes| String::from_utf8(bytes).expect("it says text");
    Told { code: output.status.code().expect("it ends"), out: text(output.stdout), err: text(output.stderr) }
}

fn body(product: &str, quantity: u32) -> String {
    format!(r#"{{"product":"{product}","quantity":{quantity}}}"#)
}

impl Caller {
    fn new() -> Self {
        let (home, shop) = (tempfile::tempdir().expect("a directory"), Shop::open());
        let served = Served::start(&home.path().join("receipts.db"), shop.url());
        let way = Lossy::start(&served.address());
        Self { home, shop, served: Some(served), way }
    }

    /// The guarding server ends, and another process takes its place.
    fn restart_the_server(&mut self) {
        self.served.take().expect("it runs").stop();
        let served = Served::start(&self.home.path().join("receipts.db"), self.shop.url());
        self.way.aim(&served.address());
        self.served = Some(served);
    }

    /// `counterfoil send`, in a process of its own.
    fn send(&self, name: &str, json: &str, more: &[&str]) -> Told {
        let url = self.way.url("/orders");
        let usual = ["send", "--journal", "sqlite:intents.db", "--profile", "counterfoil", "--window", "1h"];
        let these = ["--intent", name, "--json", json, &url];
        told(run(&[&usual, more, &these].concat(), self.home.path()))
    }

    fn intents(&self, arguments: &[&str]) -> Told {
        let arguments = [&["intents"], arguments, &["--journal", "sqlite:intents.db"]].concat();
        told(run(&arguments, self.home.path()))
    }
}

#[test]
fn one_intent_three_attempts_one_order() {
    let mut caller = Caller::new();
    let order = body("notebook", 2);
    caller.way.lose(1);
    caller.send("order-1", &order, &["--wait", "0s"]).is(4, "", "uncertain: it may have been done");
    assert_eq!(caller.shop.orders("notebook"), 1, "the answer was lost, and not the order");
    caller.restart_the_server();
    caller.way.lose(1);
    let first = "{\"order_id\":1}";
    caller.send("order-1", &order, &[]).is(0, first, "attempt 3: 201: success");
    let keys = caller.way.keys("notebook");
    assert_eq!((keys.len(), caller.shop.orders("notebook")), (3, 1), "{keys:?}");
    assert!(keys.iter().all(|key| *key == keys[0] && !key.is_empty()), "{keys:?}");

    // Once it is settled nothing is sent, whatever becomes of the server.
    let recorded = "that was recorded earlier, and nothing was sent";
    caller.send("order-1", &order, &[]).is(0, first, recorded);
    let reordered = r#"{ "quantity": 2, "product": "notebook" }"#;
    caller.send("order-1", reordered, &[]).is(0, first, recorded);
    caller.send("order-1", &body("notebook", 3), &[]).is(6, "", "stands for another request (other: body)");
    caller.send("order-1", &order, &["--key", "another-key-1"]).is(6, "", "settled under another key");
    caller.send("order-1", &order, &[]).is(0, first, recorded);
    assert_eq!((caller.way.passed().len(), caller.shop.orders("notebook")), (3, 1), "nothing more was sent");
}

#[test]
fn a_fresh_key_for_what_is_in_doubt_is_refused() {
    let caller = Caller::new();
    let order = body("kettle", 1);
    caller.way.lose(1);
    caller.send("order-1", &order, &["--wait", "0s"]).is(4, "", "uncertain");
    for fresh in [&["--again"][..], &["--key", "another-key-1"]] {
        caller.send("order-1", &order, fresh).is(8, "", "nothing was sent");
    }
    // Under another contract, the same key is another one.
    let elsewhere = ["send", "--journal", "sqlite:intents.db", "--intent", "order-1", "--json", &order];
    let url = caller.way.url("/orders");
    told(run(&[&elsewhere[..], &[&url]].concat(), caller.home.path())).is(8, "", "another scope (profile)");
    let version = version(&caller, "order-1");
    let word = ["resolve", "order-1", "--version", &version, "--did-not-happen", "--who", "ann", "--why", "looked"];
    caller.intents(&word).is(3, "", "may still arrive");
    assert_eq!((caller.way.passed().len(), caller.shop.orders("kettle")), (1, 1));
}

#[test]
fn what_a_layer_in_front_says_settles_nothing_that_is_in_doubt() {
    let caller = Caller::new();
    let order = body("rug", 1);
    caller.way.lose(1);
    caller.send("order-1", &order, &["--wait", "0s"]).is(4, "", "uncertain");
    // A portal that answers everything.
    let portal = TcpListener::bind("127.0.0.1:0").expect("a free port");
    caller.way.aim(&portal.local_addr().expect("it is bound").to_string());
    std::thread::spawn(move || {
        let (mut stream, _) = portal.accept().expect("somebody comes");
        read_request(&stream).expect("a request");
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nwelcome").expect("it listens");
    });
    caller.send("order-1", &order, &[]).is(4, "", "no further attempt can tell (unguarded)");
    let settled = caller.intents(&["list", "--state", "succeeded,refused", "--json"]);
    settled.is(0, "", "");
    assert_eq!(caller.shop.orders("rug"), 1);
}

fn version(caller: &Caller, name: &str) -> String {
    let shown = caller.intents(&["show", name, "--json"]);
    let shown: serde_json::Value =
        serde_json::from_str(&shown.out).unwrap_or_else(|error| panic!("{error}: {shown:?}"));
    shown["version"].to_string()
}

/// An intent whose answer was lost half an hour ago.
fn lost_long_ago(home: &Path, url: &str, name: &str, json: &str) {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("it is later than 1970");
    let then = Timestamp::from_millis(now.as_millis().try_into().expect("it is not that late")).minus(HOUR / 2);
    let mut options = Options::default();
    options.clock = Arc::new(TestClock::new(then));
    let header = |name: &str| Header { name: name.to_owned(), value: Value::Plain("application/json".into()) };
    let draft = Draft {
        name: Name::new(name).expect("a name"),
        method: http::Method::POST,
        url: url.to_owned(),
        headers: vec![header("content-type"), header("accept")],
        body: json.to_owned().into(),
        scope: None,
        profile: ProfileRef { id: "counterfoil".to_owned(), version: 1 },
    };
    let wish = Wish { window: Some(HOUR), ..Wish::new(draft) };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime starts");
    let outcome = runtime.block_on(async {
        let store = SqliteStore::open(home.join("intents.db"), options).expect("a journal");
        let client = Client::new(store, Arc::new(Http::new().expect("TLS")));
        client.send(&wish, Duration::ZERO).await.expect("the journal works")
    });
    assert!(matches!(outcome, Outcome::Uncertain { .. }), "{outcome:?}");
}

#[test]
fn a_person_who_is_wrong_makes_a_second_order() {
    let caller = Caller::new();
    let order = body("lamp", 1);
    caller.way.lose(1);
    lost_long_ago(caller.home.path(), &caller.way.url("/orders"), "order-1", &order);
    caller.send("order-1", &order, &["--again"]).is(8, "", "not settled");
    let version = version(&caller, "order-1");
    let word = ["resolve", "order-1", "--version", "1", "--did-not-happen", "--who", "ann", "--why", "no mail came"];
    caller.intents(&word).is(3, "", "it changed since you looked");
    let word =
        ["resolve", "order-1", "--version", &version, "--did-not-happen", "--who", "ann", "--why", "no mail came"];
    caller.intents(&word).is(0, "", "settled: it did not happen");
    caller.send("order-1", &order, &[]).is(3, "", "as ann says: no mail came");
    assert_eq!(caller.way.passed().len(), 1, "what is settled is not sent");
    caller.send("order-1", &order, &["--again"]).is(0, "{\"order_id\":2}", "order-1#2: done (201)");
    let keys = caller.way.keys("lamp");
    assert_eq!((keys.len(), caller.shop.orders("lamp")), (2, 2));
    assert_ne!(keys[0], keys[1]);
}

#[test]
fn a_400_is_not_kept_and_the_corrected_request_runs() {
    let caller = Caller::new();
    let key = ["--key", "0ddba11e-3c4d-4e5f-a6b7-c8d9e0f1a2b3"];
    let invalid = "{\"error\":\"invalid parameters\"}";
    caller.send("order-1", &body("pen", 0), &key).is(3, invalid, "refused for good (400)");
    caller.send("order-1", &body("pen", 1), &key).is(6, "", "stands for another request");
    let corrected = [&key[..], &["--again"]].concat();
    caller.send("order-1", &body("pen", 1), &corrected).is(0, "{\"order_id\":1}", "done (201)");
    let keys = caller.way.keys("pen");
    assert_eq!((keys.len(), caller.shop.orders("pen")), (2, 1));
    assert_eq!(keys[0], keys[1], "the key was not used up");
}

#[test]
fn what_is_done_with_the_answer_loses_nothing() {
    let caller = Caller::new();
    let order = body("cup", 1);
    let url = caller.way.url("/orders");
    let command = format!(
        "exec \"$0\" send --journal sqlite:intents.db --profile counterfoil --intent order-1 --json '{order}' {url} > /dev/full"
    );
    let program = super::process::counterfoil();
    let full = |script: &str| {
        let mut shell = std::process::Command::new("sh");
        let shell = super::process::alone(&mut shell).args(["-c", script]).arg(&program);
        told(shell.current_dir(caller.home.path()).output().expect("a shell runs"))
    };
    full(&command).is(1, "", "it is kept: run the same command again");
    let answer = "{\"order_id\":1}";
    caller.send("order-1", &order, &["-o", "answer.json"]).is(0, "", "recorded earlier");
    assert_eq!(std::fs::read_to_string(caller.home.path().join("answer.json")).expect("a file"), answer);
    let whole = caller.send("order-1", &order, &["-i"]);
    assert!(
        whole.out.starts_with("HTTP 201 Created\r\n") && whole.out.ends_with(&format!("\r\n\r\n{answer}")),
        "{whole:?}"
    );
    assert_eq!((caller.way.passed().len(), caller.shop.orders("cup")), (1, 1));
}

#[test]
fn where_nothing_can_be_written_down_nothing_is_sent() {
    let caller = Caller::new();
    let url = caller.way.url("/orders");
    let program = super::process::counterfoil();
    let shell = |script: &str| {
        let mut shell = std::process::Command::new("sh");
        let shell = super::process::alone(&mut shell).args(["-c", script]).arg(&program);
        told(shell.current_dir(caller.home.path()).output().expect("a shell runs"))
    };
    let send = |journal: &str| format!("exec \"$0\" send --journal sqlite:{journal} --intent order-1 -d a=1 {url}");
    // A file that may not grow, as on a disk that is full: before it is made, and once it stands.
    let full = "trap '' XFSZ; ulimit -f 4;";
    shell(&format!("{full} {}", send("new.db"))).is(1, "", "nothing was sent");
    run(&["migrate", "--store", "sqlite:made.db"], caller.home.path());
    shell(&format!("{full} {}", send("made.db"))).is(1, "", "counterfoil: the journal");
    // A directory that takes no files.
    shell(&send("/proc/intents.db")).is(1, "", "nothing was sent");
    assert_eq!(caller.way.passed().len(), 0);
}
