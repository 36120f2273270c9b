//! What each fault of an upstream leaves behind, kind by kind: certainly not sent, or in doubt; and that nothing is
//! ever sent again behind the caller's back.

use crate::caller::{ask, order};
use crate::faulty::{Faulty, Step, frame, send};
use crate::running::Running;

/// What the first attempt and a retry with the same key are answered.
#[derive(Clone, Copy, Debug)]
enum Fate {
    /// The key is free: the retry goes out too.
    NotSent,
    /// 502, and a retry is not sent.
    Doubt,
    /// 504, and a retry is not sent.
    Late,
}

/// One guarded action and its retry through a proxy before `upstream`. `counts`: connections and requests that the
/// upstream should have seen of each attempt that goes out.
async fn check(name: &str, upstream: &Faulty, more: &str, fate: Fate, counts: (usize, usize)) {
    let running = Running::start(upstream.address, more).await;
    let first = order(running.proxy, "k", "{}").await;
    let (status, problem, retry) = match fate {
        Fate::NotSent => (502, "upstream-unreachable", (502, "upstream-unreachable")),
        Fate::Doubt => (502, "outcome-unknown", (409, "outcome-unknown")),
        Fate::Late => (504, "outcome-unknown", (409, "outcome-unknown")),
    };
    assert_eq!((first.status(), first.problem().as_str()), (status, problem), "{name}: {first:?}");
    assert_eq!(upstream.counts(), counts, "{name}: the first attempt");
    let second = order(running.proxy, "k", "{}").await;
    assert_eq!((second.status(), second.problem().as_str()), retry, "{name}: {second:?}");
    let times = if matches!(fate, Fate::NotSent) { 2 } else { 1 };
    assert_eq!(upstream.counts(), (counts.0 * times, counts.1 * times), "{name}: the retry");
}

async fn table(rows: Vec<(&str, Vec<Step>, Fate)>, more: &str) {
    for (name, script, fate) in rows {
        let upstream = Faulty::start(script).await;
        check(name, &upstream, more, fate, (1, 1)).await;
    }
}

#[tokio::test]
async fn over_http_1() {
    use Step::{Close, Drip, Head, Read, Reset};
    let status = || send("HTTP/1.1 201 Created\r\n");
    let many = format!("HTTP/1.1 201 Created\r\n{}", "x: y\r\n".repeat(300));
    let long = format!("HTTP/1.1 201 Created\r\nx: {}\r\n", "y".repeat(70_000));
    let chunked = "HTTP/1.1 201 Created\r\ntransfer-encoding: chunked\r\n\r\n";
    let rows = vec![
        ("reset behind the header", vec![Head, Reset], Fate::Doubt),
        ("reset behind the body", vec![Head, Read(2), Reset], Fate::Doubt),
        ("closed without a byte", vec![Head, Read(2), Close], Fate::Doubt),
        ("cut in the status line", vec![Head, Read(2), send("HTTP/1.1 2"), Close], Fate::Doubt),
        ("cut in the header", vec![Head, Read(2), status(), Close], Fate::Doubt),
        ("reset in the header", vec![Head, Read(2), status(), Reset], Fate::Doubt),
        (
            "cut in a body with a length",
            vec![Head, Read(2), status(), send("content-length: 9\r\n\r\nhalf"), Close],
            Fate::Doubt,
        ),
        ("cut in a chunk", vec![Head, Read(2), send(format!("{chunked}9\r\nhalf")), Close], Fate::Doubt),
        ("cut between chunks", vec![Head, Read(2), send(format!("{chunked}4\r\nhalf\r\n")), Close], Fate::Doubt),
        ("cut before the end of trailers", vec![Head, Read(2), send(format!("{chunked}0\r\n")), Close], Fate::Doubt),
        ("a chunk without a size", vec![Head, Read(2), send(format!("{chunked}x\r\n"))], Fate::Doubt),
        ("no HTTP", vec![Head, Read(2), send("SSH-2.0-OpenSSH_9.2\r\n")], Fate::Doubt),
        (
            "two lengths",
            vec![Head, Read(2), status(), send("content-length: 1\r\ncontent-length: 2\r\n\r\nab")],
            Fate::Doubt,
        ),
        ("too many header lines", vec![Head, Read(2), send(many)], Fate::Doubt),
        ("too long a header", vec![Head, Read(2), send(long)], Fate::Doubt),
        ("only interim answers", vec![Head, Read(2), send("HTTP/1.1 103 Early Hints\r\n\r\n"), Close], Fate::Doubt),
        ("silent", vec![Head, Read(2)], Fate::Late),
        ("silent in the header", vec![Head, Read(2), status()], Fate::Late),
        ("silent in the body", vec![Head, Read(2), status(), send("content-length: 9\r\n\r\nhalf")], Fate::Late),
        ("a header that never ends", vec![Head, Read(2), status(), send("x: "), Drip(b'y')], Fate::Late),
        (
            "a body that never ends",
            vec![Head, Read(2), status(), send("content-length: 9999\r\n\r\n"), Drip(b'y')],
            Fate::Late,
        ),
    ];
    table(rows, "[defaults]\nhandler = \"1s\"\n").await;
}

