//! A primary with a synchronous standby is killed under load, and the standby takes its place: nothing is repeated, and
//! nothing that was answered is forgotten.
//!
//! What does not belong here: a commit whose wait for the standby was cut short, which the store's own tests have.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::thread;
use std::time::{Duration, Instant};

use counterfoil_store::postgres::trial::{Database, Server};

use super::curl::get;
use super::kills::{client, kill_postmaster};
use super::other_kills::{End, listed};
use super::served::{Served, run};
use super::upstream::read_request;

const CLIENTS: usize = 8;
/// Actions before the standby is cut off, and after it was promoted.
const ACTIONS: usize = 60;
/// How long anything that must come may take.
const COMES_WITHIN: Duration = Duration::from_mins(1);

/// An application whose effects are out of every database's reach: how often each body was run.
#[derive(Clone, Default)]
struct Effects(Arc<Mutex<BTreeMap<String, usize>>>);

impl Effects {
    /// Serves on a free port for as long as the test's process lives.
    fn serve(&self) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("it is bound"));
        let effects = self.clone();
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let effects = effects.clone();
                // A proxy that has gone needs no answer.
                thread::spawn(move || effects.answer(&stream).is_ok());
            }
        });
        url
    }

    fn answer(&self, mut stream: &TcpStream) -> std::io::Result<()> {
        let (_, body) = read_request(stream)?;
        let body = String::from_utf8_lossy(&body).into_owned();
        let number = {
            let mut effects = self.0.lock().expect("nobody panicked");
            *effects.entry(body).or_default() += 1;
            effects.values().sum::<usize>()
        };
        let said = format!("order {number}");
        let head = "HTTP/1.1 201 Created\r\nConnection: close\r\nContent-Length: ";
        write!(stream, "{head}{}\r\n\r\n{said}", said.len())
    }

    fn of(&self, key: &str) -> usize {
        let effects = self.0.lock().expect("nobody panicked");
        effects.iter().filter(|(body, _)| body.contains(&format!("\"{key}\""))).map(|(_, count)| count).sum()
    }
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < COMES_WITHIN, "{what}");
        thread::park_timeout(Duration::from_millis(20));
    }
}

/// A database on a primary, and a standby that its commits wait for.
fn pair() -> (Database, Server) {
    let database = Arc::new(Server::start(&[]).expect("PostgreSQL starts")).empty().expect("a database");
    let home = tempfile::tempdir().expect("a directory");
    let migrated = run(&["migrate", "--store", &database.url()], home.path());
    assert!(migrated.status.success(), "{}", String::from_utf8_lossy(&migrated.stderr));
    // What the application's own commits may do without, and ours may not.
    let weak = format!("ALTER DATABASE {} SET synchronous_commit = local", database.name());
    database.psql(&[&weak]).expect("the weaker setting");
    let standby = database.server().follower().expect("a standby starts");
    database.psql(&["ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()"]).expect("a setting");
    let state = "SELECT string_agg(sync_state, ',') FROM pg_stat_replication";
    until("the standby is synchronous", || database.psql(&[state]).expect("a state") == "sync");
    (database, standby)
}

/// Cuts the standby off, and waits until a commit waits for it; or, where none does, until many have been answered.
fn cut(database: &Database, standby: &Server, ended: &AtomicUsize) {
    let cut = ["ALTER SYSTEM SET primary_conninfo = ''", "SELECT pg_reload_conf()"];
    standby.psql("postgres", &cut).expect("a setting");
    until("the standby is cut off", || {
        database.psql(&["SELECT count(*) FROM pg_stat_replication"]).expect("a count") == "0"
    });
    let answered = ended.load(Ordering::SeqCst);
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
    until("commits wait for the standby", || {
        database.psql(&[waiting]).expect("a count") != "0" || ended.load(Ordering::SeqCst) > answered + ACTIONS
    });
}

