//! What travels beside a key: the second carrier, the age of an action, early data, origins of pages, and codings.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use counterfoil_middleware::{Body, Cors, Settings, Terms};
use http::{HeaderValue, Request, Response};

use crate::kit::{Answer, House, counting, created, handler, post, settings};
use crate::store::BEGIN;

const MINUTE: Duration = Duration::from_secs(60);

fn aged(age_max: Option<Duration>) -> Settings {
    Settings { repeatability: true, ..settings(Terms { age_max, ..Terms::default() }) }
}

fn repeatable(lines: &[(&str, &str)]) -> Request<Body> {
    let mut request = Request::post("/orders").header("content-type", "application/json");
    for (name, value) in lines {
        request = request.header(*name, *value);
    }
    request.body(Body::from("{}")).unwrap()
}

/// `201 replayed=false accepted`.
fn told(answer: &Answer) -> String {
    format!("{} {}", answer.line(), answer.header("repeatability-result").unwrap_or("untold"))
}

#[tokio::test]
async fn an_action_may_be_named_by_the_second_carrier() {
    let effects = Arc::new(AtomicUsize::new(0));
    let house = House::with(aged(None), counting(&effects));
    let check = async |lines: &[(&str, &str)], expected: &str| {
        let answer = house.send(repeatable(lines)).await;
        assert_eq!(told(&answer), expected, "{lines:?}");
    };
    let (id, sent) = ("repeatability-request-id", ("repeatability-first-sent", "Tue, 14 Nov 2023 22:13:20 GMT"));
    check(&[(id, "k-1"), sent], "201 replayed=false accepted").await;
    check(&[(id, "k-1"), sent], "201 replayed=true accepted").await;
    // It is the same key in either carrier, and only the second is told so.
    check(&[("idempotency-key", "k-1")], "201 replayed=true untold").await;
    check(&[(id, "k-2")], "400 malformed-key rejected").await;
    check(&[sent], "400 malformed-key rejected").await;
    check(&[(id, "k-2"), sent, ("idempotency-key", "k-2")], "400 malformed-key rejected").await;
    assert_eq!(effects.load(Ordering::SeqCst), 1);
}

/// A UUIDv7 of this instant, in milliseconds.
fn uuid(millis: i64) -> String {
    let time = format!("{millis:012x}");
    format!("{}-{}-7abc-8def-0123456789ab", &time[..8], &time[8..])
}

#[tokio::test]
async fn an_action_that_is_too_old_is_not_run() {
    let effects = Arc::new(AtomicUsize::new(0));
    let house = House::with(aged(Some(MINUTE)), counting(&effects));
    let (id, sent) = ("repeatability-request-id", "repeatability-first-sent");
    let young = [(id, "young"), (sent, "Tue, 14 Nov 2023 22:12:20 GMT")];
    let old = [(id, "old"), (sent, "Tue, 14 Nov 2023 22:12:19 GMT")];
    assert_eq!(told(&house.send(repeatable(&young)).await), "201 replayed=false accepted");
    let answer = house.send(repeatable(&old)).await;
    assert_eq!(told(&answer), "412 too-old rejected");
    assert!(String::from_utf8_lossy(&answer.body).contains("first sent more than 60 s ago"), "{answer:?}");
    assert_eq!(house.send(post(&uuid(BEGIN - 60_000))).await.line(), "201 replayed=false");
    assert_eq!(house.send(post(&uuid(BEGIN - 60_001))).await.line(), "412 too-old");
    assert_eq!(house.send(post("undated")).await.line(), "201 replayed=false");
    assert_eq!(effects.load(Ordering::SeqCst), 3);
    // What was run in time is replayed however old it is by now.
    house.store.clock.advance(10 * MINUTE);
    assert_eq!(told(&house.send(repeatable(&young)).await), "201 replayed=true accepted");
    assert_eq!(house.send(post(&uuid(BEGIN - 60_000))).await.line(), "201 replayed=true");
    assert_eq!(effects.load(Ordering::SeqCst), 3);
    // Without a limit nothing is too old.
    let house = House::with(aged(None), counting(&effects));
    assert_eq!(told(&house.send(repeatable(&old)).await), "201 replayed=false accepted");
}

