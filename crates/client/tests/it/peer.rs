//! A peer on loopback that does to a connection what a script says. What the client makes of it belongs to the tests.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustls::RootCertStore;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

/// One step of a script.
#[derive(Clone)]
pub(crate) enum Step {
    /// Reads until these bytes have come.
    Until(&'static [u8]),
    /// Writes these bytes.
    Say(Vec<u8>),
    /// Closes at once, with what was not read.
    Close,
    /// Says nothing more, and keeps the connection.
    Silence,
}

/// A running peer.
pub(crate) struct Peer {
    address: SocketAddr,
    connections: Arc<AtomicUsize>,
    roots: Option<RootCertStore>,
}

impl Peer {
    /// Listens in clear.
    pub(crate) async fn start(script: Vec<Step>) -> Self {
        Self::listening(script, None).await
    }

    /// Listens with TLS, and speaks HTTP/2.
    pub(crate) async fn two(script: Vec<Step>) -> Self {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let certificate = made.cert.der().clone();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
        let config = rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()));
        let config = config.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
        let mut config = config.with_single_cert(vec![certificate.clone()], key).unwrap();
        config.alpn_protocols = vec![b"h2".to_vec()];
        let mut roots = RootCertStore::empty();
        roots.add(certificate).unwrap();
        Self::listening(script, Some((TlsAcceptor::from(Arc::new(config)), roots))).await
    }

    async fn listening(script: Vec<Step>, tls: Option<(TlsAcceptor, RootCertStore)>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let (acceptor, roots) = tls.unzip();
        let counted = connections.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                counted.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(serve(stream, acceptor.clone(), script.clone()));
            }
        });
        Self { address, connections, roots }
    }

    /// Where it listens.
    pub(crate) fn url(&self, path: &str) -> http::Uri {
        let (scheme, host) = if self.roots.is_some() { ("https", "localhost") } else { ("http", "127.0.0.1") };
        format!("{scheme}://{host}:{}{path}", self.address.port()).parse().unwrap()
    }

    /// Whom to trust.
    pub(crate) fn roots(&self) -> RootCertStore {
        self.roots.clone().unwrap_or_else(RootCertStore::empty)
    }

    /// How many connections came.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

async fn serve(stream: TcpStream, acceptor: Option<TlsAcceptor>, script: Vec<Step>) {
    match acceptor {
        None => play(stream, script).await,
        Some(acceptor) => {
            if let Ok(stream) = acceptor.accept(stream).await {
                play(stream, script).await;
            }
        }
    }
}

async fn play(mut stream: impl AsyncRead + AsyncWrite + Unpin, script: Vec<Step>) {
    let mut read = Vec::new();
    for step in script {
        match step {
            Step::Until(bytes) => {
                while !read.windows(bytes.len()).any(|window| window == bytes) {
                    if stream.read_buf(&mut read).await.unwrap_or(0) == 0 {
                        return;
                    }
                }
            }
            Step::Say(bytes) => {
                if stream.write_all(&bytes).await.is_err() || stream.flush().await.is_err() {
                    return;
                }
            }
            Step::Close => return,
            Step::Silence => {
                // Until the other side has closed.
                while stream.read_buf(&mut read).await.unwrap_or(0) > 0 {}
                return;
            }
        }
    }
    // What is written is read before the connection is closed.
    let _ = stream.shutdown().await;
    while stream.read_buf(&mut read).await.unwrap_or(0) > 0 {}
}
