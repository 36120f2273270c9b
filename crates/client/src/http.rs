//! HTTP/1.1 and HTTP/2 over TCP and TLS: one connection for each attempt. A connection that was used before can be at
//! its end without our knowing, and then nobody can say what was sent; a fresh one leaves that question to its bytes.
//!
//! What an answer means belongs to the profile, when to send to `deliver`.

mod line;

use std::error::Error as _;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use counterfoil_core::receipt::Body;
use counterfoil_core::{Receipt, sent::Sent};
use http::header::{HOST, USER_AGENT};
use http::uri::Scheme;
use http::{HeaderValue, Request, Response, Uri, Version};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsConnector;

use self::line::{AnyStream, Drivers, Watched};
use crate::error::ClientError;
use crate::transport::{ANSWER_BYTES_MAX, Heard, Outgoing, Sending, Transport, received};

/// The most bytes of an answer's header.
const HEADER_BYTES_MAX: usize = 64 * 1024;
/// The most lines of an answer's header.
const HEADER_LINES_MAX: usize = 256;
const AGENT: &str = concat!("counterfoil/", env!("CARGO_PKG_VERSION"));
const H2: &[u8] = b"h2";

/// Sends over the network. Cheap to clone.
#[derive(Clone)]
pub struct Http {
    tls: Arc<ClientConfig>,
}

impl Http {
    /// Trusts the certificate authorities of the system.
    ///
    /// # Errors
    /// [`ClientError::Tls`] where it has none that are readable.
    pub fn new() -> Result<Self, ClientError> {
        let found = rustls_native_certs::load_native_certs();
        let mut roots = RootCertStore::empty();
        // Some of a system's many certificates may be of a form that nobody needs.
        let (added, _) = roots.add_parsable_certificates(found.certs);
        if added == 0 {
            let why = found.errors.first().map(|error| format!(" ({error})")).unwrap_or_default();
            return Err(ClientError::Tls(format!(
                "the system has no list of certificate authorities{why}: install ca-certificates"
            )));
        }
        Self::trusting(roots)
    }

    /// Trusts these certificate authorities and no others.
    ///
    /// # Errors
    /// [`ClientError::Tls`].
    pub fn trusting(roots: RootCertStore) -> Result<Self, ClientError> {
        let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| ClientError::Tls(error.to_string()))?;
        let mut config = config.with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = vec![H2.to_vec(), b"http/1.1".to_vec()];
        Ok(Self { tls: Arc::new(config) })
    }

    async fn once(&self, request: Outgoing, until: Instant) -> Heard {
        let reached = timeout_at(until, self.reach(&request.url)).await;
        let (stream, two) = match reached {
            Ok(Ok(reached)) => reached,
            Ok(Err(why)) => return Heard::NotSent(why),
            Err(_) => return Heard::NotSent("no connection before the attempt's time limit".to_owned()),
        };
        // A connection that came late is not used: a time-out looks at its clock only where it has to wait.
        if Instant::now() >= until {
            return Heard::NotSent("the attempt's time limit is over".to_owned());
        }
        let (stream, witness) = Watched::new(stream, if two { Sent::two() } else { Sent::one() });
        let answered = timeout_at(until, exchange(stream, two, request)).await;
        let why = match answered {
            Ok(Ok(answer)) if answer.body != Body::NotKept && witness.is_cut() => {
                format!("the answer {} broke off", answer.status)
            }
            Ok(Ok(answer)) => return Heard::Answered(answer),
            Ok(Err(why)) => why,
            Err(_) => "no whole answer before the attempt's time limit".to_owned(),
        };
        if witness.is_unsent() { Heard::NotSent(why) } else { Heard::Uncertain(why) }
    }

    /// A connection to the URL's host, and whether HTTP/2 is spoken on it.
    async fn reach(&self, url: &Uri) -> Result<(AnyStream, bool), String> {
        let host = url.host().ok_or("the URL names no host")?;
        let secure = url.scheme() == Some(&Scheme::HTTPS);
        let port = url.port_u16().unwrap_or(if secure { 443 } else { 80 });
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let stream = TcpStream::connect((bare, port)).await.map_err(|error| format!("{host}:{port}: {error}"))?;
        stream.set_nodelay(true).map_err(|error| error.to_string())?;
        if !secure {
            return Ok((Box::new(stream), false));
        }
        let name = ServerName::try_from(bare.to_owned())
            .map_err(|_| format!("{host} is no name that a certificate can have"))?;
        let shaken = TlsConnector::from(self.tls.clone()).connect(name, stream).await;
        let stream = shaken.map_err(|error| format!("{host}:{port}: TLS: {error}"))?;
        let two = stream.get_ref().1.alpn_protocol() == Some(H2);
        Ok((Box::new(stream), two))
    }
}

