//! The order of judgement, and that nobody's record is looked up before the caller is known.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use counterfoil_core::{Expiry, Policy, Rule, Scope};
use counterfoil_middleware::{Body, Fault, Principal, PrincipalAnswer, PrincipalFault, Settings, Terms, Unlisted};
use http::request::Parts;
use http::{HeaderValue, Request, Response};

use crate::kit::{Handler, Held, House, counting, handler, identity, post, post_body, read, settings};

/// Knows the callers that say who they are, and lets `mallory` do nothing.
struct ByHeader;

impl Principal for ByHeader {
    fn principal<'a>(&'a self, parts: &'a Parts) -> PrincipalAnswer<'a> {
        let who = parts.headers.get("x-caller").and_then(|value| value.to_str().ok());
        Box::pin(std::future::ready(match who {
            None => Err(PrincipalFault::Unauthenticated {
                detail: "say who you are".to_owned(),
                challenge: Some(HeaderValue::from_static("Custom")),
            }),
            Some("mallory") => Err(PrincipalFault::Forbidden { detail: "mallory may not".to_owned() }),
            Some(who) => Ok(Scope::principal(who).unwrap()),
        }))
    }
}

fn with_principal(terms: Terms, handler: Handler) -> House {
    let principal = Arc::new(ByHeader);
    House::with(Settings { principal, request_body_max: 64, ..settings(terms) }, handler)
}

fn request(caller: Option<&str>, keys: &[&[u8]], path: &str, body: &'static str) -> Request<Body> {
    let mut request = Request::post(path).header("content-type", "application/json");
    if let Some(caller) = caller {
        request = request.header("x-caller", caller);
    }
    for key in keys {
        request = request.header("idempotency-key", HeaderValue::from_bytes(key).unwrap());
    }
    request.body(Body::from(body)).unwrap()
}

#[tokio::test]
async fn the_first_fault_in_order_answers_and_nothing_is_looked_up() {
    const LONG: &str = r#"{"item": "0123456789012345678901234567890123456789012345678901234567890123456789"}"#;
    const TWICE: &str = r#"{"item": 1, "item": 2}"#;
    let key: &[&[u8]] = &[b"k"];
    type Case<'a> = (Option<&'a str>, &'a [&'a [u8]], &'a str, &'static str, &'a str);
    let table: &[Case<'_>] = &[
        (None, key, "/orders", "{}", "401 unauthenticated"),
        (None, &[], "/orders", "{}", "401 unauthenticated"),
        (None, &[b"a", b"b"], "/orders", LONG, "401 unauthenticated"),
        (None, key, "/elsewhere", "{}", "401 unauthenticated"),
        (Some("mallory"), key, "/orders", LONG, "403 forbidden"),
        (Some("ann"), &[], "/orders", LONG, "400 missing-key"),
        (Some("ann"), &[b"a", b"b"], "/orders", LONG, "400 malformed-key"),
        (Some("ann"), &[b""], "/orders", LONG, "400 malformed-key"),
        (Some("ann"), &[b"\"open"], "/orders", LONG, "400 malformed-key"),
        (Some("ann"), &[b"\xff"], "/orders", LONG, "400 malformed-key"),
        (Some("ann"), key, "//orders", LONG, "400 malformed-path"),
        (Some("ann"), &[], "//orders", LONG, "400 malformed-path"),
        (Some("ann"), key, "/orders", LONG, "413 body-too-large"),
        (Some("ann"), key, "/orders", TWICE, "400 malformed-body"),
    ];
    let effects = Arc::new(AtomicUsize::new(0));
    let house = with_principal(Terms { rule: Rule::json(), ..Terms::default() }, counting(&effects));
    for (caller, keys, path, body, expected) in table {
        let answer = house.send(request(*caller, keys, path, body)).await;
        assert_eq!(answer.line(), *expected, "{caller:?} {keys:?} {path}");
        assert_eq!(answer.header("idempotent-replayed"), Some("false"));
        if caller.is_none() {
            assert_eq!(answer.header("www-authenticate"), Some("Custom"));
        }
    }
    assert_eq!(house.store.calls(), 0, "a store was asked before the caller was known or the request was whole");
    assert_eq!(effects.load(Ordering::SeqCst), 0);
    assert_eq!(house.send(request(Some("ann"), key, "/orders", "{}")).await.line(), "201 replayed=false");
    assert!(house.store.calls() > 0);
}

#[tokio::test]
async fn another_caller_operation_or_key_is_another_action() {
    let effects = Arc::new(AtomicUsize::new(0));
    let house = with_principal(Terms::default(), counting(&effects));
    let table = [
        ("ann", "k", "/orders", "201 replayed=false"),
        ("ann", "k", "/orders", "201 replayed=true"),
        ("ann", "\"k\"", "/orders", "201 replayed=true"),
        ("ann", "k", "/x/../%6frders", "201 replayed=true"),
        ("bob", "k", "/orders", "201 replayed=false"),
        ("ann", "l", "/orders", "201 replayed=false"),
        ("ann", "k", "/elsewhere", "201 replayed=false"),
        ("ann", "k", "/elsewhere", "201 replayed=true"),
        ("ann", "k", "/orders?dry=1", "422 mismatch"),
    ];
    for (caller, key, path, expected) in table {
        let answer = house.send(request(Some(caller), &[key.as_bytes()], path, "{}")).await;
        assert_eq!(answer.line(), expected, "{caller} {key} {path}");
    }
    let other = house.send(request(Some("ann"), &[b"k"], "/orders", "{\"item\": 2}")).await;
    assert_eq!(other.line(), "422 mismatch");
    assert_eq!(effects.load(Ordering::SeqCst), 4);
}

