//! Connections of our own, so that nothing repeats a request unseen: HTTP/1.1 and HTTP/2 over TCP or TLS, cut where a
//! case says.
//!
//! What does not belong here: what a request says (`target.rs`), and how an answer is read (`answer.rs`).

use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::Barrier;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use self::two::Two;
use crate::answer;
use crate::case::Loss;
use crate::error::ProbeError;
use crate::exchange::Answer;
use crate::target::Address;

mod two;

/// How long connecting may take.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);

/// Both directions of a connection.
pub(crate) trait Line: AsyncRead + AsyncWrite + Unpin + std::marker::Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + std::marker::Send> Line for T {}

/// A connection that may carry a request.
pub(crate) enum Connection {
    /// HTTP/1.1.
    One(Box<dyn Line>),
    /// HTTP/2.
    Two(Box<Two>),
}

/// A request as bytes.
#[derive(Clone, Debug)]
pub(crate) struct Outgoing {
    pub(crate) head: Vec<u8>,
    /// The head for HTTP/2, where that is spoken.
    pub(crate) two: Option<http::Request<()>>,
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
    fn begun() -> Self {
        Self { sent_at: Instant::now(), sent_whole_at: None, first_byte_at: None, answer: None, fault: None }
    }
}

/// The name of HTTP/2 in a handshake of TLS.
const ALPN_TWO: &[u8] = b"h2";
/// What is said of a target that does not speak it.
pub(crate) const NO_TWO: &str = "offers no HTTP/2";

/// Whether the other side ended the handshake because it speaks no protocol that was asked for.
fn refuses_protocol(error: &std::io::Error) -> bool {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    matches!(inner, Some(rustls::Error::AlertReceived(rustls::AlertDescription::NoApplicationProtocol)))
}

/// How targets are reached.
#[derive(Clone)]
pub(crate) struct Wire {
    tls: TlsConnector,
    /// The same, which asks for HTTP/2.
    tls_two: TlsConnector,
    answer_within: Duration,
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
        let mut two = config.clone();
        two.alpn_protocols = vec![ALPN_TWO.to_vec()];
        let (tls, tls_two) = (TlsConnector::from(Arc::new(config)), TlsConnector::from(Arc::new(two)));
        Ok(Self { tls, tls_two, answer_within })
    }

    /// A new connection, over HTTP/2 where that is asked for.
    pub(crate) async fn connect(&self, to: &Address, two: bool) -> Result<Connection, String> {
        let line = self.line(to, two).await?;
        if !two {
            return Ok(Connection::One(line));
        }
        match timeout(CONNECT_WITHIN, Two::begin(line)).await {
            Ok(begun) => begun.map(|two| Connection::Two(Box::new(two))),
            Err(_) => Err(format!("{} does not answer HTTP/2", to.host)),
        }
    }

    async fn line(&self, to: &Address, two: bool) -> Result<Box<dyn Line>, String> {
        let connecting = TcpStream::connect((to.host.as_str(), to.port));
        let stream = match timeout(CONNECT_WITHIN, connecting).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return Err(format!("{}:{} cannot be reached: {error}", to.host, to.port)),
            Err(_) => return Err(format!("{}:{} does not answer a connection", to.host, to.port)),
        };
        // Without it a last byte could wait for an acknowledgement, and no race would be one.
        stream.set_nodelay(true).map_err(|error| format!("the socket: {error}"))?;
        if !to.tls {
            return Ok(Box::new(stream));
        }
        let name = ServerName::try_from(to.host.clone()).map_err(|_| format!("{:?} is no name for TLS", to.host))?;
        let tls = if two { &self.tls_two } else { &self.tls };
        let stream = match timeout(CONNECT_WITHIN, tls.connect(name, stream)).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) if two && refuses_protocol(&error) => return Err(format!("{} {NO_TWO}", to.host)),
            Ok(Err(error)) => return Err(format!("TLS with {} failed: {error}", to.host)),
            Err(_) => return Err(format!("{} does not answer TLS", to.host)),
        };
        if two && stream.get_ref().1.alpn_protocol() != Some(ALPN_TWO) {
            return Err(format!("{} {NO_TWO}", to.host));
        }
        Ok(Box::new(stream))
    }

    /// Sends a request, once, and reads its answer. With a barrier the last byte waits for all others.
    pub(crate) async fn carry(
        &self,
        to: &Address,
        outgoing: &Outgoing,
        barrier: Option<&Barrier>,
        kept: Option<Connection>,
    ) -> (Carried, Option<Connection>) {
        if let Some(head) = &outgoing.two {
            return self.carry_two(to, head, outgoing, barrier, kept).await;
        }
        let mut carried = Carried::begun();
        let opened = match kept {
            Some(Connection::One(line)) => Ok(line),
            Some(Connection::Two(_)) | None => self.line(to, false).await,
        };
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
                (carried, read.reusable.then_some(Connection::One(connection)))
            }
            Err(_) => {
                carried.fault = Some(format!("no answer within {} s", self.answer_within.as_secs()));
                (carried, None)
            }
        }
    }
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

async fn write(connection: &mut Box<dyn Line>, bytes: Vec<u8>) -> Result<(), String> {
    let writing = async {
        connection.write_all(&bytes).await?;
        connection.flush().await
    };
    writing.await.map_err(|error| format!("the connection broke while sending: {error}"))
}
