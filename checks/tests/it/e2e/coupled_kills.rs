//! The Python example behind three proxies on one database, while one of them, the application, a backend or the whole
//! database server is killed at a random moment: every action has one row, every caller of a key the same answer, nothing
//! is stuck or left to an operator.
//! Which wrong turns an application can take stands in `coupled`, how it is killed in `kills`.

use std::process::Command;

use counterfoil_store::postgres::trial::Database;

use super::curl::{Sent, curl, get};
use super::kills::{ACTIONS, Play, Rounds, Stage};
use super::process::Process;
use super::python::python;

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/python_flask");

/// The example as it stands.
fn example(config: fn(&str, &str) -> String) -> Play {
    let schema = std::fs::read_to_string(format!("{EXAMPLE}/schema.sql")).expect("the example's schema");
    Play { application, schema, config }
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

/// The example's own configuration, where this test's things stand.
fn config(upstream: &str, store: &str) -> String {
    let text = std::fs::read_to_string(format!("{EXAMPLE}/counterfoil.toml")).expect("the example's configuration");
    text.replace("http://127.0.0.1:9000", upstream).replace("postgres://postgres@127.0.0.1/shop", store)
}

#[test]
fn whoever_is_killed_every_action_is_done_once() {
    let rounds = Rounds::begin("coupled");
    let stage = Stage::start(example(|upstream, store| format!("{}lease = \"1s\"\n", config(upstream, store))));
    let proxies = stage.proxies();
    let mut done = 0;
    for (number, seed) in rounds.each() {
        let round = stage.round(&proxies, (number, seed), |status, answer| {
            (!answer.contains("\"type\"") && status != 500).then(|| (status, answer.to_owned()))
        });
        let told = &round.told;
        for (key, answers) in &round.answers {
            let one = answers.len() == 1 && answers.first().is_some_and(|(status, _)| *status == 201);
            assert!(one, "{told}: {key} was answered {answers:?}");
            done += 1;
        }
        let rows = "SELECT count(*), count(DISTINCT reference) FROM orders WHERE reference LIKE";
        assert_eq!(stage.count(&format!("{rows} 'round-{number}-%'")), format!("{ACTIONS}|{ACTIONS}"), "{told}");
        let unsettled = "SELECT count(*) FROM counterfoil.record WHERE expires_at IS NULL";
        assert_eq!(stage.count(unsettled), "0", "{told}: something is stuck");
    }
    rounds.end(&format!("answered 201: {done}, with one row each; in doubt: 0"));
}

/// What both guides show; `colon` is how the language prints JSON.
fn check_guide(shop: &Stage, colon: &str, comma: &str) {
    let proxy = shop.proxy();
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
    check_guide(&Stage::start(example(config)), ": ", ", ");
}

#[test]
fn the_node_example_does_what_its_guide_says() {
    let shop = Stage::start(example(config));
    // On the same port, after the other has gone.
    let mut app = shop.app.lock().expect("nobody panicked");
    app.kill();
    *app = node_application(shop.home.path(), &shop.database, shop.port);
    drop(app);
    check_guide(&shop, ":", ",");
}
