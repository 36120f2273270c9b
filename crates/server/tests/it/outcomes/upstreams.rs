//! What an upstream can do with the first request that reaches it. Where that leaves open whether it acted, it did:
//! the worst that can be true. Every request after it gets an ordinary answer.

use crate::faulty::{Step, frame, send};

use Step::{Act, Close, Drip, Head, Read, Reset, Two};

/// Where the upstream is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// It listens.
    Here,
    /// It listens once the first caller has its answer.
    Later,
    /// Its name never resolves.
    Nameless,
    /// It is asked for TLS, and never speaks it.
    Tls,
}

/// One kind of upstream.
#[derive(Clone)]
pub(super) struct Kind {
    pub(super) name: &'static str,
    pub(super) place: Place,
    /// Settings that it needs.
    pub(super) more: &'static str,
    /// What each connection plays; the last one, all that follow.
    pub(super) scripts: Vec<Vec<Step>>,
}

/// An ordinary answer over HTTP/1.1.
const SECOND: &str = "HTTP/1.1 201 Created\r\ncontent-length: 6\r\nlocation: /orders/2\r\n\r\nsecond";

fn one(name: &'static str, what: Vec<Step>) -> Kind {
    let request = || vec![Head, Read(2)];
    let first = [request(), what].concat();
    let second = [request(), vec![Act, send(SECOND), Close]].concat();
    Kind { name, place: Place::Here, more: "", scripts: vec![first, second] }
}

fn two(name: &'static str, what: Vec<Step>) -> Kind {
    let request = || vec![send(frame::settings()), Two];
    let second = vec![Act, send(frame::created()), send(frame::data(b"second", true))];
    let scripts = vec![[request(), what].concat(), [request(), second].concat()];
    Kind { name, place: Place::Here, more: "[forward]\nhttp = \"2\"\n", scripts }
}

/// A whole answer: its status, further header lines, and whether the upstream acted.
fn answers(name: &'static str, status: u16, headers: &str, acts: bool) -> Kind {
    let body = if status == 204 { "" } else { "content-length: 5\r\n\r\nfirst" };
    let end = if status == 204 { "\r\n" } else { "" };
    let answer = send(format!("HTTP/1.1 {status} So\r\n{headers}{body}{end}"));
    one(name, if acts { vec![Act, answer, Close] } else { vec![answer, Close] })
}

fn placed(name: &'static str, place: Place) -> Kind {
    Kind { place, ..answers(name, 201, "", true) }
}

/// Every kind.
pub(super) fn all() -> Vec<Kind> {
    [whole(), nowhere(), cut(), odd(), over_http_2()].concat()
}

fn whole() -> Vec<Kind> {
    let not_processed = "[defaults]\nnot_processed = [503]\n";
    vec![
        answers("answers 201", 201, "location: /orders/1\r\n", true),
        answers("answers 204", 204, "", true),
        answers("answers 303", 303, "location: /orders/1\r\n", true),
        answers("answers 404", 404, "", false),
        answers("answers 409", 409, "", false),
        answers("answers 400", 400, "", false),
        answers("answers 422", 422, "", false),
        answers("answers 429", 429, "retry-after: 1\r\n", false),
        answers("answers 500", 500, "", true),
        answers("answers 502", 502, "", true),
        answers("answers 503", 503, "", true),
        answers("answers 504", 504, "", true),
        Kind { more: not_processed, ..answers("answers 503, declared not processed", 503, "", false) },
        answers("answers 201, remember: yes", 201, "idempotency-remember: yes\r\n", true),
        answers("answers 201, remember: no", 201, "idempotency-remember: no\r\n", false),
        answers("answers 201, remember: perhaps", 201, "idempotency-remember: perhaps\r\n", true),
        answers("answers 400, remember: yes", 400, "idempotency-remember: yes\r\n", false),
        answers("answers 500, remember: no", 500, "idempotency-remember: no\r\n", false),
        answers("answers 503, remember: yes", 503, "idempotency-remember: yes\r\n", true),
        answers("answers 503, remember: no", 503, "idempotency-remember: no\r\n", false),
    ]
}

fn nowhere() -> Vec<Kind> {
    vec![
        placed("refuses the connection", Place::Later),
        placed("has a name that does not resolve", Place::Nameless),
        Kind {
            name: "speaks no TLS",
            place: Place::Tls,
            more: "",
            scripts: vec![vec![send("HTTP/1.1 400 Bad Request\r\n\r\n"), Close]],
        },
    ]
}