#[tokio::test]
async fn over_http_2() {
    use Step::{Close, Reset, Two};
    let hello = || send(frame::settings());
    let goaway = |last, code| send(frame::goaway(last, code));
    let created = || send(frame::created());
    let rows = vec![
        ("refused", vec![hello(), Two, send(frame::reset(frame::REFUSED_STREAM))], Fate::NotSent),
        ("GOAWAY below", vec![hello(), Two, goaway(0, frame::NO_ERROR)], Fate::NotSent),
        ("GOAWAY below, as an error", vec![hello(), Two, goaway(0, frame::ENHANCE_YOUR_CALM)], Fate::NotSent),
        ("GOAWAY above, then below", vec![hello(), Two, goaway(0x7fff_ffff, 0), goaway(0, 0)], Fate::NotSent),
        ("GOAWAY at our stream", vec![hello(), Two, goaway(1, frame::NO_ERROR), Close], Fate::Doubt),
        ("GOAWAY at our stream, as an error", vec![hello(), Two, goaway(1, frame::INTERNAL_ERROR), Close], Fate::Doubt),
        ("GOAWAY above", vec![hello(), Two, goaway(0x7fff_ffff, frame::NO_ERROR), Close], Fate::Doubt),
        ("canceled", vec![hello(), Two, send(frame::reset(frame::CANCEL))], Fate::Doubt),
        ("failed", vec![hello(), Two, send(frame::reset(frame::INTERNAL_ERROR))], Fate::Doubt),
        ("no error, no answer", vec![hello(), Two, send(frame::reset(frame::NO_ERROR))], Fate::Doubt),
        ("closed", vec![hello(), Two, Close], Fate::Doubt),
        ("reset", vec![hello(), Two, Reset], Fate::Doubt),
        ("nonsense", vec![hello(), Two, send(frame::nonsense())], Fate::Doubt),
        ("no HTTP", vec![hello(), Two, send("HTTP/1.1 400 Bad Request\r\n\r\n")], Fate::Doubt),
        ("cut in the answer", vec![hello(), Two, created(), send(frame::data(b"half", false)), Close], Fate::Doubt),
        (
            "refused within the answer",
            vec![hello(), Two, created(), send(frame::reset(frame::REFUSED_STREAM))],
            Fate::Doubt,
        ),
        ("GOAWAY below within the answer", vec![hello(), Two, created(), goaway(0, 0)], Fate::Doubt),
        ("no error within the answer", vec![hello(), Two, created(), send(frame::reset(frame::NO_ERROR))], Fate::Doubt),
        ("silent", vec![hello(), Two], Fate::Late),
        ("silent in the answer", vec![hello(), Two, created(), send(frame::data(b"half", false))], Fate::Late),
    ];
    table(rows, "[defaults]\nhandler = \"1s\"\n[forward]\nhttp = \"2\"\n").await;
}

/// An upstream that turns every request away before it was sent: whichever comes first, nothing of it counts.
#[tokio::test]
async fn turned_away_at_the_door() {
    let script = vec![send(frame::settings()), send(frame::goaway(0, frame::NO_ERROR))];
    let upstream = Faulty::start(script).await;
    check("GOAWAY at once", &upstream, "[forward]\nhttp = \"2\"\n", Fate::NotSent, (1, 0)).await;
}

