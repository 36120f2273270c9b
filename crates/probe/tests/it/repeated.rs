//! Something on the way that sends each request twice: the target's own number of requests gives it away.
//!
//! What does not belong here: servers that make two effects of one request, which are among the faults.

use std::collections::BTreeMap;

use counterfoil_probe::{Catalogue, FailOn, Probe, ProbeError, Settings, Verdict};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::orders::{Fault, Orders};
use crate::right::{run, settings};

/// A proxy that sends what it takes so many times, and passes the last answer on. Gives its URL.
async fn proxy(orders: &Orders, times: usize) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/orders", listener.local_addr().unwrap());
    let behind = orders.url("").replace("http://", "");
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(pass(stream, behind.clone(), times));
        }
    });
    url
}

async fn pass(mut outside: TcpStream, behind: String, times: usize) -> std::io::Result<()> {
    let mut request = Vec::new();
    while !is_whole(&request) {
        if outside.read_buf(&mut request).await? == 0 {
            // A request that ends in its middle goes nowhere.
            return Ok(());
        }
    }
    // Answers end with their connection, so that nothing of them must be understood here.
    let text = String::from_utf8_lossy(&request).replacen("connection: keep-alive", "connection: close", 1);
    let mut answer = Vec::new();
    for _ in 0..times {
        let mut inside = TcpStream::connect(&behind).await?;
        inside.write_all(text.as_bytes()).await?;
        answer.clear();
        inside.read_to_end(&mut answer).await?;
    }
    outside.write_all(&answer).await
}

fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap_or("0");
    body.len() >= length.parse().unwrap()
}

fn counted(orders: &Orders) -> Settings {
    Settings { requests_url: Some(orders.url("/count")), requests: Some("/requests".to_owned()), ..settings(orders) }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_that_repeats_is_told_from_the_server_behind_it() {
    let orders = Orders::start(Fault::None).await;
    let once = Settings { url: Some(proxy(&orders, 1).await), also: BTreeMap::new(), ..counted(&orders) };
    let case = vec!["A".to_owned(), "B".to_owned()];
    let found = run(&Settings { case, ..once.clone() }).await;
    assert_eq!(found.exit_code(FailOn::Any), 0, "a proxy alone is no fault: {:#?}", found.results);

    let case = vec!["seq/one-effect".to_owned()];
    let twice = Settings { url: Some(proxy(&orders, 2).await), case, ..once };
    let found = run(&twice).await;
    let verdicts: Vec<Verdict> = found.results.iter().map(|result| result.verdict).collect();
    // The server keeps its promise also for the second sending: effects alone would not show it.
    assert_eq!(found.results[0].summary, "2 sent, 201, effects 2");
    assert_eq!(found.results[0].why, "4 requests reached the target, and 2 were sent");
    let retried = Verdict::IntermediaryRetried;
    assert_eq!(verdicts, [retried, retried, Verdict::DependsOnFailed], "both controls, and what builds on them");
    assert_eq!(found.exit_code(FailOn::Any), 3);

    let unseen = run(&Settings { requests_url: None, requests: None, ..twice }).await;
    assert_eq!(unseen.results[0].verdict, Verdict::Conforms, "without that number");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_asked_itself_is_accused_of_nothing() {
    let orders = Orders::start(Fault::None).await;
    let found = run(&counted(&orders)).await;
    assert_eq!(found.count(|verdict| verdict == Verdict::IntermediaryRetried), 0, "{:#?}", found.results);
    assert_eq!(found.exit_code(FailOn::Any), 0);
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("requests");
    std::fs::write(&file, "7\n").unwrap();
    let command = Some(format!("cat {}", file.display()));
    let case = vec!["B1".to_owned()];
    let found = run(&Settings { requests_command: command, case, ..settings(&orders) }).await;
    assert_eq!(found.exit_code(FailOn::Any), 0, "fewer than were sent is no repetition: a cache may answer");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_number_that_grows_by_itself_is_refused() {
    let orders = Orders::start(Fault::None).await;
    let home = tempfile::tempdir().unwrap();
    let command = format!("cd {} && echo x >>all && grep -c x all", home.path().display());
    let settings = Settings { requests_command: Some(command), ..settings(&orders) };
    let found = Probe::new(&settings, Catalogue::built_in().unwrap()).unwrap().run(|_| ()).await;
    assert!(matches!(&found, Err(ProbeError::Usage(why)) if why.contains("from 1 to 2")), "{found:?}");
    let both = Settings { requests_url: Some(orders.url("/count")), ..settings };
    assert!(Probe::new(&both, Catalogue::built_in().unwrap()).is_err_and(|why| why.to_string().contains("not both")));
}