/// That it is the same store, and what no standby is sent works there, too.
fn same_store(standby: &Server, name: &str, id: &str) {
    let standing = standby.psql(name, &["SELECT id FROM counterfoil.store", "SELECT count(*) FROM counterfoil.held"]);
    assert_eq!(standing.expect("it answers"), format!("{id}\n0"));
    let held = standby.psql(name, &["BEGIN; SELECT counterfoil.hold('nobody'); COMMIT"]).expect_err("nobody's permit");
    assert!(held.to_string().contains("no record knows this permit"), "{held}");
}

/// Two proxies before the application at `upstream`.
fn proxies(home: &std::path::Path, upstream: &str, store: &str) -> [RwLock<Served>; 2] {
    let config = home.join("counterfoil.toml");
    let text = format!(
        "upstream = \"{upstream}\"\nstore = \"{store}\"\nprincipal.from = \"none\"\n[defaults]\neffect = \"other\"\n\
         lease = \"5s\"\n[[operation]]\nname = \"create-order\"\nmatch = \"POST /orders\"\nkey = \"required\"\n"
    );
    std::fs::write(&config, text).expect("a file");
    let config = config.to_str().expect("a path of text");
    [(); 2].map(|()| RwLock::new(Served::with(&["--config", config], None)))
}

#[test]
fn a_standby_that_takes_over_has_forgotten_nothing() {
    let home = tempfile::tempdir().expect("a directory");
    let (database, standby) = pair();
    let id = database.psql(&["SELECT id FROM counterfoil.store"]).expect("an id");
    let (one, other, name) = (database.server().port(), standby.port(), database.name().to_owned());
    let store = format!("postgres://postgres@127.0.0.1:{one},127.0.0.1:{other}/{name}?sslmode=disable");
    let effects = Effects::default();
    let proxies = proxies(home.path(), &effects.serve(), &store);

    let (next, ended, stop) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicBool::new(false));
    let answers: Mutex<BTreeMap<String, End>> = Mutex::default();
    let mut before = BTreeMap::new();
    thread::scope(|scope| {
        for seed in 0..CLIENTS {
            let (next, ended, stop, answers, proxies) = (&next, &ended, &stop, &answers, &proxies);
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(seed as u64);
                while !stop.load(Ordering::SeqCst) {
                    let key = format!("action-{}", next.fetch_add(1, Ordering::SeqCst));
                    let end = client(proxies, &mut random, &key, End::of);
                    answers.lock().expect("nobody panicked").insert(key, end);
                    ended.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        let more = |from: usize| until("actions end", || ended.load(Ordering::SeqCst) >= from + ACTIONS);
        more(0);
        cut(&database, &standby, &ended);
        before.clone_from(&answers.lock().expect("nobody panicked"));
        kill_postmaster(database.server());
        assert_eq!(standby.psql("postgres", &["SELECT pg_promote()"]).expect("it is promoted"), "t");
        more(ended.load(Ordering::SeqCst));
        stop.store(true, Ordering::SeqCst);
    });

    let answers = answers.into_inner().expect("nobody panicked");
    let unknown = listed(home.path(), &store, "action-");
    let mut random = fastrand::Rng::with_seed(0);
    for (key, end) in &answers {
        let later = client(&proxies, &mut random, key, End::of);
        let count = effects.of(key);
        assert!(count <= 1, "{key} has {count} effects");
        match end {
            End::Result(status, _) => assert_eq!((*status, count), (201, 1), "{key}"),
            End::Doubt => {}
        }
        if later == End::Doubt {
            assert!(unknown.contains(key), "{key} is in doubt and not listed");
        }
        // What was answered while nothing could be stored may be in doubt; what was answered before is not.
        assert!(later == *end || !before.contains_key(key), "{key} was answered {end:?}, and later {later:?}");
        assert!(later == *end || later == End::Doubt || *end == End::Doubt, "{key}: {end:?}, {later:?}");
    }
    let (early, all) = (before.len(), answers.len());
    assert!(early >= ACTIONS && all >= early + ACTIONS, "{early} and {all}");

    same_store(&standby, &name, &id);
    for proxy in proxies {
        let proxy = proxy.into_inner().expect("nobody panicked");
        assert_eq!(get(&proxy.admin_url("/readyz")).status, 200, "{}", proxy.process.log());
        proxy.stop();
    }
}
