//! An orders API in axum. An order and its receipt commit in one SQLite transaction: after a crash at any point there
//! are both or neither, and a retry with the same key gets the first answer.
//!
//! ```text
//! cargo run -p counterfoil-examples --example axum_orders -- orders.db 127.0.0.1:3000
//! ```
//!
//! What does not belong here: forwarding to another service; that is `counterfoil serve`.

use std::error::Error;
use std::io::Write as _;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{post, put};
use axum::{Extension, Json, Router};
use counterfoil::store::sqlite::rusqlite::{self, Connection, ffi};
use counterfoil::store::sqlite::{Handle, Options};
use counterfoil::{
    Coupled, Effect, Gate, GuardLayer, KeyNeed, Operation, OperationRule, Policy, Receipt, RecordStore, Rule, Settings,
    SingleTenant, SqliteStore, Terms, Unlisted,
};
use serde::Deserialize;
use serde_json::json;

/// A receipt is not a lasting rule of the business: it is forgotten after its retention, and a client that has lost its
/// key comes with a new one. That an order number exists once is said here, by the table itself.
const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS item (name TEXT PRIMARY KEY, stock INTEGER NOT NULL CHECK (stock >= 0)) STRICT;
    CREATE TABLE IF NOT EXISTS orders (
        number TEXT NOT NULL UNIQUE,
        item TEXT NOT NULL,
        quantity INTEGER NOT NULL
    ) STRICT;
    INSERT OR IGNORE INTO item VALUES ('pen', 10);
";

/// How often expired receipts are removed, and how many at once.
const SWEEP_EVERY: Duration = Duration::from_secs(10);
const SWEEP_ROWS_MAX: usize = 1_000;

#[derive(Clone)]
struct App {
    store: Arc<SqliteStore>,
    file: Arc<str>,
}

#[derive(Deserialize)]
struct NewOrder {
    number: String,
    item: String,
    quantity: NonZeroU32,
}

#[derive(Deserialize)]
struct Stock {
    stock: u32,
}

/// Why an effect is undone. Nothing of it stays, no receipt either: the same key may try again.
enum Undone {
    SoldOut,
    Database(rusqlite::Error),
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().unwrap_or_else(|| "orders.db".to_owned());
    let address = arguments.next().unwrap_or_else(|| "127.0.0.1:3000".to_owned());

    let store = SqliteStore::open(&file, Options::default())?;
    Connection::open(&file)?.execute_batch(SCHEMA)?;
    let guard = guard(&store)?;
    let drain = guard.drain();
    let app = Router::new()
        .route("/orders", post(create_order))
        .route("/items/{name}", put(set_stock))
        .with_state(App { store: store.clone(), file: file.into() })
        .layer(guard);
    tokio::spawn(sweep(store));

    let listener = tokio::net::TcpListener::bind(address).await?;
    writeln!(std::io::stdout(), "listening on http://{}", listener.local_addr()?)?;
    let stopped = async move {
        // Where no signal can be caught the service stops at once, and tells its supervisor so by ending.
        if tokio::signal::ctrl_c().await.is_ok() {
            drain.drain(Duration::from_secs(25)).await;
        }
    };
    axum::serve(listener, app).with_graceful_shutdown(stopped).await?;
    Ok(())
}

/// One guarded operation with a name of its own. Whatever matches none passes as it is.
fn guard(store: &Arc<SqliteStore>) -> Result<GuardLayer, Box<dyn Error>> {
    let create_order = OperationRule {
        name: Some(Operation::new("create-order")?),
        pattern: "POST /orders".parse()?,
        key: KeyNeed::Required,
        terms: Terms {
            policy: Policy { effect: Effect::Coupled, ..Policy::default() },
            rule: Rule::json(),
            ..Terms::default()
        },
    };
    // An API with tenants implements `Principal` and answers the verified one.
    let settings =
        Settings { operations: vec![create_order], unlisted: Unlisted::PassThrough, ..Settings::new(SingleTenant) };
    Ok(GuardLayer::new(Gate::new(store.clone())?, settings)?)
}

/// Hands the effect to the store, and answers what that answers: the fresh receipt or the one that stands.
async fn create_order(
    State(app): State<App>,
    Extension(coupled): Extension<Coupled>,
    Json(order): Json<NewOrder>,
) -> Response {
    match coupled.execute(&app.store, move |tables| place(tables, &order)).await {
        Ok(answer) => answer.into_response(),
        Err(Undone::SoldOut) => problem(StatusCode::CONFLICT, "not so many are left; try again later"),
        Err(Undone::Database(error)) => problem(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
    }
}

/// The effect. It runs inside the transaction that also keeps its receipt, so it is short and waits for nothing.
fn place(tables: &Handle<'_>, order: &NewOrder) -> Result<Receipt, Undone> {
    let inserted = tables.execute(
        "INSERT INTO orders (number, item, quantity) VALUES (?1, ?2, ?3)",
        (&order.number, &order.item, order.quantity.get()),
    );
    match inserted {
        Ok(_) => {}
        // That this number is taken stays true, so the refusal is the result: kept, and replayed under this key.
        Err(error) if is_taken(&error) => return Ok(receipt(409, &json!({ "error": "the order number is taken" }))),
        Err(error) => return Err(Undone::Database(error)),
    }
    let taken = tables.execute(
        "UPDATE item SET stock = stock - ?1 WHERE name = ?2 AND stock >= ?1",
        (order.quantity.get(), &order.item),
    );
    match taken.map_err(Undone::Database)? {
        // May change any minute, so it is no result: the order above is undone, and the key is free for a retry.
        0 => Err(Undone::SoldOut),
        _ => {
            let body = json!({ "number": order.number, "item": order.item, "quantity": order.quantity });
            Ok(receipt(201, &body).with_header("location", format!("/orders/{}", order.number)))
        }
    }
}

/// Not guarded, because setting a number twice is setting it once.
async fn set_stock(State(app): State<App>, Path(name): Path<String>, Json(wanted): Json<Stock>) -> Response {
    let set = move || {
        let tables = Connection::open(&*app.file)?;
        tables.execute("UPDATE item SET stock = ?1 WHERE name = ?2", (wanted.stock, name))
    };
    match tokio::task::spawn_blocking(set).await {
        Ok(Ok(0)) => problem(StatusCode::NOT_FOUND, "there is no such item"),
        Ok(Ok(_)) => StatusCode::NO_CONTENT.into_response(),
        Ok(Err(error)) => problem(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
        Err(error) => problem(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
    }
}

fn is_taken(error: &rusqlite::Error) -> bool {
    error.sqlite_error().is_some_and(|error| error.extended_code == ffi::SQLITE_CONSTRAINT_UNIQUE)
}

fn receipt(status: u16, body: &serde_json::Value) -> Receipt {
    Receipt::new(status, body.to_string()).with_header("content-type", "application/json")
}

fn problem(status: StatusCode, error: &str) -> Response {
    (status, Json(json!({ "error": error }))).into_response()
}

/// Removes what has expired. A service that never sweeps stays right and grows.
async fn sweep(store: Arc<SqliteStore>) {
    let mut timer = tokio::time::interval(SWEEP_EVERY);
    loop {
        timer.tick().await;
        while store.sweep(SWEEP_ROWS_MAX).await.is_ok_and(|swept| swept.more) {}
    }
}
