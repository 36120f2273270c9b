//! What the upstream gets, what the caller gets, and what each failure of the upstream leaves behind.

use std::net::SocketAddr;

use crate::caller::{ask, order, raw};
use crate::running::Running;
use crate::upstream::{Play, Upstream};

const CREATED: Play = Play::Send(
    "HTTP/1.1 201 Created\r\ncontent-type: application/json\r\nlocation: /orders/1\r\nset-cookie: a=b\r\n\
     connection: close, x-trace\r\nx-trace: 1\r\nkeep-alive: timeout=5\r\nx-order: 1\r\ncontent-length: 8\r\n\r\n{\"id\":1}",
);

/// The header lines of a request that the upstream saw, sorted, without what differs from run to run.
fn lines(request: &str, upstream: SocketAddr, proxy: SocketAddr) -> Vec<String> {
    let head = request.split("\r\n\r\n").next().unwrap();
    let mut lines: Vec<String> = head.lines().map(str::to_owned).collect();
    lines[1..].sort_unstable();
    let named = |line: &String| line.replace(&upstream.to_string(), "UPSTREAM").replace(&proxy.to_string(), "PROXY");
    lines.iter().map(named).collect()
}

#[tokio::test]
async fn a_guarded_request_on_its_way() {
    let upstream = Upstream::start(CREATED).await;
    let running = Running::start(upstream.address, "").await;
    let headers = [
        "Idempotency-Key: \"k\"",
        "Content-Type: application/json",
        "Accept-Encoding: gzip",
        "TE: trailers",
        "X-Hop: 1",
        "Connection: x-hop",
        "X-Forwarded-For: 203.0.113.9",
        "Expect: 100-continue",
        "X-Kept: 1",
    ];
    let answer = ask(running.proxy, "POST /orders?a=1&b=%2f", &headers, "{\"item\":\"tea\"}").await;
    // The interim answer to the expectation comes first.
    let (interim, rest) = answer.body.split_once("\r\n\r\n").unwrap();
    assert_eq!(answer.head, "HTTP/1.1 100 Continue");
    assert!(interim.starts_with("HTTP/1.1 201 Created\r\n"), "{interim}");
    for (line, stands) in [
        ("location: /orders/1", true),
        ("set-cookie: a=b", true),
        ("x-order: 1", true),
        ("idempotent-replayed: false", true),
        ("x-trace", false),
        ("keep-alive", false),
        ("transfer-encoding", false),
    ] {
        assert_eq!(interim.contains(line), stands, "{line} in {interim}");
    }
    assert_eq!(rest, "{\"id\":1}");
    let expected = [
        "POST /orders?a=1&b=%2f HTTP/1.1",
        "accept-encoding: identity",
        "content-length: 14",
        "content-type: application/json",
        "forwarded: for=127.0.0.1;proto=http;host=\"PROXY\"",
        "host: UPSTREAM",
        "x-forwarded-for: 127.0.0.1",
        "x-forwarded-host: PROXY",
        "x-forwarded-proto: http",
        "x-kept: 1",
    ];
    let seen = upstream.seen();
    assert_eq!(lines(&seen[0], upstream.address, running.proxy), expected);
    assert!(seen[0].ends_with("{\"item\":\"tea\"}"));
}

#[tokio::test]
async fn a_retry_does_not_reach_the_upstream() {
    let upstream = Upstream::start(CREATED).await;
    let running = Running::start(upstream.address, "").await;
    let first = order(running.proxy, "k", "{\"a\":1,\"b\":2}").await;
    let second = order(running.proxy, "\"k\"", "{ \"b\": 2.0, \"a\": 1 }").await;
    let other = order(running.proxy, "k", "{\"a\":2}").await;
    assert_eq!((first.status(), first.header("idempotent-replayed")), (201, Some("false")));
    assert_eq!((second.status(), second.header("idempotent-replayed")), (201, Some("true")));
    assert_eq!((second.header("location"), second.body.as_str()), (Some("/orders/1"), "{\"id\":1}"));
    assert_eq!((second.header("set-cookie"), second.header("x-order")), (None, None));
    assert_eq!((other.status(), other.problem().as_str()), (422, "mismatch"));
    assert_eq!(upstream.seen().len(), 1);
}

#[tokio::test]
async fn the_key_is_forwarded_on_request() {
    let upstream = Upstream::start(CREATED).await;
    let running = Running::start(upstream.address, "forward_key = true\nreplay_headers = [\"x-order\"]").await;
    order(running.proxy, "k", "{}").await;
    let again = order(running.proxy, "k", "{}").await;
    assert!(upstream.seen()[0].contains("\r\nidempotency-key: k\r\n"));
    assert_eq!(again.header("x-order"), Some("1"));
}

