//! The published contract: its document against the schema, a golden file and what the layer really does; and how it is
//! asked for. The proxy shows the same one; its own tests say so.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use counterfoil_core::policy::{Answerer, Remember, StillRunning};
use counterfoil_core::wire::ProblemType;
use counterfoil_core::{Effect, Expiry, Hold, Operation, Policy, Rule};
use counterfoil_middleware::{
    Body, CONTRACT_PATH, ChildKeyHeader, Cors, Duplicates, KeyNeed, OperationRule, Principal, PrincipalAnswer,
    PrincipalFault, Settings, SingleTenant, Terms, Unlisted,
};
use http::Request;
use http::request::Parts;
use serde_json::{Value, json};

use crate::kit::{Answer, House, counting, handler, post, post_body, settings};
use crate::schema;

/// Knows nobody, and says nothing of scopes.
struct Nobody;

impl Principal for Nobody {
    fn principal<'a>(&'a self, _parts: &'a Parts) -> PrincipalAnswer<'a> {
        let fault = PrincipalFault::Unauthenticated { detail: "nobody is known".to_owned(), challenge: None };
        Box::pin(std::future::ready(Err(fault)))
    }
}

fn rule(name: Option<&str>, pattern: &str, key: KeyNeed, terms: Terms) -> OperationRule {
    let name = name.map(|name| Operation::new(name).unwrap());
    OperationRule { name, pattern: pattern.parse().unwrap(), key, terms }
}

/// One operation for each thing that terms can say.
fn everything() -> Settings {
    let waiting = Terms {
        hold: Hold::Optional,
        policy: Policy {
            retention: Duration::from_millis(90_500),
            expiry: Expiry::Refuse(Duration::from_hours(720)),
            ..Policy::default()
        },
        rule: Rule::json().ignoring(["/sent_at", "/a,b"]).unwrap().with_headers(["X-Mode"]).unwrap(),
        age_max: Some(Duration::from_mins(1)),
        remember: Remember { not_processed: vec![503, 404], ..Remember::default() },
        child_key: ChildKeyHeader::default(),
        duplicates: Duplicates::Wait(Duration::from_secs(5)),
        statuses: BTreeMap::from([(ProblemType::Mismatch, 409), (ProblemType::OutcomeUnknown, 425)]),
    };
    let policy = Policy { effect: Effect::Coupled, ..Policy::default() };
    let coupled = Terms { policy, ..Terms::default() };
    let window = Duration::from_hours(24);
    let policy = Policy { effect: Effect::KeyedUpstream, window, ..Policy::default() };
    let in_progress = StillRunning { statuses: vec![409], problems: vec!["urn:upstream:busy".to_owned()] };
    let remember = Remember { in_progress, ..Remember::default() };
    let by_child_key = Terms { policy, remember, ..Terms::default() };
    Settings {
        operations: vec![
            rule(None, "PUT /{*rest}", KeyNeed::Optional, Terms::default()),
            rule(Some("refund"), "POST /orders/{id}/refunds", KeyNeed::Required, waiting),
            rule(Some("create-order"), "POST /orders", KeyNeed::Required, coupled),
            rule(Some("pay"), "PATCH /{*rest}", KeyNeed::Required, by_child_key),
        ],
        unlisted: Unlisted::PassThrough,
        publish_contract: true,
        repeatability: true,
        answerer: Answerer::Upstream,
        ..Settings::new(SingleTenant)
    }
}

fn publishing(terms: Terms) -> Settings {
    Settings { publish_contract: true, ..settings(terms) }
}

fn house(settings: Settings) -> House {
    House::with(settings, counting(&Arc::default()))
}

fn ask(method: &str, path: &str, headers: &[(&str, &str)]) -> Request<Body> {
    let request = Request::builder().method(method).uri(path);
    let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    request.body(Body::empty()).unwrap()
}

async fn asked(house: &House) -> Answer {
    house.send(ask("GET", CONTRACT_PATH, &[])).await
}

async fn document(settings: Settings) -> Value {
    serde_json::from_slice(&asked(&house(settings)).await.body).unwrap()
}

