//! The store's file under running processes: missing, shared by two, restored from a copy, replaced, deleted.
//!
//! What does not belong here: files that are full, locked or damaged, which the store's own tests have.

use std::{
    fs, io,
    path::Path,
    sync::mpsc::channel,
    thread,
    time::{Duration, SystemTime},
};

use super::{
    curl::{get, post},
    served::{Served, in_doubt, receipts, run},
    upstream::Upstream,
};

/// How many clients race for one key.
const RACERS: usize = 8;

/// What a configuration file must say.
fn configured(upstream: &str) -> String {
    format!("upstream = \"{upstream}\"\nstore = \"sqlite:counterfoil.db\"\n\n[principal]\nfrom = \"none\"\n")
}

#[test]
fn a_wrong_directory_is_not_an_empty_memory() {
    let home = tempfile::tempdir().expect("a directory");
    let (right, wrong) = (home.path().join("right"), home.path().join("wrong"));
    fs::create_dir(&right).and_then(|()| fs::create_dir(&wrong)).expect("directories");
    let upstream = Upstream::start();
    let config = home.path().join("counterfoil.toml");
    fs::write(&config, configured(upstream.url())).expect("a file");
    let config = config.to_str().expect("a path of text");

    let made = run(&["migrate", "--config", config], &right);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let served = Served::with(&["--config", config], Some(&right));
    post(&served.url("/orders"), "k-1").is(201, "false");
    served.stop();

    let refused = run(&["serve", "--config", config, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"], &wrong);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && said.contains("counterfoil migrate"), "{}: {said}", refused.status);
    assert!(!wrong.join("counterfoil.db").exists(), "nothing was made");

    let served = Served::with(&["--config", config], Some(&right));
    post(&served.url("/orders"), "k-1").is(201, "true");
    assert_eq!(upstream.calls(), 1);
    served.stop();
}

#[test]
fn two_servers_on_one_file_run_a_key_once() {
    let home = tempfile::tempdir().expect("a directory");
    let store = home.path().join("counterfoil.db");
    let upstream = Upstream::start();
    let servers = [Served::start(&store, upstream.url()), Served::start(&store, upstream.url())];

    let (sender, answers) = channel();
    for racer in 0..RACERS {
        let (sender, url) = (sender.clone(), servers[racer % 2].url("/hold"));
        thread::spawn(move || sender.send(post(&url, "k-1")));
    }
    upstream.wait_held();
    for _ in 1..RACERS {
        answers.recv().expect("it is answered").is_problem(409, "in-progress");
    }
    upstream.release();
    let winner = answers.recv().expect("it is answered");
    winner.is(201, "false");
    for server in &servers {
        assert_eq!(post(&server.url("/hold"), "k-1").is(201, "true").body, winner.body);
    }
    assert_eq!(upstream.calls(), 1);
    servers.into_iter().for_each(Served::stop);
}

#[test]
fn a_restart_leaves_the_leases_of_the_other_server() {
    let home = tempfile::tempdir().expect("a directory");
    let store = home.path().join("counterfoil.db");
    let upstream = Upstream::start();
    let stays = Served::start(&store, upstream.url());
    let mut dies = Served::start(&store, upstream.url());

    let url = stays.url("/hold");
    let running = thread::spawn(move || post(&url, "k-1"));
    upstream.wait_held();
    dies.process.kill();
    let again = Served::start(&store, upstream.url());
    post(&again.url("/hold"), "k-1").is_problem(409, "in-progress");
    assert!(in_doubt(&store).is_empty());

    upstream.release();
    let answer = running.join().expect("it is answered");
    assert_eq!(post(&again.url("/hold"), "k-1").is(201, "true").body, answer.is(201, "false").body);
    assert_eq!(upstream.calls(), 1);
    stays.stop();
    again.stop();
}

/// A `UUIDv7` of the instant that lies `ahead` of now.
fn dated(ahead: Duration) -> String {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("a clock after 1970");
    let millis = (now + ahead).as_millis();
    format!("{:08x}-{:04x}-7abc-8def-0123456789ab", millis >> 16, millis & 0xffff)
}

#[test]
fn a_restored_copy_runs_no_key_that_it_may_have_forgotten() {
    let home = tempfile::tempdir().expect("a directory");
    let (store, copy) = (home.path().join("counterfoil.db"), home.path().join("copy.db"));
    let upstream = Upstream::start();
    let served = Served::start(&store, upstream.url());
    post(&served.url("/orders"), "k-copied").is(201, "false");
    served.stop();
    whole(&store);
    fs::copy(&store, &copy).expect("a copy");

    let forgotten = dated(Duration::ZERO);
    let served = Served::start(&store, upstream.url());
    for key in ["k-forgotten", &forgotten] {
        post(&served.url("/orders"), key).is(201, "false");
    }
    served.stop();
    whole(&store);
    fs::rename(&copy, &store).expect("the copy takes its place");
    receipts(&store, &["quarantine", "--before", "now"]);

    let served = Served::start(&store, upstream.url());
    let url = served.url("/orders");
    post(&url, "k-copied").is(201, "true");
    for key in ["k-forgotten", &forgotten, "k-never-seen"] {
        for _attempt in 0..2 {
            post(&url, key).is_problem(409, "outcome-unknown");
        }
    }
    assert_eq!(upstream.calls(), 3, "none of them runs");
    let doubts = in_doubt(&store);
    assert!(doubts.iter().all(|doubt| doubt["why"] == "quarantined") && doubts.len() == 3, "{doubts:?}");
    // What was made after the copy came back cannot have been forgotten.
    post(&url, &dated(Duration::from_secs(1))).is(201, "false");
    served.stop();
}

/// A store that was closed in order is one file.
fn whole(store: &Path) {
    let log = store.with_extension("db-wal");
    assert!(!log.exists(), "{} was not closed in order", store.display());
}

/// What befalls a file that is in use.
type Happening = fn(&Path) -> io::Result<()>;

#[test]
fn a_file_that_is_gone_is_unavailable_before_any_claim() {
    let rows: [(&str, Happening); 3] = [
        ("deleted", |store| fs::remove_file(store)),
        ("replaced", |store| {
            let copy = store.with_extension("copy");
            fs::copy(store, &copy).and_then(|_| fs::rename(&copy, store))
        }),
        ("empty", |store| fs::remove_file(store).and_then(|()| fs::write(store, ""))),
    ];
    for (what, happens) in rows {
        let home = tempfile::tempdir().expect("a directory");
        let store = home.path().join("counterfoil.db");
        let upstream = Upstream::start();
        let served = Served::start(&store, upstream.url());
        post(&served.url("/orders"), "k-1").is(201, "false");
        happens(&store).expect(what);
        for key in ["k-2", "k-3", "k-2"] {
            post(&served.url("/orders"), key).is_problem(503, "store-unavailable");
        }
        assert_eq!(upstream.calls(), 1, "{what}: the service is not called");
        let ready = get(&served.admin_url("/readyz"));
        assert_eq!((ready.status, ready.member("ready").as_str()), (503, "false"), "{what}: {ready:?}");
        assert_eq!(get(&served.admin_url("/healthz")).status, 200, "{what}: it lives");
    }
}
