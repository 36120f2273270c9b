//! Upgrades of unguarded connections: asked for on both sides, then bytes are copied both ways until one side ends.

use counterfoil_middleware::Body;
use http::{HeaderMap, HeaderValue, Request, Response, header};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;

/// A caller's wish to switch protocols.
pub(super) struct Upgrade {
    protocols: Vec<HeaderValue>,
    caller: OnUpgrade,
}

/// The wish of this request, if it has one (RFC 9110 section 7.8).
pub(super) fn asked(request: &mut Request<Body>) -> Option<Upgrade> {
    let lines = request.headers().get_all(header::CONNECTION).iter();
    let mut tokens = lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b','));
    if !tokens.any(|token| token.trim_ascii().eq_ignore_ascii_case(b"upgrade")) {
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

    /// Joins both sides once the caller has its 101.
    pub(super) fn join(self, mut answer: Response<Body>) -> Response<Body> {
        let upstream = hyper::upgrade::on(&mut answer);
        let (parts, body) = answer.into_parts();
        tokio::spawn(async move {
            let joined = async {
                let upstream = upstream.await?;
                let caller = self.caller.await?;
                Ok::<_, hyper::Error>((TokioIo::new(upstream), TokioIo::new(caller)))
            };
            match joined.await {
                Ok((mut upstream, mut caller)) => {
                    if let Err(error) = tokio::io::copy_bidirectional(&mut upstream, &mut caller).await {
                        tracing::debug!(%error, "an upgraded connection broke off");
                    }
                }
                Err(error) => tracing::debug!(%error, "an upgrade came to nothing"),
            }
            // The connection to the upstream lives as long as its body.
            drop(body);
        });
        Response::from_parts(parts, Body::empty())
    }
}