#[tokio::test]
async fn the_document_follows_its_schema() {
    let nameless = Settings { publish_contract: true, ..Settings::new(Nobody) };
    let schema = schema::read("idempotency-contract.schema.json");
    for settings in [publishing(Terms::default()), everything(), nameless] {
        let document = document(settings).await;
        assert_eq!(schema::faults(&schema, &document), Vec::<String>::new(), "{document:#}");
    }
    let mut unknown = document(everything()).await;
    unknown["operations"][0]["secret"] = json!("s");
    assert_eq!(schema::faults(&schema, &unknown).len(), 1, "a member that the schema does not know passed");
    let mut missing = document(everything()).await;
    missing["operations"][0].as_object_mut().unwrap().remove("retention");
    assert_eq!(schema::faults(&schema, &missing).len(), 1, "a member that is missing passed");
}

/// `COUNTERFOIL_BLESS=1` rewrites the file. Clients are written against it.
#[tokio::test]
async fn the_document_is_as_in_the_golden_file() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/contract.json");
    let found = asked(&house(everything())).await.body;
    if std::env::var("COUNTERFOIL_BLESS").is_ok_and(|bless| bless == "1") {
        std::fs::write(&path, &found).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap();
    assert_eq!(std::str::from_utf8(&found).unwrap(), expected, "COUNTERFOIL_BLESS=1 rewrites contract.json");
}

/// Whatever the settings say, the document says it at its place.
#[tokio::test]
async fn each_setting_shows() {
    let everything = document(everything()).await;
    let usual = document(publishing(Terms::default())).await;
    let nobody = document(Settings { publish_contract: true, ..Settings::new(Nobody) }).await;
    let table = [
        // In the order in which they are tried, not in that of the settings.
        (&everything, "/operations/0/name", json!("refund")),
        (&everything, "/operations/1/match", json!("POST /orders")),
        (&everything, "/operations/2/name", json!("PUT /{*rest}")),
        (&everything, "/operations/0/key/required", json!(true)),
        (&everything, "/operations/2/key/required", json!(false)),
        (&everything, "/operations/0/key/carriers/1/header", json!("repeatability-request-id")),
        (&everything, "/markers/repeatability/header", json!("repeatability-result")),
        (&usual, "/operations/0/key/carriers", json!([{ "header": "idempotency-key", "first_sent": null }])),
        (&everything, "/operations/0/scope", json!(["tenant"])),
        (&nobody, "/unlisted/scope", Value::Null),
        (&everything, "/operations/0/fingerprint", json!("json;ignore=/a%2Cb,/sent_at;headers=x-mode")),
        (&everything, "/operations/0/effect", json!("other")),
        (&everything, "/operations/1/effect", json!("coupled")),
        (&everything, "/operations/3/effect", json!("keyed-upstream")),
        (&everything, "/operations/3/window", json!({ "seconds": 86_400 })),
        (&everything, "/operations/3/remembered/in_doubt", json!([409, 502, 503, 504])),
        (&everything, "/operations/0/retention", json!({ "seconds": 90.5, "from": "completion" })),
        (&everything, "/operations/2/retention/seconds", json!(86_400)),
        (&everything, "/operations/0/after_expiry", json!({ "then": "refused", "seconds": 2_592_000 })),
        (&everything, "/operations/1/after_expiry", json!({ "then": "new-action" })),
        (&everything, "/operations/0/max_age", json!({ "seconds": 60 })),
        (&everything, "/operations/1/max_age", Value::Null),
        (&everything, "/operations/0/problems/too-old", json!([412])),
        (&everything, "/operations/0/duplicates", json!({ "while_running": "wait", "seconds": 5 })),
        (&everything, "/operations/1/duplicates", json!({ "while_running": "refuse" })),
        (&everything, "/operations/0/remembered/in_doubt", json!([502, 504])),
        (&everything, "/operations/2/remembered/in_doubt", json!([502, 503, 504])),
        (&usual, "/operations/0/remembered/in_doubt", json!([])),
        (&everything, "/operations/1/remembered", json!({ "decided_by": "transaction" })),
        (&everything, "/operations/0/problems/mismatch", json!([409])),
        (&everything, "/operations/1/problems/mismatch", json!([422])),
        (&everything, "/operations/0/problems/outcome-unknown", json!([425, 502, 504])),
        (&everything, "/operations/1/problems/outcome-unknown", json!([409, 502, 504])),
        (&everything, "/operations/0/problems/too-many-waiting", json!([503])),
        (&everything, "/operations/0/problems/missing-key", json!([400])),
        (&everything, "/unlisted", json!({ "guarded": false })),
        (&usual, "/unlisted/guarded", json!(true)),
        (&usual, "/unlisted/methods", json!(["POST", "PATCH"])),
        (&usual, "/limits/request_body_bytes", json!(1_048_576)),
    ];
    for (document, pointer, expected) in table {
        assert_eq!(document.pointer(pointer), Some(&expected), "{pointer}");
    }
    let absent = [
        (&everything, "/operations/1/problems/too-many-waiting"),
        (&everything, "/operations/1/problems/too-old"),
        (&usual, "/markers/repeatability"),
        (&everything, "/operations/2/problems/missing-key"),
        (&usual, "/unlisted/problems/missing-key"),
    ];
    for (document, pointer) in absent {
        assert_eq!(document.pointer(pointer), None, "{pointer}");
    }
    for (released, status) in [(true, 404), (true, 503), (true, 422), (false, 402), (false, 200), (false, 502)] {
        let list = everything.pointer("/operations/0/remembered/released").and_then(Value::as_array).unwrap();
        assert_eq!(list.contains(&json!(status)), released, "{status}");
    }
}

