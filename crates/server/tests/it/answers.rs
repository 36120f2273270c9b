//! Answers on their way back: how they are framed, that an upstream's error passes as it is, that an answer is kept
//! though its caller has gone, and that nothing is ever sent a second time. What each failure of the upstream leaves
//! behind is in `proxy`.

use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::caller::{ask, order, raw};
use crate::running::Running;
use crate::upstream::{Play, Upstream};

const FAILED: Play = Play::Send(
    "HTTP/1.1 500 Internal Server Error\r\ncontent-type: application/json\r\ncontent-length: 15\r\n\r\n{\"why\":\"stock\"}",
);

/// Whatever framed the answer on its first way, each replay is framed for whoever asks, and nobody negotiates again.
#[tokio::test]
async fn a_chunked_answer_is_framed_anew_for_every_caller() {
    let upstream = Upstream::start(Play::Send(
        "HTTP/1.1 201 Created\r\ncontent-type: application/json; charset=utf-8\r\ntransfer-encoding: chunked\r\n\
         connection: x-hop\r\nx-hop: 1\r\nkeep-alive: timeout=5\r\n\r\n3\r\n[1,\r\n4\r\n2,3]\r\n0\r\n\r\n",
    ))
    .await;
    let running = Running::start(upstream.address, "").await;
    for (version, accept, replayed) in [
        ("1.1", "*/*", "false"),
        ("1.1", "application/json", "true"),
        ("1.1", "text/html", "true"),
        ("1.0", "text/html", "true"),
    ] {
        let text = format!(
            "POST /orders HTTP/{version}\r\nhost: x\r\nconnection: close\r\nidempotency-key: k\r\naccept: {accept}\r\n\
             content-length: 2\r\n\r\n{{}}"
        );
        let answer = raw(running.proxy, &text).await;
        assert_eq!((answer.status(), answer.header("idempotent-replayed")), (201, Some(replayed)), "{answer:?}");
        assert_eq!(answer.header("content-type"), Some("application/json; charset=utf-8"), "{version} {accept}");
        assert_eq!((answer.header("content-length"), answer.body.as_str()), (Some("7"), "[1,2,3]"), "{answer:?}");
        for name in ["transfer-encoding", "x-hop", "keep-alive"] {
            assert_eq!(answer.header(name), None, "{version} {accept}: {answer:?}");
        }
    }
    assert_eq!(upstream.seen().len(), 1);
}

#[tokio::test]
async fn an_upstreams_error_passes_as_it_is() {
    let upstream = Upstream::start(FAILED).await;
    let running = Running::start(upstream.address, "").await;
    let unguarded = ask(running.proxy, "POST /orders", &["content-type: application/json"], "{}").await;
    for answer in [unguarded, order(running.proxy, "k", "{}").await, order(running.proxy, "k", "{}").await] {
        assert_eq!((answer.status(), answer.body.as_str()), (500, "{\"why\":\"stock\"}"), "{answer:?}");
        assert_eq!(answer.header("content-type"), Some("application/json"), "{answer:?}");
    }
    assert_eq!(upstream.seen().len(), 2, "the third is the second again");
}

/// The caller goes while the upstream works; whoever asks with the same key waits for the result and finds it.
#[tokio::test]
async fn an_answer_is_kept_though_its_caller_hung_up() {
    let upstream = Upstream::start(Play::Slowly("content-type: text/plain\r\n\r\nhalf")).await;
    let running = Running::start(upstream.address, "[defaults]\nduplicates = \"wait 20s\"\n").await;
    let head = "host: x\r\nidempotency-key: k\r\ncontent-type: application/json\r\ncontent-length: 2";
    let mut caller = TcpStream::connect(running.proxy).await.unwrap();
    caller.write_all(format!("POST /orders HTTP/1.1\r\n{head}\r\n\r\n{{}}").as_bytes()).await.unwrap();
    upstream.arrived().await;
    drop(caller);
    let later = order(running.proxy, "k", "{}").await;
    assert_eq!((later.status(), later.header("idempotent-replayed")), (200, Some("true")), "{later:?}");
    assert_eq!(later.body, "half, and the end");
    assert_eq!(upstream.seen().len(), 1);
}

/// One request that comes is one that goes, with a key or without, safe or not, however the upstream fails.
#[tokio::test]
async fn nothing_is_sent_a_second_time() {
    let busy = Play::Send("HTTP/1.1 503 Service Unavailable\r\nretry-after: 0\r\ncontent-length: 0\r\n\r\n");
    let cut = Play::Send("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf");
    let garbled = Play::Send("HTTP/1.1 abc\r\n\r\n");
    for (name, play) in
        [("closed", Play::Close), ("busy", busy), ("cut", cut), ("garbled", garbled), ("failed", FAILED)]
    {
        let upstream = Upstream::start(play).await;
        let running = Running::start(upstream.address, "").await;
        let rows: [(&str, &[&str]); 6] = [
            ("POST /orders", &[]),
            ("POST /orders", &["idempotency-key: k"]),
            ("PATCH /orders", &["idempotency-key: k"]),
            ("PUT /orders", &["idempotency-key: k"]),
            ("DELETE /orders", &[]),
            ("GET /orders", &[]),
        ];
        for (sent, (line, headers)) in (1..).zip(rows) {
            ask(running.proxy, line, headers, "{}").await;
            assert_eq!(upstream.seen().len(), sent, "{name}: {line} {headers:?}");
        }
    }
}
