//! An orders API in axum over sqlx and PostgreSQL. An order and its receipt commit in one transaction of the application's
//! own: after a crash at any point there are both or neither, and a retry with the same key gets the first answer.
//!
//! ```text
//! DATABASE_URL=postgres://orders@127.0.0.1/shop cargo run -p counterfoil-examples --example axum_sqlx -- 127.0.0.1:3000
//! ```
//!
//! What does not belong here: an application behind the proxy, in another process; that is `counterfoil.hold` and `settle`.

use std::error::Error;
use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Extension, Json, Router};
use counterfoil::middleware::Body;
use counterfoil::store::postgres::Options;
use counterfoil::store::{Begun, Ended};
use counterfoil::{
    Coupled, Effect, Gate, GuardLayer, KeyNeed, Operation, OperationRule, Policy, PostgresStore, Receipt, RecordStore,
    Rule, Settings, SingleTenant, Terms, Unlisted,
};
use serde::Deserialize;
use serde_json::json;
use sqlx::postgres::PgPoolOptions;
use sqlx::{PgPool, raw_sql};

/// A receipt is forgotten after its retention, and a client that has lost its key comes with a new one. That an order number
/// exists once is a rule of the business, so the table itself says it.
const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS orders (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        number text NOT NULL UNIQUE,
        item text NOT NULL
    )";

/// How often expired receipts are removed, and how many at once.
const SWEEP_EVERY: Duration = Duration::from_secs(10);
const SWEEP_ROWS_MAX: usize = 1_000;

#[derive(Clone)]
struct App {
    store: Arc<PostgresStore>,
    tables: PgPool,
}

#[derive(Deserialize)]
struct NewOrder {
    number: String,
    item: String,
}

type Failed = Box<dyn Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Failed> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:3000".to_owned());
    let database = std::env::var("DATABASE_URL").map_err(|_| "DATABASE_URL says where the database is")?;

    let store = PostgresStore::open(&database, Options::default()).await?;
    let tables = PgPoolOptions::new().max_connections(10).connect(&database).await?;
    raw_sql(SCHEMA).execute(&tables).await?;
    let guard = guard(&store)?;
    let drain = guard.drain();
    let app = Router::new()
        .route("/orders", post(create_order))
        .with_state(App { store: store.clone(), tables })
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
fn guard(store: &Arc<PostgresStore>) -> Result<GuardLayer, Failed> {
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

async fn create_order(
    State(app): State<App>,
    Extension(coupled): Extension<Coupled>,
    Json(order): Json<NewOrder>,
) -> Response {
    match place(&app, &coupled, &order).await {
        Ok(answer) => answer.into_response(),
        // Also where COMMIT went through and its reply was lost: after a 5xx the layer looks, and tells what stands.
        Err(error) => (StatusCode::SERVICE_UNAVAILABLE, Json(json!({ "error": error.to_string() }))).into_response(),
    }
}

/// Claim, order and receipt in one transaction. The layer runs its handlers in tasks of their own, so no client that hangs
/// up cuts this off in the middle.
async fn place(app: &App, coupled: &Coupled, order: &NewOrder) -> Result<axum::http::Response<Body>, Failed> {
    let mut tx = app.tables.begin().await?;
    let mut permit = match app.store.begin_in(&mut tx, &mut coupled.claim(), coupled.policy()).await? {
        Begun::Execute(permit) => permit,
        // A replay, somebody who is at it, another order under the same key: nothing was written.
        told => return Ok(coupled.told(told)),
    };
    let insert = "INSERT INTO orders (number, item) VALUES ($1, $2) ON CONFLICT (number) DO NOTHING RETURNING id";
    let made: Option<(i64,)> =
        sqlx::query_as(insert).bind(&order.number).bind(&order.item).fetch_optional(&mut *tx).await?;
    let receipt = match made {
        Some((id,)) => receipt(201, &json!({ "id": id, "item": order.item })),
        // That it is taken stays true, so this is the result: kept, and replayed under this key.
        None => receipt(409, &json!({ "error": "the order number is taken" })),
    };
    let ended = app.store.complete_in(&mut tx, &mut permit, &receipt).await?;
    if matches!(ended, Ended::Written { .. }) {
        tx.commit().await?;
    }
    Ok(coupled.committed(receipt, &ended))
}

fn receipt(status: u16, body: &serde_json::Value) -> Receipt {
    Receipt::new(status, body.to_string()).with_header("content-type", "application/json")
}

/// Removes what has expired. A service that never sweeps stays right and grows.
async fn sweep(store: Arc<PostgresStore>) {
    let mut timer = tokio::time::interval(SWEEP_EVERY);
    loop {
        timer.tick().await;
        while store.sweep(SWEEP_ROWS_MAX).await.is_ok_and(|swept| swept.more) {}
    }
}
