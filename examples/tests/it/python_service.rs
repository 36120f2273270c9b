//! The unmodified Python service behind `counterfoil serve`: both run as they would for real.
//!
//! What does not belong here: what the proxy does with other upstreams (`checks`).

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread;

use serde_json::Value;

use crate::curl::{Answer, curl};
use crate::process::{Process, built};

/// The service, the proxy in front of it, and a place for their files.
struct House {
    home: tempfile::TempDir,
    orders: Process,
    _proxy: Process,
    url: String,
}

impl House {
    /// Both with their files in a directory of their own; `book` is where the service writes its orders.
    fn new(book: impl FnOnce(&Path) -> PathBuf) -> Self {
        let home = tempfile::tempdir().expect("a directory");
        let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("python_service");
        let mut python = Command::new("python3");
        python.arg(here.join("orders.py")).arg("0").arg(book(home.path()));
        let mut orders = Process::start(&mut python);
        let upstream = orders.says("orders on ");

        let mut serve = Command::new(built(&["counterfoil"]));
        serve.arg("serve").arg("--config").arg(here.join("counterfoil.toml"));
        serve.args(["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--upstream", &upstream]);
        serve.arg("--store").arg(store(home.path()));
        let mut proxy = Process::start(&mut serve);
        let address = proxy.logs("listening listen=");
        let address = address.split(' ').next().expect("an address");
        Self { home, orders, _proxy: proxy, url: format!("http://{address}/orders") }
    }

    fn order(&self, key: &str, body: &str) -> Answer {
        curl("POST", &self.url, key, body)
    }

    /// Runs `counterfoil receipts`, beside the proxy that serves.
    fn receipts(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(built(&["counterfoil"]));
        let command = command.arg("receipts").args(arguments).arg("--store").arg(store(self.home.path()));
        let output = command.output().expect("it runs");
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        output
    }
}

fn store(home: &Path) -> String {
    format!("sqlite:{}", home.join("counterfoil.db").display())
}

const PEN: &str = r#"{"item": "pen"}"#;

#[test]
fn a_retry_gets_the_first_answer() {
    let house = House::new(|home| home.join("orders.jsonl"));
    let fresh = house.order("k-1", PEN);
    assert_eq!((fresh.status, fresh.header("idempotent-replayed")), (201, "false"), "{fresh:?}");
    assert_eq!(fresh.member("id"), 1);

    let replayed = house.order("k-1", PEN);
    assert_eq!((replayed.status, replayed.header("idempotent-replayed")), (201, "true"), "{replayed:?}");
    assert_eq!(replayed.body, fresh.body);

    let changed = house.order("k-1", r#"{"item": "pot"}"#);
    assert_eq!((changed.status, changed.header("content-type")), (422, "application/problem+json"), "{changed:?}");

    // A refusal of the service is no result: the corrected request runs under the same key.
    assert_eq!(house.order("k-2", r#"{"thing": "pot"}"#).status, 400);
    assert_eq!(house.order("k-2", r#"{"item": "pot"}"#).member("id"), 2);

    let listed = curl("GET", &house.url, "", "");
    let orders: Value = serde_json::from_str(&listed.body).expect("it lists them");
    assert_eq!(orders, serde_json::json!([{"id": 1, "item": "pen"}, {"id": 2, "item": "pot"}]));
}

#[test]
fn an_order_in_doubt_waits_for_somebody_who_knows() {
    // Writing into a pipe that nobody reads keeps the service in the middle of its work.
    let mut house = House::new(|home| {
        let book = home.join("orders.pipe");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &book,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
            0,
        )
        .expect("a pipe can be made");
        book
    });
    let url = house.url.clone();
    let first = thread::spawn(move || curl("POST", &url, "k-1", PEN));
    house.orders.logs("writing order 1");
    house.orders.kill();
    let first = first.join().expect("it is answered");
    assert_eq!(first.status, 502, "{first:?}");
    assert!(first.member("type").as_str().is_some_and(|kind| kind.ends_with("outcome-unknown")), "{first:?}");

    // Nobody knows, so nobody runs it again; whether the service is back does not matter.
    let again = house.order("k-1", PEN);
    assert_eq!((again.status, again.member("type")), (409, first.member("type")), "{again:?}");

    let listed = house.receipts(&["list", "--state", "unknown", "--json"]);
    let record: Value = serde_json::from_slice(&listed.stdout).expect("it lists one");
    let text = |name: &str| record.get(name).and_then(Value::as_str).unwrap_or_else(|| panic!("no {name}: {record}"));
    assert_eq!((text("operation"), text("state")), ("create-order", "unknown"));

    // Ada looked into the book: it happened. She also knows that the service is stopped and can add nothing.
    let result = house.home.path().join("result.json");
    let kept = r#"{"status": 201, "headers": [["content-type", "application/json"]], "body": "{\"id\": 1}"}"#;
    std::fs::write(&result, kept).expect("it can be written");
    let digest = text("digest");
    let result = result.to_str().expect("a path of text");
    let settle = ["--happened", result, "--owner-stopped", "--who", "ada", "--why", "it is in the book"];
    house.receipts(&[&["resolve", digest, "--version", text("version")], &settle[..]].concat());

    let replayed = house.order("k-1", PEN);
    assert_eq!((replayed.status, replayed.header("idempotent-replayed")), (201, "true"), "{replayed:?}");
    assert_eq!((replayed.member("id"), replayed.header("content-type")), (Value::from(1), "application/json"));
}