/// Nobody is there, or has that name.
#[tokio::test]
async fn no_connection() {
    let nobody = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap()
    };
    for more in ["", "[forward]\nhttp = \"2\"\n"] {
        let running = Running::start(nobody, more).await;
        free_again(&running).await;
    }
    for upstream in ["http://nobody.invalid", "https://nobody.invalid", "unix:/nowhere/orders.sock"] {
        let running = Running::before(upstream, "[limits]\nconnect = \"2s\"\n").await;
        free_again(&running).await;
    }
}

/// Two attempts with one key that both go as far as they can.
async fn free_again(running: &Running) {
    for _ in 0..2 {
        let answer = order(running.proxy, "k", "{}").await;
        assert_eq!((answer.status(), answer.problem().as_str()), (502, "upstream-unreachable"), "{answer:?}");
    }
}

/// TLS that comes to nothing, each way: refused, silent, no TLS, cut.
#[tokio::test]
async fn no_handshake() {
    let rows = [
        ("silent", vec![]),
        ("no TLS", vec![send("HTTP/1.1 400 Bad Request\r\n\r\n")]),
        ("closed", vec![Step::Read(1), Step::Close]),
        ("reset", vec![Step::Read(1), Step::Reset]),
        ("an alert", vec![Step::Read(1), send(b"\x15\x03\x03\x00\x02\x02\x28")]),
    ];
    for (name, script) in rows {
        let upstream = Faulty::start(script).await;
        let running = Running::before(&format!("https://{}", upstream.address), "[limits]\nconnect = \"1s\"\n").await;
        free_again(&running).await;
        assert_eq!(upstream.counts(), (2, 0), "{name}");
    }
}

/// Every place is taken by somebody else's stream.
#[tokio::test]
async fn no_place() {
    let upstream = Faulty::start(vec![Step::Head, send("HTTP/1.1 200 OK\r\n\r\nas long as you like")]).await;
    let more = "[limits]\nupstream_connections = 1\nconnect = \"1s\"\n";
    let running = Running::start(upstream.address, more).await;
    let proxy = running.proxy;
    let stream = tokio::spawn(async move { ask(proxy, "GET /stream", &[], "").await });
    upstream.asked().await;
    free_again(&running).await;
    assert_eq!(upstream.counts(), (1, 1));
    stream.abort();
    // The caller's end is the upstream's, and its place is free.
    upstream.left().await;
    let proxy = running.proxy;
    let order = tokio::spawn(async move { order(proxy, "k", "{}").await });
    upstream.asked().await;
    assert_eq!(upstream.counts(), (2, 2));
    order.abort();
}

/// Requests that are not guarded are not sent twice either, not even those that could be.
#[tokio::test]
async fn nothing_is_repeated_unguarded() {
    let rows = [
        ("reset", vec![Step::Head, Step::Reset], "", 502),
        ("closed", vec![Step::Head, Step::Close], "", 502),
        ("refused", vec![send(frame::settings()), Step::Two, send(frame::reset(frame::REFUSED_STREAM))], "2", 502),
        ("GOAWAY", vec![send(frame::settings()), Step::Two, send(frame::goaway(0, 0))], "2", 502),
    ];
    for (name, script, http, status) in rows {
        for line in ["GET /", "PUT /a", "DELETE /a"] {
            let upstream = Faulty::start(script.clone()).await;
            let more = if http.is_empty() { String::new() } else { format!("[forward]\nhttp = \"{http}\"\n") };
            let running = Running::start(upstream.address, &more).await;
            let answer = ask(running.proxy, line, &[], "").await;
            assert_eq!((answer.status(), upstream.counts()), (status, (1, 1)), "{name} {line}");
        }
    }
}

/// Not a fault: what an upstream says before it has read everything is its answer.
#[tokio::test]
async fn an_answer_before_the_end_of_the_body() {
    let answer = "HTTP/1.1 201 Created\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok";
    let upstream = Faulty::start(vec![Step::Head, send(answer)]).await;
    let running = Running::start(upstream.address, "").await;
    let body = "x".repeat(900_000);
    let statuses = [order(running.proxy, "k", &body).await.status(), order(running.proxy, "k", &body).await.status()];
    assert_eq!((statuses, upstream.counts()), ([201, 201], (1, 1)));
}
