//! The Python example behind three proxies on one database, while one of them, the application, a backend or the whole
//! database server is killed at a random moment: every action has one row, every caller of a key the same answer, nothing
//! is stuck or left to an operator.
//! Which wrong turns an application can take stands in `coupled`.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::thread;
use std::time::Duration;

use counterfoil_store::postgres::trial::{Database, Server};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::curl::{Sent, curl, get};
use super::process::Process;
use super::python::python;
use super::served::{Served, run};

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/python_flask");

const ACTIONS: usize = 100;
const CLIENTS: usize = 16;
/// Each action is asked for by so many clients.
const ASKERS: usize = 2;
const PROXIES: usize = 3;

/// The example as it stands, with a database server of its own.
struct Shop {
    home: TempDir,
    server: Arc<Server>,
    database: Database,
    port: u16,
    app: Mutex<Process>,
}

/// The Node example, beside the packages that `./test` has installed.
fn node_application(home: &std::path::Path, database: &Database, port: u16) -> Process {
    let packages = std::env::var_os("COUNTERFOIL_NODE")
        .expect("COUNTERFOIL_NODE names no packages: run ./test, which installs them and sets it");
    std::os::unix::fs::symlink(std::path::Path::new(&packages).join("node_modules"), home.join("node_modules"))
        .expect("a link");
    std::fs::copy(format!("{EXAMPLE}/../node_express/app.mjs"), home.join("app.mjs")).expect("the example");
    let url = database.url().replace("postgres@", "orders@");
    let mut command = Command::new("node");
    let process = Process::start(command.arg(home.join("app.mjs")).arg(port.to_string()).env("DATABASE_URL", url));
    assert_eq!(process.line(), format!("orders on http://127.0.0.1:{port}"));
    process
}

fn application(database: &Database, port: u16) -> Process {
    let url = database.url().replace("postgres@", "orders@");
    let mut command: Command = python();
    let process =
        Process::start(command.arg(format!("{EXAMPLE}/app.py")).arg(port.to_string()).env("DATABASE_URL", url));
    assert_eq!(process.line(), format!("orders on http://127.0.0.1:{port}"));
    process
}

