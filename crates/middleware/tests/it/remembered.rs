//! What is remembered of an answer and what a replay shows: statuses, headers, bodies that are not kept, retention.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use counterfoil_core::policy::{Answerer, Remember};
use counterfoil_core::wire::ProblemType;
use counterfoil_core::{Expiry, Policy, State};
use counterfoil_middleware::{Body, Error, GuardLayer, Settings, Terms};
use counterfoil_store::Gate;
use futures_util::stream;
use http::{HeaderName, HeaderValue, Response};
use http_body::Frame;
use http_body_util::StreamBody;

use crate::kit::{Answer, Handler, House, collected, counting, handler, identity, post, post_body, settings};
use crate::store::Scripted;

/// Answers a status and a header line of `idempotency-remember`, and counts.
fn answering(effects: &Arc<AtomicUsize>, status: u16, said: Option<&'static str>) -> Handler {
    let effects = effects.clone();
    handler(move |_| {
        effects.fetch_add(1, Ordering::SeqCst);
        let mut answer = Response::builder().status(status);
        if let Some(said) = said {
            answer = answer.header("idempotency-remember", said);
        }
        async move { Ok(answer.body(Body::from("x")).unwrap()) }
    })
}

#[tokio::test]
async fn statuses_are_kept_released_or_in_doubt() {
    let own = Answerer::Handler;
    let behind = Answerer::Upstream;
    let table = [
        (200, own, None, "200 replayed=false", "200 replayed=true", 1),
        (303, own, None, "303 replayed=false", "303 replayed=true", 1),
        (404, own, None, "404 replayed=false", "404 replayed=true", 1),
        (409, own, None, "409 replayed=false", "409 replayed=true", 1),
        (500, own, None, "500 replayed=false", "500 replayed=true", 1),
        (503, own, None, "503 replayed=false", "503 replayed=true", 1),
        (503, behind, None, "502 outcome-unknown", "409 outcome-unknown", 1),
        (504, behind, None, "504 outcome-unknown", "409 outcome-unknown", 1),
        (500, behind, None, "500 replayed=false", "500 replayed=true", 1),
        (400, own, None, "400 replayed=false", "400 replayed=false", 2),
        (429, behind, None, "429 replayed=false", "429 replayed=false", 2),
        (507, own, None, "507 replayed=false", "507 replayed=false", 2),
        (400, own, Some("yes"), "400 replayed=false", "400 replayed=true", 1),
        (503, behind, Some("no"), "503 replayed=false", "503 replayed=false", 2),
        (503, behind, Some("Yes"), "503 replayed=false", "503 replayed=true", 1),
        (200, own, Some("no"), "200 replayed=false", "200 replayed=false", 2),
        (200, own, Some("maybe"), "200 replayed=false", "200 replayed=true", 1),
    ];
    for (status, answerer, said, first, second, runs) in table {
        let effects = Arc::new(AtomicUsize::new(0));
        let remember = Remember { not_processed: vec![507], ..Remember::default() };
        let terms = Terms { remember, ..Terms::default() };
        let house = House::with(Settings { answerer, ..settings(terms) }, answering(&effects, status, said));
        for expected in [first, second] {
            let answer = house.send(post("k")).await;
            assert_eq!(answer.line(), expected, "{status} {answerer:?} {said:?}");
            assert_eq!(answer.header("idempotency-remember"), None);
        }
        assert_eq!(effects.load(Ordering::SeqCst), runs, "{status} {answerer:?} {said:?}");
    }
}

#[tokio::test]
async fn after_a_refusal_the_corrected_request_runs_under_the_same_key() {
    let run = handler(|request: http::Request<Body>| async move {
        let body = collected(request.into_body()).await;
        let status = if body == "{}" { 400 } else { 201 };
        Ok(Response::builder().status(status).body(Body::from(body)).unwrap())
    });
    let house = House::new(run);
    let table = [
        ("{}", "400 replayed=false"),
        (r#"{"item":1}"#, "201 replayed=false"),
        (r#"{"item":1}"#, "201 replayed=true"),
        ("{}", "422 mismatch"),
    ];
    for (body, expected) in table {
        assert_eq!(house.send(post_body("k", body)).await.line(), expected, "{body}");
    }
}

/// Name, value, and whether a replay shows it.
const HEADERS: [(&str, &[u8], bool); 28] = [
    ("content-type", b"text/plain;charset=latin1", true),
    ("content-language", b"de", true),
    ("content-encoding", b"br", true),
    ("content-disposition", b"attachment; filename=\"\xe9.txt\"", true),
    ("location", b"/orders/1", true),
    ("etag", b"\"1\"", true),
    ("last-modified", b"Sun, 06 Nov 1994 08:49:37 GMT", true),
    ("link", b"</a>; rel=next", true),
    ("link", b"</b>; rel=prev", true),
    ("retry-after", b"7", true),
    ("x-order", b"\xff\xfe", true),
    ("x-order", b"", true),
    ("x-other", b"1", false),
    ("content-hop", b"1", false),
    ("set-cookie", b"session=1", false),
    ("date", b"Sun, 06 Nov 1994 08:49:37 GMT", false),
    ("age", b"5", false),
    ("connection", b"close, Content-Hop", false),
    ("keep-alive", b"timeout=5", false),
    ("trailer", b"x", false),
    ("upgrade", b"h2c", false),
    ("server", b"it", false),
    ("cache-control", b"no-store", false),
    ("x-request-id", b"1", false),
    ("traceparent", b"00-1-1-00", false),
    ("ratelimit", b"1", false),
    ("x-ratelimit-remaining", b"1", false),
    ("idempotency-status", b"forged", false),
];

fn values<'a>(answer: &'a Answer, name: &str) -> Vec<&'a [u8]> {
    answer.headers.get_all(name).iter().map(HeaderValue::as_bytes).collect()
}

