//! Each driver makes one order and replays it, in a process of its own each time.
//!
//! What does not belong here: what a driver promises besides, which the store's own tests have.

use std::process::Command;

use counterfoil_store::{mysql, postgres};

use crate::process::built;

fn run(driver: &str, place: &str) -> String {
    let output = Command::new(built(&["examples", "own_transaction"])).args([driver, place]).output();
    let output = output.expect("it runs");
    assert!(output.status.success(), "{driver}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("it says text").trim().to_owned()
}

fn migrated(url: &str) {
    let migrated = Command::new(built(&["counterfoil"])).args(["migrate", "--store", url]).output();
    assert!(migrated.expect("it runs").status.success(), "{url}");
}

#[test]
fn each_driver_makes_it_once() {
    let home = tempfile::tempdir().expect("a directory");
    let file = home.path().join("shop.db").display().to_string();
    let servers = (
        postgres::trial::Server::shared().expect("PostgreSQL starts"),
        mysql::trial::Server::shared().expect("MariaDB starts"),
    );
    for (driver, made) in [
        ("rusqlite", "made"),
        ("tokio-postgres", "made"),
        ("sqlx", "made"),
        ("sqlx-permit", "made, with a permit"),
        ("statement", "made"),
        ("mysql_async", "made"),
    ] {
        // Each in a database of its own, because order 7 exists once whatever the key.
        let place = match driver {
            "rusqlite" => file.clone(),
            "mysql_async" => servers.1.empty().expect("a database").url(),
            _ => servers.0.empty().expect("a database").url(),
        };
        if driver != "rusqlite" {
            migrated(&place);
        }
        assert_eq!(run(driver, &place), format!("{driver}: {made}"));
        assert_eq!(run(driver, &place), format!("{driver}: replayed 201"));
    }
}
