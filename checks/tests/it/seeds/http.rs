//! A shop behind HTTP: the layer around a small service, on a real connection.
//!
//! What does not belong here: the proxy as a process of its own (`proxied.rs`).

use std::{
    net::{SocketAddr, TcpListener},
    sync::Arc,
    time::Duration,
};

use axum::{
    Extension, Router,
    body::Bytes,
    extract::{Path, State},
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
    routing::post,
};
use counterfoil_core::{Effect, Policy, Rule, Scope};
use counterfoil_middleware::{
    Coupled, Duplicates, GuardLayer, KeyNeed, OperationRule, Principal, PrincipalAnswer, PrincipalFault, Settings,
    Terms,
};
use counterfoil_store::{Gate, RecordStore, SqliteStore, clock::TestClock};
use http::request::Parts;
use tempfile::TempDir;

use super::{
    Fixture, Kept, Order, Shop, Told, clock,
    coupled::{self, Failure},
    elsewhere::Orders,
    open, policy, wire,
};

/// The header by which the fixtures' client names its tenant; whoever sets it has authenticated.
pub(super) const TENANT: &str = "x-tenant";
/// The header that makes an order fail after its effect.
pub(super) const FAILS: &str = "x-fails";

/// Where the orders are made.
#[derive(Clone)]
pub(super) enum Desk {
    Elsewhere(Orders),
    Coupled { store: Arc<SqliteStore>, home: Arc<TempDir> },
}

pub(super) struct Served {
    fixture: Fixture,
    clock: TestClock,
    kept: Option<Kept>,
    desk: Desk,
    store: Arc<dyn RecordStore>,
    address: SocketAddr,
}

struct Tenant;

impl Principal for Tenant {
    fn principal<'a>(&'a self, parts: &'a Parts) -> PrincipalAnswer<'a> {
        let tenant = parts.headers.get(TENANT).and_then(|value| value.to_str().ok());
        let unknown = PrincipalFault::Unauthenticated { detail: "say who you are".to_owned(), challenge: None };
        Box::pin(std::future::ready(tenant.and_then(|tenant| Scope::principal(tenant).ok()).ok_or(unknown)))
    }
}

impl Served {
    pub(super) fn elsewhere(fixture: Fixture, kept: Kept, clock: TestClock) -> Self {
        Self::start(fixture, clock, kept.connect(), Some(kept), Desk::Elsewhere(Orders::default()))
    }

    pub(super) fn coupled(fixture: Fixture) -> Self {
        let (home, clock) = (Arc::new(tempfile::tempdir().expect("there is room for temporary files")), clock());
        let store = open(home.path(), &clock);
        coupled::database(home.path()).execute_batch(coupled::TABLE).expect("the table is made");
        Self::start(fixture, clock, store.clone(), None, Desk::Coupled { store, home })
    }

    fn start(fixture: Fixture, clock: TestClock, store: Arc<dyn RecordStore>, kept: Option<Kept>, desk: Desk) -> Self {
        let gate = Gate::new(store.clone()).expect("a gate opens");
        let guard = GuardLayer::new(gate, settings(&desk)).expect("the settings can be kept");
        let address = serve(router(fixture, desk.clone()).layer(guard));
        Self { fixture, clock, kept, desk, store, address }
    }
}

/// Serves on a free port of this machine, until the runtime ends.
pub(super) fn serve(router: Router) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    listener.set_nonblocking(true).expect("it can be awaited");
    let address = listener.local_addr().expect("it is bound");
    let listener = tokio::net::TcpListener::from_std(listener).expect("there is a runtime");
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

