//! The service of the second fixture: an order takes a product and a quantity from 1, and gets the next number.
//!
//! What does not belong here: any idea of keys.

use std::{
    io::Write,
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
};

use serde_json::{Value, json};

use super::upstream::read_request;

/// A shop on a free port; its threads end with the test's process.
pub(super) struct Shop {
    address: String,
    orders: Arc<Mutex<Vec<Value>>>,
}

impl Shop {
    pub(super) fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = format!("http://{}", listener.local_addr().expect("it is bound"));
        let orders: Arc<Mutex<Vec<Value>>> = Arc::default();
        let shared = orders.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let orders = shared.clone();
                // A caller that has gone needs no answer.
                std::thread::spawn(move || answer(&stream, &orders).is_ok());
            }
        });
        Self { address, orders }
    }

    pub(super) fn url(&self) -> &str {
        &self.address
    }

    /// How many orders of `product` were made.
    pub(super) fn orders(&self, product: &str) -> usize {
        let orders = self.orders.lock().expect("nobody panicked");
        orders.iter().filter(|order| order["product"] == product).count()
    }
}

fn answer(mut stream: &TcpStream, orders: &Mutex<Vec<Value>>) -> std::io::Result<()> {
    let (_, body) = read_request(stream)?;
    let order: Value = serde_json::from_slice(&body).unwrap_or_default();
    let valid = order["product"].is_string() && order["quantity"].as_u64().is_some_and(|quantity| quantity > 0);
    let (status, said) = if valid {
        let mut orders = orders.lock().expect("nobody panicked");
        orders.push(order);
        ("201 Created", json!({ "order_id": orders.len() }))
    } else {
        ("400 Bad Request", json!({ "error": "invalid parameters" }))
    };
    let said = said.to_string();
    let head = format!("HTTP/1.1 {status}\r\nContent-Type: application/json\r\nConnection: close");
    write!(stream, "{head}\r\nContent-Length: {}\r\n\r\n{said}", said.len())
}
