//! An orders API that has each order shipped by another service. Order, receipt and the intent to ship commit in one
//! SQLite transaction; `counterfoil relay` sends the intent from then on, under one key, until its outcome is known.
//!
//! ```text
//! cargo run -p counterfoil-examples --example outbox_orders -- shop.db 127.0.0.1:3000 http://127.0.0.1:3001/orders
//! counterfoil relay --store sqlite:shop.db
//! ```
//!
//! What does not belong here: sending. The transaction never waits for another service.

use std::error::Error;
use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Extension, Json, Router};
use counterfoil::rules::intent::{Draft, Header, Name, Outbound, ProfileRef, Recorded, Value};
use counterfoil::store::sqlite::rusqlite::Connection;
use counterfoil::store::sqlite::{Handle, Options};
use counterfoil::{
    Coupled, Effect, Gate, GuardLayer, KeyNeed, Operation, OperationRule, Policy, Receipt, Rule, Settings,
    SingleTenant, SqliteStore, Terms, Unlisted,
};
use counterfoil_client::profiles;
use serde::Deserialize;
use serde_json::json;

const SCHEMA: &str = "CREATE TABLE IF NOT EXISTS orders (number TEXT NOT NULL, item TEXT NOT NULL) STRICT";

/// What the depot promises: the contract of services that Counterfoil guards. It says what answers mean; how long such a
/// service remembers keys is its own to say.
const PROFILE: &str = "counterfoil";
const DEPOT_REMEMBERS: Duration = Duration::from_hours(24);

#[derive(Clone)]
struct App {
    store: Arc<SqliteStore>,
    depot: Arc<str>,
}

#[derive(Deserialize)]
struct NewOrder {
    number: String,
    item: String,
}

type Failed = Box<dyn Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Failed> {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().unwrap_or_else(|| "shop.db".to_owned());
    let address = arguments.next().unwrap_or_else(|| "127.0.0.1:3000".to_owned());
    let depot = arguments.next().unwrap_or_else(|| "http://127.0.0.1:3001/orders".to_owned());

    let store = SqliteStore::open(&file, Options::default())?;
    Connection::open(&file)?.execute_batch(SCHEMA)?;
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
    let settings =
        Settings { operations: vec![create_order], unlisted: Unlisted::PassThrough, ..Settings::new(SingleTenant) };
    let guard = GuardLayer::new(Gate::new(store.clone())?, settings)?;
    let app = Router::new().route("/orders", post(create)).with_state(App { store, depot: depot.into() }).layer(guard);
    let listener = tokio::net::TcpListener::bind(address).await?;
    writeln!(std::io::stdout(), "listening on http://{}", listener.local_addr()?)?;
    axum::serve(listener, app).await?;
    Ok(())
}

async fn create(
    State(app): State<App>,
    Extension(coupled): Extension<Coupled>,
    Json(order): Json<NewOrder>,
) -> Response {
    let depot = app.depot.clone();
    match coupled.execute(&app.store, move |tables| place(tables, &order, &depot)).await {
        Ok(answer) => answer.into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

/// The effect: the order, and what is to be sent because of it. Both commit with the receipt, or neither does.
fn place(tables: &Handle<'_>, order: &NewOrder, depot: &str) -> Result<Receipt, Failed> {
    tables.execute("INSERT INTO orders (number, item) VALUES (?1, ?2)", (&order.number, &order.item))?;
    let profile = profiles::builtin(PROFILE).ok_or("there is no such profile")?;
    let shipment = Outbound { window: Some(DEPOT_REMEMBERS), ..Outbound::new(shipment(order, depot)?, None) };
    match tables.record(&shipment, profile)? {
        Recorded::Written | Recorded::Stands => {}
        // Another order has this number: nothing of this one stays.
        Recorded::Taken(_) => return Err("the order number is taken".into()),
    }
    let body = json!({ "number": order.number, "item": order.item });
    Ok(Receipt::new(201, body.to_string()).with_header("content-type", "application/json"))
}

/// The request, under a name that says which action it is. Its key is made from the order's own and this name.
fn shipment(order: &NewOrder, depot: &str) -> Result<Draft, Failed> {
    let body = json!({ "number": order.number, "item": order.item, "quantity": 1 });
    let media = Header { name: "content-type".to_owned(), value: Value::Plain("application/json".into()) };
    Ok(Draft {
        name: Name::new(format!("order-{}/ship", order.number))?,
        method: Method::POST,
        url: depot.to_owned(),
        headers: vec![media],
        body: body.to_string().into(),
        scope: None,
        profile: ProfileRef { id: PROFILE.to_owned(), version: 1 },
    })
}
