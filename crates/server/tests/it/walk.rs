//! Without its principal nobody sees a record, or that it is there: every route with every header is asked for a key that
//! has a record and for one that has none, and both are answered alike.

use crate::caller::{Answer, ask, raw};
use crate::issuer::{Issuer, set};
use crate::principals::{Application, found, key_of, without_date};
use crate::running::Running;
use crate::upstream::{Play, Upstream};

/// What only the record's own principal may read.
const RESULT: &str = "the-result-of-alice";
const CREATED: Play =
    Play::Send("HTTP/1.1 201 Created\r\ncontent-length: 19\r\nlocation: /orders/alice-1\r\n\r\nthe-result-of-alice");

const OPERATIONS: &str = "[[operation]]\nname = \"order\"\nmatch = \"POST /orders\"\nkey = \"required\"\n\
                          [[operation]]\nname = \"change\"\nmatch = \"PATCH /orders/{id}\"\n\
                          [[operation]]\nname = \"put\"\nmatch = \"PUT /orders/{id}\"\n\
                          [[operation]]\nname = \"files\"\nmatch = \"DELETE /files/{*rest}\"\n";

const ROUTES: [&str; 7] = [
    "POST /orders",
    "POST /orders?a=1",
    "POST /x/../orders",
    "POST /%6frders",
    "PATCH /orders/7",
    "PUT /orders/7",
    "DELETE /files/a/b/c",
];

/// Lines that ask for something of a key, of the cache, of the connection or of the proxy.
const LINES: [&[&str]; 18] = [
    &[],
    &["idempotency-key: K2"],
    &["idempotency-key: \"unfinished"],
    &["content-type: application/json"],
    &["accept-encoding: gzip"],
    &["if-none-match: *"],
    &["range: bytes=0-3"],
    &["upgrade: websocket", "connection: upgrade"],
    &["expect: 100-continue"],
    &["early-data: 1"],
    &["repeatability-request-id: K", "repeatability-first-sent: Tue, 14 Nov 2023 22:13:20 GMT"],
    &["idempotency-remember: yes"],
    &["origin: https://a.example", "access-control-request-method: POST"],
    &["x-forwarded-for: 127.0.0.1"],
    &["x-user: alice", "x-principal: alice"],
    &["x-http-method-override: GET"],
    &["transfer-encoding: chunked"],
    &["cookie: user=alice"],
];

/// What somebody may bring who is nobody: no credential, and such that name nobody.
const CREDENTIALS: [&[&str]; 6] = [
    &[],
    &["authorization: Bearer guessed"],
    &["authorization: Basic YWxpY2U6"],
    &["authorization: Bearer alice"],
    &["authorization: Bearer right", "authorization: Bearer right"],
    &["x-api-key: right"],
];

/// Walks with alice's own line `known`, which makes the record that nobody else may notice.
async fn walk(settings: &str, known: &str, known_at: Option<&Application>) {
    let upstream = Upstream::start(CREATED).await;
    let running = Running::start(upstream.address, &format!("{OPERATIONS}{settings}")).await;
    for route in ROUTES {
        let first = ask(running.proxy, route, &["idempotency-key: K", known], "").await;
        // Other spellings of a route name the action of the first.
        assert!(matches!(first.status(), 201 | 422), "{route}: {first:?}");
    }
    let runs = upstream.seen().len();
    if let Some(application) = known_at {
        application.says("HTTP/1.1 401 No\r\ncontent-length: 0\r\n\r\n");
    }
    for route in ROUTES {
        // Every line with no credential and with a wrong one; every other credential with no further line.
        let every_line = LINES.iter().flat_map(|lines| [(*lines, CREDENTIALS[0]), (*lines, CREDENTIALS[1])]);
        let every_credential = CREDENTIALS.iter().map(|credentials| (LINES[0], *credentials));
        for (lines, credentials) in every_line.chain(every_credential) {
            let [with, without] = ["K", "absent"].map(|key| format!("idempotency-key: {key}"));
            let with = asked(&running, route, &[&[with.as_str()], lines, credentials].concat()).await;
            let without = asked(&running, route, &[&[without.as_str()], lines, credentials].concat()).await;
            let at = format!("{route} {lines:?} {credentials:?}");
            assert_eq!((with.status(), with.problem().as_str()), (401, "unauthenticated"), "{at}: {with:?}");
            assert_eq!(without_date(&with), without_date(&without), "{at}");
            assert_eq!(with.header("idempotent-replayed"), Some("false"), "{at}");
            assert!(!format!("{with:?}").contains("alice"), "{at}: {with:?}");
        }
    }
    assert_eq!(upstream.seen().len(), runs, "nothing was run");
    for path in ["/", "/healthz", "/readyz", "/metrics", "/receipts", "/receipts/K", "/intents"] {
        let answer = ask(running.admin, &format!("GET {path}"), &["idempotency-key: K"], "").await;
        assert!(!answer.body.contains(RESULT) && !answer.body.contains("alice"), "{path}: {answer:?}");
    }
    if let Some(application) = known_at {
        application.says(ALICE);
    }
    let again = ask(running.proxy, ROUTES[0], &["idempotency-key: K", known], "").await;
    assert_eq!((again.header("idempotent-replayed"), again.body.as_str()), (Some("true"), RESULT));
}

/// A request without a body, or with an empty chunked one.
async fn asked(running: &Running, route: &str, lines: &[&str]) -> Answer {
    if !lines.contains(&"transfer-encoding: chunked") {
        return ask(running.proxy, route, lines, "").await;
    }
    let lines = lines.join("\r\n");
    raw(running.proxy, &format!("{route} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n{lines}\r\n\r\n0\r\n\r\n")).await
}

const ALICE: &str = "HTTP/1.1 200 OK\r\nx-user: alice\r\ncontent-length: 0\r\n\r\n";

#[tokio::test]
async fn without_an_api_key() {
    let settings = format!("[principal]\nfrom = \"api-keys\"\n{}", key_of("alice", "right"));
    walk(&settings, "authorization: Bearer right", None).await;
}

#[tokio::test]
async fn without_a_token() {
    let issuer = Issuer::new("one");
    let idp = Application::start(&found(&set(&[issuer.jwk()]))).await;
    let settings =
        format!("[principal]\nfrom = \"jwt\"\njwks = \"http://{}/\"\nissuer = \"i\"\naudience = \"a\"\n", idp.address);
    let claims = serde_json::json!({ "iss": "i", "aud": "a", "sub": "alice", "exp": 4_102_444_800_i64 });
    walk(&settings, &format!("authorization: Bearer {}", issuer.token(&claims)), None).await;
}

#[tokio::test]
async fn without_the_applications_word() {
    let application = Application::start(ALICE).await;
    let settings = format!(
        "[principal]\nfrom = \"forward-auth\"\nurl = \"http://{}/\"\nanswer_header = \"x-user\"\n",
        application.address
    );
    walk(&settings, "authorization: Bearer right", Some(&application)).await;
}

#[tokio::test]
async fn from_no_named_peer() {
    let upstream = Upstream::start(CREATED).await;
    let settings =
        format!("{OPERATIONS}[principal]\nfrom = \"header\"\nheader = \"x-user\"\npeers = [\"10.0.0.0/8\"]\n");
    let running = Running::start(upstream.address, &settings).await;
    for route in ROUTES {
        for lines in LINES {
            let answer = asked(&running, route, &[&["idempotency-key: K"], lines].concat()).await;
            assert_eq!((answer.status(), answer.problem().as_str()), (401, "unauthenticated"), "{route} {lines:?}");
        }
    }
    assert!(upstream.seen().is_empty());
}