#[tokio::test]
async fn early_data_is_sent_back_before_anything_is_asked() {
    let effects = Arc::new(AtomicUsize::new(0));
    let house = House::new(counting(&effects));
    let check = async |value: &'static str, expected: &str| {
        let mut request = post("k");
        request.headers_mut().insert("early-data", HeaderValue::from_static(value));
        assert_eq!(house.send(request).await.line(), expected, "{value}");
    };
    check("1", "425 too-early").await;
    assert_eq!((house.store.calls(), effects.load(Ordering::SeqCst)), (0, 0));
    check("0", "201 replayed=false").await;
    check("1", "425 too-early").await;
    // What is not guarded is the application's to judge.
    let unguarded = Request::get("/orders").header("early-data", "1").body(Body::empty()).unwrap();
    assert_eq!(house.call(unguarded).await.unwrap().status(), 201);
}

#[tokio::test]
async fn a_page_reads_replays_and_refusals_where_it_is_named() {
    let cors = Cors { origins: vec![HeaderValue::from_static("https://shop.example")], credentials: true };
    let house = House::with(Settings { cors, ..settings(Terms::default()) }, handler(|_| async { Ok(created(1)) }));
    let asked = |key: &str, origin: &'static str, body: &'static str| {
        let request = Request::post("/orders").header("origin", origin).header("idempotency-key", key);
        request.header("content-type", "application/json").body(Body::from(body)).unwrap()
    };
    let check = async |request: Request<Body>, line: &str, exposed: Option<&str>| {
        let about = format!("{request:?}");
        let answer = house.send(request).await;
        assert_eq!(answer.line(), line, "{about}");
        assert_eq!(answer.header("access-control-expose-headers"), exposed, "{about}");
        let allowed = exposed.map(|_| "https://shop.example");
        assert_eq!(answer.header("access-control-allow-origin"), allowed, "{about}");
        assert_eq!(answer.header("access-control-allow-credentials"), allowed.map(|_| "true"), "{about}");
    };
    let ours = Some("idempotent-replayed, idempotency-expires");
    check(asked("k", "https://shop.example", "{}"), "201 replayed=false", ours).await;
    check(asked("k", "https://shop.example", "{}"), "201 replayed=true", ours).await;
    check(asked("k", "https://other.example", "{}"), "201 replayed=true", None).await;
    check(asked("k", "https://shop.example", "[1]"), "422 mismatch", Some("idempotent-replayed")).await;
    check(asked("", "https://shop.example", "{}"), "400 malformed-key", Some("idempotent-replayed")).await;
}

#[tokio::test]
async fn a_preflight_passes_and_is_the_applications_to_answer() {
    let house = House::new(handler(|request: Request<Body>| async move {
        assert_eq!(request.method(), "OPTIONS");
        let answer = Response::builder().status(204).header("access-control-allow-headers", "idempotency-key");
        Ok(answer.body(Body::empty()).unwrap())
    }));
    let preflight = Request::options("/orders")
        .header("origin", "https://shop.example")
        .header("access-control-request-method", "POST")
        .header("access-control-request-headers", "idempotency-key,content-type");
    let answer = house.send(preflight.body(Body::empty()).unwrap()).await;
    assert_eq!((answer.status, answer.header("idempotent-replayed")), (204, None));
    assert_eq!(answer.header("access-control-allow-headers"), Some("idempotency-key"));
    assert_eq!(house.store.calls(), 0);
}

#[tokio::test]
async fn a_replay_comes_in_a_coding_that_its_asker_offers() {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(b"order 1").unwrap();
    let gzip = encoder.finish().unwrap();
    let house = House::new(handler(move |_| {
        let answer = Response::builder().status(201).header("content-encoding", "gzip").header("etag", "\"1\"");
        let answer = answer.body(Body::from(gzip.clone())).unwrap();
        async move { Ok(answer) }
    }));
    let asked = |offers: &'static str| {
        let mut request = post("k");
        request.headers_mut().insert("accept-encoding", HeaderValue::from_static(offers));
        request
    };
    let first = house.send(asked("gzip")).await;
    assert_eq!((first.line().as_str(), first.header("content-encoding")), ("201 replayed=false", Some("gzip")));
    let same = house.send(asked("br, gzip")).await;
    assert_eq!((same.line().as_str(), same.header("content-encoding")), ("201 replayed=true", Some("gzip")));
    assert_eq!((same.header("etag"), &same.body), (Some("\"1\""), &first.body));
    let other = house.send(asked("br")).await;
    assert_eq!((other.line().as_str(), other.header("content-encoding")), ("201 replayed=true", None));
    assert_eq!((other.header("etag"), &other.body[..]), (Some("W/\"1\""), &b"order 1"[..]));
    let plain = house.send(post("k")).await;
    assert_eq!(plain.body, other.body, "who offers nothing gets the plain bytes");
}
