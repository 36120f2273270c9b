//! A chain of actions: `counterfoil send`, `counterfoil serve`, a shop whose orders leave intents behind, `counterfoil relay`,
//! another `serve`, and a depot that ships, each of which is killed at random. Each order is made once and shipped once, under one key.
//! What the relay makes of a single intent is tested in the client.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use counterfoil_store::sqlite::Options;
use counterfoil_store::{IntentStore as _, SqliteStore};
use rusqlite::Connection;
use tempfile::TempDir;

use super::kills::say;
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
    /// The proxy before the shop.
    Door,
    /// One that orders.
    Caller,
}

/// What is started once and listens or works from then on; then the callers.
const PARTS: [Part; 6] = [Part::Shop, Part::Relay, Part::Proxy, Part::Depot, Part::Door, Part::Caller];
const SERVING: usize = 5;

/// The processes, and where they are.
struct Chain {
    home: TempDir,
    ports: [u16; SERVING],
    running: Mutex<Vec<Process>>,
    /// What each client has under way.
    calling: [Mutex<Option<Child>>; CLIENTS],
}

pub(super) fn example(name: &str) -> Command {
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
        let ports = [(); SERVING].map(|()| free_port());
        let chain = Self { home, ports, running: Mutex::default(), calling: [const { Mutex::new(None) }; CLIENTS] };
        // The relay's file is made by the shop.
        let started: Vec<Process> = PARTS.into_iter().take(SERVING).map(|part| chain.part(part)).collect();
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
            Part::Proxy => self.serve("proxy", &address, Part::Depot),
            Part::Door => self.serve("door", &address, Part::Shop),
            Part::Caller => unreachable!("callers end by themselves"),
            Part::Depot => {
                let process = Process::start(example("axum_orders").arg(home.join("depot.db")).arg(address));
                assert!(process.line().starts_with("listening"));
                process
            }
        }
    }

    /// A proxy before `upstream`, which takes keys itself.
    fn serve(&self, name: &str, address: &str, upstream: Part) -> Process {
        let (home, upstream) = (self.home.path(), self.address(upstream));
        let config = home.join(format!("{name}.toml"));
        let text = format!(
            "upstream = \"http://{upstream}\"\nprincipal.from = \"none\"\n[[operation]]\nname = \"order\"\n\
             match = \"POST /orders\"\neffect = \"keyed-upstream\"\nwindow = \"24h\"\nlease = \"1s\"\n\
             in_progress = [\"urn:counterfoil:problem:in-progress\"]\n"
        );
        std::fs::write(&config, text).expect("a file");
        let mut command = Command::new(counterfoil());
        let store = place(&home.join(format!("{name}.db")));
        let command = alone(&mut command).arg("serve").arg("--config").arg(config);
        let process = Process::start(command.args(["--store", &store, "--listen", address, "--admin", "127.0.0.1:0"]));
        process.logs("listening listen=");
        process
    }

    /// Has one `send` of `client` order once, whatever becomes of it: its exit code, or `None` where it was killed.
    fn sends(&self, client: usize, number: &str) -> Option<i32> {
        let (home, url) = (self.home.path(), format!("http://{}/orders", self.address(Part::Door)));
        let (journal, name) = (place(&home.join("callers.db")), format!("order/{number}"));
        let body = format!("{{\"number\": \"{number}\", \"item\": \"pen\"}}");
        let mut command = Command::new(counterfoil());
        let words = ["send", "--journal", &journal, "--profile", "counterfoil", "--window", "24h", "--intent", &name];
        let command = alone(&mut command).args(words).args(["--wait", "1s", "--json", &body, &url]);
        let child =
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
        let calling = || self.calling[client].lock().expect("nobody panicked");
        *calling() = Some(child);
        loop {
            let ended = calling().as_mut().and_then(|child| child.try_wait().expect("it is ours"));
            if let Some(status) = ended {
                calling().take();
                return status.code();
            }
            thread::park_timeout(Duration::from_millis(5));
        }
    }

    fn kill(&self, part: Part) {
        if part == Part::Caller {
            // The first that is there; in between, none is.
            for calling in &self.calling {
                if let Some(child) = calling.lock().expect("nobody panicked").as_mut() {
                    return child.kill().expect("it is ours");
                }
            }
            return;
        }
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

/// The same command until it says that the order is made.
fn order(chain: &Chain, client: usize, number: &str) {
    loop {
        match chain.sends(client, number) {
            Some(0) => return,
            // Uncertain, in progress elsewhere, not executed; or it was killed.
            Some(4 | 5 | 75) | None => {}
            Some(other) => panic!("{number}: exit {other}"),
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

fn round(chain: &Chain, number: usize, random: &mut fastrand::Rng, seed: u64) -> [Part; 2] {
    let told = format!("KILL_SEED={seed}, round {number}");
    let (before, moment) = (chain.shipped(), random.usize(1..ACTIONS));
    // Every kind in turn, and another one with it.
    let victims = [PARTS[number % PARTS.len()], PARTS[random.usize(..PARTS.len())]];
    let (next, ended) = (AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (next, ended) = (&next, &ended);
            scope.spawn(move || {
                loop {
                    let task = next.fetch_add(1, Ordering::SeqCst);
                    if task >= ACTIONS {
                        return;
                    }
                    order(chain, client, &format!("{number}-{task}"));
                    ended.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        for victim in victims {
            // What is asked dies while it is, the others while they ship.
            until(&told, || match victim {
                Part::Shop | Part::Door | Part::Caller => ended.load(Ordering::SeqCst) >= moment,
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
    victims
}

#[test]
fn whoever_is_killed_every_order_is_made_once_and_shipped_once() {
    let rounds = std::env::var("KILL_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(20);
    let seed = std::env::var("KILL_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or_else(|| fastrand::u64(..));
    let mut random = fastrand::Rng::with_seed(seed);
    let (chain, begun) = (Chain::start(), Instant::now());
    let mut killed = BTreeMap::new();
    for number in 0..rounds {
        for victim in round(&chain, number, &mut random, seed) {
            *killed.entry(format!("{victim:?}").to_lowercase()).or_insert(0) += 1;
        }
    }
    let (orders, seconds) = (rounds * ACTIONS, begun.elapsed().as_secs());
    say(&format!(
        "a chain of actions: seed {seed}, {rounds} rounds of {ACTIONS} orders by {CLIENTS} clients, {seconds} s
  killed: \
         {killed:?}
  {orders} orders: each made once, with one intent, and shipped once under one key"
    ));
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