/// Knows one caller, whose right can be taken away.
struct Revocable(Arc<AtomicBool>);

impl Principal for Revocable {
    fn principal<'a>(&'a self, _: &'a Parts) -> PrincipalAnswer<'a> {
        let revoked = PrincipalFault::Forbidden { detail: "no longer".to_owned() };
        let allowed = self.0.load(Ordering::SeqCst);
        Box::pin(std::future::ready(if allowed { Ok(Scope::single_tenant()) } else { Err(revoked) }))
    }
}

/// Whether the action runs, is done, or is forgotten, and what a duplicate with the same or other parameters gets.
#[tokio::test]
async fn a_caller_whose_right_was_taken_away_learns_nothing_and_the_record_stays() {
    let table = [
        ("running", "409 in-progress", "422 mismatch"),
        ("done", "201 replayed=true", "422 mismatch"),
        ("expired", "410 expired-key", "410 expired-key"),
    ];
    for (state, same, other) in table {
        let allowed = Arc::new(AtomicBool::new(true));
        let expiry = Expiry::Refuse(Duration::from_hours(1));
        let policy = Policy { retention: Duration::from_mins(1), expiry, ..Policy::default() };
        let principal = Arc::new(Revocable(allowed.clone()));
        let held = Held::new();
        let terms = Terms { policy, ..Terms::default() };
        let house = House::with(Settings { principal, ..settings(terms) }, held.handler());
        let first = house.sending(post("k"));
        held.begun.notified().await;
        if state != "running" {
            held.go.notify_one();
            house.store.until(&identity("k"), |record| record.is_some_and(|record| record.version > 1)).await;
        }
        if state == "expired" {
            house.store.clock.advance(Duration::from_mins(1));
        }
        for (body, expected) in [(r#"{"item": "tea"}"#, same), ("{}", other)] {
            assert_eq!(house.send(post_body("k", body)).await.line(), expected, "{state} {body}");
            let (stands, calls) = (house.store.stands(&identity("k")).await, house.store.calls());
            allowed.store(false, Ordering::SeqCst);
            assert_eq!(house.send(post_body("k", body)).await.line(), "403 forbidden", "{state} {body}");
            assert_eq!(house.store.calls(), calls, "a record was looked up for a caller without a right");
            assert_eq!(house.store.stands(&identity("k")).await, stands);
            allowed.store(true, Ordering::SeqCst);
        }
        held.go.notify_one();
        assert_eq!(first.await.unwrap().line(), "201 replayed=false");
        assert_eq!(held.effects.load(Ordering::SeqCst), 1, "{state}");
    }
}

#[tokio::test]
async fn parameters_are_compared_by_what_they_say() {
    let effects = Arc::new(AtomicUsize::new(0));
    let house = House::new(counting(&effects));
    let table = [
        (r#"{"a": 1, "b": [1, 2]}"#, "201 replayed=false"),
        (r#"{ "b": [1,2], "a": 1.0 }"#, "201 replayed=true"),
        (r#"{"a": 1, "b": [2, 1]}"#, "422 mismatch"),
        (r#"{"a": 1, "b": [1, 2], "c": null}"#, "422 mismatch"),
    ];
    for (body, expected) in table {
        assert_eq!(house.send(post_body("k", body)).await.line(), expected, "{body}");
    }
}

#[tokio::test]
async fn an_upgrade_on_a_guarded_route_is_refused_and_an_offer_of_http2_is_passed_over() {
    let effects = Arc::new(AtomicUsize::new(0));
    let house = House::new(counting(&effects));
    let table =
        [("websocket", "501 not-supported"), ("h2c, websocket", "501 not-supported"), ("H2C", "201 replayed=false")];
    for (upgrade, expected) in table {
        let mut request = post("k");
        request.headers_mut().insert("upgrade", HeaderValue::from_static(upgrade));
        assert_eq!(house.send(request).await.line(), expected, "{upgrade}");
    }
    assert_eq!(effects.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_key_where_nothing_is_guarded_is_said_to_be_ignored() {
    let effects = Arc::new(AtomicUsize::new(0));
    let unlisted = Unlisted::PassThrough;
    let house = House::with(Settings { unlisted, ..settings(Terms::default()) }, counting(&effects));
    let table = [
        ("GET", "/orders", true, Some("ignored")),
        ("GET", "/orders", false, None),
        ("POST", "/elsewhere", true, Some("ignored")),
        ("POST", "/elsewhere", false, None),
        ("PUT", "/orders", true, Some("ignored")),
    ];
    for (method, path, keyed, expected) in table {
        let mut request = Request::builder().method(method).uri(path);
        if keyed {
            request = request.header("idempotency-key", "k");
        }
        let answer = house.send(request.body(Body::empty()).unwrap()).await;
        assert_eq!(answer.header("idempotency-status"), expected, "{method} {path} {keyed}");
        assert_eq!(answer.line(), "201 replayed=none");
    }
    assert_eq!(house.store.calls(), 0);
    assert_eq!(effects.load(Ordering::SeqCst), table.len());
}

#[tokio::test]
async fn unguarded_traffic_keeps_its_errors_and_guarded_traffic_is_always_answered() {
    let failing = handler(|_| async { Err::<Response<Body>, Fault>(Fault::Broken("broken pipe".to_owned())) });
    let house = House::new(failing);
    let unguarded = house.call(Request::get("/orders").body(Body::empty()).unwrap()).await;
    assert_eq!(unguarded.unwrap_err().to_string(), "the request may have been sent, and then: broken pipe");
    let guarded = read(house.call(post("k")).await.unwrap()).await;
    assert_eq!(guarded.line(), "502 outcome-unknown");
}
