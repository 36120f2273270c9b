//! The same questions in HTTP/2: a right server gets no deviation, a wrong one does, and a retry may change the version.
//!
//! What does not belong here: what the answers mean, which is the same in every version.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use counterfoil_probe::{Catalogue, FailOn, Probe, ProbeError, Run, Settings, Verdict};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::orders::{Fault, Orders};
use crate::right::{NOT_PUT, is_race, run, settings};
use crate::tls::guarded;

/// How often a fault may stay unseen.
const ROUNDS: u32 = 5;

fn versions(run: &Run) -> BTreeSet<&str> {
    run.exchanges.iter().map(|exchange| exchange.version.as_str()).collect()
}

/// The version of each exchange of a case.
fn of<'a>(run: &'a Run, case: &str) -> Vec<&'a str> {
    let asked = run.exchanges.iter().filter(|exchange| exchange.case == case);
    asked.map(|exchange| exchange.version.as_str()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_right_server_gets_no_deviation_without_tls() {
    let orders = Orders::start(Fault::None).await;
    let (requests_url, requests) = (Some(orders.url("/count")), Some("/requests".to_owned()));
    let settings = Settings { http2: true, requests_url, requests, ..settings(&orders) };
    let found = run(&settings).await;
    for result in &found.results {
        // One asks about parts.
        let is_put = result.row != "D18" && !NOT_PUT.contains(&result.row.as_str());
        assert!(result.verdict.is_answer() || is_race(&result.row) || !is_put, "{result:#?}");
        assert!(!matches!(result.verdict, Verdict::Deviates(_)), "{result:#?}");
    }
    assert_eq!(found.exit_code(FailOn::Any), 0);
    assert_eq!(versions(&found), ["HTTP/2"].into());
    let headers = || found.exchanges.iter().map(|exchange| &exchange.headers);
    assert!(headers().all(|all| all.iter().all(|(name, _)| name != "host" && name != "connection")));
    assert!(headers().all(|all| all[0].0 == ":authority"));
    let plan = Probe::new(&settings, Catalogue::built_in().unwrap()).unwrap().plan();
    assert_eq!(found.effects_left, Some(u64::from(plan.effects)), "nothing is sent twice");
    // What is cut has no end, and what was only half read is kept as such.
    let cut = found.exchanges.iter().filter(|exchange| exchange.lost.as_ref().is_some_and(|it| it.contains("request")));
    assert!(cut.clone().count() > 1 && cut.clone().all(|exchange| exchange.answer.is_none()));
    assert!(found.exchanges.iter().filter_map(|exchange| exchange.answer.as_ref()).any(|answer| !answer.whole));
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_are_seen_as_well() {
    for (fault, case) in [
        (Fault::NoDedup, "seq/one-effect"),
        (Fault::InProgressRuns, "conc/eight"),
        (Fault::HalfBodyRuns, "fail/request-halved"),
        (Fault::CallerGoneSticks, "conc/caller-gone"),
    ] {
        let mut seen = false;
        // A race may not come about.
        for _ in 0..ROUNDS {
            let orders = Orders::start(fault).await;
            let found = run(&Settings { http2: true, case: vec![case.to_owned()], ..settings(&orders) }).await;
            seen = matches!(found.results.last().unwrap().verdict, Verdict::Deviates(_));
            if seen {
                break;
            }
        }
        assert!(seen, "{fault:?} in {case}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn over_tls_the_version_is_chosen_and_a_retry_takes_the_other_one() {
    let orders = Orders::start(Fault::None).await;
    let home = tempfile::tempdir().unwrap();
    let ca = home.path().join("ca.pem");
    let ask = async |alpn: &[&[u8]], http2| {
        let (url, certificate) = guarded(&orders, alpn).await;
        std::fs::write(&ca, certificate).unwrap();
        let case = vec!["B1".to_owned(), "B9".to_owned(), "conc/eight".to_owned()];
        let (url, ca) = (Some(url), Some(ca.to_str().unwrap().to_owned()));
        let settings = Settings { url, ca, http2, case, also: BTreeMap::new(), ..settings(&orders) };
        Probe::new(&settings, Catalogue::built_in().unwrap()).unwrap().run(|_| ()).await
    };
    let (one, two): (&[u8], &[u8]) = (b"http/1.1", b"h2");
    for (alpn, http2, retry) in [
        (&[two, one][..], true, ["HTTP/2", "HTTP/2", "HTTP/1.1"]),
        (&[two, one], false, ["HTTP/1.1", "HTTP/1.1", "HTTP/2"]),
        (&[two], true, ["HTTP/2"; 3]),
        (&[one], false, ["HTTP/1.1"; 3]),
    ] {
        let found = ask(alpn, http2).await.unwrap();
        assert_eq!(found.exit_code(FailOn::Any), 0, "{:#?}", found.results);
        assert_eq!(of(&found, "seq/other-connection"), retry);
        assert_eq!(of(&found, "seq/one-effect"), [retry[0]; 2]);
    }
    for alpn in [&[one][..], &[]] {
        let refused = ask(alpn, true).await;
        assert!(matches!(&refused, Err(ProbeError::Unreachable(_))), "{refused:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_does_not_speak_it_is_out_of_reach() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/orders", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut begins = [0; 3];
            stream.read_exact(&mut begins).await?;
            stream.write_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n").await?;
        }
        Ok::<_, std::io::Error>(())
    });
    let settings = Settings { url: Some(url), http2: true, ..Settings::default() };
    let found = Probe::new(&settings, Catalogue::built_in().unwrap()).unwrap().run(|_| ()).await;
    let why = |why: &str| why.contains("does not speak HTTP/2");
    assert!(matches!(&found, Err(ProbeError::Unreachable(found)) if why(found)), "{found:?}");
}
