//! Three proxies before one PostgreSQL and an application of its own process, clients that go on until they have an
//! answer, and one of all these killed at a random moment.
//!
//! What does not belong here: which answers are right, and what must stand afterwards (`coupled_kills`, `other_kills`).

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::thread;
use std::time::{Duration, Instant};

use counterfoil_store::postgres::trial::{Database, Server};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::process::Process;
use super::served::{Served, run};

pub(super) const ACTIONS: usize = 100;
const CLIENTS: usize = 16;
/// Each action is asked for by so many clients.
const ASKERS: usize = 2;
const PROXIES: usize = 3;

/// What stands behind the proxies, and how they are set up.
pub(super) struct Play {
    /// Starts the application on the database and a port; it is ready when this returns.
    pub(super) application: fn(&Database, u16) -> Process,
    /// The application's own tables.
    pub(super) schema: String,
    /// The proxies' configuration for an application and a store at these addresses.
    pub(super) config: fn(&str, &str) -> String,
}

/// A play on a database server of its own.
pub(super) struct Stage {
    play: Play,
    pub(super) home: TempDir,
    server: Arc<Server>,
    pub(super) database: Database,
    pub(super) port: u16,
    pub(super) app: Mutex<Process>,
}

/// The proxies; one that was killed is replaced in its place.
pub(super) type Proxies = [RwLock<Served>];

impl Stage {
    pub(super) fn start(play: Play) -> Self {
        let home = tempfile::tempdir().expect("a directory");
        let server = Arc::new(Server::start(&[]).expect("PostgreSQL starts"));
        let database = server.empty().expect("a database");
        let migrated = run(&["migrate", "--store", &database.url()], home.path());
        assert!(migrated.status.success(), "{}", String::from_utf8_lossy(&migrated.stderr));
        database.psql(&[&play.schema]).expect("the application's tables");
        let free = std::net::TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr()).expect("a free port");
        let app = Mutex::new((play.application)(&database, free.port()));
        Self { play, home, server, database, port: free.port(), app }
    }

    pub(super) fn proxy(&self) -> Served {
        let upstream = format!("http://127.0.0.1:{}", self.port);
        let config = self.home.path().join("counterfoil.toml");
        std::fs::write(&config, (self.play.config)(&upstream, &self.database.url())).expect("a file");
        Served::with(&["--config", config.to_str().expect("a path of text")], None)
    }

    pub(super) fn proxies(&self) -> Vec<RwLock<Served>> {
        (0..PROXIES).map(|_| RwLock::new(self.proxy())).collect()
    }

    /// What a query answers, once the server is back.
    pub(super) fn count(&self, query: &str) -> String {
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
    fn kill(&self, victim: Victim, proxies: &Proxies) {
        match victim {
            Victim::Proxy(index) => {
                let mut proxy = proxies[index].write().expect("nobody panicked");
                proxy.process.kill();
                *proxy = self.proxy();
            }
            Victim::Application => {
                let mut app = self.app.lock().expect("nobody panicked");
                app.kill();
                *app = (self.play.application)(&self.database, self.port);
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
                kill_postmaster(&self.server);
                // Its children end by and by; until then it does not start.
                while self.server.run().is_err() {
                    thread::park_timeout(Duration::from_millis(50));
                }
            }
        }
    }

    /// One round: every action is asked for until each of its clients has an answer by which `ends` ends, while one is
    /// killed. Everything of the round is named `round-<number>-`.
    pub(super) fn round<A: Ord + Send>(
        &self,
        proxies: &Proxies,
        (number, seed): (usize, u64),
        ends: impl Fn(u16, &str) -> Option<A> + Sync,
    ) -> Round<A> {
        let mut random = fastrand::Rng::with_seed(seed);
        let victims = [Victim::Proxy(random.usize(..PROXIES)), Victim::Application, Victim::Backend, Victim::Server];
        // Every kind in turn; which one of its kind and when are random.
        let (victim, moment) = (victims[number % victims.len()], random.usize(1..ACTIONS * ASKERS));
        let (next, ended) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let answers: Mutex<BTreeMap<String, BTreeSet<A>>> = Mutex::default();
        thread::scope(|scope| {
            for _ in 0..CLIENTS {
                let mut random = fastrand::Rng::with_seed(random.u64(..));
                let (next, ended, answers, ends) = (&next, &ended, &answers, &ends);
                scope.spawn(move || {
                    loop {
                        let task = next.fetch_add(1, Ordering::SeqCst);
                        if task >= ACTIONS * ASKERS {
                            return;
                        }
                        let key = format!("round-{number}-action-{}", task / ASKERS);
                        let answer = client(proxies, &mut random, &key, ends);
                        answers.lock().expect("nobody panicked").entry(key).or_default().insert(answer);
                        ended.fetch_add(1, Ordering::SeqCst);
                    }
                });
            }
            while ended.load(Ordering::SeqCst) < moment {
                thread::park_timeout(Duration::from_millis(2));
            }
            self.kill(victim, proxies);
        });
        let answers = answers.into_inner().expect("nobody panicked");
        let told = format!("seed {seed}, {victim:?}");
        assert_eq!(answers.len(), ACTIONS, "{told}");
        Round { answers, told }
    }
}