#[tokio::test]
async fn replayed_headers_are_those_of_the_table_as_bytes_and_in_order() {
    let run = handler(|_| async {
        let mut answer = Response::new(Body::from("x"));
        for (name, value, _) in HEADERS {
            answer.headers_mut().append(HeaderName::from_static(name), HeaderValue::from_bytes(value).unwrap());
        }
        Ok(answer)
    });
    let replayed_headers = vec![HeaderName::from_static("x-order")];
    let house = House::with(Settings { replayed_headers, ..settings(Terms::default()) }, run);
    let (first, second) = (house.send(post("k")).await, house.send(post("k")).await);
    assert_eq!((first.line().as_str(), second.line().as_str()), ("200 replayed=false", "200 replayed=true"));
    for (name, _, replayed) in HEADERS {
        let sent: Vec<&[u8]> = HEADERS.iter().filter(|row| row.0 == name).map(|row| row.1).collect();
        assert_eq!(values(&first, name), sent, "{name} of the first answer");
        assert_eq!(values(&second, name), if replayed { sent } else { Vec::new() }, "{name} of the replay");
    }
    assert_eq!(first.body, second.body);
    let expires = Some("Wed, 15 Nov 2023 22:13:20 GMT");
    assert_eq!((first.header("idempotency-expires"), second.header("idempotency-expires")), (expires, expires));
}

/// The names of the headers that the receipt of `k` keeps.
async fn kept_names(house: &House) -> Vec<String> {
    let state = house.store.stands(&identity("k")).await.unwrap().state;
    let State::Done { receipt, .. } = state else { panic!("{state:?}") };
    receipt.headers.iter().map(|(name, _)| name.clone()).collect()
}

/// A piece of a connection's buffer would hold all of it for as long as the receipt lives.
#[tokio::test]
async fn a_receipt_owns_its_bytes() {
    let buffer = Bytes::from(vec![b'x'; 8192]);
    let piece = buffer.slice(100..110);
    let house = House::new(handler(move |_| {
        let piece = piece.clone();
        async move { Ok(Response::new(Body::from(piece))) }
    }));
    let first = house.send(post("k")).await;
    assert_eq!((first.line().as_str(), first.body.len()), ("200 replayed=false", 10));
    let state = house.store.stands(&identity("k")).await.unwrap().state;
    let State::Done { receipt, .. } = state else { panic!("{state:?}") };
    let counterfoil_core::Body::Kept(kept) = &receipt.body else { panic!("{receipt:?}") };
    assert_eq!(kept.as_ref(), b"xxxxxxxxxx");
    assert!(!buffer.as_ptr_range().contains(&kept.as_ptr()), "the receipt keeps the handler's buffer");
}

