//! The service that the layers of the peers are put around: a handler that counts, on a free port, until the standard
//! input ends. The layers belong to the programs in `bin`.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use axum::serve::ListenerExt as _;
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpListener;

#[derive(Deserialize)]
struct Order {
    item: String,
    quantity: i64,
}

#[derive(Serialize)]
struct Placed {
    id: u64,
    item: String,
    quantity: i64,
}

async fn place(State(count): State<Arc<AtomicU64>>, Json(order): Json<Order>) -> (StatusCode, Json<Placed>) {
    let id = count.fetch_add(1, Ordering::Relaxed) + 1;
    (StatusCode::CREATED, Json(Placed { id, item: order.item, quantity: order.quantity }))
}

/// The routes.
pub fn orders() -> Router {
    Router::new().route("/orders", post(place)).with_state(Arc::new(AtomicU64::new(0)))
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
