//! Connections of our own, so that nothing repeats a request unseen: HTTP/1.1 or HTTP/2 over TCP or TLS, cut where a
//! case says.
//!
//! What does not belong here: what a request says (`target.rs`), the frames of HTTP/2 (`http2.rs`), and how an answer is read (`answer.rs`).

use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::Barrier;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::address::Address;
use crate::answer;
use crate::case::Loss;
use crate::error::ProbeError;
use crate::exchange::Answer;
use crate::http2::{self, Link};

/// How long connecting may take.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);
/// What ALPN calls the versions (RFC 7301, RFC 9113).
const HTTP1: &[u8] = b"http/1.1";
const HTTP2: &[u8] = b"h2";

/// Both directions of a connection.
pub(crate) trait Line: AsyncRead + AsyncWrite + Unpin + std::marker::Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + std::marker::Send> Line for T {}

/// A stream of bytes to a server and back.
pub(crate) type Stream = Box<dyn Line>;

/// A connection that may carry another request.
pub(crate) enum Connection {
    Http1(Stream),
    Http2(Box<Link>),
}

/// A request as bytes.
#[derive(Clone, Debug)]
pub(crate) struct Outgoing {
    pub(crate) head: Vec<u8>,
    pub(crate) body: Vec<u8>,
    pub(crate) lose: Loss,
}

/// When what happened, and what came.
#[derive(Debug)]
pub(crate) struct Carried {
    pub(crate) sent_at: Instant,
    pub(crate) sent_whole_at: Option<Instant>,
    pub(crate) first_byte_at: Option<Instant>,
    pub(crate) answer: Option<Answer>,
    pub(crate) fault: Option<String>,
}

impl Carried {
    pub(crate) fn begun() -> Self {
        Self { sent_at: Instant::now(), sent_whole_at: None, first_byte_at: None, answer: None, fault: None }
    }
}

/// How targets are reached.
#[derive(Clone)]
pub(crate) struct Wire {
    tls: TlsConnector,
    tls_http2: TlsConnector,
    pub(crate) answer_within: Duration,
}

