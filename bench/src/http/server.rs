//! The servers of the table over HTTP: one program, one router and one handler each, by the mode that it is started
//! with. Here stands what differs between the rows, and nothing of how they are measured.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use axum::body::Body;
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use axum::serve::ListenerExt as _;
use axum::{Json, Router};
use counterfoil_core::{Effect, Receipt};
use counterfoil_middleware::Coupled;
use counterfoil_store::SqliteStore;
use rusqlite::params;
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;

use super::child;
use crate::seed::{self, Outcome, Pool};
use crate::{Fault, load, ours};

/// Connections of the seed's pool.
const POOL: usize = 8;

/// What a server does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mode {
    /// Counts.
    Bare,
    /// The seed's protocol on a pool of connections, on blocking threads.
    Seed,
    /// Ours: the handler's effect and the receipt in one SQLite transaction.
    Coupled,
    /// Ours: the handler counts, SQLite keeps the receipt.
    Other,
    /// Ours: the handler counts, memory keeps the receipt.
    Memory,
}

const MODES: [(&str, Mode); 5] = [
    ("bare", Mode::Bare),
    ("seed", Mode::Seed),
    ("coupled", Mode::Coupled),
    ("other", Mode::Other),
    ("memory", Mode::Memory),
];

impl Mode {
    /// Its word on the command line.
    pub(crate) fn word(self) -> &'static str {
        MODES.iter().find(|(_, mode)| *mode == self).map_or("", |(word, _)| word)
    }

    /// Whether our layer is in it, whose header says what was replayed.
    pub(crate) const fn guards(self) -> bool {
        match self {
            Self::Coupled | Self::Other | Self::Memory => true,
            Self::Bare | Self::Seed => false,
        }
    }

    fn file(self, dir: &Path) -> PathBuf {
        dir.join(format!("{}.db", self.word()))
    }
}

/// How many effects a server has left behind; `None` where it keeps none.
pub(crate) fn effects(dir: &Path, mode: Mode) -> Result<Option<u64>, Fault> {
    match mode {
        Mode::Seed | Mode::Coupled => Ok(Some(seed::effects(&mode.file(dir))?)),
        Mode::Bare | Mode::Other | Mode::Memory => Ok(None),
    }
}

/// What is asked for.
#[derive(Deserialize)]
pub(crate) struct Order {
    item: String,
    quantity: i64,
}

/// What is answered.
#[derive(Serialize)]
pub(crate) struct Placed {
    id: i64,
    item: String,
    quantity: i64,
}

/// Serves until the standard input ends; says where on the first line, and what it has used whenever it is asked.
pub(crate) fn serve(mode: &str, dir: &Path) -> Result<(), Fault> {
    let known = MODES.iter().find(|(word, _)| *word == mode);
    let (_, mode) = known.ok_or_else(|| format!("there is no server `{mode}`"))?;
    let file = mode.file(dir);
    let (router, store) = match mode {
        Mode::Bare => (bare(), None),
        Mode::Seed => (seeds(&file)?, None),
        Mode::Coupled => {
            let store = Arc::new(ours::Sqlite::open(&file)?);
            (ours::guarded(store.store().clone(), Effect::Coupled, coupled(store.store().clone()))?, Some(store))
        }
        Mode::Other => {
            let store = Arc::new(ours::Sqlite::open(&file)?);
            (ours::guarded(store.store().clone(), Effect::Other, bare())?, Some(store))
        }
        Mode::Memory => (ours::guarded(ours::memory(), Effect::Other, bare())?, None),
    };
    let runtime = load::runtime()?;
    let listener = runtime.block_on(TcpListener::bind(("127.0.0.1", 0)))?;
    let address = listener.local_addr()?;
    let listener = listener.tap_io(|stream| {
        // Where it cannot be set, answers are only slower.
        let _ = stream.set_nodelay(true);
    });
    runtime.spawn(async move { axum::serve(listener, router).await });
    child::answer(address, || store.as_ref().map(|store| store.commits()))
}

/// A handler without any input or output: it counts.
fn bare() -> Router {
    async fn place(State(count): State<Arc<AtomicU64>>, Json(order): Json<Order>) -> (StatusCode, Json<Placed>) {
        let id = count.fetch_add(1, Ordering::Relaxed) + 1;
        (StatusCode::CREATED, Json(Placed { id: id.cast_signed(), item: order.item, quantity: order.quantity }))
    }
    Router::new().route("/orders", post(place)).with_state(Arc::new(AtomicU64::new(0)))
}

/// A handler whose effect and receipt are one transaction.
fn coupled(store: Arc<SqliteStore>) -> Router {
    Router::new().route("/orders", post(coupled_handler)).with_state(store)
}

async fn coupled_handler(
    State(store): State<Arc<SqliteStore>>,
    Extension(coupled): Extension<Coupled>,
    Json(order): Json<Order>,
) -> Response<Body> {
    let placed = coupled.execute(&store, move |handle| {
        let values = params![seed::TENANT, seed::OPERATION, order.quantity];
        let id = handle.prepare_cached(seed::EFFECT)?.insert(values)?;
        let placed = Placed { id, item: order.item, quantity: order.quantity };
        let body =
            serde_json::to_vec(&placed).map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
        Ok::<_, rusqlite::Error>(Receipt::new(201, body).with_header("content-type", "application/json"))
    });
    match placed.await {
        Ok(answer) => answer.map(Body::new),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

fn seeds(file: &Path) -> Result<Router, Fault> {
    seed::create(file)?;
    let pool = Arc::new(Pool::open(file, POOL)?);
    Ok(Router::new().route("/orders", post(seeds_handler)).with_state(pool))
}

async fn seeds_handler(State(pool): State<Arc<Pool>>, headers: HeaderMap, Json(order): Json<Order>) -> Response {
    let Some(key) = headers.get("idempotency-key").and_then(|key| key.to_str().ok()).map(str::to_owned) else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs().cast_signed());
    let ran = tokio::task::spawn_blocking(move || {
        pool.lend().with(|connection| seed::execute(connection, &key, order.quantity, now))
    });
    match ran.await {
        Ok(Ok(Outcome::Created(result) | Outcome::Replayed(result))) => {
            (StatusCode::CREATED, [("content-type", "application/json")], result).into_response()
        }
        Ok(Ok(Outcome::Conflict)) => StatusCode::CONFLICT.into_response(),
        Ok(Err(_)) => StatusCode::SERVICE_UNAVAILABLE.into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}
