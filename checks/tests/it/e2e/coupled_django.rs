//! The Django example behind the proxy: where its `hold` stands right, it is as any other; inside a nested `atomic()` that is
//! rolled back it protects nothing, and the answer says that nobody knows.
//! Which other wrong turns an application can take stands in `coupled`.

use std::process::Command;

use counterfoil_store::postgres::trial::{Database, Server};
use tempfile::TempDir;

use super::curl::{Answer, Sent, curl};
use super::process::Process;
use super::python::python;
use super::served::{Served, run};

const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples");

struct Shop {
    _home: TempDir,
    database: Database,
    _app: Process,
    proxy: Served,
}

impl Shop {
    fn start() -> Self {
        let home = tempfile::tempdir().expect("a directory");
        let database = Server::shared().expect("PostgreSQL starts").empty().expect("a database");
        let migrated = run(&["migrate", "--store", &database.url()], home.path());
        assert!(migrated.status.success(), "{}", String::from_utf8_lossy(&migrated.stderr));
        let schema = std::fs::read_to_string(format!("{EXAMPLES}/python_flask/schema.sql")).expect("the schema");
        // A role is the whole server's, which others share.
        let role = "CREATE ROLE orders LOGIN;";
        let once = "DO $$ BEGIN CREATE ROLE orders LOGIN; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$;";
        database.psql(&[&schema.replace(role, once)]).expect("the example's tables");
        let url = database.url().replace("postgres@", "orders@");
        let mut command: Command = python();
        let command = command.arg(format!("{EXAMPLES}/python_django/app.py")).arg("0").env("DATABASE_URL", url);
        let app = Process::start(command);
        let line = app.line();
        let upstream = line.strip_prefix("orders on ").expect("its address");
        let config = home.path().join("counterfoil.toml");
        let text = format!(
            "upstream = \"{upstream}\"\nstore = \"{}\"\nprincipal.from = \"none\"\n[defaults]\neffect = \"coupled\"\n\
             [[operation]]\nname = \"create-order\"\nmatch = \"POST /orders\"\n\
             [[operation]]\nname = \"trap\"\nmatch = \"POST /trap\"\n",
            database.url()
        );
        std::fs::write(&config, text).expect("a file");
        let proxy = Served::with(&["--config", config.to_str().expect("a path of text")], None);
        Self { _home: home, database, _app: app, proxy }
    }

    fn ask(&self, path: &str, key: &str, reference: &str) -> Answer {
        let body = format!("{{\"reference\": \"{reference}\", \"item\": \"tea\"}}");
        let headers = ["Content-Type: application/json"];
        curl("POST", &self.proxy.url(path), Sent { key, body: &body, headers: &headers })
    }

    fn orders(&self) -> String {
        self.database.psql(&["SELECT count(*) FROM orders"]).expect("a count")
    }
}

#[test]
fn a_hold_in_the_outermost_atomic_is_kept() {
    let shop = Shop::start();
    for again in ["false", "true"] {
        shop.ask("/orders", "k-1", "A-1").is(201, again);
    }
    // The savepoint around the insert undoes it alone, and the refusal is the receipt.
    for again in ["false", "true"] {
        shop.ask("/orders", "k-2", "A-1").is(409, again);
    }
    assert_eq!(shop.orders(), "1");
    shop.proxy.stop();
}

#[test]
fn a_hold_in_a_savepoint_that_is_rolled_back_protects_nothing() {
    let shop = Shop::start();
    shop.ask("/trap", "k-1", "A-1").is_problem(502, "outcome-unknown");
    assert_eq!(shop.orders(), "1", "it was committed without a receipt: what a hold in its place refuses");
    // Nobody knows, so it is not run again.
    shop.ask("/trap", "k-1", "A-1").is_problem(409, "outcome-unknown");
    assert_eq!(shop.orders(), "1");
    shop.proxy.stop();
}