/// Kills the whole server as a crash would; nothing holds it any more when this returns.
pub(super) fn kill_postmaster(server: &Server) {
    let lock = std::fs::read_to_string(server.data().join("postmaster.pid")).expect("it runs");
    let pid = lock.lines().next().and_then(|pid| Pid::from_raw(pid.parse().ok()?)).expect("its process");
    kill_process(pid, Signal::KILL).expect("it lives");
    server.stop("immediate").expect("its leash ends");
}

#[derive(Clone, Copy, Debug)]
enum Victim {
    Proxy(usize),
    Application,
    Backend,
    Server,
}

/// What came of a round.
pub(super) struct Round<A> {
    /// By key: what its clients were answered in the end.
    pub(super) answers: BTreeMap<String, BTreeSet<A>>,
    /// How to have this round again.
    pub(super) told: String,
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

/// Sends one action, each time to a proxy that is chosen by chance, until an answer ends it.
pub(super) fn client<A>(
    proxies: &Proxies,
    random: &mut fastrand::Rng,
    key: &str,
    ends: impl Fn(u16, &str) -> Option<A>,
) -> A {
    let body = format!("{{\"reference\": \"{key}\", \"item\": \"tea\"}}");
    loop {
        let url = proxies[random.usize(..proxies.len())].read().expect("nobody panicked").url("");
        let answer = ask(&url, key, &body);
        if let Some(end) = answer.and_then(|(status, answer)| ends(status, &answer)) {
            return end;
        }
        thread::park_timeout(Duration::from_millis(20));
    }
}

/// A number of rounds from one seed, both from the environment where it says so, and what is printed about them.
pub(super) struct Rounds {
    effect: &'static str,
    count: usize,
    seed: u64,
    begun: Instant,
}

impl Rounds {
    /// `KILL_ROUNDS` (10) rounds from `KILL_SEED` (by chance).
    pub(super) fn begin(effect: &'static str) -> Self {
        let told = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
        let count = told("KILL_ROUNDS").and_then(|count| count.try_into().ok()).unwrap_or(10);
        let seed = told("KILL_SEED").unwrap_or_else(|| fastrand::u64(..));
        say(&format!("effect = \"{effect}\": KILL_SEED={seed}"));
        Self { effect, count, seed, begun: Instant::now() }
    }

    /// Each round's number and its own seed.
    pub(super) fn each(&self) -> impl Iterator<Item = (usize, u64)> + use<> {
        let seed = self.seed;
        (0..self.count).map(move |number| (number, seed.wrapping_add(number as u64)))
    }

    /// Says what was done, and `came` of it.
    pub(super) fn end(self, came: &str) {
        let Self { effect, count, seed, begun } = self;
        let killed = ["a proxy", "the application", "a backend", "the database server"];
        let killed: Vec<String> = killed
            .iter()
            .enumerate()
            .map(|(kind, name)| format!("{name} {} times", (count + killed.len() - 1 - kind) / killed.len()))
            .collect();
        say(&format!(
            "effect = \"{effect}\": seed {seed}, {count} rounds of {ACTIONS} actions by {CLIENTS} clients, each action \
             asked for by {ASKERS}, {} s\n  killed: {}\n  {came}",
            begun.elapsed().as_secs(),
            killed.join(", ")
        ));
    }
}

/// Past the capture of a test's output, so that a run that hangs has told it, too.
pub(super) fn say(line: &str) {
    writeln!(std::io::stderr(), "{line}").expect("somebody reads it");
}
