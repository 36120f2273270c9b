//! TLS on both sides: reads certificates, keys and roots, and says what to do where they are of no use.
//! Handshakes belong to the listener and the proxy.

use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use crate::config::{Roots, Tls};
use crate::error::ServerError;

/// HTTP/2 in ALPN.
pub(crate) const H2: &[u8] = b"h2";
/// HTTP/1.1 in ALPN.
pub(crate) const HTTP_1_1: &[u8] = b"http/1.1";

/// The most certificates of one file.
const CERTIFICATES_MAX: usize = 10_000;

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

fn fault(path: &Path, why: impl Into<String>) -> ServerError {
    ServerError::Tls { path: path.to_owned(), why: why.into() }
}

/// What accepts callers over TLS, with the certificate that was read last. Clones are the same.
#[derive(Clone)]
pub(crate) struct Acceptor(Arc<RwLock<TlsAcceptor>>);

impl Acceptor {
    pub(crate) fn new(tls: &Tls) -> Result<Self, ServerError> {
        acceptor(tls).map(|acceptor| Self(Arc::new(RwLock::new(acceptor))))
    }

    /// For one handshake.
    pub(crate) fn now(&self) -> TlsAcceptor {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reads the files again; where they are of no use, the last ones stay. Blocks.
    pub(crate) fn reread(&self, tls: &Tls) -> Result<(), ServerError> {
        let acceptor = acceptor(tls)?;
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = acceptor;
        Ok(())
    }
}

/// What accepts callers over TLS: HTTP/2 or HTTP/1.1, whichever they speak.
pub(crate) fn acceptor(tls: &Tls) -> Result<TlsAcceptor, ServerError> {
    let chain = certificates(&tls.certificate)?;
    let key = PrivateKeyDer::from_pem_file(&tls.key).map_err(|error| key_fault(&tls.key, &error))?;
    let config = ServerConfig::builder_with_provider(provider()).with_safe_default_protocol_versions();
    let config = config.map_err(|error| fault(&tls.certificate, error.to_string()))?.with_no_client_auth();
    let mut config = config.with_single_cert(chain, key).map_err(|error| pair_fault(tls, &error))?;
    config.alpn_protocols = vec![H2.to_vec(), HTTP_1_1.to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// What connects to an upstream that offers `alpn`.
pub(crate) fn connector(roots: &Roots, alpn: &[&[u8]]) -> Result<TlsConnector, ServerError> {
    let mut store = RootCertStore::empty();
    match roots {
        Roots::System => system(&mut store)?,
        Roots::File(path) => {
            for certificate in certificates(path)? {
                let refused = |error| fault(path, format!("{error}: give the authority's own certificate"));
                store.add(certificate).map_err(refused)?;
            }
        }
    }
    let config = ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions();
    let config = config.map_err(|error| ServerError::TlsUpstream(error.to_string()))?;
    let mut config = config.with_root_certificates(store).with_no_client_auth();
    config.alpn_protocols = alpn.iter().map(|protocol| protocol.to_vec()).collect();
    Ok(TlsConnector::from(Arc::new(config)))
}

fn system(store: &mut RootCertStore) -> Result<(), ServerError> {
    let found = rustls_native_certs::load_native_certs();
    // Some of a system's many certificates may be of a form that nobody needs.
    let (added, _) = store.add_parsable_certificates(found.certs);
    if added > 0 {
        return Ok(());
    }
    let why = found.errors.first().map(|error| format!(" ({error})")).unwrap_or_default();
    Err(ServerError::TlsUpstream(format!(
        "the system has no list of certificate authorities{why}: install ca-certificates, or name a file in forward.roots"
    )))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, ServerError> {
    let wrong = |error: pem::Error| certificate_fault(path, &error);
    let mut found = Vec::new();
    for certificate in CertificateDer::pem_file_iter(path).map_err(wrong)? {
        found.push(certificate.map_err(wrong)?);
        if found.len() > CERTIFICATES_MAX {
            return Err(fault(path, format!("it has over {CERTIFICATES_MAX} certificates: give fewer")));
        }
    }
    if found.is_empty() {
        return Err(certificate_fault(path, &pem::Error::NoItemsFound));
    }
    Ok(found)
}

fn certificate_fault(path: &Path, error: &pem::Error) -> ServerError {
    let why = match error {
        pem::Error::Io(error) => format!("cannot be read: {error}; let the server's user read it, or name another"),
        pem::Error::NoItemsFound => {
            "holds no certificate: give a PEM file that begins with -----BEGIN CERTIFICATE-----".to_owned()
        }
        _ => format!("is no PEM file: {error}; give the certificate first and its chain after it"),
    };
    fault(path, why)
}

fn key_fault(path: &Path, error: &pem::Error) -> ServerError {
    let why = match error {
        pem::Error::Io(error) => format!("cannot be read: {error}; let the server's user read it, or name another"),
        pem::Error::NoItemsFound => {
            "holds no private key: give an unencrypted PEM file that begins with -----BEGIN PRIVATE KEY-----".to_owned()
        }
        _ => format!("is no PEM file: {error}; give the private key in PEM"),
    };
    fault(path, why)
}

/// What is wrong with a certificate and a key together.
fn pair_fault(tls: &Tls, error: &rustls::Error) -> ServerError {
    let certificate = tls.certificate.display();
    match error {
        rustls::Error::InconsistentKeys(_) => fault(
            &tls.key,
            format!(
                "belongs to another certificate than {certificate}: give the key that the certificate was made for"
            ),
        ),
        rustls::Error::InvalidCertificate(why) => {
            fault(&tls.certificate, format!("holds a certificate that is none ({why:?}): make or fetch it anew"))
        }
        _ => fault(&tls.key, format!("cannot be used with {certificate}: {error}; give an RSA, ECDSA or Ed25519 key")),
    }
}

#[cfg(test)]
mod tests;