/// The outside can neither show a permit nor see one, in no spelling that an application could take for one.
#[tokio::test]
async fn a_permit_comes_from_nobody_outside_and_goes_to_nobody() {
    let answer =
        "HTTP/1.1 201 Created\r\nidempotency-permit: leaked\r\nIdempotency_Permit: leaked\r\ncontent-length: 0\r\n\r\n";
    let upstream = Upstream::start(Play::Send(answer)).await;
    let running = Running::start(upstream.address, "").await;
    let forged = ["Idempotency-Permit: forged", "IDEMPOTENCY_PERMIT: forged", "idempotency-Permit: forged"];
    let guarded: Vec<&str> = [&forged[..], &["Idempotency-Key: k", "Connection: idempotency-permit"]].concat();
    for headers in [guarded.as_slice(), &forged] {
        let answer = ask(running.proxy, "POST /orders", headers, "{}").await;
        assert_eq!(answer.status(), 201);
        assert!(!format!("{answer:?}").contains("leaked"), "{answer:?}");
    }
    let seen = upstream.seen();
    assert_eq!(seen.len(), 2);
    assert!(seen.iter().all(|request| !request.contains("forged")), "{seen:?}");
}

#[tokio::test]
async fn unguarded_traffic_passes() {
    let upstream = Upstream::start(Play::Send("HTTP/1.0 200 OK\r\nserver: old\r\n\r\nas it is")).await;
    let running = Running::start(upstream.address, "[[operation]]\nname = \"o\"\nmatch = \"POST /orders\"\n").await;
    let answer = ask(running.proxy, "GET /a/../b//c", &["accept-encoding: gzip", "idempotency-key: k"], "").await;
    assert!(answer.head.starts_with("HTTP/1.1 200 OK"), "{answer:?}");
    assert_eq!(answer.header("idempotency-status"), Some("ignored"));
    assert!(answer.body.contains("as it is"), "{answer:?}");
    let seen = upstream.seen();
    assert!(seen[0].starts_with("GET /a/../b//c HTTP/1.1\r\n"), "{seen:?}");
    assert!(seen[0].contains("accept-encoding: gzip\r\n") && seen[0].contains("idempotency-key: k\r\n"), "{seen:?}");
    let chunked = "POST /upload HTTP/1.1\r\nhost: x\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
    assert_eq!(raw(running.proxy, chunked).await.status(), 200);
    assert!(upstream.seen()[1].contains("3\r\nabc\r\n0\r\n\r\n"), "{:?}", upstream.seen());
}

/// What the first attempt and a retry are answered, and how often the upstream was asked.
#[track_caller]
fn check(name: &str, found: [(u16, String); 2], asked: usize, expected: [(u16, &str); 2], asks: usize) {
    let [first, second] = &found;
    let found = [(first.0, first.1.as_str()), (second.0, second.1.as_str())];
    assert_eq!((found, asked), (expected, asks), "{name}");
}

async fn twice(play: Play, more: &str) -> ([(u16, String); 2], usize) {
    let upstream = Upstream::start(play).await;
    let running = Running::start(upstream.address, more).await;
    let first = order(running.proxy, "k", "{}").await;
    let second = order(running.proxy, "k", "{}").await;
    ([(first.status(), first.problem()), (second.status(), second.problem())], upstream.seen().len())
}

#[tokio::test]
async fn failures_of_the_upstream() {
    let cut = Play::Send("HTTP/1.1 201 Created\r\ncontent-length: 100\r\n\r\nhalf");
    let garbled = Play::Send("HTTP/1.1 abc\r\n\r\n");
    let busy = Play::Send("HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n");
    let bad = Play::Send("HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n");
    let gone = Play::Send("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n");
    let switched = Play::Send("HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n");
    let early =
        Play::Send("HTTP/1.1 103 Early Hints\r\nlink: a\r\n\r\nHTTP/1.1 201 Created\r\ncontent-length: 0\r\n\r\n");
    let (unknown, settled) = ([(502, "outcome-unknown"), (409, "outcome-unknown")], [(400, ""), (400, "")]);
    let rows = [
        ("closed without a byte", Play::Close, "", unknown, 1),
        ("cut off in the body", cut, "", unknown, 1),
        ("no HTTP", garbled, "", unknown, 1),
        ("switched protocols unasked", switched, "", unknown, 1),
        ("busy, or something in between is", busy, "", unknown, 1),
        ("busy, and declared as not processed", busy, "[defaults]\nnot_processed = [503]\n", [(503, ""), (503, "")], 2),
        ("refused", bad, "", settled, 2),
        ("a result like any other", gone, "", [(404, ""), (404, "")], 1),
        ("an interim answer first", early, "", [(201, ""), (201, "")], 1),
    ];
    for (name, play, more, expected, asks) in rows {
        let (found, asked) = twice(play, more).await;
        check(name, found, asked, expected, asks);
    }
}

