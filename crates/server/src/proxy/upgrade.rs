//! Upgrades of unguarded connections: asked for on both sides, then bytes are copied both ways until one side ends, or
//! neither has sent anything for long.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use counterfoil_middleware::Body;
use http::{HeaderMap, HeaderValue, Request, Response, header};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::answer::Progress;
use super::headers::tokens;

/// A caller's wish to switch protocols.
pub(super) struct Upgrade {
    protocols: Vec<HeaderValue>,
    caller: OnUpgrade,
}

/// The wish of this request, if it has one (RFC 9110 section 7.8).
pub(super) fn asked(request: &mut Request<Body>) -> Option<Upgrade> {
    if !tokens(request.headers(), &header::CONNECTION).any(|token| token.eq_ignore_ascii_case(b"upgrade")) {
        return None;
    }
    let protocols: Vec<HeaderValue> = request.headers().get_all(header::UPGRADE).iter().cloned().collect();
    if protocols.is_empty() {
        return None;
    }
    Some(Upgrade { protocols, caller: hyper::upgrade::on(request) })
}

impl Upgrade {
    /// Asks the upstream for the same.
    pub(super) fn ask(&self, headers: &mut HeaderMap) {
        headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
        for protocol in &self.protocols {
            headers.append(header::UPGRADE, protocol.clone());
        }
    }

    /// Joins both sides once the caller has its 101, until both have rested for `idle`.
    pub(super) fn join(self, mut answer: Response<Body>, idle: Duration) -> Response<Body> {
        let upstream = hyper::upgrade::on(&mut answer);
        let (parts, body) = answer.into_parts();
        tokio::spawn(async move {
            let joined = async {
                let upstream = upstream.await?;
                let caller = self.caller.await?;
                Ok::<_, hyper::Error>((TokioIo::new(upstream), TokioIo::new(caller)))
            };
            match joined.await {
                Ok((upstream, caller)) => copy(upstream, caller, idle).await,
                Err(error) => tracing::debug!(%error, "an upgrade came to nothing"),
            }
            // The connection to the upstream lives as long as its body.
            drop(body);
        });
        Response::from_parts(parts, Body::empty())
    }
}

async fn copy(
    upstream: impl AsyncRead + AsyncWrite + Unpin,
    caller: impl AsyncRead + AsyncWrite + Unpin,
    idle: Duration,
) {
    let progress = Progress::new();
    let mut upstream = Noted { stream: upstream, progress: progress.clone() };
    let mut caller = Noted { stream: caller, progress: progress.clone() };
    tokio::select! {
        copied = tokio::io::copy_bidirectional(&mut upstream, &mut caller) => {
            if let Err(error) = copied {
                tracing::debug!(%error, "an upgraded connection broke off");
            }
        }
        () = progress.rested(idle) => tracing::debug!("an upgraded connection rested for too long"),
    }
}

/// A stream that notes when it was read from.
struct Noted<T> {
    stream: T,
    progress: Progress,
}

impl<T: AsyncRead + Unpin> AsyncRead for Noted<T> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        self.progress.note();
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Noted<T> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