#[tokio::test]
async fn what_it_says_is_what_is_done() {
    let statuses = BTreeMap::from([(ProblemType::Mismatch, 409), (ProblemType::MissingKey, 428)]);
    let house = house(publishing(Terms { statuses, ..Terms::default() }));
    let document: Value = serde_json::from_slice(&asked(&house).await.body).unwrap();
    let told = |kind: &str| document.pointer(&format!("/operations/0/problems/{kind}/0")).and_then(Value::as_u64);
    assert_eq!(house.send(post("k")).await.status, 201);
    let other = house.send(post_body("k", "{}")).await;
    assert_eq!((other.problem().as_str(), Some(u64::from(other.status))), ("mismatch", told("mismatch")));
    let bare = house.send(ask("POST", "/orders", &[])).await;
    assert_eq!((bare.problem().as_str(), Some(u64::from(bare.status))), ("missing-key", told("missing-key")));
    // Both spellings of a key that the document names, and the header that it names.
    let header = document.pointer("/operations/0/key/carriers/0/header").and_then(Value::as_str).unwrap();
    for key in ["k-2", "\"k-2\""] {
        let mut request = post("unused");
        request.headers_mut().remove("idempotency-key");
        request.headers_mut().insert(http::HeaderName::try_from(header).unwrap(), key.parse().unwrap());
        assert_eq!(house.send(request).await.header("location"), Some("/orders/2"), "{key}");
    }
}

#[tokio::test]
async fn it_needs_no_principal_and_no_store() {
    let house = house(Settings { principal: Arc::new(Nobody), ..publishing(Terms::default()) });
    let answer = asked(&house).await;
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/json")));
    assert_eq!(answer.header("idempotent-replayed"), None, "it is no guarded answer");
    assert_eq!(house.send(post("k")).await.line(), "401 unauthenticated");
    assert_eq!(house.store.calls(), 0);
}

#[tokio::test]
async fn it_is_asked_for_as_any_document() {
    let house = house(publishing(Terms::default()));
    let whole = asked(&house).await;
    assert_eq!(whole.header("cache-control"), Some("public, max-age=300"));
    assert!(whole.body.ends_with(b"}\n"), "it ends like a text");
    let etag = whole.header("etag").unwrap();
    let list = format!("\"a\", W/{etag}");
    type Case<'a> = (&'a str, &'a [(&'a str, &'a str)], u16);
    let table: [Case<'_>; 8] = [
        ("GET", &[], 200),
        ("HEAD", &[], 200),
        ("GET", &[("if-none-match", etag)], 304),
        ("HEAD", &[("if-none-match", etag)], 304),
        ("GET", &[("if-none-match", "\"a\""), ("if-none-match", &list)], 304),
        ("GET", &[("if-none-match", "*")], 304),
        ("GET", &[("if-none-match", etag.trim_matches('"'))], 200),
        ("GET", &[("if-none-match", "\"a\"")], 200),
    ];
    for (method, headers, status) in table {
        let answer = house.send(ask(method, CONTRACT_PATH, headers)).await;
        assert_eq!(answer.status, status, "{method} {headers:?}");
        let body = if (method, status) == ("GET", 200) { whole.body.as_ref() } else { b"" };
        assert_eq!(answer.body.as_ref(), body, "{method} {headers:?}");
        let length = whole.body.len().to_string();
        assert_eq!(answer.header("content-length"), (status == 200).then_some(length.as_str()), "{method} {headers:?}");
        for name in ["etag", "cache-control"] {
            assert_eq!(answer.header(name), whole.header(name), "{method} {headers:?}");
        }
    }
    let keyed = house.send(ask("GET", CONTRACT_PATH, &[("idempotency-key", "k")])).await;
    assert_eq!((keyed.status, keyed.header("idempotency-status")), (200, Some("ignored")));
}