fn settings(desk: &Desk) -> Settings {
    let effect = match desk {
        Desk::Elsewhere(_) => Effect::Other,
        Desk::Coupled { .. } => Effect::Coupled,
    };
    let terms = Terms {
        policy: Policy { effect, ..policy() },
        rule: Rule::json(),
        duplicates: Duplicates::Wait(Duration::from_secs(10)),
        ..Terms::default()
    };
    let operation = |name: &str| OperationRule {
        name: None,
        pattern: format!("POST /{name}").parse().expect("it is a pattern"),
        key: KeyNeed::Required,
        terms: terms.clone(),
    };
    let operations = ["web-order", "batch-order", "create-order"].map(operation).into();
    Settings { operations, ..Settings::new(Tenant) }
}

/// The service itself, which knows nothing of keys.
pub(super) fn router(fixture: Fixture, desk: Desk) -> Router {
    Router::new().route("/{operation}", post(make)).with_state((fixture, desk))
}

async fn make(
    State((fixture, desk)): State<(Fixture, Desk)>,
    Path(operation): Path<String>,
    coupled: Option<Extension<Coupled>>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let tenant = headers[TENANT].to_str().expect("it is text").to_owned();
    let body = String::from_utf8(body.to_vec()).expect("it is text");
    let order = Order { tenant, operation, key: String::new(), body, fails: headers.contains_key(FAILS) };
    match desk {
        Desk::Elsewhere(orders) if fixture.accepts(&order.parameters()) => match orders.make(fixture, &order) {
            Some(result) => (StatusCode::CREATED, result).into_response(),
            None => failed(),
        },
        Desk::Elsewhere(_) => StatusCode::BAD_REQUEST.into_response(),
        Desk::Coupled { store, .. } => {
            let Extension(coupled) = coupled.expect("the operation is coupled");
            let effect = coupled.execute(&store, move |handle| coupled::effect(fixture, &order, handle));
            match effect.await {
                Ok(answer) => answer.map(axum::body::Body::new),
                Err(Failure::Invalid) => StatusCode::BAD_REQUEST.into_response(),
                Err(Failure::Injected) => failed(),
                Err(Failure::Sql(error)) => panic!("{error}"),
            }
        }
    }
}

/// The effect is undone, and the service says so.
fn failed() -> Response {
    (StatusCode::INTERNAL_SERVER_ERROR, [("idempotency-remember", "no")]).into_response()
}

impl Shop for Served {
    async fn order(&self, order: Order) -> Told {
        told(wire::post(self.address, &order).await)
    }

    fn connected(&self) -> Self {
        let (kept, desk, store) = (self.kept.clone(), self.desk.clone(), self.store.clone());
        Self { fixture: self.fixture, clock: self.clock.clone(), kept, desk, store, address: self.address }
    }

    fn fresh(&self) -> Self {
        let (fixture, clock) = (self.fixture, self.clock.clone());
        match (&self.desk, &self.kept) {
            (Desk::Elsewhere(orders), Some(kept)) => {
                Self::start(fixture, clock, kept.connect(), Some(kept.clone()), Desk::Elsewhere(orders.clone()))
            }
            (Desk::Coupled { home, .. }, _) => {
                let store = open(home.path(), &clock);
                Self::start(fixture, clock, store.clone(), None, Desk::Coupled { store, home: home.clone() })
            }
            (Desk::Elsewhere(_), None) => panic!("what is elsewhere has its receipts somewhere"),
        }
    }

    async fn counts(&self) -> (u64, u64) {
        let effects = match &self.desk {
            Desk::Elsewhere(orders) => orders.count(),
            Desk::Coupled { home, .. } => coupled::count(home.path()),
        };
        (effects, self.store.about().await.expect("the store answers").records)
    }

    fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }
}

/// What an answer tells the fixtures' client.
pub(super) fn told(answer: wire::Answer) -> Told {
    match (answer.status, answer.header("idempotent-replayed")) {
        (201, Some("false")) => Told::Created(answer.body),
        (201, Some("true")) => Told::Replayed(answer.body),
        (400, Some("false")) => Told::Invalid,
        (422, Some("false")) if answer.is_problem("mismatch") => Told::Mismatch,
        (500, Some("false")) => Told::Failed,
        _ => panic!("{answer:?}"),
    }
}
