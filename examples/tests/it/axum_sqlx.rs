//! The axum service over sqlx: order and receipt in one PostgreSQL transaction, through crashes, and the rule of the
//! business beside them.
//!
//! What does not belong here: what the layer answers to malformed requests.

use std::io::Write as _;
use std::net::TcpStream;
use std::process::Command;
use std::thread;

use counterfoil_store::postgres::trial::{Database, Server};
use rustix::process::Signal;

use crate::curl::{curl, try_curl};
use crate::process::{Process, built};

/// How often the service is killed while it works.
const CRASHES: usize = 8;

struct House {
    database: Database,
}

impl House {
    fn migrated() -> Self {
        let house = Self { database: Server::shared().expect("PostgreSQL starts").empty().expect("a database") };
        let migrated =
            Command::new(built(&["counterfoil"])).args(["migrate", "--store", &house.database.url()]).output();
        assert!(migrated.expect("it runs").status.success());
        house
    }

    /// The service, and its address.
    fn start(&self) -> (Process, String) {
        let mut command = Command::new(built(&["examples", "axum_sqlx"]));
        let mut service = Process::start(command.arg("127.0.0.1:0").env("DATABASE_URL", self.database.url()));
        let address = service.says("listening on http://");
        (service, address)
    }

    fn orders(&self) -> String {
        self.database.psql(&["SELECT count(*) FROM orders"]).expect("the orders stand")
    }
}

#[test]
fn an_order_is_made_once() {
    let house = House::migrated();
    let (mut service, address) = house.start();
    let (url, order) = (format!("http://{address}/orders"), r#"{"number": "A-1", "item": "pen"}"#);
    let fresh = curl("POST", &url, "k-1", order);
    assert_eq!((fresh.status, fresh.header("idempotent-replayed")), (201, "false"), "{fresh:?}");
    assert!(!fresh.header("idempotency-expires").is_empty(), "{fresh:?}");
    let replayed = curl("POST", &url, "k-1", r#"{"item": "pen", "number": "A-1"}"#);
    assert_eq!((replayed.status, replayed.header("idempotent-replayed")), (201, "true"), "{replayed:?}");
    assert_eq!(replayed.body, fresh.body);
    assert_eq!(curl("POST", &url, "k-1", &order.replace("pen", "pot")).status, 422);
    // The number stays taken, so that refusal is kept under its own key.
    for replayed in ["false", "true"] {
        let taken = curl("POST", &url, "k-2", order);
        assert_eq!((taken.status, taken.header("idempotent-replayed")), (409, replayed), "{taken:?}");
        assert_eq!(taken.member("error"), "the order number is taken");
    }
    assert_eq!(house.orders(), "1");

    service.kill();
    let (mut service, address) = house.start();
    let replayed = curl("POST", &format!("http://{address}/orders"), "k-1", order);
    assert_eq!((replayed.status, replayed.header("idempotent-replayed")), (201, "true"), "{replayed:?}");
    assert!(service.stop(Signal::INT).success());
}

#[test]
fn of_sixteen_at_once_one_is_made() {
    let house = House::migrated();
    let (_service, address) = house.start();
    let url = format!("http://{address}/orders");
    let asking = || {
        let answer = curl("POST", &url, "k-1", r#"{"number": "A-1", "item": "pen"}"#);
        (answer.status, answer.header("idempotent-replayed").to_owned())
    };
    let answers: Vec<_> = thread::scope(|scope| {
        let asked: Vec<_> = (0..16).map(|_| scope.spawn(asking)).collect();
        asked.into_iter().map(|asked| asked.join().expect("it asks")).collect()
    });
    assert_eq!(answers.iter().filter(|(status, again)| *status == 201 && again == "false").count(), 1, "{answers:?}");
    assert!(answers.iter().all(|(status, _)| [201, 409].contains(status)), "{answers:?}");
    assert_eq!(house.orders(), "1");
}

/// Killed as soon as the request is written: whether it had begun, ended or neither, the retry makes one order.
#[test]
fn a_crash_while_it_works_leaves_both_or_neither() {
    let house = House::migrated();
    for crash in 1..=CRASHES {
        let (mut service, address) = house.start();
        let (key, order) = (format!("k-{crash}"), format!(r#"{{"number": "A-{crash}", "item": "pen"}}"#));
        let request = format!(
            "POST /orders HTTP/1.1\r\nHost: {address}\r\nIdempotency-Key: {key}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{order}",
            order.len()
        );
        let mut client = TcpStream::connect(&address).expect("it listens");
        client.write_all(request.as_bytes()).expect("it reads");
        service.kill();

        let (_service, address) = house.start();
        // Its transaction may stand open on the server for a moment: then it is in progress.
        let made = (0..50).find_map(|_| {
            try_curl("POST", &format!("http://{address}/orders"), &key, &order).ok().filter(|made| made.status != 409)
        });
        assert_eq!(made.expect("it is told in the end").status, 201);
        assert_eq!(house.orders(), crash.to_string(), "one order for each key");
    }
}