#[tokio::test]
async fn a_time_limit_is_doubt() {
    let (found, asked) = twice(Play::Hang, "[defaults]\nhandler = \"1s\"\n").await;
    check("hangs", found, asked, [(504, "outcome-unknown"), (409, "outcome-unknown")], 1);
    let (found, asked) =
        twice(Play::Echo("HTTP/1.1 201 Created\r\ncontent-length: 9\r\n\r\nhalf"), "[defaults]\nhandler = \"1s\"\n")
            .await;
    check("hangs half-way", found, asked, [(504, "outcome-unknown"), (409, "outcome-unknown")], 1);
}

/// After the limit nothing of the run can still be sent: the upstream sees its connection end, and nothing is left to
/// wait for when the server stops.
#[tokio::test]
async fn the_connection_ends_with_the_limit() {
    let upstream = Upstream::start(Play::Hang).await;
    let more = "[defaults]\nhandler = \"1s\"\n[limits]\ndrain = \"1h\"\n";
    let mut running = Running::start(upstream.address, more).await;
    assert_eq!(order(running.proxy, "k", "{}").await.status(), 504);
    upstream.left().await;
    running.stop();
    assert_eq!(running.ended().await.doubted, 0);
}

/// An answer over what is kept, and a stream of events, are delivered whole however long they take.
#[tokio::test]
async fn long_answers_outlast_the_limit() {
    let more = "[defaults]\nhandler = \"1s\"\n[limits]\nkept_answer_max = \"4B\"\n";
    for head in ["x-a: b\r\n\r\nlonger than is kept", "content-type: Text/Event-Stream; x=y\r\n\r\nabc"] {
        let upstream = Upstream::start(Play::Slowly(head)).await;
        let running = Running::start(upstream.address, more).await;
        let answer = order(running.proxy, "k", "{}").await;
        assert_eq!(answer.status(), 200, "{answer:?}");
        assert!(answer.body.contains("and the end"), "{answer:?}");
        let again = order(running.proxy, "k", "{}").await;
        assert_eq!((again.status(), again.problem().as_str()), (409, "result-not-kept"));
    }
}

/// Nobody listens: nothing was sent, and the key stays free.
#[tokio::test]
async fn an_upstream_that_is_not_there() {
    let nobody = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap()
    };
    let running = Running::start(nobody, "").await;
    for _ in 0..2 {
        let answer = order(running.proxy, "k", "{}").await;
        assert_eq!((answer.status(), answer.problem().as_str()), (502, "upstream-unreachable"));
    }
    let unguarded = ask(running.proxy, "GET /", &[], "").await;
    assert_eq!((unguarded.status(), unguarded.problem().as_str()), (502, "upstream-unreachable"));
}

#[tokio::test]
async fn principals_by_header() {
    let upstream = Upstream::start(CREATED).await;
    let believed = "[principal]\nfrom = \"header\"\nheader = \"x-user\"\npeers = [\"127.0.0.1\"]\n";
    let running = Running::start(upstream.address, believed).await;
    let ask_as = async |user: &[&str]| {
        let headers: Vec<String> = user.iter().map(|user| format!("x-user: {user}")).collect();
        let mut headers: Vec<&str> = headers.iter().map(String::as_str).collect();
        headers.push("idempotency-key: k");
        let answer = ask(running.proxy, "POST /orders", &headers, "{}").await;
        (answer.status(), answer.header("idempotent-replayed").map(str::to_owned))
    };
    let (yes, no) = (Some("true".to_owned()), Some("false".to_owned()));
    assert_eq!(ask_as(&["alice"]).await, (201, no.clone()));
    assert_eq!(ask_as(&["alice"]).await, (201, yes));
    assert_eq!(ask_as(&["bob"]).await, (201, no));
    assert_eq!(ask_as(&[]).await.0, 401);
    assert_eq!(ask_as(&["alice", "bob"]).await.0, 401);
    assert_eq!(upstream.seen().len(), 2);

    let strangers = believed.replace("127.0.0.1", "10.0.0.0/8");
    let running = Running::start(upstream.address, &strangers).await;
    let answer = ask(running.proxy, "POST /orders", &["x-user: alice", "idempotency-key: k"], "{}").await;
    assert_eq!((answer.status(), answer.problem().as_str()), (401, "unauthenticated"));
    assert_eq!(upstream.seen().len(), 2);
}

#[tokio::test]
async fn a_header_that_never_ends_is_cut_off() {
    let upstream = Upstream::start(CREATED).await;
    let running = Running::start(upstream.address, "[limits]\nheader = \"1s\"\n").await;
    let answer = raw(running.proxy, "POST /orders HTTP/1.1\r\nhost: x\r\n").await;
    assert_ne!(answer.status(), 201);
    assert!(upstream.seen().is_empty());
}
