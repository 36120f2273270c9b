//! `send` killed with SIGKILL at every named point and run again, and many of it started at once.
//!
//! The killed process is this test binary in a role: the same command, in a build that knows the points. What does not
//! belong here: what an outcome means (`sends`).

use std::process::{Child, Command, Stdio};

use counterfoil_store::points;
use rustix::process::Signal;
use tempfile::TempDir;

use super::{
    lossy::Lossy,
    process::{Process, alone, counterfoil},
    served::{Served, receipts},
    shop::Shop,
    upstream::Upstream,
};
use crate::crash::process::{self, Over};

/// How many are started at once.
const AT_ONCE: usize = 64;
/// How often a receipt is looked for.
const TRIES: usize = 500;
/// The points that a command passes once the intent is settled.
const SETTLED: [&str; 2] = ["client.before-journal", "client.before-print"];

struct Caller {
    home: TempDir,
    shop: Shop,
    way: Lossy,
    _served: Served,
}

impl Caller {
    fn new() -> Self {
        let (home, shop) = (tempfile::tempdir().expect("a directory"), Shop::open());
        let served = Served::start(&home.path().join("receipts.db"), shop.url());
        let way = Lossy::start(&served.address());
        Self { home, shop, way, _served: served }
    }

    /// The same command each time: it orders one `product`.
    fn command(&self, product: &str) -> Vec<String> {
        let path = |name: &str| self.home.path().join(name).display().to_string();
        let body = path(&format!("{product}.json"));
        std::fs::write(&body, format!(r#"{{"product":"{product}","quantity":1}}"#)).expect("a file");
        let journal = format!("sqlite:{}", path("intents.db"));
        let (json, url) = (format!("@{body}"), self.way.url("/orders"));
        let name = format!("order/{product}");
        let words = ["--journal", &journal, "--profile", "counterfoil", "--window", "1h", "--intent", &name, "--json"];
        words.iter().map(|word| (*word).to_owned()).chain([json, url]).collect()
    }

    /// The command in a process that dies at `point`.
    fn dies(&self, point: &str, product: &str) {
        self.run(point, product).killed();
    }

    /// The command in a process that nobody kills: what it wrote to standard output.
    fn answers(&self, product: &str) -> String {
        let over = self.run("-", product).well();
        assert_eq!(over.after("exit").collect::<Vec<_>>(), ["0"], "{:?}\n{}", over.lines, over.errors);
        over.lines.iter().find(|line| line.contains("order_id")).expect("the answer is printed").clone()
    }

    fn run(&self, point: &str, product: &str) -> Over {
        process::run(&format!("send {point} {}", self.command(product).join(" ")), self.home.path())
    }

    /// That one order of `product` was made, under one key; how many attempts there were.
    fn once(&self, product: &str) -> usize {
        let keys = self.way.keys(&format!("\"{product}\""));
        assert_eq!(self.shop.orders(product), 1, "{product}: {keys:?}");
        assert!(keys.iter().all(|key| *key == keys[0] && !key.is_empty()), "{product}: {keys:?}");
        keys.len()
    }
}

#[test]
fn killed_at_any_point_and_run_again_is_one_order() {
    let caller = Caller::new();
    for point in points::CLIENT {
        let product = point.replace('.', "-");
        caller.dies(point, &product);
        let answer = caller.answers(&product);
        let attempts = caller.once(&product);
        assert!(attempts <= 3, "{point}: {attempts} attempts");

        for settled in SETTLED {
            caller.dies(settled, &product);
            assert_eq!(caller.answers(&product), answer, "{point}, then {settled}");
        }
        assert_eq!(caller.once(&product), attempts, "{point}: what is settled is not sent");
    }
    let keys: std::collections::BTreeSet<String> = caller.way.passed().into_iter().map(|passed| passed.key).collect();
    assert_eq!(keys.len(), points::CLIENT.len(), "each action has its own key");
}

#[test]
fn interrupted_it_keeps_the_intent() {
    let home = tempfile::tempdir().expect("a directory");
    let upstream = Upstream::start();
    let served = Served::start(&home.path().join("receipts.db"), upstream.url());
    let url = served.url("/hold");
    let send = || {
        let mut command = Command::new(counterfoil());
        command.current_dir(home.path()).args(["send", "--journal", "sqlite:intents.db", "--profile", "counterfoil"]);
        command.args(["--intent", "order-1", "--json", "{}", &url]);
        Process::start(&mut command)
    };
    let mut sending = send();
    upstream.wait_held();
    sending.signal(Signal::INT);
    assert_eq!(sending.end().code(), Some(130));
    assert!(sending.logs("interrupted").contains("run the same command again"));

    upstream.release();
    let store = home.path().join("receipts.db");
    let done = (0..TRIES).any(|_| !receipts(&store, &["list", "--state", "done", "--json"]).is_empty());
    assert!(done, "the server goes on without its caller");
    let mut again = send();
    assert_eq!((again.end().code(), again.line().as_str()), (Some(0), "{\"call\": 1}"));
    assert_eq!(upstream.calls(), 1);
}

/// The commands of `all`, started at once; what each wrote to standard output.
fn at_once(caller: &Caller, all: &[Vec<String>]) -> Vec<String> {
    let start = |arguments: &Vec<String>| -> Child {
        let mut command = Command::new(counterfoil());
        let command = alone(&mut command).arg("send").args(arguments).current_dir(caller.home.path());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("it starts")
    };
    let started: Vec<Child> = all.iter().map(start).collect();
    let ended = started.into_iter().map(|child| {
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    });
    ended.collect()
}

#[test]
fn many_at_once_with_one_name_are_one_order() {
    let caller = Caller::new();
    let answers = at_once(&caller, &vec![caller.command("mug"); AT_ONCE]);
    assert!(answers.iter().all(|answer| answer == "{\"order_id\":1}"), "{answers:?}");
    assert_eq!(caller.once("mug"), 1, "one of them sent it");
}

#[test]
fn many_at_once_with_names_of_their_own_are_as_many_orders() {
    let caller = Caller::new();
    let products: Vec<String> = (0..AT_ONCE).map(|number| format!("mug-{number}")).collect();
    at_once(&caller, &products.iter().map(|product| caller.command(product)).collect::<Vec<_>>());
    for product in &products {
        assert_eq!(caller.once(product), 1, "{product}");
    }
    let keys: std::collections::BTreeSet<String> = caller.way.passed().into_iter().map(|passed| passed.key).collect();
    assert_eq!(keys.len(), AT_ONCE, "each has its own key");
}
