//! A caller that speaks HTTP/2, over any stream.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Empty, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncRead, AsyncWrite};

pub(crate) type AnyBody = UnsyncBoxBody<Bytes, std::io::Error>;

/// One connection.
#[derive(Clone)]
pub(crate) struct Two(http2::SendRequest<AnyBody>);

/// A whole answer.
#[derive(Debug)]
pub(crate) struct Whole {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
    pub(crate) trailers: HeaderMap,
}

pub(crate) fn full(text: &str) -> AnyBody {
    Full::new(Bytes::copy_from_slice(text.as_bytes())).map_err(|never| match never {}).boxed_unsync()
}

pub(crate) fn empty() -> AnyBody {
    Empty::new().map_err(|never| match never {}).boxed_unsync()
}

/// A body that does not tell its length, so that trailers may follow it over HTTP/1.1 too.
pub(crate) struct Unsized<B>(pub(crate) B);

impl<B: http_body::Body + Unpin> http_body::Body for Unsized<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        Pin::new(&mut self.0).poll_frame(cx)
    }
}

impl Two {
    pub(crate) async fn open(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) -> Self {
        let builder = http2::Builder::new(TokioExecutor::new());
        let (sender, connection) = builder.handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(async move { drop(connection.await) });
        Self(sender)
    }

    pub(crate) async fn send(&mut self, request: Request<AnyBody>) -> Result<Response<Incoming>, hyper::Error> {
        self.0.ready().await?;
        self.0.send_request(request).await
    }

    pub(crate) async fn ask(&mut self, request: Request<AnyBody>) -> Whole {
        let (parts, body) = self.send(request).await.unwrap().into_parts();
        let whole = body.collect().await.unwrap();
        let trailers = whole.trailers().cloned().unwrap_or_default();
        let body = String::from_utf8(whole.to_bytes().to_vec()).unwrap();
        Whole { status: parts.status.as_u16(), headers: parts.headers, body, trailers }
    }

    /// A guarded request with this key.
    pub(crate) async fn order(&mut self, scheme: &str, key: &str) -> Whole {
        let request = Request::post(format!("{scheme}://api.example/orders?a=1")).header("idempotency-key", key);
        self.ask(request.header("content-type", "application/json").body(full("{}")).unwrap()).await
    }
}
