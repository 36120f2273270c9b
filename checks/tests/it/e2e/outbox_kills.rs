//! A chain of actions: a shop whose orders leave intents behind, `counterfoil relay`, `counterfoil serve`, and a depot that
//! ships, each of which is killed at random. Each order is made once and shipped once, under one key.
//! What the relay makes of a single intent is tested in the client.

use std::net::TcpListener;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use counterfoil_store::sqlite::Options;
use counterfoil_store::{IntentStore as _, SqliteStore};
use rusqlite::Connection;
use tempfile::TempDir;

use super::kills::ask;
use super::outbox::relay;
use super::process::{Process, alone, counterfoil};
use super::served::place;

const ACTIONS: usize = 24;
const CLIENTS: usize = 4;
/// How long a round may take.
const ROUND_WITHIN: Duration = Duration::from_mins(2);

/// Who may die. Each comes back where it was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Part {
    Shop,
    Relay,
    Proxy,
    Depot,
}

const PARTS: [Part; 4] = [Part::Shop, Part::Relay, Part::Proxy, Part::Depot];

/// The four processes, and where they are.
struct Chain {
    home: TempDir,
    ports: [u16; 4],
    running: Mutex<Vec<Process>>,
}

fn example(name: &str) -> Command {
    let program = counterfoil().with_file_name("examples").join(name);
    assert!(program.exists(), "{} is not built: run `cargo build --workspace --all-targets` first", program.display());
    Command::new(program)
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr()).expect("a free port").port()
}

impl Chain {
    fn start() -> Self {
        let home = tempfile::tempdir().expect("a directory");
        let chain = Self { home, ports: [(); 4].map(|()| free_port()), running: Mutex::default() };
        let config = format!(
            "upstream = \"http://{}\"\nprincipal.from = \"none\"\n[[operation]]\nname = \"ship\"\n\
             match = \"POST /orders\"\neffect = \"keyed-upstream\"\nwindow = \"24h\"\nlease = \"1s\"\n\
             in_progress = [\"urn:counterfoil:problem:in-progress\"]\n",
            chain.address(Part::Depot)
        );
        std::fs::write(chain.home.path().join("proxy.toml"), config).expect("a file");
        // The relay's file is made by the shop.
        let started: Vec<Process> = PARTS.into_iter().map(|part| chain.part(part)).collect();
        *chain.running.lock().expect("nobody panicked") = started;
        chain.table("depot.db").execute("UPDATE item SET stock = 1000000", []).expect("stock");
        chain
    }

    fn address(&self, part: Part) -> String {
        format!("127.0.0.1:{}", self.ports[part as usize])
    }

    fn table(&self, file: &str) -> Connection {
        let tables = Connection::open(self.home.path().join(file)).expect("the file opens");
        tables.busy_timeout(ROUND_WITHIN).expect("it waits");
        tables
    }

    fn count(&self, file: &str, what: &str) -> usize {
        let query = format!("SELECT count(*) FROM {what}");
        let rows: i64 = self.table(file).query_row(&query, [], |row| row.get(0)).expect("rows");
        usize::try_from(rows).expect("it is a count")
    }

    /// Starts one of them.
    fn part(&self, part: Part) -> Process {
        let (home, address) = (self.home.path(), self.address(part));
        match part {
            Part::Shop => {
                let depot = format!("http://{}/orders", self.address(Part::Proxy));
                let process = Process::start(example("outbox_orders").arg(home.join("shop.db")).args([address, depot]));
                assert!(process.line().starts_with("listening"));
                process
            }
            Part::Relay => relay(&place(&home.join("shop.db"))),
            Part::Proxy => {
                let mut command = Command::new(counterfoil());
                let config = home.join("proxy.toml");
                let command = alone(&mut command).arg("serve").arg("--config").arg(config);
                let store = place(&home.join("proxy.db"));
                let command = command.args(["--store", &store, "--listen", &address, "--admin", "127.0.0.1:0"]);
                let process = Process::start(command);
                process.logs("listening listen=");
                process
            }
            Part::Depot => {
                let process = Process::start(example("axum_orders").arg(home.join("depot.db")).arg(address));
                assert!(process.line().starts_with("listening"));
                process
            }
        }
    }

