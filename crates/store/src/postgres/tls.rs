//! TLS to the database server, by the authorities that the operating system believes.
//!
//! A server's certificate is always verified; `sslmode` says whether TLS is asked for. What does not belong here: TLS
//! to clients and upstreams (`server`).

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::config::SslMode;
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};

use crate::error::{ErrorKind, StoreError};

/// Makes TLS sessions, or says why none can be made.
#[derive(Clone)]
pub(super) struct Tls {
    config: Option<Arc<ClientConfig>>,
}

impl Tls {
    /// What `mode` needs; the system's authorities are read once.
    pub(super) fn new(mode: SslMode) -> Result<Self, StoreError> {
        if mode == SslMode::Disable {
            return Ok(Self { config: None });
        }
        let failed = |detail: String| StoreError::not_applied(ErrorKind::Unavailable, detail);
        let mut roots = RootCertStore::empty();
        let found = rustls_native_certs::load_native_certs();
        roots.add_parsable_certificates(found.certs);
        if roots.is_empty() && mode == SslMode::Require {
            return Err(failed("the system names no certificate authority: install its ca-certificates".to_owned()));
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| failed(format!("TLS to the database server cannot be set up: {error}")))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self { config: Some(Arc::new(config)) })
    }
}

impl<S> MakeTlsConnect<S> for Tls
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Stream = Session<S>;
    type TlsConnect = Handshake;
    type Error = io::Error;

    fn make_tls_connect(&mut self, domain: &str) -> io::Result<Handshake> {
        let name = match &self.config {
            // A server on a Unix socket has no name, and is asked for no TLS.
            Some(_) if !domain.is_empty() => Some(
                ServerName::try_from(domain.to_owned())
                    .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?,
            ),
            Some(_) | None => None,
        };
        Ok(Handshake { config: self.config.clone(), name })
    }
}

/// One handshake that may be made.
pub(super) struct Handshake {
    config: Option<Arc<ClientConfig>>,
    name: Option<ServerName<'static>>,
}

impl<S> TlsConnect<S> for Handshake
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Stream = Session<S>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Session<S>>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        Box::pin(async move {
            let (Some(config), Some(name)) = (self.config, self.name) else {
                return Err(io::Error::new(io::ErrorKind::Unsupported, "TLS is switched off by sslmode=disable"));
            };
            tokio_rustls::TlsConnector::from(config).connect(name, stream).await.map(Session)
        })
    }
}

/// A session in the driver's words.
pub(super) struct Session<S>(tokio_rustls::client::TlsStream<S>);

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Session<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Session<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for Session<S> {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}
