//! One bounded question to another server: a fresh connection, one request, no redirect, no second try. What is asked and
//! what an answer means belongs to those who ask.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, header};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::config::{Url, print_span};
use crate::error::ServerError;

/// The most bytes of an answer's header.
const HEADER_BYTES_MAX: usize = 16 * 1024;
/// The most lines of an answer's header.
const HEADER_LINES_MAX: usize = 100;

/// What it may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// From the look-up of the name to the last byte.
    pub(super) time: Duration,
    /// The most bytes of the body; none: it is not read at all.
    pub(super) body_bytes: Option<usize>,
}

/// What came back.
#[derive(Debug)]
pub(super) struct Answered {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

/// Asks other servers. Cheap to clone.
#[derive(Clone)]
pub(super) struct Outbound {
    tls: Option<TlsConnector>,
}

impl Outbound {
    /// For `https` the system's certificate authorities are believed, or those of `SSL_CERT_FILE`.
    pub(super) fn new(secure: bool) -> Result<Self, ServerError> {
        if !secure {
            return Ok(Self { tls: None });
        }
        let mut roots = RootCertStore::empty();
        let found = rustls_native_certs::load_native_certs();
        let (added, _) = roots.add_parsable_certificates(found.certs);
        if added == 0 {
            let why = found.errors.first().map_or_else(|| "none is installed".to_owned(), ToString::to_string);
            return Err(ServerError::Principal(format!(
                "https needs certificate authorities, and there are none ({why}): install them, or name a file in SSL_CERT_FILE"
            )));
        }
        Self::believing(roots)
    }

    /// For `https` these certificate authorities are believed.
    pub(super) fn believing(roots: RootCertStore) -> Result<Self, ServerError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| ServerError::Principal(format!("tls cannot be used: {error}")))?;
        let mut config = config.with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self { tls: Some(TlsConnector::from(Arc::new(config))) })
    }

    /// Sends a GET with `headers` to `url`.
    ///
    /// # Errors
    /// Why there is no answer: what was not reached, broke off, took too long or was too large.
    pub(super) async fn get(&self, url: &Url, headers: HeaderMap, limits: Limits) -> Result<Answered, String> {
        let exchange = self.exchange(url, headers, limits.body_bytes);
        match tokio::time::timeout(limits.time, exchange).await {
            Ok(answered) => answered.map_err(|why| format!("{url}: {why}")),
            Err(_) => Err(format!("{url}: no answer in {}", print_span(limits.time))),
        }
    }

    async fn exchange(&self, url: &Url, headers: HeaderMap, body_bytes: Option<usize>) -> Result<Answered, String> {
        let (host, _) = url.target();
        let stream = TcpStream::connect(url.target()).await.map_err(|error| error.to_string())?;
        stream.set_nodelay(true).map_err(|error| error.to_string())?;
        let request = request(url, headers)?;
        match (&self.tls, url.is_secure()) {
            (_, false) => ask(stream, request, body_bytes).await,
            (Some(tls), true) => {
                let name = ServerName::try_from(host.to_owned()).map_err(|error| error.to_string())?;
                let stream = tls.connect(name, stream).await.map_err(|error| error.to_string())?;
                ask(stream, request, body_bytes).await
            }
            (None, true) => Err("https was not expected".to_owned()),
        }
    }
}

fn request(url: &Url, headers: HeaderMap) -> Result<Request<Empty<Bytes>>, String> {
    let mut request = Request::new(Empty::new());
    *request.method_mut() = Method::GET;
    *request.uri_mut() = url.path().clone().into();
    *request.headers_mut() = headers;
    let host = HeaderValue::try_from(url.authority()).map_err(|error| error.to_string())?;
    request.headers_mut().insert(header::HOST, host);
    request.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    Ok(request)
}

/// Asks over `stream`, which ends with this future.
async fn ask(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    request: Request<Empty<Bytes>>,
    body_bytes: Option<usize>,
) -> Result<Answered, String> {
    let mut builder = http1::Builder::new();
    builder.max_buf_size(HEADER_BYTES_MAX).max_headers(HEADER_LINES_MAX);
    let (mut sender, connection) = builder.handshake(TokioIo::new(stream)).await.map_err(|error| error.to_string())?;
    let asking = async {
        let answer = sender.send_request(request).await.map_err(|error| error.to_string())?;
        let (parts, body) = answer.into_parts();
        let body = match body_bytes {
            None => Bytes::new(),
            Some(most) => Limited::new(body, most).collect().await.map_err(|error| error.to_string())?.to_bytes(),
        };
        Ok(Answered { status: parts.status, headers: parts.headers, body })
    };
    let mut asking = std::pin::pin!(asking);
    tokio::select! {
        biased;
        answered = &mut asking => answered,
        // The other side may close as soon as it has answered; what it sent is still there.
        _ = connection => asking.await,
    }
}

#[cfg(test)]
mod tests;