    fn kill(&self, part: Part) {
        let mut running = self.running.lock().expect("nobody panicked");
        running[part as usize].kill();
        running[part as usize] = self.part(part);
    }

    fn shipped(&self) -> usize {
        self.count("depot.db", "orders")
    }

    /// What is still to be sent or looked at.
    fn open(&self) -> usize {
        self.count("shop.db", "counterfoil_intent WHERE due_at IS NOT NULL")
    }
}

/// Orders until the shop has said yes.
fn order(url: &str, number: &str) {
    let body = format!("{{\"number\": \"{number}\", \"item\": \"pen\"}}");
    loop {
        match ask(url, number, &body) {
            Some((201, _)) => return,
            Some((status, answer)) => assert!(status == 409 || status >= 500, "{number}: {status} {answer}"),
            None => {}
        }
        thread::park_timeout(Duration::from_millis(20));
    }
}

/// Waits until it is so.
fn until(what: &str, so: impl Fn() -> bool) {
    let limit = Instant::now() + ROUND_WITHIN;
    while !so() {
        assert!(Instant::now() < limit, "{what}");
        thread::park_timeout(Duration::from_millis(20));
    }
}

fn round(chain: &Chain, number: usize, random: &mut fastrand::Rng, seed: u64) {
    let told = format!("KILL_SEED={seed}, round {number}");
    let (before, moment) = (chain.shipped(), random.usize(1..ACTIONS));
    // Every kind in turn, and another one with it.
    let victims = [PARTS[number % PARTS.len()], PARTS[random.usize(..PARTS.len())]];
    let (next, ended, url) =
        (AtomicUsize::new(0), AtomicUsize::new(0), format!("http://{}", chain.address(Part::Shop)));
    thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                loop {
                    let task = next.fetch_add(1, Ordering::SeqCst);
                    if task >= ACTIONS {
                        return;
                    }
                    order(&url, &format!("{number}-{task}"));
                    ended.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        for victim in victims {
            // The shop dies while it is asked, the others while they ship.
            until(&told, || match victim {
                Part::Shop => ended.load(Ordering::SeqCst) >= moment,
                Part::Relay | Part::Proxy | Part::Depot => chain.shipped() >= before + moment,
            });
            chain.kill(victim);
        }
    });
    until(&told, || chain.open() == 0);
    let all = (number + 1) * ACTIONS;
    let made = (chain.count("shop.db", "orders"), chain.count("shop.db", "counterfoil_intent"), chain.shipped());
    assert_eq!(made, (all, all, all), "{told}: {victims:?}");
    // One key each: another one would have left another receipt.
    assert_eq!(chain.count("depot.db", "counterfoil_record"), all, "{told}: {victims:?}");
}

#[test]
fn whoever_is_killed_every_order_is_made_once_and_shipped_once() {
    let rounds = std::env::var("KILL_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(5);
    let seed = std::env::var("KILL_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or_else(|| fastrand::u64(..));
    let mut random = fastrand::Rng::with_seed(seed);
    let chain = Chain::start();
    for number in 0..rounds {
        round(&chain, number, &mut random, seed);
    }
    drop(std::mem::take(&mut *chain.running.lock().expect("nobody panicked")));
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime starts");
    runtime.block_on(all_succeeded(&chain));
}

/// That each intent ended as done, and none waits for a person.
async fn all_succeeded(chain: &Chain) {
    let store = SqliteStore::open(chain.home.path().join("shop.db"), Options::default()).expect("it opens");
    let mut after = 0;
    loop {
        let page = store.intents(after, 100).await.expect("a page");
        for (position, intent) in page.rows {
            let intent = intent.expect("it can be read");
            assert_eq!(intent.state.as_str(), "succeeded", "{}", intent.request.name.as_str());
            after = position;
        }
        if !page.more {
            return;
        }
    }
}
