//! `counterfoil probe` with every hook, caller and place that we can give it, against two `counterfoil serve` on one
//! PostgreSQL, in front of a service that knows nothing of keys.
//!
//! What does not belong here: what is asked without hooks (`probe.rs`).

use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use counterfoil_store::postgres::trial::{Database, Server};
use rustix::process::Signal;
use serde_json::Value;

use super::process::{Process, counterfoil};
use super::served::run;
use super::upstream::read_request;

/// Keys, whose they are, and their hashes. The second principal's name goes on where that of the first one ends.
const KEYS: [(&str, &str, &str); 3] = [
    ("the-first-key-of-the-tests", "a", "4d256a2ad1b856e8caed28e5dcd4fd8d2447036113699e378541a0493dcb8af0"),
    ("the-first-key-of-the-tests:b", "a:b", "56c461851fee184641c6526854df6360bcd0da85c46545cc5f5d24538b2d12a8"),
    ("a-key-of-somebody-else", "other", "919c915c7f4353446142ba2e9aa501e31882e75f3f484913a27b8cddab58657c"),
];

/// What is wrong with the service, until it is healed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ill {
    No,
    Hold,
    Limit,
    FailBefore,
    FailAfter,
}

struct Book {
    ill: Ill,
    made: u64,
    /// How long an effect takes to be told.
    takes: Duration,
    proxies: Vec<Process>,
}

/// The service, the hooks, and what they act upon.
struct World {
    home: PathBuf,
    server: Arc<Server>,
    ports: [u16; 2],
    book: Mutex<Book>,
    changed: Condvar,
}

/// A port that no connection is given by chance: it must be free again after a restart.
fn port(after: u16) -> u16 {
    let free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    let begin = 10_000 + u16::try_from(std::process::id() % 20_000).expect("it is small");
    (begin..32_768).filter(|port| *port > after).find(free).expect("a free port")
}

impl World {
    fn start(home: &Path, server: Arc<Server>, database: &Database) -> (Arc<Self>, String) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("it is bound"));
        let config = format!(
            "upstream = \"{url}\"\nstore = \"{}\"\n[principal]\nfrom = \"api-keys\"\n{}",
            database.url(),
            KEYS.map(|(_, principal, sha256)| {
                format!("[[principal.keys]]\nprincipal = \"{principal}\"\nsha256 = \"{sha256}\"\n")
            })
            .concat()
        );
        std::fs::write(home.join("counterfoil.toml"), config).expect("a file");
        let first = port(0);
        let book = Book { ill: Ill::No, made: 0, takes: Duration::ZERO, proxies: Vec::new() };
        let world = Arc::new(Self {
            home: home.to_owned(),
            server,
            ports: [first, port(first)],
            book: Mutex::new(book),
            changed: Condvar::new(),
        });
        let proxies = [0, 1].map(|number| world.serve(number));
        world.book().proxies.extend(proxies);
        let service = Arc::clone(&world);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let service = Arc::clone(&service);
                // A caller that has gone needs no answer.
                std::thread::spawn(move || service.answer(&stream).is_ok());
            }
        });
        (world, url)
    }

    fn serve(&self, number: usize) -> Process {
        let mut command = Command::new(counterfoil());
        let config = self.home.join("counterfoil.toml");
        let listen = format!("127.0.0.1:{}", self.ports[number]);
        let addresses = ["--listen", &listen, "--admin", "127.0.0.1:0"];
        let process = Process::start(command.arg("serve").arg("--config").arg(config).args(addresses));
        process.logs("listening listen=");
        process
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().expect("nobody panicked")
    }

    fn hook(&self, name: &str) {
        let ill = |ill: Ill| {
            self.book().ill = ill;
            self.changed.notify_all();
        };
        match name {
            "restart" | "kill" => {
                let mut book = self.book();
                book.proxies[0].signal(if name == "kill" { Signal::KILL } else { Signal::TERM });
                let ended = book.proxies[0].end();
                assert!(name == "kill" || ended.success(), "{ended}");
                book.proxies[0] = self.serve(0);
            }
            "hold" => ill(Ill::Hold),
            "limit" => ill(Ill::Limit),
            "fail-before" => ill(Ill::FailBefore),
            "fail-after" => ill(Ill::FailAfter),
            "store-down" => self.server.stop("immediate").expect("it stops"),
            _ => {
                // It runs already where it was not the store that was out of reach.
                if self.server.psql("postgres", &["SELECT 1"]).is_err() {
                    self.server.run().expect("it starts again");
                }
                ill(Ill::No);
            }
        }
    }

    fn answer(&self, mut stream: &TcpStream) -> std::io::Result<()> {
        let (first, body) = read_request(stream)?;
        let order: Value = serde_json::from_slice(&body).unwrap_or_default();
        let (method, path) = first.split_once(' ').unwrap_or_default();
        let path = path.split([' ', '?']).next().unwrap_or_default();
        let (status, said) = match (method, path.strip_prefix("/control/"), path.strip_prefix("/orders/")) {
            ("GET", Some(name), _) => {
                self.hook(name);
                (200, String::new())
            }
            ("GET", None, _) => (200, format!("{{\"count\": {}}}", self.book().made)),
            ("PATCH" | "DELETE", None, Some(_)) => (200, "{}".to_owned()),
            _ if order["product"] == "gold" => (402, "{\"error\": \"declined\"}".to_owned()),
            _ if order["quantity"].is_number() => self.make(),
            _ => (400, "{\"error\": \"no quantity\"}".to_owned()),
        };
        let head = "Content-Type: application/json\r\nConnection: close\r\nContent-Length: ";
        write!(stream, "HTTP/1.1 {status} Said\r\n{head}{}\r\n\r\n{said}", said.len())
    }

    fn make(&self) -> (u16, String) {
        let held = self.changed.wait_while(self.book(), |book| book.ill == Ill::Hold);
        let mut book = held.expect("nobody panicked");
        match book.ill {
            Ill::Limit => return (429, String::new()),
            Ill::FailBefore => return (500, String::new()),
            Ill::No | Ill::Hold | Ill::FailAfter => book.made += 1,
        }
        let (id, takes, ill) = (book.made, book.takes, book.ill);
        drop(book);
        if !takes.is_zero() {
            std::thread::park_timeout(takes);
        }
        if ill == Ill::FailAfter { (500, String::new()) } else { (201, format!("{{\"id\": {id}}}")) }
    }
}

