//! What the frames of both sides say of one request, and of the connection behind it.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;

use super::Watched;

fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0, 0, u8::try_from(payload.len()).unwrap(), kind, flags, 0, 0, 0, stream];
    bytes.extend_from_slice(payload);
    bytes
}

fn headers(stream: u8, ends: bool) -> Vec<u8> {
    frame(1, 4 + u8::from(ends), stream, b"x")
}

fn data(stream: u8) -> Vec<u8> {
    frame(0, 1, stream, b"ok")
}

fn reset(stream: u8, code: u8) -> Vec<u8> {
    frame(3, 0, stream, &[0, 0, 0, code])
}

fn goaway(last: u8) -> Vec<u8> {
    frame(7, 0, 0, &[0, 0, 0, last, 0, 0, 0, 0])
}

/// The second request of a connection, on stream 3, after one on stream 1: what is sent and what comes. Whether it is
/// certainly unsent, its answer cut, and the connection good for another.
async fn check(name: &str, ours: &[Vec<u8>], theirs: &[Vec<u8>], expected: (bool, bool, bool)) {
    let (line, mut upstream) = UnixStream::pair().unwrap();
    let (mut watched, witness) = Watched::new(Box::new(line), true);
    let mut bytes = [0; 1000];
    watched.write_all(&[[b'.'; 24].to_vec(), headers(1, true)].concat()).await.unwrap();
    upstream.write_all(&[headers(1, false), data(1)].concat()).await.unwrap();
    assert!(watched.read(&mut bytes).await.unwrap() > 0);
    assert!(witness.is_over() && !witness.is_unsent(), "{name}: the first");
    witness.begin();
    for frame in ours {
        watched.write_all(frame).await.unwrap();
    }
    if !theirs.is_empty() {
        upstream.write_all(&theirs.concat()).await.unwrap();
        assert!(watched.read(&mut bytes).await.unwrap() > 0);
    }
    assert_eq!((witness.is_unsent(), witness.is_cut(), witness.is_over()), expected, "{name}");
}

#[tokio::test]
async fn the_second_request_of_a_connection() {
    let whole = || vec![headers(3, true)];
    let answer = || vec![headers(3, false), data(3)];
    let and = |mut frames: Vec<Vec<u8>>, last: Vec<u8>| {
        frames.push(last);
        frames
    };
    let rows = [
        ("nothing was sent", vec![], vec![], (true, true, false)),
        ("what is left of the first request", vec![headers(1, true), data(1)], vec![], (true, true, false)),
        ("an answer to the first request", vec![], vec![headers(1, false), data(1)], (true, true, false)),
        ("it was begun", vec![headers(3, false)], vec![], (false, true, false)),
        ("it is whole", whole(), vec![], (false, true, false)),
        ("answered", whole(), answer(), (false, false, true)),
        ("answered before it was whole", vec![headers(3, false)], answer(), (false, false, false)),
        ("answered half", whole(), vec![headers(3, false)], (false, true, false)),
        ("refused", whole(), vec![reset(3, 7)], (true, true, false)),
        ("canceled", whole(), vec![reset(3, 8)], (false, true, false)),
        ("reset behind its answer", whole(), and(answer(), reset(3, 0)), (false, false, false)),
        ("the first reset late", whole(), and(answer(), reset(1, 7)), (false, false, true)),
        ("broken off by us", vec![headers(3, true), reset(3, 8)], answer(), (false, false, false)),
        ("GOAWAY below", whole(), vec![goaway(1)], (true, true, false)),
        ("GOAWAY at it, and answered", whole(), and(answer(), goaway(3)), (false, false, false)),
    ];
    for (name, ours, theirs, expected) in rows {
        check(name, &ours, &theirs, expected).await;
    }
}