/// Answers that do not come whole.
fn cut() -> Vec<Kind> {
    let status = || send("HTTP/1.1 201 Created\r\n");
    let half = || send("HTTP/1.1 201 Created\r\ncontent-length: 9\r\n\r\nfirst");
    let chunks = |rest| send(format!("HTTP/1.1 201 Created\r\ntransfer-encoding: chunked\r\n\r\n{rest}"));
    let later = "[defaults]\nhandler = \"2s\"\n";
    let late = |name, what| Kind { more: later, ..one(name, what) };
    vec![
        one("resets before the head", vec![Act, Reset]),
        one("resets before the head, having done nothing", vec![Reset]),
        one("closes before the head", vec![Act, Close]),
        one("closes in the status line", vec![Act, send("HTTP/1.1 2"), Close]),
        one("closes in the head", vec![Act, status(), Close]),
        one("resets in the head", vec![Act, status(), Reset]),
        one("closes in the body", vec![Act, half(), Close]),
        one("resets in the body", vec![Act, half(), Reset]),
        one("closes in a chunk", vec![Act, chunks("9\r\nfirst"), Close]),
        one("closes between chunks", vec![Act, chunks("5\r\nfirst\r\n"), Close]),
        one("closes before the end of trailers", vec![Act, chunks("5\r\nfirst\r\n0\r\n"), Close]),
        late("hangs before the head", vec![Act]),
        late("hangs in the head", vec![Act, status()]),
        late("hangs in the body", vec![Act, half()]),
        late("never ends its body", vec![Act, send("HTTP/1.1 201 Created\r\ncontent-length: 999\r\n\r\n"), Drip(b'.')]),
    ]
}

/// What is no ordinary answer.
fn odd() -> Vec<Kind> {
    let events = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    let long =
        |length| send(format!("HTTP/1.1 201 Created\r\ncontent-length: {length}\r\n\r\nfirst{}", ".".repeat(3995)));
    let small = "[limits]\nkept_answer_max = \"1KiB\"\n";
    let over = |name, length| Kind { more: small, ..one(name, vec![Act, long(length), Close]) };
    let switch = "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n";
    let hints = "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n";
    let twice = "HTTP/1.1 201 Created\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nfirst!";
    vec![
        one("sends garbage", vec![Act, send("SSH-2.0-OpenSSH_9.2\r\n"), Close]),
        one("sends two lengths", vec![Act, send(twice), Close]),
        one(
            "sends too long a head",
            vec![Act, send(format!("HTTP/1.1 201 Created\r\nx: {}\r\n", "y".repeat(70_000))), Close],
        ),
        one("answers 101", vec![Act, send(switch), Close]),
        one(
            "answers 103, then 201",
            vec![Act, send(hints), send("HTTP/1.1 201 Created\r\ncontent-length: 5\r\n\r\nfirst"), Close],
        ),
        one("answers 103, then closes", vec![Act, send(hints), Close]),
        one("streams events", vec![Act, send(events), send("5\r\nfirst\r\n0\r\n\r\n"), Close]),
        one("streams events, then closes", vec![Act, send(events), send("5\r\nfirst\r\n"), Close]),
        over("answers more than is kept", 4000),
        over("answers more than is kept, then closes", 5000),
    ]
}

fn over_http_2() -> Vec<Kind> {
    let goaway = |last| send(frame::goaway(last, frame::NO_ERROR));
    let reset = |code| send(frame::reset(code));
    let (created, data) = (|| send(frame::created()), |ends| send(frame::data(b"first", ends)));
    vec![
        two("h2: answers 201", vec![Act, created(), data(true)]),
        two("h2: REFUSED_STREAM", vec![reset(frame::REFUSED_STREAM)]),
        two("h2: GOAWAY below", vec![goaway(0)]),
        two("h2: GOAWAY at the stream, answers 201", vec![Act, goaway(1), created(), data(true)]),
        two("h2: GOAWAY at the stream, closes", vec![Act, goaway(1), Close]),
        two("h2: CANCEL", vec![Act, reset(frame::CANCEL)]),
        two("h2: INTERNAL_ERROR", vec![Act, reset(frame::INTERNAL_ERROR)]),
        two("h2: NO_ERROR and no answer", vec![Act, reset(frame::NO_ERROR)]),
        two("h2: closes", vec![Act, Close]),
        two("h2: a frame that cannot be", vec![Act, send(frame::nonsense())]),
        two("h2: REFUSED_STREAM in the body", vec![Act, created(), data(false), reset(frame::REFUSED_STREAM)]),
        two("h2: NO_ERROR in the body", vec![Act, created(), data(false), reset(frame::NO_ERROR)]),
        two("h2: closes in the body", vec![Act, created(), data(false), Close]),
    ]
}
