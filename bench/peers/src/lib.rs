//! The service that the layers of the peers are put around: a handler that counts, on a free port, until the standard
//! input ends. The bench measures it, and `checks/probed` probes it. The layers belong to the programs in `bin`.

use std::io::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::serve::ListenerExt as _;
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpListener;

static ORDERS: AtomicU64 = AtomicU64::new(0);
static REFUNDS: AtomicU64 = AtomicU64::new(0);

#[derive(Deserialize)]
struct Order {
    #[serde(alias = "product")]
    item: String,
    quantity: i64,
}

#[derive(Serialize)]
struct Placed {
    id: u64,
    item: String,
    quantity: i64,
}

/// What is counted, and how long one takes.
type Kind = (&'static AtomicU64, Duration);

async fn place(State((count, takes)): State<Kind>, Json(order): Json<Order>) -> (StatusCode, Json<Placed>) {
    if !takes.is_zero() {
        tokio::time::sleep(takes).await;
    }
    let id = count.fetch_add(1, Ordering::Relaxed) + 1;
    (StatusCode::CREATED, Json(Placed { id, item: order.item, quantity: order.quantity }))
}

/// The routes. An order takes `ORDER_MS` milliseconds, as one in a database would, or no time where that is not set.
pub fn orders() -> Router {
    let takes = std::env::var("ORDER_MS").ok().and_then(|millis| millis.parse().ok()).unwrap_or_default();
    let takes = Duration::from_millis(takes);
    let made = |count: &'static AtomicU64| post(place).with_state((count, takes));
    Router::new().route("/orders", made(&ORDERS)).route("/refunds", made(&REFUNDS))
}

/// How many orders there are, for whoever asks around the layers.
pub fn counted(orders: Router) -> Router {
    let count = || async { format!("{{\"count\":{}}}", ORDERS.load(Ordering::Relaxed)) };
    orders.route("/orders", get(count))
}

/// Serves, and says where.
pub async fn serve(router: Router) -> std::io::Result<()> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    println!("{}", listener.local_addr()?);
    std::io::stdout().flush()?;
    let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
    let mut end = Vec::new();
    tokio::select! {
        served = async { axum::serve(listener, router).await } => served,
        _ = async { tokio::io::stdin().read_to_end(&mut end).await } => Ok(()),
    }
}
