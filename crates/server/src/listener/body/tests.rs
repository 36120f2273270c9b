//! A stream that a caller cuts off is no whole body, whatever reason it gives.

use std::convert::Infallible;
use std::time::Duration;

use counterfoil_middleware::Body;
use http::{Request, Response};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::mpsc;

use super::{CallerBody, Fate};

/// A frame on the first stream.
fn frame(kind: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
    let stream = u8::from(kind != 4);
    [&[0, 0, payload.len() as u8, kind, flags, 0, 0, 0, stream], payload].concat()
}

/// What the server makes of a body that begins with `{` and goes on with `rest`.
async fn read(rest: Vec<u8>) -> (Option<String>, bool) {
    let (mut caller, server) = tokio::io::duplex(4096);
    let (tell, mut told) = mpsc::unbounded_channel();
    let service = service_fn(move |request: Request<Incoming>| {
        let (tell, fate) = (tell.clone(), Fate::default());
        let minute = Duration::from_secs(60);
        let body = CallerBody::wrap(request.into_body(), true, fate.clone(), minute, minute);
        tell.send(None).unwrap();
        async move {
            let read = body.collect().await.ok().map(|whole| String::from_utf8(whole.to_bytes().to_vec()).unwrap());
            tell.send(Some((read, fate.is_broken()))).unwrap();
            Ok::<_, Infallible>(Response::new(Body::empty()))
        }
    });
    let served = http2::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(server), service);
    let serving = tokio::spawn(served);
    // POST, http, / and a host.
    let head = b"\x83\x86\x84\x41\x01a";
    let begin = [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(), frame(4, 0, &[]), frame(1, 4, head), frame(0, 0, b"{")];
    caller.write_all(&begin.concat()).await.unwrap();
    assert_eq!(told.recv().await, Some(None), "the request has come");
    caller.write_all(&rest).await.unwrap();
    let (mut from, _to) = tokio::io::split(caller);
    tokio::spawn(async move { from.read_to_end(&mut Vec::new()).await });
    let read = told.recv().await.flatten().unwrap();
    serving.abort();
    read
}

#[tokio::test]
async fn whole_or_cut() {
    let reset = |code: u8| frame(3, 0, &[0, 0, 0, code]);
    let rows = [
        ("whole", frame(0, 1, b"}"), Some("{}")),
        ("whole, in two frames", [frame(0, 0, b"}"), frame(0, 1, b"")].concat(), Some("{}")),
        ("whole, with a trailer", [frame(0, 0, b"}"), frame(1, 5, b"\x00\x01x\x01y")].concat(), Some("{}")),
        ("cut with NO_ERROR", reset(0), None),
        ("cut with CANCEL", reset(8), None),
    ];
    for (name, rest, expected) in rows {
        let expected = (expected.map(str::to_owned), expected.is_none());
        assert_eq!(read(rest).await, expected, "{name}");
    }
}
