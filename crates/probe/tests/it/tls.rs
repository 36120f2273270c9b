//! The same questions over TLS, to a service whose authority is named, and not to one whose authority is unknown.

use std::collections::BTreeMap;
use std::sync::Arc;

use counterfoil_probe::{Catalogue, FailOn, Probe, ProbeError, Settings};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use crate::orders::{Fault, Orders};
use crate::right::{run, settings};

/// TLS in front of a service; gives its address and its certificate as PEM.
pub(crate) async fn guarded(orders: &Orders, alpn: &[&[u8]]) -> (String, String) {
    let issued = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(issued.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let mut config = config.with_no_client_auth().with_single_cert(vec![issued.cert.der().clone()], key).unwrap();
    config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://localhost:{}/orders", listener.local_addr().unwrap().port());
    let behind = orders.url("").replace("http://", "");
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, behind) = (acceptor.clone(), behind.clone());
            tokio::spawn(async move {
                let mut outside = acceptor.accept(stream).await?;
                let mut inside = TcpStream::connect(behind).await?;
                copy_bidirectional(&mut outside, &mut inside).await
            });
        }
    });
    (url, issued.cert.pem())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_authority_that_is_named_is_believed() {
    let orders = Orders::start(Fault::None).await;
    let (url, certificate) = guarded(&orders, &[]).await;
    let home = tempfile::tempdir().unwrap();
    let ca = home.path().join("ca.pem");
    std::fs::write(&ca, certificate).unwrap();
    let case = vec!["B".to_owned(), "conc/eight".to_owned()];
    let plain = Settings { url: Some(url), also: BTreeMap::new(), case, ..settings(&orders) };
    let believing = Settings { ca: Some(ca.to_str().unwrap().to_owned()), ..plain.clone() };
    let found = run(&believing).await;
    assert_eq!(found.exit_code(FailOn::Any), 0, "{:#?}", found.results);
    let refused = Probe::new(&plain, Catalogue::built_in().unwrap()).unwrap().run(|_| ()).await;
    assert!(matches!(&refused, Err(ProbeError::Unreachable(why)) if why.contains("TLS")), "{refused:?}");
}