impl Shop {
    fn start() -> Self {
        let home = tempfile::tempdir().expect("a directory");
        let server = Arc::new(Server::start(&[]).expect("PostgreSQL starts"));
        let database = server.empty().expect("a database");
        let migrated = run(&["migrate", "--store", &database.url()], home.path());
        assert!(migrated.status.success(), "{}", String::from_utf8_lossy(&migrated.stderr));
        let schema = std::fs::read_to_string(format!("{EXAMPLE}/schema.sql")).expect("the example's schema");
        database.psql(&[&schema]).expect("the example's tables");
        let free = std::net::TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr()).expect("a free port");
        let app = Mutex::new(application(&database, free.port()));
        Self { home, server, database, port: free.port(), app }
    }

    /// The example's own configuration, where this test's things stand.
    fn proxy(&self, more: &str) -> Served {
        let text = std::fs::read_to_string(format!("{EXAMPLE}/counterfoil.toml")).expect("the example's configuration");
        let text = text
            .replace("http://127.0.0.1:9000", &format!("http://127.0.0.1:{}", self.port))
            .replace("postgres://postgres@127.0.0.1/shop", &self.database.url());
        let config = self.home.path().join("counterfoil.toml");
        std::fs::write(&config, format!("{text}{more}")).expect("a file");
        Served::with(&["--config", config.to_str().expect("a path of text")], None)
    }

    /// What a query answers, once the server is back.
    fn count(&self, query: &str) -> String {
        loop {
            match self.database.psql(&[query]) {
                Ok(answer) => return answer,
                Err(error) if error.to_string().contains("connection to server") => {
                    thread::park_timeout(Duration::from_millis(50));
                }
                Err(error) => panic!("{query}: {error}"),
            }
        }
    }

    /// Kills `victim`, and starts again what is gone.
    fn kill(&self, victim: Victim, proxies: &[RwLock<Served>]) {
        match victim {
            Victim::Proxy(index) => {
                let mut proxy = proxies[index].write().expect("nobody panicked");
                proxy.process.kill();
                *proxy = self.proxy("lease = \"1s\"\n");
            }
            Victim::Application => {
                let mut app = self.app.lock().expect("nobody panicked");
                app.kill();
                *app = application(&self.database, self.port);
            }
            Victim::Backend => {
                let pids = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()";
                // While the server is on its way back from an earlier one there is none to ask.
                let pids = self.database.psql(&[pids]).unwrap_or_default();
                if let Some(pid) = pids.lines().next().and_then(|pid| Pid::from_raw(pid.parse().ok()?)) {
                    // It may have ended by itself meanwhile.
                    let _ = kill_process(pid, Signal::KILL);
                }
            }
            Victim::Server => {
                let lock = std::fs::read_to_string(self.server.data().join("postmaster.pid")).expect("it runs");
                let pid = lock.lines().next().and_then(|pid| Pid::from_raw(pid.parse().ok()?)).expect("its process");
                kill_process(pid, Signal::KILL).expect("it lives");
                self.server.stop("immediate").expect("its leash ends");
                // Its children end by and by; until then it does not start.
                while self.server.run().is_err() {
                    thread::park_timeout(Duration::from_millis(50));
                }
            }
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Victim {
    Proxy(usize),
    Application,
    Backend,
    Server,
}

/// One request over a connection of its own; nothing where no whole answer came.
pub(super) fn ask(url: &str, key: &str, body: &str) -> Option<(u16, String)> {
    let address = url.strip_prefix("http://")?;
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(20))).ok()?;
    let length = body.len();
    write!(
        stream,
        "POST /orders HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\nidempotency-key: {key}\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    )
    .ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    let (head, answer) = text.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let length: usize = head.lines().find_map(|line| line.strip_prefix("content-length: "))?.parse().ok()?;
    (answer.len() == length).then(|| (status, answer.to_owned()))
}

/// Sends one action until it has an answer that is a result.
fn client(proxies: &[RwLock<Served>], random: &mut fastrand::Rng, key: &str) -> (u16, String) {
    let body = format!("{{\"reference\": \"{key}\", \"item\": \"tea\"}}");
    loop {
        let url = proxies[random.usize(..proxies.len())].read().expect("nobody panicked").url("");
        match ask(&url, key, &body) {
            Some((status, answer)) if !answer.contains("\"type\"") && status != 500 => return (status, answer),
            Some(_) | None => thread::park_timeout(Duration::from_millis(20)),
        }
    }
}

fn round(shop: &Shop, proxies: &[RwLock<Served>], number: usize, seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let victims = [Victim::Proxy(random.usize(..PROXIES)), Victim::Application, Victim::Backend, Victim::Server];
    // Every kind in turn; which one of its kind and when are random.
    let (victim, moment) = (victims[number % victims.len()], random.usize(1..ACTIONS * ASKERS));
    let (next, ended) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let answers: Mutex<BTreeMap<String, BTreeSet<(u16, String)>>> = Mutex::default();
    thread::scope(|scope| {
        for _ in 0..CLIENTS {
            let mut random = fastrand::Rng::with_seed(random.u64(..));
            let (next, ended, answers) = (&next, &ended, &answers);
            scope.spawn(move || {
                loop {
                    let task = next.fetch_add(1, Ordering::SeqCst);
                    if task >= ACTIONS * ASKERS {
                        return;
                    }
                    let key = format!("round-{number}-action-{}", task / ASKERS);
                    let answer = client(proxies, &mut random, &key);
                    answers.lock().expect("nobody panicked").entry(key).or_default().insert(answer);
                    ended.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        while ended.load(Ordering::SeqCst) < moment {
            thread::park_timeout(Duration::from_millis(2));
        }
        shop.kill(victim, proxies);
    });
    let answers = answers.into_inner().expect("nobody panicked");
    assert_eq!(answers.len(), ACTIONS, "seed {seed}, {victim:?}");
    for (key, answers) in &answers {
        let one = answers.len() == 1 && answers.first().is_some_and(|(status, _)| *status == 201);
        assert!(one, "seed {seed}, {victim:?}: {key} was answered {answers:?}");
    }
    let prefix =
        format!("SELECT count(*), count(DISTINCT reference) FROM orders WHERE reference LIKE 'round-{number}-%'");
    let rows = shop.count(&prefix);
    assert_eq!(rows, format!("{ACTIONS}|{ACTIONS}"), "seed {seed}, {victim:?}");
    let unsettled = "SELECT count(*) FROM counterfoil.record WHERE expires_at IS NULL";
    assert_eq!(shop.count(unsettled), "0", "seed {seed}, {victim:?}: something is stuck");
}

#[test]
fn whoever_is_killed_every_action_is_done_once() {
    let rounds = std::env::var("KILL_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(10);
    let seed = std::env::var("KILL_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or_else(|| fastrand::u64(..));
    // Past the capture of a test's output, so that a run that hangs has told it, too.
    writeln!(std::io::stderr(), "KILL_SEED={seed}").expect("somebody reads it");
    let shop = Shop::start();
    let proxies: Vec<RwLock<Served>> = (0..PROXIES).map(|_| RwLock::new(shop.proxy("lease = \"1s\"\n"))).collect();
    for number in 0..rounds {
        round(&shop, &proxies, number, seed.wrapping_add(number as u64));
    }
}

/// What both guides show; `colon` is how the language prints JSON.
fn check_guide(shop: &Shop, colon: &str, comma: &str) {
    let proxy = shop.proxy("");
    let order = |key: &str, reference: &str| {
        let body = format!("{{\"reference\": \"{reference}\", \"item\": \"tea\"}}");
        curl("POST", &proxy.url("/orders"), Sent { key, body: &body, headers: &[] })
    };
    let first = order("k-1", "A-1");
    assert_eq!(first.is(201, "false").body, format!("{{\"id\"{colon}1{comma}\"item\"{colon}\"tea\"}}"));
    assert_eq!(order("k-1", "A-1").is(201, "true").body, first.body);
    // Another key for the same reference: the business's own rule, and its answer is a receipt too.
    let refused = order("k-2", "A-1");
    assert_eq!(refused.is(409, "false").body, format!("{{\"error\"{colon}\"this reference has an order already\"}}"));
    order("k-2", "A-1").is(409, "true");
    assert_eq!(shop.database.psql(&["SELECT count(*) FROM orders"]).expect("a count"), "1");
    assert_eq!(get(&proxy.admin_url("/readyz")).status, 200);
    proxy.stop();
}

#[test]
fn the_python_example_does_what_its_guide_says() {
    check_guide(&Shop::start(), ": ", ", ");
}

#[test]
fn the_node_example_does_what_its_guide_says() {
    let shop = Shop::start();
    // On the same port, after the other has gone.
    let mut app = shop.app.lock().expect("nobody panicked");
    app.kill();
    *app = node_application(shop.home.path(), &shop.database, shop.port);
    drop(app);
    check_guide(&shop, ":", ",");
}
