//! The axum service: effect and receipt together, through crashes, and the rule of the business beside them.
//!
//! What does not belong here: what the layer answers to malformed requests.

use std::io::Write as _;
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;

use counterfoil::store::sqlite::rusqlite::Connection;
use rustix::process::Signal;

use crate::curl::curl;
use crate::process::{Process, built};

/// How often a service is killed while it works.
const CRASHES: usize = 8;

/// The service, and its address.
fn start(file: &Path) -> (Process, String) {
    let mut service = Process::start(Command::new(built(&["examples", "axum_orders"])).arg(file).arg("127.0.0.1:0"));
    let address = service.says("listening on http://");
    (service, address)
}

fn orders(file: &Path) -> i64 {
    let tables = Connection::open(file).expect("the file opens");
    tables.query_row("SELECT count(*) FROM orders", [], |row| row.get(0)).expect("the orders stand")
}

#[test]
fn an_order_is_made_once() {
    let home = tempfile::tempdir().expect("a directory");
    let file = home.path().join("orders.db");
    let (mut service, address) = start(&file);
    let (url, order) = (format!("http://{address}/orders"), r#"{"number": "A-1", "item": "pen", "quantity": 2}"#);

    let fresh = curl("POST", &url, "k-1", order);
    assert_eq!((fresh.status, fresh.header("idempotent-replayed")), (201, "false"), "{fresh:?}");
    assert_eq!(fresh.header("location"), "/orders/A-1");

    let replayed = curl("POST", &url, "k-1", r#"{"quantity": 2, "item": "pen", "number": "A-1"}"#);
    assert_eq!((replayed.status, replayed.header("idempotent-replayed")), (201, "true"), "{replayed:?}");
    assert_eq!((&replayed.body, replayed.header("location")), (&fresh.body, "/orders/A-1"));

    let changed = curl("POST", &url, "k-1", &order.replace("pen", "pot"));
    assert_eq!((changed.status, changed.header("content-type")), (422, "application/problem+json"), "{changed:?}");
    let keyless = curl("POST", &url, "", order);
    assert_eq!(keyless.status, 400, "{keyless:?}");
    assert_eq!(orders(&file), 1);

    // A crash between two attempts, and one in order.
    service.kill();
    let (mut service, address) = start(&file);
    let replayed = curl("POST", &format!("http://{address}/orders"), "k-1", order);
    assert_eq!((replayed.status, replayed.header("idempotent-replayed")), (201, "true"), "{replayed:?}");
    assert_eq!((&replayed.body, orders(&file)), (&fresh.body, 1));
    assert!(service.stop(Signal::INT).success());
}

/// The number stays taken, so that refusal is kept. The stock may come back, so that one is not.
#[test]
fn a_refusal_is_kept_or_released_as_the_effect_decides() {
    let home = tempfile::tempdir().expect("a directory");
    let file = home.path().join("orders.db");
    let (_service, address) = start(&file);
    let url = format!("http://{address}/orders");
    let order = r#"{"number": "A-1", "item": "pen", "quantity": 2}"#;
    assert_eq!(curl("POST", &url, "k-1", order).status, 201);

    for replayed in ["false", "true"] {
        let taken = curl("POST", &url, "k-2", order);
        assert_eq!((taken.status, taken.header("idempotent-replayed")), (409, replayed), "{taken:?}");
        assert_eq!(taken.member("error"), "the order number is taken");
    }

    let many = r#"{"number": "A-2", "item": "pen", "quantity": 50}"#;
    for _attempt in 0..2 {
        let sold_out = curl("POST", &url, "k-3", many);
        assert_eq!((sold_out.status, sold_out.header("idempotent-replayed")), (409, "false"), "{sold_out:?}");
        assert_eq!(orders(&file), 1, "the order that was begun is undone");
    }
    assert_eq!(curl("PUT", &format!("http://{address}/items/pen"), "", r#"{"stock": 60}"#).status, 204);
    for replayed in ["false", "true"] {
        let made = curl("POST", &url, "k-3", many);
        assert_eq!((made.status, made.header("idempotent-replayed")), (201, replayed), "{made:?}");
    }
    assert_eq!(orders(&file), 2);
}

/// Killed as soon as the request is written: whether it had begun, ended or neither, the retry makes one order.
#[test]
fn a_crash_while_it_works_leaves_both_or_neither() {
    let home = tempfile::tempdir().expect("a directory");
    let file = home.path().join("orders.db");
    for crash in 1..=CRASHES {
        let (mut service, address) = start(&file);
        let (key, order) =
            (format!("k-{crash}"), format!(r#"{{"number": "A-{crash}", "item": "pen", "quantity": 1}}"#));
        let request = format!(
            "POST /orders HTTP/1.1\r\nHost: {address}\r\nIdempotency-Key: {key}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{order}",
            order.len()
        );
        let mut client = TcpStream::connect(&address).expect("it listens");
        client.write_all(request.as_bytes()).expect("it reads");
        service.kill();

        let (_service, address) = start(&file);
        let made = curl("POST", &format!("http://{address}/orders"), &key, &order);
        assert_eq!(made.status, 201, "{made:?}");
        assert_eq!(orders(&file), i64::try_from(crash).expect("few crashes"), "one order for each key");
    }
}