impl Wire {
    /// With the authorities that the system believes, and those of a PEM file where one is given.
    pub(crate) fn new(authorities: Option<&[u8]>, answer_within: Duration) -> Result<Self, ProbeError> {
        use rustls::pki_types::{CertificateDer, pem::PemObject as _};
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        for certificate in authorities.into_iter().flat_map(CertificateDer::pem_slice_iter) {
            let wrong =
                |error: &dyn std::error::Error| ProbeError::Usage(format!("an authority cannot be read: {error}"));
            roots.add(certificate.map_err(|error| wrong(&error))?).map_err(|error| wrong(&error))?;
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = config.map_err(|error| ProbeError::Harness(format!("TLS cannot be set up: {error}")))?;
        let config = config.with_root_certificates(roots).with_no_client_auth();
        let connector = |offer: &[u8]| {
            let mut config = config.clone();
            config.alpn_protocols = vec![offer.to_vec()];
            TlsConnector::from(Arc::new(config))
        };
        Ok(Self { tls: connector(HTTP1), tls_http2: connector(HTTP2), answer_within })
    }

    /// Whether a server listens there, and speaks HTTP/2 where it shall.
    pub(crate) async fn reach(&self, to: &Address) -> Result<(), String> {
        let stream = self.connect(to).await?;
        if !to.http2 {
            return Ok(());
        }
        let why = match timeout(CONNECT_WITHIN, http2::answers(stream)).await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(why)) => why,
            Err(_) => "no answer to a ping".to_owned(),
        };
        Err(format!("{}:{} does not speak HTTP/2: {why}", to.host, to.port))
    }

    /// Whether HTTP/1.1 and HTTP/2 are both chosen where they are offered. Without TLS only a request could tell.
    pub(crate) async fn offers_both(&self, to: &Address) -> bool {
        let chosen = async |connector, offer| {
            let Ok((_, chosen)) = self.secure(to, connector).await else { return false };
            chosen.as_deref() == Some(offer)
        };
        to.tls && chosen(&self.tls, HTTP1).await && chosen(&self.tls_http2, HTTP2).await
    }

    /// A new connection.
    pub(crate) async fn connect(&self, to: &Address) -> Result<Stream, String> {
        match (to.tls, to.http2) {
            (false, _) => Ok(Box::new(plain(to).await?)),
            (true, false) => Ok(self.secure(to, &self.tls).await?.0),
            (true, true) => match self.secure(to, &self.tls_http2).await? {
                (stream, Some(chosen)) if chosen == HTTP2 => Ok(stream),
                (_, Some(_) | None) => Err(format!("{} does not choose HTTP/2", to.host)),
            },
        }
    }

    /// A new connection over TLS, and what ALPN chose.
    async fn secure(&self, to: &Address, connector: &TlsConnector) -> Result<(Stream, Option<Vec<u8>>), String> {
        let stream = plain(to).await?;
        let name = ServerName::try_from(to.host.clone()).map_err(|_| format!("{:?} is no name for TLS", to.host))?;
        match timeout(CONNECT_WITHIN, connector.connect(name, stream)).await {
            Ok(Ok(stream)) => {
                let chosen = stream.get_ref().1.alpn_protocol().map(<[u8]>::to_vec);
                Ok((Box::new(stream), chosen))
            }
            Ok(Err(error)) => Err(format!("TLS with {} failed: {error}", to.host)),
            Err(_) => Err(format!("{} does not answer TLS", to.host)),
        }
    }

    /// Sends a request, once, and reads its answer. With a barrier the last byte waits for all others.
    pub(crate) async fn carry(
        &self,
        to: &Address,
        outgoing: &Outgoing,
        barrier: Option<&Barrier>,
        kept: Option<Connection>,
    ) -> (Carried, Option<Connection>) {
        let opened = match kept {
            Some(Connection::Http2(link)) => return http2::carry(self, to, outgoing, barrier, Some(link)).await,
            None if to.http2 => return http2::carry(self, to, outgoing, barrier, None).await,
            Some(Connection::Http1(stream)) => Ok(stream),
            None => self.connect(to).await,
        };
        let mut carried = Carried::begun();
        let (first, last) = pieces(outgoing, barrier.is_some());
        let begun = match opened {
            Ok(mut connection) => write(&mut connection, first).await.map(|()| connection),
            Err(fault) => Err(fault),
        };
        if let Some(barrier) = barrier {
            barrier.wait().await;
        }
        let mut connection = match begun {
            Ok(connection) => connection,
            Err(fault) => {
                carried.fault = Some(fault);
                return (carried, None);
            }
        };
        if let Err(fault) = write(&mut connection, last).await {
            carried.fault = Some(fault);
            return (carried, None);
        }
        match outgoing.lose {
            Loss::RequestHead | Loss::RequestBody => return (carried, None),
            Loss::Caller => {
                carried.sent_whole_at = Some(Instant::now());
                return (carried, None);
            }
            Loss::Nothing | Loss::Reply | Loss::ReplyMidway => carried.sent_whole_at = Some(Instant::now()),
        }
        let half = outgoing.lose == Loss::ReplyMidway;
        match timeout(self.answer_within, answer::read(&mut connection, half)).await {
            Ok(read) => {
                carried.first_byte_at = read.first_byte;
                carried.answer = read.answer;
                carried.fault = read.fault;
                (carried, read.reusable.then_some(Connection::Http1(connection)))
            }
            Err(_) => {
                carried.fault = Some(format!("no answer within {} s", self.answer_within.as_secs()));
                (carried, None)
            }
        }
    }
}

async fn plain(to: &Address) -> Result<TcpStream, String> {
    let connecting = TcpStream::connect((to.host.as_str(), to.port));
    let stream = match timeout(CONNECT_WITHIN, connecting).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return Err(format!("{}:{} cannot be reached: {error}", to.host, to.port)),
        Err(_) => return Err(format!("{}:{} does not answer a connection", to.host, to.port)),
    };
    // Without it a last byte could wait for an acknowledgement, and no race would be one.
    stream.set_nodelay(true).map_err(|error| format!("the socket: {error}"))?;
    Ok(stream)
}

/// What is written before the barrier, and what after it; cut where something is lost.
fn pieces(outgoing: &Outgoing, barrier: bool) -> (Vec<u8>, Vec<u8>) {
    let half = |bytes: &[u8]| bytes.get(..bytes.len() / 2).unwrap_or_default().to_vec();
    let mut first = match outgoing.lose {
        Loss::RequestHead => half(&outgoing.head),
        Loss::RequestBody => [outgoing.head.clone(), half(&outgoing.body)].concat(),
        Loss::Nothing | Loss::Reply | Loss::ReplyMidway | Loss::Caller => {
            [outgoing.head.as_slice(), outgoing.body.as_slice()].concat()
        }
    };
    let last = if barrier { first.split_off(first.len().saturating_sub(1)) } else { Vec::new() };
    (first, last)
}

async fn write(connection: &mut Stream, bytes: Vec<u8>) -> Result<(), String> {
    let writing = async {
        connection.write_all(&bytes).await?;
        connection.flush().await
    };
    writing.await.map_err(|error| format!("the connection broke while sending: {error}"))
}