/// The file that tells the probe all that there is.
fn told(world: &World, service: &str) -> String {
    let [own, nested, other] = KEYS.map(|(key, _, _)| format!("Authorization: Bearer {key}"));
    let [first, second] = world.ports.map(|port| format!("http://127.0.0.1:{port}"));
    let mut text = format!(
        r#"url = "{first}/orders"
body = '{{"product":"tea","quantity":2,"tags":["a","b"]}}'
vary = "/quantity"
id = "/id"
count-url = "{service}/orders"
count = "/count"
declined = '{{"product":"gold","quantity":2,"tags":["a","b"]}}'
credential = "{own}"
second-credential = "{other}"
nested-credential = "{nested}"
patience-ms = 1000
[also]
other = "{first}/refunds"
sibling = "{first}/shops/2/orders"
method = "PATCH {first}/orders"
second = "{second}/orders"
change = "{service}/orders/{{{{id}}}}"
delete = "{service}/orders/{{{{id}}}}"
[hook]
"#
    );
    for name in ["restart", "kill", "hold", "limit", "fail-before", "fail-after", "store-down", "heal"] {
        text.push_str(&format!("{name} = \"curl --silent --fail --max-time 60 {service}/control/{name}\"\n"));
    }
    text
}

/// The verdicts by row, none of which may accuse it.
fn asked(home: &Path, more: &[&str]) -> Vec<Value> {
    let arguments = [&["probe", "--config", "probe.toml", "--report", "json=probe.json"], more].concat();
    let output = run(&arguments, home);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{said}");
    let text = std::fs::read_to_string(home.join("probe.json")).expect("the result was written");
    let result: Value = serde_json::from_str(&text).expect("it is JSON");
    let results = result["results"].as_array().expect("results").clone();
    for one in &results {
        let verdict = one["verdict"].to_string();
        assert!(!verdict.contains("deviates") && !verdict.contains("failed"), "{one:#}");
    }
    results
}

#[test]
fn our_own_proxy_keeps_its_promise_whatever_is_done_to_it() {
    let home = tempfile::tempdir().expect("a directory");
    let server = Arc::new(Server::start(&[]).expect("PostgreSQL starts"));
    let database = server.empty().expect("a database");
    let migrated = run(&["migrate", "--store", &database.url()], home.path());
    assert!(migrated.status.success(), "{}", String::from_utf8_lossy(&migrated.stderr));
    let (world, service) = World::start(home.path(), server, &database);
    std::fs::write(home.path().join("probe.toml"), told(&world, &service)).expect("a file");

    let results = asked(home.path(), &[]);
    let of = |row: &str| results.iter().find(|one| one["row"] == row).unwrap_or_else(|| panic!("{row} was not asked"));
    for row in ["B7", "B8", "C3", "E1", "E4", "E5", "E8", "E10", "F3", "F4", "F5", "F7", "F13", "H1", "H2", "H6"] {
        assert_eq!(of(row)["verdict"], "conforms", "{:#}", of(row));
    }
    // A kill must meet a request under way: the slower the machine, the longer that has to take.
    let met = (1..=6).any(|times| {
        world.book().takes = Duration::from_millis(300) * times;
        let results = asked(home.path(), &["--case", "H3", "--case", "C10"]);
        let during = results.iter().find(|one| one["row"] == "H3").expect("it was asked");
        during["verdict"] == "conforms"
    });
    assert!(met, "no kill met a request under way");
}