/// A page that may read replays may read what is promised of them; no other may.
#[tokio::test]
async fn a_named_page_may_read_it() {
    let cors = Cors { origins: vec!["https://shop.example".parse().unwrap()], credentials: false };
    let house = house(Settings { cors, ..publishing(Terms::default()) });
    for (origin, allowed) in [("https://shop.example", Some("https://shop.example")), ("https://other.example", None)] {
        let answer = house.send(ask("GET", CONTRACT_PATH, &[("origin", origin)])).await;
        assert_eq!(answer.header("access-control-allow-origin"), allowed, "{origin}");
        assert_eq!(answer.header("vary"), allowed.map(|_| "origin"), "{origin}");
    }
}

/// It changes where a promise does, and is the same for the same promises.
#[tokio::test]
async fn the_tag_names_the_document() {
    let tag = async |terms| asked(&house(publishing(terms))).await.header("etag").unwrap().to_owned();
    let waiting = Terms { duplicates: Duplicates::Wait(Duration::from_secs(1)), ..Terms::default() };
    let usual = tag(Terms::default()).await;
    assert_eq!(usual, tag(Terms::default()).await);
    assert_ne!(usual, tag(waiting).await);
}

#[tokio::test]
async fn everything_else_is_the_applications() {
    let echo = handler(async |request: Request<Body>| {
        Ok(http::Response::new(Body::from(format!("{} {}", request.method(), request.uri()))))
    });
    let (published, silent) = (publishing(Terms::default()), settings(Terms::default()));
    let published = House::with(published, echo.clone());
    let silent = House::with(silent, echo);
    let table = [
        (&published, "POST", CONTRACT_PATH),
        (&published, "OPTIONS", CONTRACT_PATH),
        (&published, "GET", "/.well-known/idempotency/"),
        (&published, "GET", "/.well-known/idempotency/more"),
        (&published, "GET", "/.well-known/other"),
        (&published, "GET", "/v1/.well-known/idempotency"),
        (&silent, "GET", CONTRACT_PATH),
        (&silent, "HEAD", CONTRACT_PATH),
    ];
    for (house, method, path) in table {
        let answer = house.send(ask(method, path, &[])).await;
        assert_eq!(answer.body.as_ref(), format!("{method} {path}").as_bytes(), "{method} {path}");
    }
    let queried = published.send(ask("GET", "/.well-known/idempotency?v=2", &[])).await;
    assert_eq!(queried.header("content-type"), Some("application/json"));
}

/// `docs/reference/contract.md` has a row for every member, by its path in the schema.
#[test]
fn every_member_is_described() {
    fn members(schema: &Value, found: &mut Vec<String>) {
        for (name, inner) in schema.as_object().into_iter().flatten() {
            if name == "properties" {
                found.extend(inner.as_object().unwrap().keys().cloned());
            }
            members(inner, found);
        }
        schema.as_array().into_iter().flatten().for_each(|inner| members(inner, found));
    }
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/contract.md");
    let page = std::fs::read_to_string(page).unwrap();
    let mut names = Vec::new();
    members(&schema::read("idempotency-contract.schema.json"), &mut names);
    assert!(names.len() > 80, "the schema names {} members", names.len());
    let undescribed: Vec<_> = names.iter().filter(|name| !page.contains(&format!("`{name}`"))).collect();
    assert!(undescribed.is_empty(), "docs/reference/contract.md says nothing of {undescribed:?}");
}
