//! An application behind the proxy, as a process of its own: it holds, has its effect, settles and commits.
//!
//! What does not belong here: the proxy before it.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use counterfoil_store::postgres::tokio_postgres::{Client, Statement};
use tokio::sync::Semaphore;

use super::baseline::{self, EFFECT_VALUES};
use crate::http::child;
use crate::{Fault, load};

/// The file beside the servers of a row that says where their database is.
pub(crate) const PLACE: &str = "store.url";
/// As the application's pool is.
const CONNECTIONS: usize = 16;

const HOLD: &str = "SELECT counterfoil.hold($1)";
const SETTLE: &str = "SELECT counterfoil.settle($1, 201, '[[\"Content-Type\", \"application/json\"]]', $2)";

struct Lent {
    client: Client,
    hold: Statement,
    effect: Statement,
    settle: Statement,
}

struct Pool {
    room: Semaphore,
    idle: Mutex<Vec<Lent>>,
}

/// Serves until the standard input ends.
pub(crate) fn serve(dir: &Path) -> Result<(), Fault> {
    let url = std::fs::read_to_string(dir.join(PLACE))?;
    let runtime = load::runtime()?;
    let address = runtime.block_on(async {
        let mut idle = Vec::with_capacity(CONNECTIONS);
        for _ in 0..CONNECTIONS {
            let client = baseline::connect(&url).await?;
            let (hold, settle) = (client.prepare(HOLD).await?, client.prepare(SETTLE).await?);
            let effect = baseline::effect(&client).await?;
            idle.push(Lent { client, hold, effect, settle });
        }
        let pool = Arc::new(Pool { room: Semaphore::new(CONNECTIONS), idle: Mutex::new(idle) });
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let router = Router::new().route("/orders", post(order)).with_state(pool);
        tokio::spawn(async move { axum::serve(listener, router).await });
        Ok::<_, Fault>(address)
    })?;
    child::answer(address, || None)
}

async fn order(State(pool): State<Arc<Pool>>, headers: HeaderMap) -> (StatusCode, String) {
    let Ok(_room) = pool.room.acquire().await else { return failed("closed") };
    let lent = pool.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
    let Some(mut lent) = lent else { return failed("no connection") };
    let made = made(&mut lent, &headers).await;
    pool.idle.lock().unwrap_or_else(PoisonError::into_inner).push(lent);
    match made {
        Ok(body) => (StatusCode::CREATED, body),
        Err(fault) => failed(&fault.to_string()),
    }
}

fn failed(why: &str) -> (StatusCode, String) {
    (StatusCode::INTERNAL_SERVER_ERROR, why.to_owned())
}

async fn made(lent: &mut Lent, headers: &HeaderMap) -> Result<String, Fault> {
    let permit = headers.get("idempotency-permit").ok_or("no permit came")?.to_str()?;
    let tx = lent.client.transaction().await?;
    if !tx.query_one(&lent.hold, &[&permit]).await?.get::<_, bool>(0) {
        return Err("not held".into());
    }
    let id: i64 = tx.query_one(&lent.effect, &EFFECT_VALUES).await?.get(0);
    let body = format!("{{\"effect_id\":{id},\"quantity\":2}}");
    tx.execute(&lent.settle, &[&permit, &body.as_bytes()]).await?;
    tx.commit().await?;
    Ok(body)
}
