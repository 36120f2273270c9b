//! The same questions over HTTP/2: by ALPN over TLS, by prior knowledge without, and nothing sent twice unseen.
//!
//! What does not belong here: which cases there are; the right shop is asked all of them in `flaws.rs`.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use counterfoil_probe::{Catalogue, FailOn, Probe, ProbeError, Settings, Verdict};
use tokio::net::TcpListener;

use crate::flaws::{settings, told};
use crate::right::run;
use crate::shop::{Flaw, Shop};
use crate::tls::guarded;

/// Settings for a shop behind TLS that offers these protocols; the directory holds its authority.
async fn behind_tls(shop: &Shop, protocols: &[&str], home: &tempfile::TempDir) -> Settings {
    let (url, certificate) = guarded(&shop.url(""), protocols).await;
    let ca = home.path().join("ca.pem");
    std::fs::write(&ca, certificate).unwrap();
    let case = ["B1", "B6", "B9", "conc/eight", "C8", "F9", "F10", "F11", "D1"].map(str::to_owned).to_vec();
    Settings { url: Some(url), case, ca: Some(ca.to_str().unwrap().to_owned()), ..settings(shop).await }
}

#[tokio::test(flavor = "multi_thread")]
async fn alpn_chooses_it_over_tls() {
    let (shop, home) = (Shop::open(Flaw::None).await, tempfile::tempdir().unwrap());
    let both = behind_tls(&shop, &["h2", "http/1.1"], &home).await;
    for http2 in [false, true] {
        let found = run(&Settings { http2, ..both.clone() }).await;
        assert_eq!(found.exit_code(FailOn::Any), 0, "{:#?}", found.results);
        assert_eq!(told(&found, "seq/other-protocol"), Verdict::Conforms);
    }
    let wrong = Shop::open(Flaw::ProtocolsApart).await;
    let found = run(&behind_tls(&wrong, &["h2", "http/1.1"], &home).await).await;
    assert!(matches!(told(&found, "seq/other-protocol"), Verdict::Deviates(_)));
    assert_eq!(told(&found, "seq/one-effect"), Verdict::Conforms);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_target_without_it_is_told_so() {
    let (shop, home) = (Shop::open(Flaw::None).await, tempfile::tempdir().unwrap());
    for protocols in [&[][..], &["http/1.1"]] {
        let one = behind_tls(&shop, protocols, &home).await;
        let found = run(&Settings { case: vec!["B9".to_owned()], ..one.clone() }).await;
        let result = found.results.iter().find(|result| result.id == "seq/other-protocol").unwrap();
        assert!(result.verdict == Verdict::Unobservable && result.why.contains("offers no HTTP/2"), "{result:#?}");
        let all = Settings { http2: true, ..one };
        let refused = Probe::new(&all, Catalogue::built_in().unwrap()).unwrap().run(|_| ()).await;
        assert!(matches!(&refused, Err(ProbeError::Unreachable(why)) if why.contains("no HTTP/2")), "{refused:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_ends_is_not_tried_again() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/orders", listener.local_addr().unwrap());
    let accepted = Arc::new(AtomicUsize::new(0));
    let counted = accepted.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::SeqCst);
            drop(stream);
        }
    });
    let case = vec!["A1".to_owned()];
    let found = run(&Settings { url: Some(url), http2: true, case, ..Settings::default() }).await;
    assert_eq!(told(&found, "control/distinct-keys"), Verdict::SetupFailed);
    // One connection to see whether somebody listens, one for each exchange.
    assert_eq!(accepted.load(Ordering::SeqCst), 1 + found.exchanges.len());
}
