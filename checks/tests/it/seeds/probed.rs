//! Both fixtures as the probe sees them: their services, written here as the fixtures have them and without anything of
//! ours, behind HTTP; and what the contract sheet says of them.
//!
//! What does not belong here: our own services, which keep more than the fixtures do.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex},
};

use axum::{
    Router,
    body::Bytes,
    extract::{Path, State},
    http::{HeaderMap, StatusCode},
    routing::{get, post},
};
use counterfoil_probe::{Catalogue, Place, Probe, Settings, Value, report::Sheet};
use serde_json::{Value as Json, json};

use super::Fixture;

/// One lock is the fixture's sequence of transactions: who comes second finds what the first has saved.
#[derive(Default)]
struct Saved {
    effects: u64,
    receipts: HashMap<(String, String, String), (Json, String)>,
}

#[derive(Clone)]
struct Service {
    fixture: Fixture,
    saved: Arc<Mutex<Saved>>,
}

impl Service {
    /// What the fixture makes of one attempt, already authenticated.
    fn execute(&self, scope: (String, String, String), parameters: Json) -> (StatusCode, String) {
        // The first fixture compares the quantity alone and knows no other parameter.
        let parameters = match self.fixture {
            Fixture::Scope => json!({"quantity": parameters["quantity"]}),
            Fixture::Intent => parameters,
        };
        if !self.fixture.accepts(&parameters) {
            return (StatusCode::BAD_REQUEST, json!({"error": "invalid parameters"}).to_string());
        }
        let mut saved = self.saved.lock().expect("nothing panics in it");
        if let Some((asked, result)) = saved.receipts.get(&scope) {
            return if *asked == parameters {
                (StatusCode::CREATED, result.clone())
            } else {
                (StatusCode::CONFLICT, json!({"error": "key reused with other parameters"}).to_string())
            };
        }
        saved.effects += 1;
        let result = self.fixture.result(saved.effects, &parameters);
        saved.receipts.insert(scope, (parameters, result.clone()));
        (StatusCode::CREATED, result)
    }
}

async fn order(
    State(service): State<Service>,
    Path(operation): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> (StatusCode, String) {
    let told = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let Some(tenant) = told("authorization").and_then(|told| told.strip_prefix("Bearer tenant-").map(str::to_owned))
    else {
        return (StatusCode::UNAUTHORIZED, String::new());
    };
    let Some(key) = told("idempotency-key") else { return (StatusCode::BAD_REQUEST, String::new()) };
    let parameters = serde_json::from_slice(&body).unwrap_or_default();
    service.execute((tenant, operation, key), parameters)
}

/// What the sheet says of the fixture, by field.
async fn sheet(fixture: Fixture, body: &str, id: &str) -> BTreeMap<String, Value> {
    let service = Service { fixture, saved: Arc::default() };
    let count =
        async |State(service): State<Service>| service.saved.lock().expect("nothing panics in it").effects.to_string();
    let app = Router::new().route("/do/{operation}", post(order)).route("/effects", get(count)).with_state(service);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("it is bound"));
    let serving = tokio::spawn(async move { axum::serve(listener, app).await });
    let settings = Settings {
        url: Some(format!("{url}/do/web-order")),
        body: Some(body.to_owned()),
        vary: Some("/quantity".to_owned()),
        id: Some(id.to_owned()),
        count_url: Some(format!("{url}/effects")),
        also: BTreeMap::from([(Place::Other, format!("{url}/do/batch-order"))]),
        credential: Some("Authorization: Bearer tenant-north".to_owned()),
        ..Settings::default()
    };
    let probe =
        Probe::new(&settings, Catalogue::built_in().expect("the cases are read")).expect("the settings are good");
    let run = probe.run(|_| ()).await.expect("it runs");
    serving.abort();
    let critical = run.results.iter().find(|result| result.verdict.name().contains("critical"));
    assert!(critical.is_none(), "{critical:?}");
    let fields = Sheet::of(&run).field;
    let named = |(group, fields): (String, BTreeMap<String, _>)| {
        fields.into_iter().map(move |(name, entry): (String, counterfoil_probe::report::Entry)| {
            (format!("{group}.{name}"), entry.value)
        })
    };
    fields.into_iter().flat_map(named).collect()
}

fn says(sheet: &BTreeMap<String, Value>, wanted: &[(&str, &str)]) {
    for (field, value) in wanted {
        let found = sheet.get(*field).map(ToString::to_string);
        assert_eq!(found.as_deref(), Some(*value), "{field} in {sheet:?}");
    }
}

/// Eight at once are one effect and seven replays; a changed quantity is told by 409; another operation is other work.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_scope_fixture_is_described_rightly() {
    let sheet = sheet(Fixture::Scope, "{\"quantity\":2}", "/effect_id").await;
    says(
        &sheet,
        &[
            ("replay.is", "replay"),
            ("replay.status", "201"),
            ("replay.same_bytes", "yes"),
            ("mismatch.status", "409"),
            ("scope.other_operation", "new-effect"),
            ("memory.validation", "201"),
            ("memory.unauthenticated", "201"),
            ("fingerprint.added_member", "replay"),
            ("fingerprint.white_space", "replay"),
            ("key.missing", "400"),
        ],
    );
    assert_eq!(sheet.get("in_progress.status"), None, "who comes second waits, and is replayed: {sheet:?}");
}

/// The order of members is free, anything but the two is refused, and a 400 is not kept.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_intent_fixture_is_described_rightly() {
    let sheet = sheet(Fixture::Intent, "{\"product\":\"notebook\",\"quantity\":2}", "/order_id").await;
    says(
        &sheet,
        &[
            ("replay.is", "replay"),
            ("replay.status", "201"),
            ("mismatch.status", "409"),
            ("memory.validation", "201"),
            ("fingerprint.member_order", "replay"),
            ("fingerprint.added_member", "refused 400"),
            ("fingerprint.removed_member", "refused 400"),
            ("key.missing", "400"),
        ],
    );
}
