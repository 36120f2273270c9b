//! An authority with one certificate for this machine, as files; and callers that believe it.

use std::path::PathBuf;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio_rustls::{TlsAcceptor, TlsConnector};

pub(crate) struct Authority {
    folder: tempfile::TempDir,
}

impl Authority {
    /// Makes an authority, and a certificate for `names`.
    pub(crate) fn new(names: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let certificate = CertificateParams::new(names).unwrap().signed_by(&key, &issuer).unwrap();
        let write = |name: &str, text: String| std::fs::write(folder.path().join(name), text).unwrap();
        write("ca.pem", issuer.pem());
        write("api.pem", certificate.pem());
        write("api.key", key.serialize_pem());
        Self { folder }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The authority's own certificate.
    pub(crate) fn roots(&self) -> PathBuf {
        self.file("ca.pem")
    }

    /// The `[tls]` table of a listener.
    pub(crate) fn table(&self) -> String {
        format!(
            "[tls]\ncertificate = \"{}\"\nkey = \"{}\"\n",
            self.file("api.pem").display(),
            self.file("api.key").display()
        )
    }

    /// Puts another authority's certificate and key in the place of this one's.
    pub(crate) fn give_way_to(&self, other: &Self) {
        for name in ["api.pem", "api.key"] {
            std::fs::copy(other.file(name), self.file(name)).unwrap();
        }
    }

    /// Puts `text` in the place of the certificate.
    pub(crate) fn spoil(&self, text: &str) {
        std::fs::write(self.file("api.pem"), text).unwrap();
    }

    /// What accepts connections with this certificate.
    pub(crate) fn acceptor(&self, alpn: &[&str]) -> TlsAcceptor {
        let chain = vec![CertificateDer::from_pem_file(self.file("api.pem")).unwrap()];
        let key = PrivateKeyDer::from_pem_file(self.file("api.key")).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let mut config = config.with_no_client_auth().with_single_cert(chain, key).unwrap();
        config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
        TlsAcceptor::from(Arc::new(config))
    }

    /// What connects and believes this authority only.
    pub(crate) fn connector(&self, alpn: &[&str]) -> TlsConnector {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(self.roots()).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let mut config = config.with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
        TlsConnector::from(Arc::new(config))
    }
}
