//! Something on the way that sends requests again is flagged where the target's own side counts what arrives.
//!
//! What does not belong here: targets that repeat effects themselves (`faults.rs`).

use counterfoil_probe::{FailOn, Settings, Verdict};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::flaws::{settings, told};
use crate::right::run;
use crate::shop::{Flaw, Shop};

/// Passes requests on, a POST as often as `times`, and the last answer back. It gives the address in front.
async fn in_front_of(shop: &Shop, times: usize) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (front, behind) = (listener.local_addr().unwrap(), shop.url("").replace("http://", ""));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(pass(stream, behind.clone(), times));
        }
    });
    format!("http://{front}")
}

async fn pass(mut outside: TcpStream, behind: String, times: usize) -> std::io::Result<()> {
    let mut request = Vec::new();
    while !is_whole(&request) {
        if outside.read_buf(&mut request).await? == 0 {
            return Ok(());
        }
    }
    let mut answer = Vec::new();
    for _ in 0..if request.starts_with(b"POST") { times } else { 1 } {
        answer.clear();
        let mut inside = TcpStream::connect(&behind).await?;
        inside.write_all(&request).await?;
        inside.read_to_end(&mut answer).await?;
    }
    outside.write_all(&answer).await
}

fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request).to_ascii_lowercase();
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.split_once("content-length: ").map_or("0", |(_, rest)| rest.lines().next().unwrap_or("0"));
    body.len() >= length.parse().unwrap()
}

async fn through(shop: &Shop, times: usize) -> Settings {
    let front = in_front_of(shop, times).await;
    // What may be kept open is of no interest to something that reads to the end.
    let case = ["B1", "B6", "D1", "C1"].map(str::to_owned).to_vec();
    Settings { url: Some(format!("{front}/orders")), case, ..settings(shop).await }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_post_that_is_sent_again_is_flagged_where_requests_are_counted() {
    let shop = Shop::open(Flaw::None).await;
    let deceived = through(&shop, 2).await;
    // A key hides the second request, so the case without keys is the only one that effects give away.
    let found = run(&deceived).await;
    assert_eq!(told(&found, "control/distinct-keys"), Verdict::Conforms);
    assert_eq!(told(&found, "control/no-key-twice"), Verdict::IntermediaryRetried);
    let counters = [
        Settings { requests_url: Some(shop.url("/requests")), requests: Some("/count".to_owned()), ..deceived.clone() },
        Settings {
            requests_url: Some(shop.url("/requests/itself")),
            requests: Some("/count".to_owned()),
            ..deceived.clone()
        },
        Settings {
            requests_command: Some(format!("curl -sf --noproxy '*' {} | tr -dc 0-9", shop.url("/requests"))),
            ..deceived
        },
    ];
    for settings in counters {
        let found = run(&settings).await;
        let flagged = &found.results[0];
        assert_eq!(flagged.verdict, Verdict::IntermediaryRetried, "{flagged:#?}");
        assert!(flagged.why.contains("4 requests reached the target, and 2 were sent"), "{flagged:#?}");
        assert_eq!(told(&found, "seq/one-effect"), Verdict::DependsOnFailed);
        assert_eq!(found.exit_code(FailOn::Any), 3);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_arrives_once_is_not() {
    let shop = Shop::open(Flaw::None).await;
    let plain = through(&shop, 1).await;
    for path in ["/requests", "/requests/itself"] {
        let requests_url = Some(shop.url(path));
        let found = run(&Settings { requests_url, requests: Some("/count".to_owned()), ..plain.clone() }).await;
        assert_eq!(found.count(|verdict| verdict == Verdict::IntermediaryRetried), 0, "{:#?}", found.results);
        assert_eq!(found.exit_code(FailOn::Any), 0);
    }
}