#[tokio::test]
async fn a_replay_is_its_answer_byte_for_byte_whatever_the_status() {
    let every: Vec<u8> = (0..=255).cycle().take(768).collect();
    let table = [
        (200, "application/octet-stream", every),
        (404, "application/problem+json", br#"{"type": "about:blank", "detail": "no such order"}"#.to_vec()),
        (409, "application/vnd.x+json; charset=utf-8", b"{ \"again\" : true }\n".to_vec()),
        (500, "text/plain; charset=latin1", b"\xff\xfe\0 not text".to_vec()),
        (200, "text/plain", Vec::new()),
        (204, "", Vec::new()),
        (304, "", Vec::new()),
    ];
    for (status, media, body) in table {
        let answer = body.clone();
        let run = handler(move |_| {
            let mut head = Response::builder().status(status).header("x-reason", "stock").header("set-cookie", "a=1");
            if !media.is_empty() {
                head = head.header("content-type", media);
            }
            let answer = head.body(Body::from(answer.clone())).unwrap();
            async move { Ok(answer) }
        });
        let replayed_headers = vec![HeaderName::from_static("x-reason")];
        let house = House::with(Settings { replayed_headers, ..settings(Terms::default()) }, run);
        for replayed in ["false", "true", "true"] {
            let found = house.send(post("k")).await;
            assert_eq!((found.status, found.header("idempotent-replayed")), (status, Some(replayed)));
            assert_eq!(found.header("content-type").unwrap_or_default(), media, "{status} {replayed}");
            assert_eq!((found.header("x-reason"), found.body.as_ref()), (Some("stock"), &body[..]), "{status} {media}");
        }
        let wanted: &[&str] = if media.is_empty() { &["x-reason"] } else { &["x-reason", "content-type"] };
        assert_eq!(kept_names(&house).await, wanted, "what is not replayed is not stored either");
    }
}

#[test]
fn headers_that_belong_to_one_answer_cannot_be_configured() {
    for name in ["set-cookie", "date", "connection", "x-request-id", "ratelimit-limit", "idempotent-replayed"] {
        let gate = Gate::new(Scripted::new()).unwrap();
        let replayed_headers = vec![HeaderName::from_static(name)];
        let refused = GuardLayer::new(gate, Settings { replayed_headers, ..settings(Terms::default()) }).err();
        assert_eq!(refused, Some(Error::NeverReplayed { name: name.to_owned() }));
    }
}

fn chunks(sizes: &'static [usize]) -> Body {
    let frame = |size: &usize| Ok::<_, std::io::Error>(Frame::data(Bytes::from(vec![b'x'; *size])));
    Body::new(StreamBody::new(stream::iter(sizes.iter().map(frame))))
}

#[tokio::test]
async fn an_answer_over_the_limit_is_delivered_whole_and_a_duplicate_learns_that_it_is_done() {
    type Case = (fn() -> Body, &'static str, usize, bool);
    let table: [Case; 7] = [
        (|| Body::from(vec![b'x'; 100]), "text/plain", 100, true),
        (|| Body::from(vec![b'x'; 101]), "text/plain", 101, false),
        (|| chunks(&[40, 0, 60]), "text/plain", 100, true),
        (|| chunks(&[40, 61]), "text/plain", 101, false),
        (|| chunks(&[40, 60, 1, 700]), "text/plain", 801, false),
        (|| chunks(&[1]), "text/event-stream; charset=utf-8", 1, false),
        (Body::empty, "text/plain", 0, true),
    ];
    for (body, media, length, kept) in table {
        let run = handler(move |_| async move {
            let answer = Response::builder().status(201).header("content-type", media).header("location", "/o/1");
            Ok(answer.body(body()).unwrap())
        });
        let house = House::with(Settings { kept_answer_max: 100, ..settings(Terms::default()) }, run);
        let first = house.send(post("k")).await;
        assert_eq!((first.line().as_str(), first.body.len()), ("201 replayed=false", length));
        let second = house.send(post("k")).await;
        assert_eq!(second.header("location"), Some("/o/1"), "{media} {length}");
        if kept {
            assert_eq!((second.line().as_str(), second.body), ("201 replayed=true", first.body));
        } else {
            assert_eq!(second.line(), "409 result-not-kept");
            assert!(String::from_utf8_lossy(&second.body).contains(r#""original_status":"201""#));
        }
    }
}

#[tokio::test]
async fn an_event_stream_is_answered_before_it_ends() {
    let run = handler(|_| async {
        let endless = Body::new(StreamBody::new(stream::pending::<Result<Frame<Bytes>, std::io::Error>>()));
        Ok(Response::builder().header("content-type", "Text/Event-Stream").body(endless).unwrap())
    });
    let house = House::new(run);
    let answer = house.call(post("k")).await.unwrap();
    assert_eq!(answer.headers()["idempotent-replayed"], "false");
    assert_eq!(house.send(post("k")).await.line(), "409 result-not-kept");
}

#[tokio::test]
async fn a_receipt_lives_as_long_as_promised() {
    let refusing = Expiry::Refuse(Duration::from_secs(10));
    let table = [
        (Expiry::NewAction, 59, "201 replayed=true", 1),
        (Expiry::NewAction, 60, "201 replayed=false", 2),
        (refusing, 59, "201 replayed=true", 1),
        (refusing, 60, "410 expired-key", 1),
        (refusing, 69, "410 expired-key", 1),
        (refusing, 70, "201 replayed=false", 2),
    ];
    for (expiry, second, expected, runs) in table {
        let effects = Arc::new(AtomicUsize::new(0));
        let policy = Policy { retention: Duration::from_mins(1), expiry, ..Policy::default() };
        let house = House::with(settings(Terms { policy, ..Terms::default() }), counting(&effects));
        house.send(post("k")).await;
        house.store.clock.advance(Duration::from_secs(second));
        assert_eq!(house.send(post("k")).await.line(), expected, "{expiry:?} at {second}");
        assert_eq!(effects.load(Ordering::SeqCst), runs);
    }
}

#[tokio::test]
async fn an_operation_may_answer_with_other_statuses() {
    let effects = Arc::new(AtomicUsize::new(0));
    let statuses = [(ProblemType::Mismatch, 409)].into();
    let house = House::with(settings(Terms { statuses, ..Terms::default() }), counting(&effects));
    house.send(post("k")).await;
    assert_eq!(house.send(post_body("k", "{}")).await.line(), "409 mismatch");
}