impl Transport for Http {
    fn send(&self, request: Outgoing, until: Instant) -> Sending<'_> {
        Box::pin(self.once(request, until))
    }
}

/// One request and its whole answer. The connection lives as long as this future.
async fn exchange(stream: Watched, two: bool, request: Outgoing) -> Result<Receipt, String> {
    let request = message(request, two)?;
    let stream = TokioIo::new(stream);
    if two {
        let drivers = Drivers::default();
        let mut builder = http2::Builder::new(drivers.hand());
        builder.max_header_list_size(u32::try_from(HEADER_BYTES_MAX).unwrap_or(u32::MAX));
        let (mut sender, connection) = builder.handshake(stream).await.map_err(|error| told(&error))?;
        let answering = async {
            let answer = sender.send_request(request).await.map_err(|error| told(&error))?;
            whole(answer).await
        };
        driven(connection, answering).await
    } else {
        let mut builder = http1::Builder::new();
        builder.max_buf_size(HEADER_BYTES_MAX).max_headers(HEADER_LINES_MAX);
        let (mut sender, connection) = builder.handshake(stream).await.map_err(|error| told(&error))?;
        let answering = async {
            let answer = sender.send_request(request).await.map_err(|error| told(&error))?;
            whole(answer).await
        };
        driven(connection, answering).await
    }
}

/// Drives the connection until the answer is whole. Its own end is no answer: the answer says what that came to.
async fn driven<T>(
    connection: impl Future<Output = Result<(), hyper::Error>>,
    answering: impl Future<Output = T>,
) -> T {
    let driving = async {
        if let Err(error) = connection.await {
            tracing::debug!(error = told(&error), "a connection ended");
        }
        std::future::pending().await
    };
    tokio::select! {
        biased;
        answer = answering => answer,
        never = driving => never,
    }
}

fn message(outgoing: Outgoing, two: bool) -> Result<Request<Full<Bytes>>, String> {
    let Outgoing { method, url, mut headers, body } = outgoing;
    headers.entry(USER_AGENT).or_insert(HeaderValue::from_static(AGENT));
    let mut request = Request::new(Full::new(body));
    if two {
        *request.version_mut() = Version::HTTP_2;
        *request.uri_mut() = url;
    } else {
        let host = url.authority().map(|authority| authority.as_str()).unwrap_or_default();
        // User information is no part of the field's value (RFC 9110 section 7.2).
        let host = host.rsplit('@').next().unwrap_or_default();
        headers.insert(HOST, HeaderValue::from_str(host).map_err(|error| error.to_string())?);
        let target = url.path_and_query().map_or("/", |target| target.as_str());
        *request.uri_mut() = target.parse().map_err(|error| format!("the URL's path: {error}"))?;
    }
    *request.method_mut() = method;
    *request.headers_mut() = headers;
    Ok(request)
}

/// Reads an answer to its end. Where its body is too large it is not read on, and not kept.
async fn whole(answer: Response<Incoming>) -> Result<Receipt, String> {
    let (head, mut body) = answer.into_parts();
    let mut kept = BytesMut::new();
    let mut receipt = received(head.status, &head.headers, Body::NotKept);
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| format!("the answer {} broke off: {}", receipt.status, told(&error)))?;
        let Ok(data) = frame.into_data() else { continue };
        if kept.len() + data.len() > ANSWER_BYTES_MAX {
            return Ok(receipt);
        }
        kept.extend_from_slice(&data);
    }
    receipt.body = Body::Kept(kept.freeze());
    Ok(receipt)
}

/// The error with its cause, which is where the reason is.
fn told(error: &hyper::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}
